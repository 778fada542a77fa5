"""Time sharing: newcomers get a turn, whoever has had less goes first, and nobody is moved about."""

import pytest

from case import Case
from muster.model.job import Checkpoint
from muster.model.reasons import MakingRoom, NotYourTurn

POLICIES = ["las", "gittins", "srtf", "srsf"]
SAVES = Checkpoint()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_free_cluster_starts_everything(policy: str) -> None:
    c = Case().policy(policy).node("a", gpus=4)
    for job in [c.waiting(gpus=1, runs="1h") for _ in range(4)]:
        c.expect(job).starts_on("a")


@pytest.mark.parametrize("policy", POLICIES)
def test_whoever_runs_is_not_moved_while_there_is_room(policy: str) -> None:
    c = Case().policy(policy).node("a", gpus=4).node("b", gpus=4)
    old = c.running(gpus=2, on="b", since_seconds="20h", lasts="30h")
    new = c.waiting(gpus=4, runs="1h")
    c.expect(new).starts_on("a")
    c.expect(old).stays()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_newcomer_gets_a_turn(policy: str) -> None:
    c = Case().policy(policy).node("a", gpus=4)
    old = c.running(gpus=4, on="a", since_seconds="2d", lasts="9d", checkpoint=SAVES)
    new = c.waiting(gpus=4, runs="1h")
    c.expect(new).starts_on("a")
    c.expect(old).is_preempted(because="turn")
    c.expect(old).waits(because=NotYourTurn)


def test_las_goes_by_what_was_attained() -> None:
    c = Case().policy("las").node("a", gpus=2)
    less = c.running(gpus=1, on="a", since_seconds="20m", lasts="9d")
    more = c.running(gpus=1, on="a", since_seconds="9h", lasts="9d")
    new = c.waiting(gpus=1)
    c.expect(new).starts_on("a")
    c.expect(less).stays()
    c.expect(more).is_preempted(because="turn")


def test_las_comes_back_to_it_when_a_job_has_had_its_fill() -> None:
    c = Case().policy("las", levels_gpu_seconds=(3600.0,)).node("a", gpus=1)
    first, second = c.waiting(gpus=1, runs="9h"), c.waiting(gpus=1, runs="9h")
    c.expect(first).starts_on("a")
    c.expect(second).waits(because=NotYourTurn)
    assert c.wakes_in_seconds == 3600
    c.passes("1h")
    c.expect(second).starts_on("a")
    c.expect(first).is_preempted(because="turn")


def test_a_large_job_has_its_fill_sooner() -> None:
    c = Case().policy("las", levels_gpu_seconds=(3600.0,)).node("a", gpus=4)
    c.expect(c.waiting(gpus=4, runs="9h")).starts_on("a")
    assert c.wakes_in_seconds == 900


def test_srtf_prefers_who_is_nearest_to_its_end() -> None:
    c = Case().policy("srtf").node("a", gpus=1)
    nearly_done = c.running(gpus=1, on="a", since_seconds="9h", lasts="570m")
    new = c.waiting(gpus=1, runs="1h")
    c.expect(new).waits(because=NotYourTurn)
    c.expect(nearly_done).stays()


def test_srsf_weighs_the_gpus() -> None:
    c = Case().policy("srsf").node("a", gpus=4)
    large = c.waiting(gpus=4, runs="1h")
    small = c.waiting(gpus=1, runs="2h")
    c.expect(small).starts_before(large)
    c.expect(large).waits()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_claims_all_its_room_or_none(policy: str) -> None:
    c = Case().policy(policy).node("a", gpus=4).node("b", gpus=4)
    old = [c.running(gpus=4, on=n, since_seconds="2d", lasts="9d") for n in ("a", "b")]
    gang = c.waiting(gpus=4, parts=2, runs="1h")
    c.expect(gang).starts_on("a", "b")
    for job in old:
        c.expect(job).is_preempted(because="turn")


@pytest.mark.parametrize("policy", POLICIES)
def test_parts_that_share_a_node_wait_until_there_is_room_for_all_of_them(policy: str) -> None:
    c = Case().policy(policy).node("a", cpus=4)
    old = c.running(cpus=2, on="a", since_seconds="2d", lasts="9d")
    gang = c.waiting(cpus=2, parts=2, runs="1m")
    c.leaves_slowly(old)
    c.expect(old).is_preempted(because="turn")
    c.expect(gang).waits()


def test_who_fits_where_the_best_does_not_is_not_kept_waiting() -> None:
    c = Case().policy("srtf").node("a", gpus=4)
    running = c.running(gpus=2, on="a", since_seconds="1h", lasts="2h")
    large = c.waiting(gpus=4, runs="3h", submitted_ago="9h")
    small = c.waiting(gpus=2, runs="9h")
    c.expect(small).starts_on("a")
    c.expect(large).waits(because=NotYourTurn)
    c.expect(running).stays()


def test_whoever_waits_for_others_to_leave_is_told_who_they_are() -> None:
    c = Case().policy("las").node("a", gpus=4)
    old = c.running(gpus=4, on="a", since_seconds="2d", lasts="9d")
    new = c.waiting(gpus=4)
    c.leaves_slowly(old)
    reason = c.expect(new).waits(because=MakingRoom)
    assert old in reason.sentence()


def test_a_young_attempt_is_left_alone_if_the_policy_says_so() -> None:
    c = Case().policy("las", protected_seconds=600.0).node("a", gpus=4)
    young = c.running(gpus=4, on="a", since_seconds="5m", lasts="9d")
    c.expect(c.waiting(gpus=4)).waits()
    c.expect(young).stays()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_owner_gets_its_own_when_time_is_shared_as_well(policy: str) -> None:
    c = Case().policy(policy).node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.running(team="nlp", gpus=8, on="a", since_seconds="2d", lasts="9d")
    owner = c.waiting(team="vision", gpus=4, runs="1h")
    c.expect(owner).starts_on("a")
    c.expect(borrower).is_preempted(because="turn")
