"""The bench of meters measures, in small."""

from pathlib import Path

import pytest

from bench import meter


def test_what_is_read_is_within_three_percent_of_the_truth(tmp_path: Path) -> None:
    (kind,) = (kind for kind in meter._KINDS if kind.name == "leaks")
    figure = meter._truth(kind, "/proc", str(tmp_path))
    assert figure.name == "meter-error"
    assert figure.value < 3


def test_cost_is_told_with_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_JOBS", 2)
    monkeypatch.setattr(meter, "_LOOKS", 1)
    figure = meter._cost("/proc", str(tmp_path))
    assert figure.variant == "2 jobs"
    assert figure.value > 0
    assert figure.beside is not None
    assert 0 < figure.beside["mb"] < 50
