"""Backfill: who waits for much room is kept some, and whoever passes it does not delay it."""

import math

from case import Case
from muster.model.reasons import BehindPromise, NoRoom, TooLarge


def test_a_big_job_is_kept_room_for() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="3h")
    big = c.waiting(gpus=8, time_limit="1h")
    small = c.waiting(gpus=4, time_limit="2h")
    c.expect(small).starts_on("a")
    c.expect(big).is_promised(within="2h", firm=True)


def test_a_short_job_passes_if_it_ends_before() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="3h")
    big = c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    short = c.waiting(gpus=4, time_limit="2h")
    c.expect(big).waits(because=NoRoom)
    c.expect(short).starts_on("a")
    assert c.starts[short].because == "backfill"


def test_a_long_job_does_not_pass() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="3h")
    big = c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    long = c.waiting(gpus=4, time_limit="3h")
    reason = c.expect(long).waits(because=BehindPromise)
    assert reason.sentence() == (f"would delay job {big}, which was promised room in 2h; this may take 3h")


def test_a_long_job_passes_if_it_fits_beside() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=5, on="a", lasts="3h")
    c.waiting(gpus=6, time_limit="1h", submitted_ago="1h")
    beside = c.waiting(gpus=2, time_limit="9d")
    too_much = c.waiting(gpus=1, time_limit="9d")
    c.expect(beside).starts_on("a")
    c.expect(too_much).waits(because=BehindPromise)


def test_a_long_job_passes_on_another_node() -> None:
    c = Case().policy("easy").node("a", gpus=8).node("b", gpus=4)
    c.running(gpus=1, on="a", lasts="3h")
    c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    elsewhere = c.waiting(gpus=4, time_limit="9d")
    c.expect(elsewhere).starts_on("b")


def test_a_gang_of_small_parts_does_not_squeeze_in_beside_a_promise() -> None:
    """Each part would fit beside the promised job; both together do not."""
    c = Case().policy("easy").node("a", cpus=8)
    c.running(cpus=4, on="a", lasts="3h")
    big = c.waiting(cpus=6, time_limit="1h", submitted_ago="1h")
    gang = c.waiting(cpus=2, parts=2, time_limit="9d")
    c.expect(gang).waits(because=BehindPromise)
    c.expect(big).is_promised(within="2h")


def test_a_job_without_a_limit_says_why_it_may_not_pass() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="3h")
    c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    endless = c.waiting(gpus=4)
    c.expect(endless).waits(because=BehindPromise)


def test_no_time_is_promised_that_is_not_known() -> None:
    c = Case().policy("easy").node("a", gpus=8)
    c.running(gpus=4, on="a")
    big = c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    small = c.waiting(gpus=4, time_limit="1h")
    c.expect(small).starts_on("a")
    assert math.isfinite(c.promised_at.get(big, 0.0))


def test_a_plan_becomes_a_promise_when_patience_is_over() -> None:
    c = Case().node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="9h")
    big = c.waiting(gpus=8, time_limit="1h")
    c.expect(big).is_promised(firm=False)
    c.passes("3h")
    c.expect(big).is_promised(firm=True)


def test_a_promise_goes_before_whoever_comes_later() -> None:
    c = Case().policy("easy", order="fair").node("a", gpus=8)
    first = c.running(gpus=4, on="a", lasts="3h")
    big = c.waiting(gpus=8, time_limit="5h", submitted_ago="1h")
    c.expect(big).is_promised()
    newcomer = c.waiting(gpus=4, owner="bob", team="new", time_limit="5m")
    c.expect(newcomer).starts_on("a")
    c.passes("5m").ends(newcomer).ends(first)
    another = c.waiting(gpus=1, owner="eve", team="newer", time_limit="1m")
    c.expect(big).starts_on("a")
    c.expect(another).waits()


def test_one_promise_is_not_bettered_by_breaking_another() -> None:
    """Room for the second comes early, and the first, which has time, must not take it."""
    c = Case().policy("easy").node("a", gpus=8, model="A40").node("b", gpus=8, model="H100")
    c.running(gpus=8, on="a", lasts="2h")
    early = c.running(gpus=8, on="b", lasts="3h")
    anywhere = c.waiting(gpus=8, time_limit="9d", submitted_ago="2h")
    only_b = c.waiting(gpus=8, model="H100", time_limit="1h", submitted_ago="1h")
    c.expect(c.waiting(cpus=1)).starts()
    c.expect(anywhere).is_promised(within="1h")
    c.expect(only_b).is_promised(within="2h")
    c.passes("30m").ends(early)
    c.expect(only_b).starts_on("b")


def test_room_is_kept_for_each_kind_of_hardware() -> None:
    c = Case().policy("easy").node("a", gpus=4, model="A40").node("b", gpus=4, model="H100")
    c.running(gpus=1, on="a", lasts="3h")
    c.running(gpus=1, on="b", lasts="3h")
    one = c.waiting(gpus=4, model="A40", time_limit="1h")
    other = c.waiting(gpus=4, model="H100", time_limit="1h")
    c.expect(one).is_promised()
    c.expect(other).is_promised()


def test_what_can_never_run_keeps_nobody_waiting() -> None:
    c = Case().policy("fifo").node("a", gpus=8)
    impossible = c.waiting(gpus=9, submitted_ago="9d")
    possible = c.waiting(gpus=8)
    c.expect(impossible).never_runs(because=TooLarge)
    c.expect(impossible).is_promised_nothing()
    c.expect(possible).starts_on("a")


def test_shortest_first_backfill_takes_the_shortest() -> None:
    c = Case().policy("easy-sjbf").node("a", gpus=8)
    c.running(gpus=6, on="a", lasts="3h")
    c.waiting(gpus=8, time_limit="1h", submitted_ago="2h")
    older = c.waiting(gpus=2, time_limit="90m", submitted_ago="1h")
    shorter = c.waiting(gpus=2, time_limit="10m")
    c.expect(shorter).starts_on("a")
    c.expect(older).waits(because=NoRoom)


def test_what_is_promised_reckons_with_whoever_was_told_to_leave_only_once() -> None:
    """The one in front evicts, and then runs for long: its victim's end frees nothing a second time."""
    c = Case().policy("easy", evict="low").node("a", gpus=8)
    c.running(gpus=8, on="a", priority="low", lasts="2h")
    evictor = c.waiting(gpus=8, priority="high", time_limit="9h")
    behind = c.waiting(gpus=8, time_limit="1h")
    c.waiting(cpus=1, priority="low")
    c.expect(evictor).starts_on("a")
    assert c.promised_at.get(behind, math.inf) - c.now >= 9 * 3600
