"""``muster use`` as a person types it, against a server that answers what it was told."""

import json
import time
from typing import Any

import pytest
from canned import Canned, view
from test_verbs import on_terminal, refusal

from muster.cli.main import run

Said = pytest.CaptureFixture[str]
HOUR, GIB = 3600, 1 << 30


def row(group: str | None, gpu: tuple[float, float, float | None], **more: Any) -> dict[str, Any]:
    """GPU-hours held, measured and used; and the rest as it mostly is."""
    held, measured, used = gpu
    return {
        "group": group,
        "parent": None,
        "name": None,
        "owner": None,
        "held_seconds": 7200.0,
        "measured_seconds": 5400.0,
        "coverage": 0.75,
        "gpu_held_seconds": held * HOUR,
        "gpu_measured_seconds": measured * HOUR,
        "gpu_used_seconds": None if used is None else used * HOUR,
        "cpu_held_seconds": 16.0 * HOUR,
        "cpu_measured_seconds": 12.0 * HOUR,
        "cpu_used_seconds": 3.0 * HOUR,
        "memory_held_byte_seconds": 2048 * GIB * HOUR,
        "memory_measured_byte_seconds": 1536 * GIB * HOUR,
        "memory_used_byte_seconds": 768 * GIB * HOUR,
        **more,
    }


def use(*rows: dict[str, Any], by: str = "team", more: int = 0) -> dict[str, Any]:
    return {
        "by": by,
        "since": time.time() - 86_400,
        "until": time.time(),
        "metrics": {"gpu": "nvml-utilization", "cpu": "cpu time", "memory": "working set"},
        "rows": list(rows),
        "total": row(None, (2.0, 1.5, 1.2)),
        "more": more,
    }


def test_use_is_a_table_of_held_and_used_with_what_it_was_measured_by(server: Canned, capsys: Said) -> None:
    server.answers["GET /use"] = use(
        row("lab", (2.0, 1.5, 1.2), parent=""), row("ops", (0.0, 0.0, None), parent="", coverage=None)
    )
    assert run(["use"]) == 0
    head, lab, ops, total, below = capsys.readouterr().out.splitlines()
    assert head.split() == ["TEAM", "GPUh", "USED", "CPUh", "USED", "GiBh", "USED", "COVERED"]
    assert lab.split() == [
        "lab",
        "2.00",
        "1.20",
        "(80%)",
        "16.0",
        "3.00",
        "(25%)",
        "2,048",
        "768",
        "(50%)",
        "75%",
    ]
    assert ops.split() == ["ops", "0", "–", "16.0", "3.00", "(25%)", "2,048", "768", "(50%)", "–"]
    assert total.split()[0] == "total"
    assert below.endswith("used: GPUs by nvml-utilization, cpus by cpu time, memory by working set")
    assert server.paths() == ["GET /use?by=team"]


def test_teams_stand_below_the_one_they_are_in(server: Canned, capsys: Said) -> None:
    gpu = (1.0, 1.0, 1.0)
    server.answers["GET /use"] = use(
        row("lab", gpu, parent=""),
        row("ops", gpu, parent=""),
        row("", gpu),
        row("vision", gpu, parent="lab"),
        row("faces", gpu, parent="vision"),
    )
    assert run(["use"]) == 0
    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert names == ["lab", "lab/vision", "lab/vision/faces", "ops", "(no team)", "total"]


