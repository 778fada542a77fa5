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
Row = dict[str, Any]


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


# --- Hindsight ----------------------------------------------------------------------------------------


def looked_back(group: str | None, jobs: tuple[int, int, int], gpu: float, after: float | None) -> Row:
    """Jobs that ended, are judged, were late; GPU-hours of the judged, and too late; twice as many cpus."""
    held = {"gpu_held_seconds": (gpu + 800) * HOUR, "cpu_held_seconds": 2 * (gpu + 800) * HOUR}
    judged = {"gpu_judged_seconds": gpu * HOUR, "cpu_judged_seconds": 2 * gpu * HOUR}
    late = None if after is None else after * HOUR
    spent = {"gpu_after_seconds": late, "cpu_after_seconds": None if late is None else 2 * late}
    names = {"group": group, "parent": None, "name": None, "owner": None, "because": None}
    return {**names, **dict(zip(("jobs", "judged", "late"), jobs, strict=True)), **held, **judged, **spent}


def hindsight(
    *rows: Row, total: Row, by: str = "owner", reasons: tuple[tuple[str, int, float], ...] = ()
) -> Row:
    found = [
        {"because": why, "jobs": n, "gpu_after_seconds": h * HOUR, "cpu_after_seconds": 2 * h * HOUR}
        for why, n, h in reasons
    ]
    answer = {"by": by, "since": 0.0, "until": time.time(), "rows": list(rows), "more": 0}
    return {**answer, "total": total, "reasons": found}


def test_hindsight_says_what_it_comes_to_and_what_is_not_known(server: Canned, capsys: Said) -> None:
    server.answers["GET /hindsight"] = hindsight(
        looked_back("ana", (12, 9, 3), 2700, 412),
        looked_back("bo", (3, 0, 0), 0, None),
        total=looked_back(None, (15, 9, 3), 2700, 412),
        reasons=(("val_loss had stopped improving", 2, 300), ("loss had become NaN", 1, 112)),
    )
    assert run(["use", "--by", "owner", "--hindsight", "--last", "30d"]) == 0
    head, ana, bo, total, *below = capsys.readouterr().out.splitlines()
    assert head.split() == ["OWNER", "JOBS", "JUDGED", "LATE", "GPUh", "AFTER", "CPUh", "AFTER"]
    assert ana.split() == ["ana", "12", "9", "3", "2,700", "412", "(15%)", "5,400", "824", "(15%)"]
    assert bo.split() == ["bo", "3", "0", "0", "0", "–", "0", "–"]
    assert total.split()[0] == "total"
    assert below == [
        "412 of 2,700 GPUh (15%) were spent after the moment at which an exit would have ended the work:",
        "  300 GPUh: val_loss had stopped improving (2 jobs)",
        "  112 GPUh: loss had become NaN (1 job)",
        "An estimate, on what the jobs reported.",
        "6 of 15 jobs reported no metrics: of what they held (800 GPUh) nothing is known.",
    ]
    assert server.paths() == ["GET /hindsight?by=owner&since=30d"]


def test_hindsight_of_work_that_ended_in_time_or_not_at_all(server: Canned, capsys: Said) -> None:
    fine = looked_back("7", (1, 1, 0), 3, 0.0) | {"name": "fit", "owner": "ana"}
    total = fine | {"gpu_held_seconds": 3 * HOUR, "group": None}
    server.answers["GET /hindsight"] = hindsight(fine, total=total, by="job")
    assert run(["use", "--by", "job", "--hindsight", "-o", "wide"]) == 0
    head, first, _, *below = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["OWNER", "BECAUSE"]
    assert first.split() == ["7", "fit", "1", "1", "0", "3.00", "0", "(0%)", "6.00", "0", "(0%)", "ana", "–"]
    said = ["No exit would have ended any of these jobs sooner.", "An estimate, on what the jobs reported."]
    assert below == said
    server.answers["GET /hindsight"] = hindsight(total=looked_back(None, (0, 0, 0), 0, None))
    assert run(["use", "--hindsight"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No job ended in this time."


def test_hindsight_is_not_of_gpus(server: Canned, capsys: Said) -> None:
    assert "of jobs, not of GPUs" in refusal(capsys, "use", "--by", "gpu", "--hindsight")


def test_use_by_verdict_has_a_row_for_each(server: Canned, capsys: Said) -> None:
    gpu = (1.0, 1.0, 1.0)
    server.answers["GET /use"] = use(row("out-of-time", gpu), row("running", gpu), by="verdict")
    assert run(["use", "--by", "verdict", "--mine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["VERDICT", "out-of-time", "running", "total"]


def test_show_says_what_an_exit_would_have_been_worth(server: Canned, capsys: Said) -> None:
    late = {"because": "val loss had stopped improving", "verdict": "lost", "after_seconds": 3.2 * HOUR}
    late |= {
        "condition": '"val loss" stalls for 1h',
        "gpu_after_seconds": 12.8 * HOUR,
        "cpu_after_seconds": 9.0,
    }
    server.answers["GET /jobs/12"] = view(id="12", state="ENDED", hindsight=late)
    assert run(["show", "12"]) == 0
    expected = (
        "ran 3h 12m after val loss had stopped improving (12.8 GPUh), by what it reported; "
        "next time: --fail '\"val loss\" stalls for 1h'"
    )
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["hindsight"] == expected
