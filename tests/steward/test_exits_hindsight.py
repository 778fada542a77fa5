"""Looking back on work that is over: by which exit it would have ended, when, and how long it ran on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.events import Event, Exited, Outcome, Resumed, Retried, Started, Suspended, Vacated
from muster.steward.exits import Hindsight, Report, compiled, would_have_stopped
from muster.steward.exits.compiled import Exits
from muster.steward.exits.hindsight import Past, RunTime, look_back

HOUR, MINUTE = 3600.0, 60.0


def told(*values: float, metric: str = "val_loss", every: float = 10 * MINUTE) -> list[Report]:
    return [Report(n * every, {metric: value}, n) for n, value in enumerate(values)]


# --- When it ran ----------------------------------------------------------------------------------------

LIFE: list[Event] = [
    Started(100.0, "1", 1),
    Suspended(160.0, "1", 1),
    Resumed(200.0, "1", 1),
    Vacated(210.0, "1", 1, "preempted"),
    Started(300.0, "1", 2),
    Retried(305.0, "1", 2, Outcome.FAILED),
    Started(400.0, "1", 3),
    Exited(425.0, "1", 3, Outcome.SUCCEEDED),
]


def test_time_in_which_it_stood_still_or_waited_is_no_run_time() -> None:
    time = RunTime(LIFE)
    assert time.total == 60 + 10 + 5 + 25
    moments = {50.0: 0.0, 100.0: 0.0, 130.0: 30.0, 180.0: 60.0, 205.0: 65.0, 250.0: 70.0, 401.0: 76.0}
    assert {at: time.until(at) for at in moments} == moments
    assert time.until(9e9) == 100.0


def test_the_moment_in_which_it_had_run_so_long_is_found() -> None:
    time = RunTime(LIFE)
    assert [time.moment(ran) for ran in (0.0, 60.0, 61.0, 72.0, 100.0)] == [100.0, 160.0, 201.0, 302.0, 425.0]
    assert time.moment(100.1) is None
    assert (RunTime([]).total, RunTime([]).until(1.0), RunTime([]).moment(0.0)) == (0.0, 0.0, None)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=20), st.integers(0, 20_000))
def test_moments_and_run_times_are_each_other_s_inverse(gaps: list[int], at: int) -> None:
    moments = [float(sum(gaps[: i + 1])) for i in range(len(gaps) // 2 * 2)]
    events: list[Event] = []
    for i in range(0, len(moments), 2):
        events += [Started(moments[i], "1", i), Vacated(moments[i + 1], "1", i, "")]
    time = RunTime(events)
    ran = time.until(float(at))
    found = time.moment(ran)
    assert found is not None
    assert time.until(found) == ran
    assert found <= max(at, moments[0])


# --- By which exit --------------------------------------------------------------------------------------


def test_without_exits_it_is_judged_by_what_anybody_would_have_written() -> None:
    past = Past(told(3, 2, 1, *[1.5] * 30), 320 * MINUTE)
    assert look_back(past, Exits(), says_when_lost=False) == Hindsight(
        100 * MINUTE, "lost", "val_loss stalls for 80m", "val_loss had stopped improving"
    )
    short = Past(told(3, 2, 1, *[1.5] * 10), 120 * MINUTE)
    found = look_back(short, Exits(), says_when_lost=False)
    assert found is not None
    assert (found.ran_seconds, found.condition) == (80 * MINUTE, "val_loss stalls for 1h")


def test_what_anybody_would_have_written_can_be_written() -> None:
    for reports in (told(3, *[4] * 20, metric="my loss"), told(3, math.nan, metric="odd name")):
        found = would_have_stopped(reports, 200 * MINUTE)
        assert found is not None
        assert compiled((), (found.condition,)).failure[0].text == found.condition


def test_how_long_nothing_must_get_better_can_be_said() -> None:
    reports = told(3, 2, *[2.5] * 20, every=1.0)
    assert would_have_stopped(reports, 21.0) is None
    found = would_have_stopped(reports, 21.0, stalled_seconds=2.0)
    assert found is not None
    assert (found.ran_seconds, found.condition) == (1.0 + 21.0 / 4, "val_loss stalls for 5s")


def test_of_several_metrics_the_one_that_got_better_last_is_named() -> None:
    reports = [Report(n * 600.0, {"loss": 1.0, "acc": min(n, 3) / 10}, n) for n in range(20)]
    found = would_have_stopped(reports, 190 * MINUTE)
    assert found is not None
    assert (found.ran_seconds, found.condition) == (90 * MINUTE, "acc stalls for 1h")


def test_who_said_when_it_is_lost_is_judged_by_that_alone() -> None:
    past = Past(told(3, 2, 1, *[1.5] * 30), 320 * MINUTE)
    exits = compiled((), ("val_loss > 100",))
    assert look_back(past, exits, says_when_lost=True) is None
    only_success = compiled(("val_loss < 0.1",), ())
    assert look_back(past, only_success, says_when_lost=False) is not None


def test_an_exit_that_came_too_late_is_held_against_it_from_when_it_was_met() -> None:
    past = Past(told(3, 2, 1, *[1.5] * 30), 320 * MINUTE, ended="stopped by ana")
    exits = compiled(("val_loss <= 2",), ())
    assert look_back(past, exits, says_when_lost=False) == Hindsight(
        10 * MINUTE, "won", "val_loss <= 2", "val_loss <= 2 was met"
    )


@pytest.mark.parametrize("verdict", ["won", "lost"])
def test_work_that_its_own_exit_has_ended_ended_in_time(verdict: str) -> None:
    conditions = ("val_loss <= 2",)
    exits = compiled(conditions, ()) if verdict == "won" else compiled((), conditions)
    sentence = f"val_loss was 2 at step 1, and val_loss <= 2 ends it as {verdict}"
    past = Past(told(3, 2), 11 * MINUTE, ended=sentence)
    assert look_back(past, exits, says_when_lost=verdict == "lost") is None
