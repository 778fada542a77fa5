"""When a job starts: from the present, by simulation, without touching it."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from asks import gang_of
from case import Case
from muster.model.job import Job
from muster.model.policy import Policy
from muster.model.reasons import TooLarge
from muster.model.snapshot import Snapshot
from muster.server.outlook.forecast import Estimate, accuracy, estimate, forecast_new

HOUR, MINUTE = 3600.0, 60.0


def ticking(step: float = 0.002) -> Callable[[], float]:
    """A clock that goes on a little at each look: the number of draws is the same on every machine."""
    looks = iter(range(1_000_000_000))
    return lambda: next(looks) * step


def asked(case: Case, job_id: str, *, seed: int = 1, budget_seconds: float = 2.0) -> Estimate | None:
    case.expect(job_id)
    snap = case.fold.snapshot()
    rng = np.random.default_rng(seed)
    return estimate(
        snap, Policy(), job_id, now=case.now, rng=rng, clock=ticking(), budget_seconds=budget_seconds
    )


def surely(found: Estimate | None) -> Estimate:
    assert found is not None
    assert found.earliest <= found.likely <= found.latest
    return found


def new_job(case: Case, **gang: object) -> Job:
    return Job("new", gang_of(**gang), case.now, owner="eve", time_limit_seconds=HOUR)  # type: ignore[arg-type]


@pytest.fixture
def busy() -> tuple[Case, str]:
    """A node whose only GPU is taken for another hour at most."""
    case = Case().node("n1", gpus=1)
    return case, case.running(on="n1", gpus=1, lasts="2h", since_seconds="1h", owner="bob")


def test_a_job_starts_within_what_the_one_before_it_has_left(busy: tuple[Case, str]) -> None:
    case, before = busy
    found = surely(asked(case, case.waiting(gpus=1, time_limit="1h")))
    assert case.now < found.earliest < found.latest <= case.now + HOUR
    assert found.latest_by_limits == case.now + HOUR
    assert found.follows == before
    assert found.probability == 0.8


def test_what_ran_before_tells_when_it_ends(busy: tuple[Case, str]) -> None:
    case, _ = busy
    for _ in range(12):
        case.ended(ran="90m", gpus=1, time_limit="2h", owner="bob")
    found = surely(asked(case, case.waiting(gpus=1, time_limit="1h")))
    assert found.likely - case.now == pytest.approx(30 * MINUTE, rel=0.3)
    assert found.latest - found.earliest < 40 * MINUTE


def test_a_job_that_outlived_its_like_may_take_as_long_as_its_limit(busy: tuple[Case, str]) -> None:
    case, _ = busy
    for _ in range(12):
        case.ended(ran="10m", gpus=1, time_limit="2h", owner="bob")
    found = surely(asked(case, case.waiting(gpus=1, time_limit="1h")))
    assert case.now < found.earliest
    assert found.latest > case.now + 30 * MINUTE


def test_without_limits_nobody_knows_the_latest() -> None:
    case = Case().node("n1", gpus=1)
    case.running(on="n1", gpus=1, owner="bob")
    found = surely(asked(case, case.waiting(gpus=1, time_limit="1h")))
    assert found.latest_by_limits is None


def test_a_job_without_a_limit_on_another_node_does_not_matter() -> None:
    case = Case().node("n1", gpus=1, model="A40").node("n2", gpus=1, model="T4")
    case.running(on="n2", gpus=1, owner="bob")
    case.running(on="n1", gpus=1, lasts="2h", since_seconds="1h")
    found = surely(asked(case, case.waiting(gpus=1, model="A40", time_limit="1h")))
    assert found.latest_by_limits == case.now + HOUR


def test_who_waits_longer_comes_first(busy: tuple[Case, str]) -> None:
    case, _ = busy
    first = case.waiting(gpus=1, time_limit="1h", submitted_ago="2h")
    second = case.waiting(gpus=1, time_limit="1h", submitted_ago="1h")
    assert surely(asked(case, first)).likely < surely(asked(case, second)).likely


def test_a_job_that_waits_for_another_starts_after_it(busy: tuple[Case, str]) -> None:
    case, before = busy
    dependent = case.waiting(cpus=1, time_limit="1h", after={before: "ok"})
    found = surely(asked(case, dependent))
    assert found.follows == before
    assert case.now < found.earliest
    assert found.latest <= case.now + HOUR


def test_a_job_that_begins_later_starts_then() -> None:
    case = Case().node("n1", gpus=1)
    found = surely(asked(case, case.waiting(gpus=1, begin_in="3h")))
    assert found.earliest == found.latest == case.now + 3 * HOUR


def test_seconds_are_told_as_seconds() -> None:
    case = Case().node("n1", gpus=1)
    case.running(on="n1", gpus=1, lasts="20s", since_seconds="15s")
    found = surely(asked(case, case.waiting(gpus=1, time_limit="20s")))
    assert case.now < found.earliest < found.latest <= case.now + 5


@pytest.mark.parametrize("wish", [{"gpus": 9}, {"gpus": 1, "held": True}])
def test_of_who_never_starts_or_is_held_nothing_is_said(busy: tuple[Case, str], wish: dict[str, int]) -> None:
    case, _ = busy
    assert asked(case, case.waiting(**wish)) is None


def test_the_same_luck_gives_the_same_answer(busy: tuple[Case, str]) -> None:
    case, _ = busy
    waiting = case.waiting(gpus=1, time_limit="1h")
    assert asked(case, waiting, seed=7) == asked(case, waiting, seed=7)


def test_at_least_three_draws_are_made_however_short_the_time(busy: tuple[Case, str]) -> None:
    case, _ = busy
    waiting = case.waiting(gpus=1, time_limit="1h")
    assert surely(asked(case, waiting, budget_seconds=0.0)).draws == 3
    assert surely(asked(case, waiting, budget_seconds=1e6)).draws == 64


def test_deep_in_the_queue_it_takes_as_long_as_the_work_ahead_drains() -> None:
    case = Case().node("n1", cpus=1)
    for _ in range(10):
        case.ended(ran="10m", cpus=1, time_limit="1h", name="sweep")
    jobs = [case.waiting(cpus=1, time_limit="1h", name="sweep") for _ in range(600)]
    half, last = surely(asked(case, jobs[300])), surely(asked(case, jobs[-1]))
    assert half.likely - case.now == pytest.approx(300 * 10 * MINUTE, rel=0.5)
    assert last.likely - case.now == pytest.approx(600 * 10 * MINUTE, rel=0.5)


def test_an_array_that_runs_few_at_once_takes_its_time() -> None:
    case = Case().node("n1", cpus=64)
    for _ in range(10):
        case.ended(ran="10m", cpus=1, time_limit="1h", name="sweep")
    jobs = [case.waiting(cpus=1, time_limit="1h", name="sweep", array=("a", 2)) for _ in range(400)]
    assert surely(asked(case, jobs[-1])).likely > case.now + 120 * 10 * MINUTE


def test_nothing_is_changed_by_asking(busy: tuple[Case, str]) -> None:
    case, _ = busy
    waiting = case.waiting(gpus=1, time_limit="1h")
    case.expect(waiting)
    before = facts(case.fold.snapshot())
    asked(case, waiting)
    forecast_new(
        case.fold.snapshot(),
        Policy(),
        new_job(case, gpus=1),
        now=case.now,
        rng=np.random.default_rng(1),
        clock=ticking(),
    )
    assert facts(case.fold.snapshot()) == before


def facts(snap: Snapshot) -> tuple[object, ...]:
    lanes = {key: tuple(w.job.id for w in lane) for key, lane in snap.lanes.items()}
    room = (snap.room.cpus.tolist(), snap.room.gpu.tolist(), snap.room.log.end)
    return (snap.generation, lanes, dict(snap.running), dict(snap.accounts), dict(snap.active), room)


# --- What if ----------------------------------------------------------------------------------------------


def test_a_new_job_that_fits_starts_now_and_is_told_where() -> None:
    case = Case().node("n1", gpus=1).node("n2", gpus=4)
    case.expect(case.running(on="n1", gpus=1))
    found = what_if(case, gpus=2)
    assert found.feasible
    assert (found.starts_at, found.nodes) == (case.now, ("n2",))
    assert found.sentence() == "Starts now on n2."


def test_a_new_job_that_never_fits_is_told_why() -> None:
    case = Case().node("n1", gpus=4)
    case.expect(case.waiting(gpus=1))
    found = what_if(case, gpus=8)
    assert not found.feasible
    assert isinstance(found.reason, TooLarge)
    assert found.estimate is None
    assert found.sentence().startswith("Can never run: asks 8 GPUs on one node")
    assert found.sentence().endswith("--nodes 2?")


def test_a_new_job_is_told_who_would_yield() -> None:
    case = Case().node("n1", gpus=1)
    low = case.running(on="n1", gpus=1, priority="low", lasts="9h", since_seconds="1h")
    case.expect(low)
    found = what_if(case, gpus=1)
    assert found.yields == (low,)
    assert found.estimate is not None
    assert found.estimate.latest < case.now + MINUTE


def test_a_new_job_that_waits_is_told_when(busy: tuple[Case, str]) -> None:
    case, _ = busy
    case.expect(case.waiting(cpus=1))
    found = what_if(case, gpus=1)
    assert found.starts_at is None
    assert found.estimate is not None
    assert "Likely starts " in found.text(lambda at: f"in {at - case.now:.0f} s")


def what_if(case: Case, **gang: object):  # type: ignore[no-untyped-def]
    snap = case.fold.snapshot()
    rng = np.random.default_rng(1)
    return forecast_new(snap, Policy(), new_job(case, **gang), now=case.now, rng=rng, clock=ticking())


# --- How good they were -----------------------------------------------------------------------------------


class Said(msgspec.Struct):
    earliest: float | None
    latest: float | None


def test_accuracy_is_the_median_distance_and_the_part_within() -> None:
    found = accuracy([(Said(0, 1200), 600.0), (Said(0, 1200), 1140.0), (Said(0, 1200), 6000.0)])
    assert (found.jobs, found.median_error_seconds, found.within) == (3, 540.0, 2 / 3)
    assert found.sentence() == "Estimates this week were off by 9 minutes at the median (3 jobs)."


def test_what_has_not_started_yet_says_nothing_about_accuracy() -> None:
    found = accuracy([(Said(0, 60), None), (Said(None, None), 60.0)])
    assert found.median_error_seconds is None
    assert found.sentence() == "No estimate of this week could be checked yet."
