"""Columns and rows give the same answers, and a trial that is not committed leaves no mark."""

from random import Random

import msgspec
import numpy as np
from hypothesis import given
from worlds import ANY, gang_of, quick, seeds, shape_of, world_of

from muster.model.events import Seat
from muster.model.job import Gang, Shape
from muster.model.node import Health, Node
from muster.model.reasons import OutOfService
from muster.model.room import Hardware, Room
from muster.schedule.fit import capacity, feasible, never, why_not
from muster.schedule.row import Row, row_capacity, seat_in
from muster.schedule.scratch import Scratch


def filled(luck: Random, seed: int) -> Scratch:
    """A cluster with some seats taken, and some of what broke still held."""
    hw = Hardware(world_of(seed, ANY._replace(jobs=2)).nodes)
    scratch = Scratch(hw, hw.free_room())
    for _ in range(8):
        node, shape = luck.randrange(hw.count), shape_of(luck)
        seat = seat_in(hw, node, Row.of(scratch.room, node), shape)
        if seat is not None:
            scratch.sit(seat)
    if hw.width and luck.random() < 0.3:
        scratch.sit(Seat(hw.nodes[0].name, Shape(gpus=1), (0,), luck.choice([300, 1000])))
    return scratch


def columns(room: Room) -> list[list[int]]:
    names = ("cpus", "memory", "disk", "gpu", "kinds")
    return [getattr(room, name).tolist() for name in names]


@quick(200)
@given(seed=seeds)
def test_rows_and_columns_count_the_same(seed: int) -> None:
    luck = Random(seed)
    scratch = filled(luck, seed)
    hw, room = scratch.hw, scratch.room
    for _ in range(6):
        shape = shape_of(luck)
        many = capacity(hw, room, shape)
        rows = [row_capacity(hw, n, Row.of(room, n), shape) for n in range(hw.count)]
        assert many.tolist() == rows
        assert (many > 0).tolist() == feasible(hw, room, shape).tolist()


@quick(100)
@given(seed=seeds)
def test_as_many_parts_find_a_seat_as_were_counted(seed: int) -> None:
    luck = Random(seed)
    scratch = filled(luck, seed)
    shape = shape_of(luck)
    for node in range(scratch.hw.count):
        row = Row.of(scratch.room, node)
        many = min(row_capacity(scratch.hw, node, row, shape), 20)
        for _ in range(many):
            seat = seat_in(scratch.hw, node, row, shape)
            assert seat is not None
            assert len(seat.devices) == shape.gpus
            row.take(seat)
        assert min(row.gpu, default=0) >= min(0, scratch.room.gpu.min(initial=0))
        if many < 20:
            assert seat_in(scratch.hw, node, row, shape) is None


@quick(100)
@given(seed=seeds)
def test_a_trial_without_commit_changes_nothing(seed: int) -> None:
    luck = Random(seed)
    scratch = filled(luck, seed)
    before = columns(scratch.room)
    with scratch.trial():
        _disturb(luck, scratch)
        with scratch.trial() as inner:
            _disturb(luck, scratch)
            inner.commit()
        with scratch.trial():
            _disturb(luck, scratch)
    assert columns(scratch.room) == before


@quick(100)
@given(seed=seeds)
def test_a_trial_with_commit_keeps_what_was_done_and_no_more(seed: int) -> None:
    luck = Random(seed)
    scratch = filled(luck, seed)
    with scratch.trial() as trial:
        _disturb(luck, scratch)
        then = columns(scratch.room)
        with scratch.trial():
            _disturb(luck, scratch)
        trial.commit()
    assert columns(scratch.room) == then


def _disturb(luck: Random, scratch: Scratch) -> None:
    for part in gang_of(luck).parts:
        for node in range(scratch.hw.count):
            seat = seat_in(scratch.hw, node, Row.of(scratch.room, node), part.shape)
            if seat is not None:
                scratch.sit(seat)
                if luck.random() < 0.3:
                    scratch.leave(seat)


@quick(60)
@given(seed=seeds)
def test_a_copy_of_the_room_is_its_own(seed: int) -> None:
    luck = Random(seed)
    scratch = filled(luck, seed)
    room = scratch.room
    before = columns(room)
    _disturb(luck, Scratch(scratch.hw, room))
    assert columns(room) == before
    assert np.array_equal(room.copy().gpu, room.gpu)


@quick(200)
@given(seed=seeds)
def test_out_of_service_is_the_reason_just_where_nobody_who_leaves_would_help(seed: int) -> None:
    luck = Random(seed)
    nodes = [_maybe_drained(luck, node) for node in filled(luck, seed).hw.nodes]
    hw = Hardware(nodes)
    room, gang = _half_taken(luck, hw), Gang(gang_of(luck).parts[:1])
    if never(hw, gang) is not None:
        return
    reason, alone = why_not(hw, room, gang), why_not(hw, hw.free_room(), gang)
    assert isinstance(reason, OutOfService) is (alone is not None)
    if isinstance(reason, OutOfService):
        assert reason == alone
        drained = {
            n.name for n in nodes if n.health is not Health.UP or not all(d.healthy for d in n.devices)
        }
        assert {one.node for one in reason.out} <= drained
        assert reason.out


def _maybe_drained(luck: Random, node: Node) -> Node:
    health = luck.choice([Health.UP, Health.UP, Health.DRAINED, Health.DOWN])
    devices = tuple(msgspec.structs.replace(d, healthy=luck.random() < 0.6) for d in node.devices)
    return msgspec.structs.replace(node, health=health, devices=devices)


def _half_taken(luck: Random, hw: Hardware) -> Room:
    """What runs may sit on what was drained since."""
    whole = Hardware([msgspec.structs.replace(n, health=Health.UP) for n in hw.nodes])
    scratch = Scratch(hw, hw.free_room())
    for node in range(hw.count):
        seat = seat_in(whole, node, Row.of(scratch.room, node), shape_of(luck))
        if seat is not None and luck.random() < 0.7:
            scratch.sit(seat)
    return scratch.room
