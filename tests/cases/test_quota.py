"""Quota: what a team owns it gets, what it does not use is lent, and what is lent comes back."""

from case import Case
from muster.model.job import Checkpoint
from muster.model.reasons import OverLimit, QuotaReached
from muster.model.units import MILLI


def test_a_borrower_is_evicted_when_the_lender_comes_back() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.running(team="nlp", gpus=8, on="a")
    owner = c.waiting(team="vision", gpus=4)
    c.expect(owner).starts_on("a")
    c.expect(borrower).is_preempted(because="reclaim")


def test_what_nobody_uses_is_lent() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.waiting(team="nlp", gpus=8)
    c.expect(borrower).starts_on("a")


def test_what_nobody_owns_is_for_all() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=2)
    c.running(team="nlp", gpus=2, on="a")
    stranger = c.waiting(team="guests", gpus=6)
    c.expect(stranger).starts_on("a")


def test_a_team_within_what_it_owns_goes_before_one_that_borrows() -> None:
    c = Case().node("a", gpus=4).team("nlp", quota=1).team("vision", quota=3)
    c.running(team="nlp", gpus=2, on="a")
    borrower = c.waiting(team="nlp", gpus=2, submitted_ago="10h", time_limit="1m")
    owner = c.waiting(team="vision", gpus=2, time_limit="1d")
    c.expect(owner).starts_on("a")
    c.expect(borrower).waits()


def test_a_limit_on_borrowing_holds() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4, borrow=1).team("vision", quota=4)
    c.running(team="nlp", gpus=4, on="a")
    most = c.waiting(team="nlp", gpus=1)
    more = c.waiting(team="nlp", gpus=2)
    c.expect(most).starts_on("a")
    c.expect(more).waits(because=QuotaReached)


def test_who_may_never_hold_as_much_is_told_so() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4, borrow=1).team("vision", quota=4)
    greedy = c.waiting(team="nlp", gpus=6)
    reason = c.expect(greedy).never_runs(because=OverLimit)
    assert "5 GPUs at most" in reason.sentence()


def test_what_a_team_does_not_lend_stays_free() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4, lend=1)
    c.running(team="nlp", gpus=4, on="a")
    fits = c.waiting(team="nlp", gpus=1)
    beyond = c.waiting(team="nlp", gpus=1, priority="low")
    c.expect(fits).starts_on("a")
    c.expect(beyond).waits(because=QuotaReached)


def test_a_borrower_may_not_evict_one_within_its_quota() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrowing = c.running(team="nlp", gpus=4, on="a")
    within = c.running(team="vision", gpus=4, on="a", priority="low")
    greedy = c.waiting(team="nlp", gpus=4, priority="high")
    c.expect(greedy).waits()
    c.expect(within).stays()
    c.expect(borrowing).stays()


def test_siblings_borrow_from_each_other_before_the_rest() -> None:
    c = Case().node("a", gpus=8).team("org", quota=0, borrow=0).team("other", quota=4)
    c.team("nlp", quota=2, parent="org").team("vision", quota=2, parent="org")
    inside = c.waiting(team="nlp", gpus=4)
    beyond = c.waiting(team="nlp", gpus=1, priority="low")
    c.expect(inside).starts_on("a")
    c.expect(beyond).waits(because=QuotaReached)


def test_a_parent_reclaims_for_its_children_from_outside() -> None:
    c = Case().node("a", gpus=8).team("other", quota=4).team("org", quota=2)
    c.team("nlp", quota=2, parent="org")
    outsider = c.running(team="other", gpus=6, on="a")
    c.running(team="nlp", gpus=2, on="a")
    more = c.waiting(team="nlp", gpus=2)
    c.expect(more).starts_on("a")
    c.expect(outsider).is_preempted(because="reclaim")


def test_siblings_do_not_reclaim_from_each_other_what_their_parent_owns() -> None:
    """Both live beyond their own, from what the parent owns: to evict one for the other never ends."""
    c = Case().node("a", gpus=8).team("org", quota=2).team("other", quota=2)
    c.team("nlp", quota=2, parent="org").team("vision", quota=2, parent="org")
    c.running(team="other", gpus=3, on="a")
    c.running(team="nlp", gpus=2, on="a")
    sibling = [c.running(team="vision", gpus=1, on="a") for _ in range(3)]
    c.waiting(team="nlp", gpus=1)
    for job in sibling:
        c.expect(job).stays()


def test_reclaim_takes_no_more_of_a_team_than_it_borrows() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    slightly = [c.running(team="nlp", gpus=1, on="a", since_seconds="1h") for _ in range(5)]
    stranger = c.running(team="guests", gpus=3, on="a", since_seconds="9h")
    owner = c.waiting(team="vision", gpus=4)
    c.expect(owner).starts_on("a")
    c.expect(stranger).is_preempted(because="reclaim")
    assert sum(job in c.evictions for job in slightly) == 1


def test_a_share_asked_by_memory_counts_against_the_quota() -> None:
    c = Case().node("a", gpus=8, gpu_memory="40G").team("nlp", quota=1, borrow=0)
    shares = [c.waiting(team="nlp", gpu_memory="20G") for _ in range(6)]
    c.expect(shares[0]).starts_on("a")
    held = c.fold.snapshot().held["nlp"]
    assert held.gpus_milli <= MILLI


def test_an_owner_gets_its_own_while_a_borrower_has_a_promise() -> None:
    c = Case().policy("easy", order="fair").node("a", gpus=4).node("b", gpus=4)
    c.team("nlp", quota=4).team("vision", quota=4)
    c.running(team="nlp", gpus=3, on="a", lasts="1d")
    c.running(team="nlp", gpus=1, on="b", lasts="5h")
    promised = c.waiting(team="nlp", gpus=4, time_limit="1h", submitted_ago="9h")
    c.expect(promised).is_promised(firm=True)
    owner = c.waiting(team="vision", gpus=2, time_limit="1d")
    c.expect(owner).starts_on("b")


def test_an_owners_gang_of_two_kinds_of_parts_gets_its_own_too() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.running(team="nlp", gpus=8, on="a")
    owner = c.waiting(team="vision", parts=({"gpus": 3}, {"gpus": 1, "cpus": 8}))
    c.expect(owner).starts_on("a")
    c.expect(borrower).is_preempted(because="reclaim")


def test_what_is_not_governed_for_a_team_is_not_borrowed_by_it() -> None:
    """One owns GPUs, the other cpus. Neither borrows what it has no quota of, so neither yields."""
    c = Case().node("a", gpus=4, cpus=16).team("gpus", quota=4).team("cpus", cpus=16)
    within = c.running(team="gpus", gpus=4, cpus=4, on="a")
    other = c.waiting(team="cpus", cpus=14)
    c.expect(other).waits()
    c.expect(within).stays()


def test_the_borrower_who_loses_least_work_yields() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=0).team("vision", quota=8)
    saving = Checkpoint(every_seconds=600.0)
    careless = c.running(team="nlp", gpus=4, on="a")
    careful = c.running(team="nlp", gpus=4, on="a", checkpoint=saving)
    owner = c.waiting(team="vision", gpus=4)
    c.expect(owner).starts_on("a")
    c.expect(careful).is_preempted(because="reclaim")
    c.expect(careless).stays()
