"""The figures of advice, measured small."""

import json
from pathlib import Path

import pytest

from bench import bottleneck, rightsize
from bench.__main__ import run
from bench.bottleneck_jobs import JOBS


def test_right_sizing_is_told_by_kind_and_for_all() -> None:
    figures = list(rightsize.measure(1))
    assert [figure.variant for figure in figures] == [*rightsize.KINDS, "all", "all, 1–2×"]
    together = figures[-2]
    assert together.beside is not None
    assert together.value < 1
    assert together.beside["cut_percent"] > 50


def test_the_set_of_jobs_has_at_least_five_kinds_and_twenty_jobs() -> None:
    assert len({job.truth for job in JOBS}) >= 5
    assert len([job for job in JOBS if not job.gpus]) >= 20
    assert len({job.name for job in JOBS}) == len(JOBS)


def test_where_nothing_can_be_measured_recorded_minutes_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bottleneck, "can_measure", lambda: False)
    with_pressure, without = bottleneck.measure()
    assert (with_pressure.variant, with_pressure.value) == (f"{len(JOBS)} recorded", len(JOBS))
    assert without.value < with_pressure.value


def test_run_times_are_foretold_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{n} {n * 10} -1 {50 + n} {n % 4 + 1} -1 -1 -1 99 -1 1 3 1 1 0 -1 -1 -1" for n in range(20)]
    (tmp_path / "tiny.swf").write_text("\n".join(["; MaxProcs: 4", *lines]) + "\n")
    assert run(["prediction", "--data", str(tmp_path), "-o", "json"]) == 0
    wide, narrow = json.loads(capsys.readouterr().out)
    assert (wide["policy"], narrow["policy"]) == ("default", "samples")
    assert wide["value"] >= narrow["value"]
    assert wide["beside"]["jobs"] == 20