def test_who_is_in_no_effort_has_a_row_and_jobs_have_names(server: Canned, capsys: Said) -> None:
    server.answers["GET /use"] = use(row(None, (1.0, 1.0, 1.0)), by="effort")
    assert run(["use", "--by", "effort"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("(no effort) ")
    server.answers["GET /use"] = use(row("12", (1.0, 1.0, 1.0), name="fit", owner="ana"), by="job", more=5)
    assert run(["use", "--by", "job", "-o", "wide", "--limit", "1"]) == 0
    said = capsys.readouterr()
    head, first, *_ = said.out.splitlines()
    assert head.split()[8:] == ["HELD", "GPU", "COVERED", "CPU", "COVERED", "MEMORY", "COVERED", "OWNER"]
    assert first.startswith("12 fit ")
    assert first.split()[-5:] == ["2:00:00", "100%", "75%", "75%", "ana"]
    assert said.err == "muster: 5 more are not shown; --limit 0 shows all\n"


def test_by_gpu_only_gpus_are_told(server: Canned, capsys: Said) -> None:
    nothing = {f"cpu_{kind}_seconds": None for kind in ("held", "measured", "used")}
    nothing |= {f"memory_{kind}_byte_seconds": None for kind in ("held", "measured", "used")}
    answer = use(row("lab7/0", (0.0005, 0.0005, 0.0004), **nothing), by="gpu")
    server.answers["GET /use"] = {**answer, "total": row(None, (0.05, 0.0, None), **nothing)}
    assert run(["use", "--by", "gpu"]) == 0
    head, first, total, below = capsys.readouterr().out.splitlines()
    assert head.split() == ["DEVICE", "GPUh", "USED", "COVERED"]
    assert first.split() == ["lab7/0", "<0.001", "<0.001", "(80%)", "75%"]
    assert total.split() == ["total", "0.050", "–", "75%"]
    assert below.endswith("used: GPUs by nvml-utilization")


def test_json_is_the_answer_itself(server: Canned, capsys: Said) -> None:
    answer = server.answers["GET /use"] = use(row("lab", (2.0, 1.5, None), parent=""))
    assert run(["use", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_what_is_asked_is_passed_on_and_dates_are_those_of_this_machine(
    server: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["GET /use"] = use()
    with monkeypatch.context() as clock:
        clock.setenv("TZ", "UTC+2")
        time.tzset()
        assert run(["use", "--last", "13w", "--team", "lab", "--owner", "ana", "--mine", "--limit", "7"]) == 0
        assert run(["use", "--since", "2026-11-01", "--until", "2026-11-02"]) == 0
        assert run(["use", "--since", "2026-11-01T08:00", "--until", "3h"]) == 0
    time.tzset()
    first, second, third = server.paths()
    assert first == "GET /use?by=team&since=13w&team=lab&owner=ana&mine=true&limit=7"
    day = 1_793_491_200 + 2 * HOUR  # 2026-11-01 by that clock
    assert second == f"GET /use?by=team&since={day}.0&until={day + 2 * 86_400}.0"
    assert third == f"GET /use?by=team&since={day + 8 * HOUR}.0&until=3h"


def test_wrong_words_get_a_sentence(server: Canned, capsys: Said) -> None:
    assert "--last says since when" in refusal(capsys, "use", "--last", "7d", "--since", "2026-11-01")
    assert "not a date" in refusal(capsys, "use", "--since", "2026-11-99")
    assert "invalid choice" in refusal(capsys, "use", "--by", "colour")
    assert server.paths() == []


def test_bars_are_for_terminals_that_are_wide_enough(server: Canned) -> None:
    server.answers["GET /use"] = use(row("lab", (2.0, 1.5, 1.2), parent=""), row("ops", (1.0, 0.0, None)))
    narrow, wide = on_terminal("use"), on_terminal("use", columns=120)
    assert "█" not in narrow
    assert "████████░░" in wide
    assert "USED OF HELD" in wide


def test_ps_says_what_is_used_of_what_is_held(server: Canned, capsys: Said) -> None:
    used = {"share": 0.814, "coverage": 1.0, "cpus": 1.0, "memory_bytes": 1, "gpu_busy": [0.814]}
    running = {"state": "RUNNING", "nodes": ["a"], "started_at": time.time() - 100}
    unknown = {**used, "share": None}
    listed = [view(**running, used=used), view(**running, used=unknown), view(**running, used=None), view()]
    server.answers["GET /jobs"] = {"jobs": listed, "more": 0}
    assert run(["ps"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][8] == "USED"
    assert [line[8] for line in lines[1:4]] == ["81%", "–", "–"]
