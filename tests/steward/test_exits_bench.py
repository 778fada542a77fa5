"""The bench of exits, on a small board."""

import pytest

from bench import steward


def test_the_bench_plays_reports_on_a_board_and_tells_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steward, "_SUBJECTS", 50)
    monkeypatch.setattr(steward, "_SECONDS", 1)
    figures = {figure.name: figure for figure in steward.measure()}
    assert set(figures) == {"exits-memory", "exits-cost", "exits-latency"}
    assert all(figure.value > 0 for figure in figures.values())
