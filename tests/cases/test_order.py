"""Whose turn it is: priority, then teams by what they have had, then users, then who waited for long."""

import pytest

from case import Case
from muster.model.units import DAY


def started(c: Case, jobs: list[str]) -> int:
    """How many of these got room."""
    c.expect(jobs[0])
    return sum(job in c.starts for job in jobs)


def test_a_higher_priority_goes_first() -> None:
    c = Case().node("a", gpus=1)
    normal = c.waiting(gpus=1, submitted_ago="5h")
    high = c.waiting(gpus=1, priority="high")
    c.expect(high).starts_on("a")
    c.expect(normal).waits()


def test_low_goes_last_however_long_it_waited() -> None:
    c = Case().node("a", gpus=1)
    low = c.waiting(gpus=1, priority="low", submitted_ago="5d")
    normal = c.waiting(gpus=1)
    c.expect(normal).starts_on("a")
    c.expect(low).waits()


def test_fifo_goes_by_age() -> None:
    c = Case().policy("fifo").node("a", gpus=1)
    young = c.waiting(gpus=1, owner="ana")
    old = c.waiting(gpus=1, owner="bob", submitted_ago="1h")
    c.expect(old).starts_on("a")
    c.expect(young).waits()


def test_fifo_lets_nobody_pass() -> None:
    c = Case().policy("fifo").node("a", gpus=8)
    c.running(gpus=4, on="a")
    big = c.waiting(gpus=8, submitted_ago="1h")
    small = c.waiting(gpus=1)
    c.expect(big).waits()
    c.expect(small).waits()


def test_fifo_lets_no_lower_priority_pass_either() -> None:
    c = Case().policy("fifo").node("a", gpus=8)
    c.running(gpus=4, on="a")
    big = c.waiting(gpus=8, priority="high")
    small = c.waiting(gpus=1)
    c.expect(big).waits()
    c.expect(small).waits()


def test_the_team_that_holds_less_goes_first() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=1)
    c.running(team="nlp", gpus=8, on="a")
    rich = c.waiting(team="nlp", gpus=1, submitted_ago="1h")
    poor = c.waiting(team="vision", gpus=1)
    c.expect(poor).starts_on("b")
    c.expect(rich).waits()


@pytest.mark.parametrize(("ago", "counts"), [("2d", True), ("30d", False)])
def test_past_use_counts_and_fades(ago: str, counts: bool) -> None:
    c = Case().policy(half_life_seconds=DAY).node("a", gpus=1, cpus=64)
    c.ended(team="nlp", cpus=60, ran="1d", ago=ago)
    for n in range(9):
        c.running(team=f"team {n}", on="a")
    old = c.waiting(team="nlp", gpus=1, submitted_ago="1h")
    new = c.waiting(team="vision", gpus=1)
    c.expect(new if counts else old).starts_on("a")


def test_a_burst_of_one_team_alternates_with_anothers() -> None:
    c = Case().node("a", gpus=8)
    nlp = [c.waiting(team="nlp", gpus=1) for _ in range(8)]
    vision = [c.waiting(team="vision", gpus=1) for _ in range(8)]
    assert started(c, nlp) >= 3
    assert started(c, vision) >= 3


def test_a_burst_of_one_of_many_teams_leaves_room_for_the_others() -> None:
    c = Case().node("a", gpus=8)
    burst = [c.waiting(team="nlp", gpus=1, submitted_ago="1h") for _ in range(16)]
    others = [c.waiting(team=f"team {n}", gpus=1) for n in range(4)]
    assert started(c, burst) == started(c, others) == 4


def test_weight_gives_a_larger_share() -> None:
    c = Case().node("a", gpus=8).team("nlp", weight=3).team("vision", weight=1)
    nlp = [c.waiting(team="nlp", gpus=1) for _ in range(8)]
    vision = [c.waiting(team="vision", gpus=1) for _ in range(8)]
    assert started(c, nlp) > started(c, vision) >= 1


def test_a_weighty_team_among_many_goes_first_although_it_holds_more() -> None:
    c = Case().node("a", gpus=10).team("nlp", weight=8)
    c.running(team="nlp", gpus=5, on="a")
    c.running(team="light", gpus=4, on="a")
    light = c.waiting(team="light", gpus=1, submitted_ago="1h")
    weighty = c.waiting(team="nlp", gpus=1)
    c.expect(weighty).starts_on("a")
    c.expect(light).waits()


def test_within_a_team_the_user_who_holds_less_goes_first() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=1)
    c.running(team="nlp", owner="ana", gpus=8, on="a")
    greedy = c.waiting(team="nlp", owner="ana", gpus=1, submitted_ago="1h")
    modest = c.waiting(team="nlp", owner="bob", gpus=1)
    c.expect(modest).starts_on("b")
    c.expect(greedy).waits()


def test_users_are_equal_in_a_team_that_is_one_of_many() -> None:
    c = Case().node("a", gpus=8)
    for n in range(3):
        c.running(team=f"team {n}", gpus=1, on="a")
    c.running(team="nlp", owner="ana", gpus=4, on="a")
    greedy = c.waiting(team="nlp", owner="ana", gpus=1, submitted_ago="1h")
    modest = c.waiting(team="nlp", owner="bob", gpus=1)
    c.expect(modest).starts_on("a")
    c.expect(greedy).waits()


def test_low_priority_is_cheap() -> None:
    c = Case().policy(evict="none").node("a", gpus=8).node("b", gpus=8)
    c.running(team="nlp", gpus=8, on="a")
    c.running(team="vision", gpus=7, on="b", priority="low")
    for n in range(4):
        c.running(team=f"team {n}", on="a")
    dear = c.waiting(team="nlp", gpus=1, submitted_ago="1h")
    cheap = c.waiting(team="vision", gpus=1)
    c.expect(cheap).starts_on("b")
    c.expect(dear).waits()


def test_among_equals_a_short_job_goes_first() -> None:
    c = Case().node("a", gpus=1)
    long = c.waiting(gpus=1, time_limit="2d")
    short = c.waiting(gpus=1, time_limit="5m")
    c.expect(short).starts_on("a")
    c.expect(long).waits()


def test_no_job_waits_for_ever_behind_shorter_ones() -> None:
    c = Case().node("a", gpus=1)
    long = c.waiting(gpus=1, time_limit="1d", submitted_ago="3d")
    short = c.waiting(gpus=1, time_limit="1h")
    c.expect(long).starts_on("a")
    c.expect(short).waits()


def test_a_team_below_another_is_not_behind_one_that_is_not() -> None:
    c = Case().node("a", gpus=1).team("flat").team("org").team("sub", parent="org")
    old = c.waiting(team="sub", gpus=1, time_limit="1h", submitted_ago="10h")
    new = c.waiting(team="flat", gpus=1, time_limit="1h")
    c.expect(old).starts_on("a")
    c.expect(new).waits()


def test_a_job_without_a_team_does_not_always_go_first() -> None:
    c = Case().node("a", gpus=1).team("nlp")
    old = c.waiting(team="nlp", gpus=1, time_limit="1h", submitted_ago="10h")
    stray = c.waiting(gpus=1, owner="bob", time_limit="1h")
    c.expect(old).starts_on("a")
    c.expect(stray).waits()
