"""Preemption: who yields is whose leaving wastes least, and nobody is chased in circles."""

import pytest

from case import Case
from muster.model.job import Checkpoint
from muster.model.reasons import NoRoom

SAVES = Checkpoint(every_seconds=600.0, on_signal=False)


def test_low_yields_to_normal() -> None:
    c = Case().node("a", gpus=8)
    low = c.running(gpus=8, on="a", priority="low")
    normal = c.waiting(gpus=8)
    c.expect(normal).starts_on("a")
    c.expect(low).is_preempted(because="priority")
    c.expect(low).waits()


@pytest.mark.parametrize("evict", ["low", "none"])
def test_normal_does_not_yield_to_high_unless_the_policy_says_so(evict: str) -> None:
    c = Case().policy(evict=evict).node("a", gpus=8)
    normal = c.running(gpus=8, on="a")
    high = c.waiting(gpus=8, priority="high")
    c.expect(high).waits(because=NoRoom)
    c.expect(normal).stays()


def test_any_lower_priority_yields_if_the_policy_says_so() -> None:
    c = Case().policy(evict="lower").node("a", gpus=8)
    normal = c.running(gpus=8, on="a")
    high = c.waiting(gpus=8, priority="high")
    c.expect(high).starts_on("a")
    c.expect(normal).is_preempted(because="priority")


def test_equals_do_not_evict_each_other() -> None:
    c = Case().policy(evict="lower").node("a", gpus=8)
    first = c.running(gpus=8, on="a", priority="low")
    second = c.waiting(gpus=8, priority="low")
    c.expect(second).waits()
    c.expect(first).stays()


def test_nobody_is_evicted_where_room_is_free() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=8)
    low = c.running(gpus=8, on="a", priority="low")
    c.expect(c.waiting(gpus=8)).starts_on("b")
    c.expect(low).stays()


def test_nobody_is_evicted_in_vain() -> None:
    c = Case().node("a", gpus=8)
    low = c.running(gpus=4, on="a", priority="low")
    c.running(gpus=4, on="a")
    c.expect(c.waiting(gpus=8)).waits(because=NoRoom)
    c.expect(low).stays()


def test_who_saved_lately_yields() -> None:
    c = Case().node("a", gpus=8)
    careless = c.running(gpus=4, on="a", priority="low", since_seconds="2h")
    careful = c.running(gpus=4, on="a", priority="low", since_seconds="9h", checkpoint=SAVES)
    c.expect(c.waiting(gpus=4)).starts_on("a")
    c.expect(careful).is_preempted(because="priority")
    c.expect(careless).stays()


def test_who_has_run_for_less_long_yields() -> None:
    c = Case().node("a", gpus=8)
    old = c.running(gpus=4, on="a", priority="low", since_seconds="9h")
    young = c.running(gpus=4, on="a", priority="low", since_seconds="1h")
    c.expect(c.waiting(gpus=4)).starts_on("a")
    c.expect(young).is_preempted(because="priority")
    c.expect(old).stays()


def test_one_job_yields_rather_than_many_that_lose_more() -> None:
    c = Case().node("a", gpus=8)
    many = [c.running(gpus=1, on="a", priority="low", since_seconds="2h") for _ in range(4)]
    one = c.running(gpus=4, on="a", priority="low", since_seconds="1h")
    c.expect(c.waiting(gpus=4)).starts_on("a")
    c.expect(one).is_preempted(because="priority")
    for job in many:
        c.expect(job).stays()


def test_a_big_job_that_lost_less_yields_rather_than_several_small_ones() -> None:
    c = Case().node("a", gpus=8)
    small = [c.running(gpus=1, on="a", priority="low", since_seconds="2h") for _ in range(4)]
    saves = Checkpoint(every_seconds=1800.0, on_signal=False)
    big = c.running(gpus=4, on="a", priority="low", since_seconds=3600 + 1790, checkpoint=saves)
    c.expect(c.waiting(gpus=4)).starts_on("a")
    c.expect(big).is_preempted(because="priority")
    for job in small:
        c.expect(job).stays()


