"""How far off predictions were."""

import pytest

from muster.schedule.accuracy import Errors, Foretold, errors


def test_without_runs_nothing_is_known() -> None:
    assert errors([]) == Errors(0, None, None, None)


def test_errors_are_relative_to_what_a_run_took() -> None:
    runs = [Foretold(100.0, 50.0, 150.0, took) for took in (50.0, 100.0, 400.0)]
    found = errors(runs)
    assert found.count == 3
    assert found.median_relative == pytest.approx(0.75)
    assert found.under == pytest.approx(1 / 3)
    assert found.inside == pytest.approx(2 / 3)


def test_runs_under_a_second_are_not_told_apart() -> None:
    found = errors([Foretold(1.0, 1.0, 2.0, 0.001)])
    assert found.median_relative == pytest.approx(0.999)
    assert (found.under, found.inside) == (0.0, 1.0)
