"""Work that is over, and when an exit would have ended it."""

import math

from exit_worlds import SMALL, Told, streams
from hypothesis import given

from muster.steward.exits import Board, Report, compiled, first_met, would_have_stopped
from muster.steward.exits.terms import Condition, show

HOUR, MINUTE = 3600.0, 60.0


def told(*values: float, every: float = 10 * MINUTE, metric: str = "loss") -> list[Report]:
    return [Report(n * every, {metric: value}, n) for n, value in enumerate(values)]


# --- With exits -----------------------------------------------------------------------------------------


def test_the_first_report_that_meets_an_exit_is_found() -> None:
    found = first_met(compiled(("acc > 0.5",), ()), told(0.1, 0.3, 0.6, 0.7, metric="acc"))
    assert found is not None
    assert (found[0], found[1].verdict) == (20 * MINUTE, "won")


def test_what_time_would_have_met_is_found_between_and_after_reports() -> None:
    stalls = compiled((), ("loss stalls for 25m",))
    between = first_met(stalls, told(3, 2, 2, 2, 2, 1))
    assert between is not None
    assert between[0] == 35 * MINUTE
    assert first_met(stalls, told(3, 2, 2, 2)) is None
    after = first_met(stalls, told(3, 2, 2, 2), ran_seconds=HOUR)
    assert after is not None
    assert after[0] == 35 * MINUTE


def test_a_later_attempt_may_begin_at_an_earlier_step() -> None:
    reports = [Report(1.0, {"a": 1}, 100), Report(2.0, {"a": 1}, 50, attempt=2)]
    assert first_met(compiled((), ("a > 0 for 1 report and step == 50",)), reports) is not None


@given(SMALL, streams())
def test_a_replay_ends_as_the_board_did(condition: Condition, stream: list[Told]) -> None:
    exits = compiled((), (show(condition),))
    board = Board()
    board.begin("", exits, 0.0, 0.0)
    live = [board.report("", one.source, one.at, one.values, one.step) for one in stream]
    ended = [*filter(None, live), *board.due(1000.0)]
    replayed = first_met(exits, [Report(one.at, one.values, one.step, one.source) for one in stream], 1000.0)
    assert [one.sentence for one in ended] == ([replayed[1].sentence] if replayed else [])


def stopped_at(reports: list[Report], ran_seconds: float) -> float | None:
    found = would_have_stopped(reports, ran_seconds)
    return None if found is None else found.ran_seconds


# --- Without ----------------------------------------------------------------------------------------------


def test_a_loss_that_became_nan_for_good_would_have_ended_it() -> None:
    reports = told(3, math.nan, 2, math.nan, math.nan)
    assert stopped_at(reports, 40 * MINUTE) == 30 * MINUTE
    assert stopped_at(told(3, math.nan, 2), 40 * MINUTE) is None


def test_what_was_never_a_number_did_not_become_nan() -> None:
    assert stopped_at(told(math.nan, math.nan, metric="unused"), HOUR) is None


def test_nothing_better_for_an_hour_and_a_quarter_of_the_time_would_have_ended_it() -> None:
    short = told(3, 2, 1, *[1.5] * 12)
    assert stopped_at(short, 140 * MINUTE) == 80 * MINUTE
    long = told(3, 2, 1, *[1.5] * 60)
    assert stopped_at(long, 620 * MINUTE) == (20 + 155) * MINUTE


def test_one_metric_that_gets_better_is_enough() -> None:
    reports = [Report(n * 600.0, {"loss": 1.0, "acc": n / 100, "lr": 1.0}, n) for n in range(20)]
    assert stopped_at(reports, 20 * 600.0) is None


def test_metrics_without_a_direction_say_nothing() -> None:
    assert stopped_at(told(*[1.0] * 30, metric="lr"), 5 * HOUR) is None
    assert stopped_at([], 5 * HOUR) is None


def test_that_epochs_go_on_is_no_gain() -> None:
    reports = [Report(n * 600.0, {"loss": 1.0, "epoch": n}, n) for n in range(20)]
    assert stopped_at(reports, 190 * MINUTE) == HOUR


def test_silence_is_no_stall() -> None:
    assert stopped_at(told(3, 2, 1, 1.5), 10 * HOUR) is None


def test_a_loss_that_was_never_finite_never_got_better() -> None:
    assert stopped_at(told(*[math.nan] * 20), 190 * MINUTE) == HOUR