def test_no_more_leave_than_must() -> None:
    c = Case().node("a", gpus=8)
    small = c.running(gpus=1, on="a", priority="low", since_seconds="1h")
    large = c.running(gpus=7, on="a", priority="low", since_seconds="2h")
    c.expect(c.waiting(gpus=7)).starts_on("a")
    c.expect(large).is_preempted(because="priority")
    c.expect(small).stays()


def test_the_room_of_one_victim_serves_all_whom_it_is_large_enough_for() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=4)
    large = c.running(gpus=8, on="a", priority="low", since_seconds="1h")
    other = c.running(gpus=4, on="b", priority="low", since_seconds="3h")
    first, second = c.waiting(gpus=4), c.waiting(gpus=4, cpus=2)
    c.expect(first).starts_on("a")
    c.expect(second).starts_on("a")
    c.expect(large).is_preempted(because="priority")
    c.expect(other).stays()


def test_a_young_attempt_is_left_alone() -> None:
    c = Case().node("a", gpus=8)
    young = c.running(gpus=8, on="a", priority="low", since_seconds="9m")
    normal = c.waiting(gpus=8)
    c.expect(normal).waits(because=NoRoom)
    c.expect(young).stays()


def test_the_cycle_is_run_again_when_the_protection_ends() -> None:
    c = Case().node("a", gpus=8)
    c.running(gpus=8, on="a", priority="low", since_seconds="9m")
    c.expect(c.waiting(gpus=8)).waits(because=NoRoom)
    assert c.wakes_in_seconds == 60


def test_an_evicted_job_does_not_evict_its_evictor() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.running(team="nlp", gpus=8, on="a", priority="high")
    owner = c.waiting(team="vision", gpus=4, priority="low")
    c.expect(owner).starts_on("a")
    for _ in range(4):
        c.passes("1h")
    c.expect(owner).starts()
    assert owner not in c.evictions
    c.expect(borrower).is_preempted(because="reclaim")
    assert len(c.evictions[borrower]) == 1


def test_what_a_parent_owns_does_not_help_one_child_against_another() -> None:
    """Within its organisation's quota it may be; its sibling is within its own."""
    c = Case().node("a", gpus=4).node("b", gpus=4).team("org", quota=3).team("vision", quota=4)
    c.team("nlp", quota=4, parent="org").team("speech", quota=1, parent="org")
    c.running(team="vision", gpus=4, on="b")
    sibling = c.running(team="speech", gpus=4, on="a")
    owner = c.waiting(team="nlp", gpus=4, priority="low")
    c.expect(owner).starts_on("a")
    c.expect(sibling).is_preempted(because="reclaim")
    for _ in range(3):
        c.passes("1h")
    c.expect(owner).starts()
    assert owner not in c.evictions


def test_being_over_in_one_resource_does_not_make_prey_in_another() -> None:
    """The team borrows GPUs. Its small job, within the cpus it owns, yields to no borrower of cpus."""
    c = Case().node("a", gpus=4, cpus=16).team("nlp", quota=1, cpus=8).team("vision", quota=3, cpus=4)
    c.running(team="nlp", gpus=2, cpus=0, on="a")
    within = c.running(team="nlp", cpus=8, on="a", priority="low")
    c.running(team="vision", cpus=8, on="a")
    borrower = c.waiting(team="vision", cpus=8)
    for _ in range(4):
        c.passes("1h")
    c.expect(borrower).waits()
    c.expect(within).stays()


def test_the_room_of_who_leaves_is_not_given_to_another_meanwhile() -> None:
    """Two leave for one job. The first is gone, the other still saves: nobody slips in."""
    c = Case().policy("easy", evict="low").node("a", gpus=8)
    low = [c.running(gpus=4, on="a", priority="low", lasts="20h") for _ in range(2)]
    high = c.waiting(gpus=8, priority="high", time_limit="1h")
    small = c.waiting(gpus=4, time_limit="1h")
    c.leaves_slowly(low[1])
    c.expect(low[0]).is_preempted(because="priority")
    c.expect(high).waits()
    c.expect(small).waits()
