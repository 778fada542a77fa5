"""How long will it run: from history, bounded by the limit asked."""

import math

import pytest

from muster.model.history import HistoryBook
from muster.model.job import Job, single
from muster.model.snapshot import LaneKey
from muster.model.units import DAY, HOUR
from muster.schedule.predict import ceiling, estimate, spread

GANG, OTHER = single(gpus=1), single(gpus=4)


def job(owner: str = "ana", **more: object) -> Job:
    return Job("j", more.pop("gang", GANG), 0.0, owner=owner, **more)  # type: ignore[arg-type]


def ran(*seconds: float, owner: str = "ana", **more: object) -> HistoryBook:
    book = HistoryBook()
    for s in seconds:
        book.ended(job(owner, **more), s)
    return book


def plan(book: HistoryBook, **asked: object) -> float:
    return estimate(book.view(), LaneKey.of(job(**asked)), {}).plan  # type: ignore[arg-type]


def test_a_first_job_is_thought_to_run_as_long_as_it_asked() -> None:
    assert plan(HistoryBook(), time_limit_seconds=HOUR) == pytest.approx(HOUR)


def test_a_first_job_without_a_limit_is_thought_to_run_for_a_day() -> None:
    assert plan(HistoryBook()) == pytest.approx(DAY)


def test_a_first_job_without_a_limit_runs_as_others_do_once_some_have() -> None:
    assert plan(ran(100.0, 400.0, owner="bob")) == pytest.approx(200.0)


def test_what_is_remembered_of_a_new_owner_follows_what_others_run() -> None:
    book = HistoryBook()
    memo: dict[object, object] = {}
    lane = LaneKey.of(job())
    assert estimate(book.view(), lane, memo).plan == pytest.approx(DAY)
    book.ended(job("bob"), 100.0)
    assert estimate(book.view(), lane, memo).plan == pytest.approx(100.0)


def test_what_its_owner_ran_lately_counts() -> None:
    often = plan(ran(*[60.0] * 20), time_limit_seconds=DAY)
    once = plan(ran(60.0), time_limit_seconds=DAY)
    assert 60 < often < once < DAY


def test_like_jobs_count_more() -> None:
    like = plan(ran(60.0, gang=GANG), gang=GANG, time_limit_seconds=HOUR)
    unlike = plan(ran(60.0, gang=OTHER), gang=GANG, time_limit_seconds=HOUR)
    named = plan(ran(60.0, name="sweep-1"), name="sweep-2", time_limit_seconds=HOUR)
    assert like < unlike
    assert named < like


def test_nothing_is_thought_to_outlive_its_limit() -> None:
    assert plan(ran(*[DAY] * 5), time_limit_seconds=600.0) == pytest.approx(600.0)


def test_the_mean_is_longer_than_the_plan() -> None:
    history = ran(10.0, 10.0, 5000.0).view()
    found = estimate(history, LaneKey.of(job(time_limit_seconds=DAY)), {})
    assert found.mean > found.plan


def test_the_spread_holds_most_of_what_was_seen() -> None:
    history = ran(*[float(s) for s in range(100, 2000, 100)]).view()
    low, high = spread(history, LaneKey.of(job(time_limit_seconds=HOUR)))
    assert 100 < low < 1000 < high <= HOUR


def test_the_longest_is_the_limit_or_several_times_the_plan() -> None:
    assert ceiling(HOUR, 60.0) == HOUR
    assert ceiling(None, DAY) == 3 * DAY
    assert ceiling(None, 60.0) == 3 * HOUR
    assert math.isfinite(ceiling(None, 0.0))


def test_the_spread_goes_a_little_beyond_what_was_seen() -> None:
    low, high = spread(ran(*[100.0] * 9).view(), LaneKey.of(job()))
    assert 80 < low < 100 < high < 125


def test_the_spread_is_within_the_limit() -> None:
    low, high = spread(ran(*[HOUR] * 9).view(), LaneKey.of(job(time_limit_seconds=HOUR)))
    assert low < high == HOUR


def test_the_less_is_known_the_wider_is_the_spread() -> None:
    few, many = ran(100.0, 200.0, 300.0, 400.0), ran(*[100.0, 200.0, 300.0, 400.0] * 5)
    few_low, few_high = spread(few.view(), LaneKey.of(job()))
    many_low, many_high = spread(many.view(), LaneKey.of(job()))
    assert few_high / few_low >= many_high / many_low
