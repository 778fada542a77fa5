"""Who may not be considered yet: held, too early, dependent on another, or one of an array that is full."""

import pytest

from case import Case
from muster.model.events import Outcome
from muster.model.reasons import ArrayFull, DependsOn, HeldBack, NotBefore


def test_a_held_job_waits_for_its_release() -> None:
    c = Case().node("a", gpus=1)
    job = c.waiting(gpus=1, held=True)
    c.expect(job).waits(because=HeldBack)
    c.releases(job)
    c.expect(job).starts_on("a")


def test_a_waiting_job_can_be_held() -> None:
    c = Case().node("a", gpus=1)
    c.running(gpus=1, on="a")
    job = c.waiting(gpus=1)
    c.expect(job).waits()
    c.holds(job)
    c.expect(job).waits(because=HeldBack)


def test_a_job_does_not_begin_too_early() -> None:
    c = Case().node("a", gpus=1)
    job = c.waiting(gpus=1, begin_in="1h")
    reason = c.expect(job).waits(because=NotBefore)
    assert reason.sentence() == "asked to begin in 1h"
    assert c.wakes_in_seconds == 3600
    c.passes("1h")
    c.expect(job).starts_on("a")


def test_the_cycle_wakes_for_the_first_to_begin() -> None:
    c = Case().node("a", gpus=1)
    c.waiting(gpus=1, begin_in="2h")
    c.waiting(gpus=1, begin_in="30m")
    assert c.wakes_in_seconds == 1800


def test_a_job_waits_for_another_to_end() -> None:
    c = Case().node("a", gpus=2)
    first = c.running(gpus=1, on="a")
    then = c.waiting(gpus=1, after={first: "ok"})
    reason = c.expect(then).waits(because=DependsOn)
    assert first in reason.sentence()
    c.ends(first)
    c.expect(then).starts_on("a")


@pytest.mark.parametrize(
    ("how", "outcome", "starts"),
    [
        ("ok", Outcome.SUCCEEDED, True),
        ("ok", Outcome.FAILED, False),
        ("ok", Outcome.TIMEOUT, False),
        ("any", Outcome.SUCCEEDED, True),
        ("any", Outcome.FAILED, True),
        ("not-ok", Outcome.SUCCEEDED, False),
        ("not-ok", Outcome.NODE_LOST, True),
    ],
)
def test_how_the_other_ended_decides(how: str, outcome: Outcome, starts: bool) -> None:
    c = Case().node("a", gpus=2)
    first = c.running(gpus=1, on="a")
    then = c.waiting(gpus=1, after={first: how})
    c.ends(first, outcome)
    if starts:
        c.expect(then).starts_on("a")
    else:
        c.expect(then).is_withdrawn(Outcome.DEPENDENCY_FAILED)


def test_what_depends_on_a_withdrawn_job_is_withdrawn_in_turn() -> None:
    c = Case().node("a", gpus=2)
    first = c.running(gpus=1, on="a")
    second = c.waiting(gpus=1, after={first: "ok"})
    third = c.waiting(gpus=1, after={second: "ok"})
    last = c.waiting(gpus=1, after={third: "not-ok"})
    c.ends(first, Outcome.FAILED)
    c.expect(second).is_withdrawn()
    c.expect(third).is_withdrawn()
    c.expect(last).starts_on("a")


def test_all_dependencies_must_be_met() -> None:
    c = Case().node("a", gpus=4)
    first, second = c.running(gpus=1, on="a"), c.running(gpus=1, on="a")
    then = c.waiting(gpus=1, after={first: "ok", second: "ok"})
    c.ends(first)
    assert c.expect(then).waits(because=DependsOn) == DependsOn((second,))
    c.ends(second)
    c.expect(then).starts_on("a")


@pytest.mark.parametrize("failed_first", [True, False])
def test_one_that_failed_is_enough_when_two_end_at_once(failed_first: bool) -> None:
    c = Case().node("a", gpus=4)
    ok, failed = c.running(gpus=1, on="a"), c.running(gpus=1, on="a")
    then = c.waiting(gpus=1, after={ok: "ok", failed: "ok"})
    c.expect(then).waits(because=DependsOn)
    if failed_first:
        c.ends(failed, Outcome.FAILED).ends(ok)
    else:
        c.ends(ok).ends(failed, Outcome.FAILED)
    c.expect(then).is_withdrawn()


def test_a_release_does_not_make_up_for_a_failed_dependency() -> None:
    c = Case().node("a", gpus=4)
    first = c.running(gpus=1, on="a")
    then = c.waiting(gpus=1, after={first: "ok"}, held=True)
    c.expect(then).waits(because=HeldBack)
    c.ends(first, Outcome.FAILED).releases(then)
    c.expect(then).is_withdrawn()


def test_a_job_that_came_after_the_failure_is_withdrawn() -> None:
    c = Case().node("a", gpus=4)
    first = c.running(gpus=1, on="a")
    c.ends(first, Outcome.FAILED)
    c.expect(c.waiting(gpus=1, after={first: "ok"})).is_withdrawn()


def test_a_job_that_came_after_the_success_starts() -> None:
    c = Case().node("a", gpus=4)
    first = c.running(gpus=1, on="a")
    c.ends(first)
    c.expect(c.waiting(gpus=1, after={first: "ok"})).starts_on("a")


def test_an_array_runs_as_many_at_once_as_asked() -> None:
    c = Case().node("a", gpus=8)
    sweep = [c.waiting(gpus=1, array=("sweep", 2)) for _ in range(4)]
    other = c.waiting(gpus=1)
    c.expect(sweep[2]).waits(because=ArrayFull)
    assert sum(job in c.starts for job in sweep) == 2
    c.expect(other).starts_on("a")
    c.ends(sweep[0])
    c.expect(sweep[2]).starts_on("a")
    assert sum(job in c.starts for job in sweep) == 3


def test_no_room_is_kept_for_a_job_whose_array_is_full() -> None:
    c = Case().policy("easy").node("a", gpus=4)
    running = c.running(gpus=4, on="a", lasts="3h")
    promised = c.waiting(gpus=4, array=("sweep", 1), time_limit="1h")
    c.expect(promised).is_promised(firm=True)
    c.expect(c.waiting(cpus=1, array=("sweep", 1), time_limit="9d")).starts_on("a")
    c.ends(running)
    c.expect(c.waiting(gpus=4, time_limit="9d")).starts_on("a")
    c.expect(promised).waits(because=ArrayFull)
