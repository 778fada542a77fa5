"""Gangs: all parts or none, and as near to each other as asked."""

import pytest

from case import Case
from muster.model.reasons import GangTooLarge, NoRoom, NoRoomTogether


def racks(gpus: int = 4) -> Case:
    """Two racks of two nodes."""
    c = Case().node("a1", gpus=gpus, rack="a", switch="x").node("a2", gpus=gpus, rack="a", switch="y")
    return c.node("b1", gpus=gpus, rack="b", switch="x").node("b2", gpus=gpus, rack="b", switch="y")


def test_a_gang_starts_as_a_whole() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    gang = c.waiting(gpus=4, parts=2)
    c.expect(gang).starts_on("a", "b")
    assert len(c.starts[gang].seats) == 2


def test_a_gang_that_fits_only_in_part_takes_nothing() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=1, on="b", lasts="1d")
    gang = c.waiting(gpus=4, parts=2)
    reason = c.expect(gang).waits(because=NoRoomTogether)
    assert reason.sentence() == "only 1 of the 2 parts fit now"
    c.expect(c.waiting(gpus=4, time_limit="1h")).starts_on("a")


def test_parts_of_two_kinds_start_together() -> None:
    c = Case().node("a", gpus=4, cpus=4).node("b", cpus=64)
    gang = c.waiting(parts=({"gpus": 4, "cpus": 4}, {"cpus": 32}))
    c.expect(gang).starts_on("a", "b")


@pytest.mark.parametrize("together", ["anywhere", "spread"])
def test_a_small_part_does_not_take_the_only_place_of_a_large_one(together: str) -> None:
    c = Case().node("a", cpus=8).node("b", cpus=2, gpus=4)
    c.waiting(gpus=4, held=True)  # GPUs are wanted, so that jobs without keep off them
    gang = c.waiting(parts=({"cpus": 1}, {"cpus": 8}), together=together)
    c.expect(gang).starts_on("a", "b")


def test_parts_of_two_kinds_wait_for_each_other() -> None:
    c = Case().node("a", gpus=4, cpus=4).node("b", cpus=64)
    c.running(cpus=60, on="b")
    gang = c.waiting(parts=({"gpus": 4, "cpus": 4}, {"cpus": 32}))
    c.expect(gang).waits(because=NoRoom)
    assert gang not in c.starts


def test_room_is_kept_for_parts_of_two_kinds() -> None:
    c = Case().policy("easy").node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=4, on="a", lasts="2h")
    c.running(gpus=4, on="b", lasts="2h")
    gang = c.waiting(parts=({"gpus": 4, "cpus": 1}, {"gpus": 4, "cpus": 2}), time_limit="1h")
    c.expect(c.waiting(cpus=1)).starts()
    c.expect(gang).is_promised(within="1h")


def test_on_one_node_means_one_node() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=2, on="a")
    gang = c.waiting(gpus=1, parts=4, together="node")
    c.expect(gang).starts_on("b")


def test_on_one_node_waits_while_the_room_is_on_two() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=2, on="a")
    c.running(gpus=2, on="b")
    gang = c.waiting(gpus=1, parts=4, together="node")
    c.expect(gang).waits(because=NoRoomTogether)


@pytest.mark.parametrize("together", ["rack", "switch"])
def test_near_means_all_in_the_same_place(together: str) -> None:
    c = racks()
    c.running(gpus=4, on="a1")
    gang = c.waiting(gpus=4, parts=2, together=together)
    nodes = {"rack": ("b1", "b2"), "switch": ("a2", "b2")}[together]
    c.expect(gang).starts_on(*nodes)


def test_a_rack_waits_while_the_room_is_in_two() -> None:
    c = racks()
    c.running(gpus=1, on="a1")
    c.running(gpus=1, on="b2")
    gang = c.waiting(gpus=4, parts=2, together="rack")
    reason = c.expect(gang).waits(because=NoRoomTogether)
    assert reason.sentence() == "only 1 of the 2 parts fit in one rack now"


def test_a_node_that_stands_in_no_rack_is_in_none() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    gang = c.waiting(gpus=4, parts=2, together="rack")
    c.expect(gang).never_runs(because=GangTooLarge)


def test_one_part_is_together_wherever_it_is() -> None:
    c = Case().node("a", gpus=4)
    c.expect(c.waiting(gpus=1, together="rack")).starts_on("a")


def test_spread_puts_no_two_parts_on_one_node() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=8).node("c", gpus=8)
    gang = c.waiting(gpus=1, parts=3, together="spread")
    c.expect(gang).starts_on("a", "b", "c")


def test_more_parts_than_nodes_can_never_be_spread() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=8)
    gang = c.waiting(gpus=1, parts=3, together="spread")
    reason = c.expect(gang).never_runs(because=GangTooLarge)
    assert "2 of the 3 parts" in reason.sentence()


def test_a_gang_larger_than_the_cluster_never_runs() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    gang = c.waiting(gpus=4, parts=3)
    c.expect(gang).never_runs(because=GangTooLarge)


def test_parts_of_two_kinds_that_never_fit_beside_each_other_never_run() -> None:
    c = Case().node("a", gpus=8)
    gang = c.waiting(parts=({"gpus": 8, "cpus": 1}, {"gpus": 8, "cpus": 2}))
    c.expect(gang).never_runs(because=GangTooLarge)


def test_a_gang_takes_the_place_of_a_gang_that_yields() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=8)
    low = c.running(gpus=8, parts=2, on=("a", "b"), priority="low")
    gang = c.waiting(gpus=8, parts=2)
    c.expect(gang).starts_on("a", "b")
    c.expect(low).is_preempted(because="priority")


def test_for_a_spread_gang_nobody_leaves_a_node_that_has_room_already() -> None:
    c = Case().node("a", gpus=2).node("b", gpus=1)
    beside = c.running(gpus=1, on="a", priority="low", since_seconds="1h")
    alone = c.running(gpus=1, on="b", priority="low", since_seconds="9h")
    gang = c.waiting(gpus=1, parts=2, together="spread")
    c.expect(gang).starts_on("a", "b")
    c.expect(alone).is_preempted(because="priority")
    c.expect(beside).stays()
