"""An image: whoever goes on from one decides as if nothing had happened, and long queues stay small."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from test_fold import POLICY, Story
from worlds import ANY, play, quick, seeds, world_of

from muster.model.errors import MusterError
from muster.model.events import (
    ArraySubmitted,
    DeviceHealth,
    Event,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Retried,
    Seat,
    Submitted,
    Vacated,
    Withdrawn,
)
from muster.model.job import Dependency, Job, single
from muster.model.node import Device, Health, Node
from muster.model.policy import Policy, preset
from muster.model.run import Run
from muster.schedule import schedule
from muster.store.fold import Fold
from muster.store.image import BrokenImage, fold_from, image_of, is_usable
from room_check import validate

# Remembered answers; what follows from the rest; and who waits for whom, which shows when the rest is folded.
_NOT_COMPARED = {"_memo", "_lent", "_inventory_changed", "_room", "_hardware", "_tenancy", "_dependents"}
_IN_NO_ORDER = {"records", "_held", "_arrays", "apart"}


def insides(fold: Fold) -> dict[str, object]:
    """All that a fold knows, in a form that can be compared, order included."""
    fold.snapshot()
    fold.release()
    known = {name: value for name, value in vars(fold).items() if name not in _NOT_COMPARED}
    for book in ("_history", "_lives", "_mix"):
        value = known[book]
        names = getattr(value, "__slots__", None) or vars(value)
        known[book] = {name: plain(getattr(value, name)) for name in names}
    columns = ("cpus", "memory", "disk", "gpu", "is_open", "kinds")
    known["room"] = {name: getattr(fold._room, name).tolist() for name in columns}
    return {
        name: list(value.items()) if isinstance(value, dict) and name not in _IN_NO_ORDER else value
        for name, value in known.items()
    }


def plain(value: object) -> object:
    if isinstance(value, dict):
        return [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "classes"):
        return (value.classes, value.version)
    return value


def plan_of(fold: Fold, policy: Policy) -> object:
    plan = schedule(fold.snapshot(), policy, now=fold.now)
    fold.release()
    return plan


def assert_nothing_happened(events: list[Event], cut: int, policy: Policy) -> None:
    """Fold up to the cut, take an image, go on from it; and compare with going on without."""
    whole = Fold(policy)
    for event in events[:cut]:
        whole.apply(event)
    restored = fold_from(image_of(whole), policy)
    assert insides(restored) == insides(whole)
    assert plan_of(restored, policy) == plan_of(whole, policy)
    validate(restored)
    for event in events[cut:]:
        whole.apply(event)
        restored.apply(event)
    assert insides(restored) == insides(whole)
    assert plan_of(restored, policy) == plan_of(whole, policy)


@pytest.mark.parametrize("name", ["fair", "gittins", "easy"])
@quick(20)
@given(seed=seeds)
def test_a_world_goes_on_from_an_image_as_without_one(name: str, seed: int) -> None:
    policy, events = preset(name), list[Event]()
    play(world_of(seed, ANY._replace(outages=True)), policy, record=events.append)
    assert_nothing_happened(events, Random(seed).randint(0, len(events)), policy)


@quick(25)
@given(seed=seeds)
def test_any_legal_story_goes_on_from_an_image(seed: int) -> None:
    story = Story(seed)
    events: list[Event] = [NodeSeen(0.0, node) for node in story.world.nodes]
    for _ in range(60):
        fact = story.next()
        try:
            story.fold.apply(fact)
        except MusterError:
            continue
        events.append(fact)
    fold = Fold(POLICY)
    legal = [event for event in events if _is_taken(fold, event)]
    assert_nothing_happened(legal, Random(seed).randint(0, len(legal)), POLICY)


def _is_taken(fold: Fold, event: Event) -> bool:
    """The teams of the story are left out, so a few of its events may no longer be allowed."""
    try:
        fold.apply(event)
    except MusterError:
        return False
    return True


# --- Single stories -----------------------------------------------------------------------------------

NODE = Node("a", 8000, 1 << 30, devices=(Device(),) * 4)
SEAT = Seat("a", single(gpus=1).parts[0].shape, (0,), 1000)


def job(job_id: str, **more: object) -> Job:
    return Job(job_id, single(gpus=1), 0.0, **more)  # type: ignore[arg-type]


ARRAYS: list[Event] = [
    NodeSeen(0.0, NODE),
    ArraySubmitted(1.0, job("7", run=Run(("true",)), retries=1), (1, 2, 3), 2, (("lr", ("1", "2", "3")),)),
    Submitted(1.0, job("8", after=(Dependency("7"),))),
    Placed(2.0, "7_1", 1, (SEAT,)),
    Retried(3.0, "7_1", 1, Outcome.FAILED, exit_code=1, begin_at=60.0),
    Placed(4.0, "7_2", 1, (SEAT,)),
    Exited(5.0, "7_2", 1, Outcome.SUCCEEDED),
    Placed(6.0, "7_3", 1, (SEAT,)),
    Exited(7.0, "7_3", 1, Outcome.SUCCEEDED),
    Placed(60.0, "7_1", 2, (SEAT,)),
    Exited(61.0, "7_1", 2, Outcome.SUCCEEDED),
    Placed(62.0, "8", 1, (SEAT,)),
]


@pytest.mark.parametrize("cut", range(len(ARRAYS) + 1))
def test_an_array_goes_on_from_an_image_at_any_point(cut: int) -> None:
    assert_nothing_happened(ARRAYS, cut, POLICY)


DRAINED: list[Event] = [
    NodeSeen(0.0, NODE),
    Submitted(1.0, job("1")),
    Placed(2.0, "1", 1, (SEAT,)),
    DeviceHealth(3.0, "a", 0, False, "faults"),
    NodeHealth(4.0, "a", Health.DRAINED, "fan is broken"),
    Exited(5.0, "1", 1, Outcome.SUCCEEDED),
    NodeHealth(6.0, "a", Health.UP),
    DeviceHealth(7.0, "a", 0, True),
]


@pytest.mark.parametrize("cut", range(len(DRAINED) + 1))
def test_what_is_out_of_service_stays_so_in_an_image_and_why(cut: int) -> None:
    assert_nothing_happened(DRAINED, cut, POLICY)


TAKEN_BACK: list[Event] = [
    NodeSeen(0.0, NODE),
    Submitted(1.0, job("1")),
    Withdrawn(2.0, "1"),
    Submitted(3.0, job("2")),
    ArraySubmitted(3.0, job("3"), (1, 2)),
    Placed(3.0, "3_1", 1, (SEAT,)),
    Withdrawn(4.0, "2", taken_back=True),
    Vacated(4.0, "3_1", 1, "could not be written down"),
    Withdrawn(4.0, "3_1", taken_back=True),
    Withdrawn(4.0, "3_2", taken_back=True),
    Submitted(5.0, job("4")),
]


@pytest.mark.parametrize("cut", range(len(TAKEN_BACK) + 1))
def test_what_was_taken_back_is_as_if_it_never_was(cut: int) -> None:
    assert_nothing_happened(TAKEN_BACK, cut, POLICY)
    for remembers in (None, 0, 5):
        fold = Fold(POLICY, remembers=remembers)
        for event in TAKEN_BACK:
            fold.apply(event)
        assert set(fold.records) == ({"4"} if remembers == 0 else {"1", "4"})
        assert (fold.arrays, fold.submissions) == ({}, 4)
        assert fold.ended == {("", Outcome.STOPPED): 1}, "of the one that was withdrawn"


def test_what_is_equal_is_one_object_once_restored() -> None:
    fold = Fold(POLICY)
    fold.apply(NodeSeen(0.0, NODE))
    for i in range(6):
        run = Run(("python", "train.py"), environment="some key")
        fold.apply(Submitted(float(i), job(f"{i}", name=f"train-{i}", owner="ana", run=run)))
    fold.apply(Placed(9.0, "0", 1, (SEAT,)))
    records = fold_from(image_of(fold), POLICY).records
    lives = [one for r in records.values() if (one := r.waiting or r.running)]
    lanes = [r.waiting.lane for r in records.values() if r.waiting]
    assert len(lives) == 6
    assert len({id(one.job.gang) for one in lives}) == 1
    assert len({id(one.job.run) for one in lives}) == 1
    assert len({id(lane) for lane in lanes}) == 1


def test_a_fold_that_remembers_less_drops_the_oldest_of_those_that_ended() -> None:
    fold = Fold(POLICY)
    for event in ARRAYS:
        fold.apply(event)
    restored = fold_from(image_of(fold), POLICY, remembers=2)
    assert [j for j, record in restored.records.items() if record.outcome] == ["7_3", "7_1"]


def test_a_damaged_image_is_not_usable_and_is_refused() -> None:
    image = bytearray(image_of(Fold(POLICY)))
    assert is_usable(bytes(image))
    image[-1] ^= 1
    for broken in (bytes(image), bytes(image[:-1]), b"", b"muster"):
        assert not is_usable(broken)
        with pytest.raises(BrokenImage):
            fold_from(broken, POLICY)
