"""Who was let go without seats counts against its quota; from when it is seated, it holds what it sits on."""

import pytest

from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import (
    Event,
    Exited,
    NodeSeen,
    Outcome,
    Placed,
    Seat,
    Seated,
    Started,
    Submitted,
    Vacated,
)
from muster.model.job import Gang, Job, Part, Shape
from muster.model.node import Device, Node
from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.snapshot import Running
from muster.monitor.ledger import Ledger
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from room_check import validate

SHAPE = Shape(cpus_milli=2000, gpus=1)
HERE, THERE = Seat("a", SHAPE, (0,), 1000), Seat("b", SHAPE, (1,), 1000)
ASKED = Resources(2000, 0, 1000, 0)
JOB = Job("7", Gang((Part(SHAPE),)), 0.0, owner="ana", team="vision")
LET_GO = Placed(10.0, "7", 1, (), 60.0, 90.0)


def folded(*events: Event) -> Fold:
    fold = Fold(Policy())
    nodes = [Node(name, 8000, 1 << 30, devices=(Device(), Device())) for name in "ab"]
    for event in (*(NodeSeen(0.0, node) for node in nodes), Submitted(0.0, JOB), *events):
        fold.apply(event)
    return fold


def running(fold: Fold) -> Running:
    return fold.running["7"]


def free_gpus(fold: Fold) -> list[list[int]]:
    return fold.snapshot().room.gpu.tolist()


def test_who_was_let_go_holds_no_seat_and_counts_against_its_quota() -> None:
    fold = folded(LET_GO)
    assert free_gpus(fold) == [[1000, 1000], [1000, 1000]]
    assert fold.snapshot().held == {"vision": ASKED}
    assert running(fold).holds_since is None


def test_who_is_seated_holds_from_then_on_where_it_sits() -> None:
    fold = folded(LET_GO, Seated(50.0, "7", 1, (THERE,)), Started(50.0, "7", 1))
    assert free_gpus(fold) == [[1000, 1000], [1000, 0]]
    assert fold.snapshot().held == {"vision": ASKED}
    one = running(fold)
    assert (one.holds_since, one.placed_at, one.expected_end, one.latest_end) == (50.0, 50.0, 110.0, 140.0)
    validate(fold)


def test_what_was_proposed_is_given_back_when_it_sits_elsewhere() -> None:
    fold = folded(Placed(10.0, "7", 1, (HERE,)), Seated(12.0, "7", 1, (THERE,)))
    assert free_gpus(fold) == [[1000, 1000], [1000, 0]]
    validate(fold)


@pytest.mark.parametrize("seated", [False, True])
@pytest.mark.parametrize("end", [Vacated(90.0, "7", 1, "preempted"), Exited(90.0, "7", 1, Outcome.STOPPED)])
def test_whoever_leaves_gives_back_what_it_had(seated: bool, end: Vacated | Exited) -> None:
    fold = folded(LET_GO, *[Seated(50.0, "7", 1, (HERE,))] * seated, end)
    assert free_gpus(fold) == [[1000, 1000], [1000, 1000]]
    assert fold.snapshot().held == {}
    validate(fold)


def test_time_in_the_engines_queue_is_not_spent() -> None:
    fold = folded(LET_GO, Seated(50.0, "7", 1, (HERE,)), Started(50.0, "7", 1), Vacated(60.0, "7", 1, "x"))
    assert fold.stewardship.spending.jobs["7"].cpu_milli_seconds == 10 * 2000
    assert fold.records["7"].waiting is not None
    assert fold.records["7"].waiting.attained_seconds == 10.0


def test_an_image_keeps_who_was_let_go() -> None:
    fold = folded(LET_GO)
    again = fold_from(image_of(fold), Policy())
    again.apply(Seated(50.0, "7", 1, (THERE,)))
    assert free_gpus(again) == [[1000, 1000], [1000, 0]]
    validate(again)


def test_nobody_sits_on_a_node_that_is_not_there_or_sits_down_twice() -> None:
    fold = folded(LET_GO)
    with pytest.raises(BadInput, match="no node c"):
        fold.apply(Seated(50.0, "7", 1, (Seat("c", SHAPE),)))
    fold.apply(Seated(50.0, "7", 1, (THERE,)))
    fold.apply(Started(50.0, "7", 1))
    with pytest.raises(IllegalTransition):
        fold.apply(Seated(51.0, "7", 1, (HERE,)))


@pytest.mark.parametrize("placed", [LET_GO, Placed(10.0, "7", 1, (HERE,))])
def test_the_ledger_reckons_held_from_when_it_was_seated(placed: Placed) -> None:
    ledger = Ledger()
    ledger.apply(placed, JOB)
    ledger.apply(Seated(50.0, "7", 1, (THERE,)))
    ledger.apply(Started(50.0, "7", 1))
    entry = ledger.entry("7", 1)
    assert entry is not None
    assert (entry.placed_at, entry.started_at, entry.holds) == (50.0, 50.0, ASKED)
    assert [device.node for device in entry.devices] == ["b"]


def test_who_left_without_having_been_seated_held_nothing() -> None:
    ledger = Ledger()
    ledger.apply(LET_GO, JOB)
    ledger.apply(Exited(70.0, "7", 1, Outcome.STOPPED))
    entry = ledger.entry("7", 1)
    assert entry is not None
    assert (entry.placed_at, entry.ended_at) == (70.0, 70.0)
