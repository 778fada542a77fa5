"""The fold: any legal story keeps its books right, and what is not legal changes nothing."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given
from worlds import ANY, World, quick, seeds, world_of

from muster.model.errors import BadInput, IllegalTransition, MusterError
from muster.model.events import (
    DeviceHealth,
    Event,
    Evicting,
    Exited,
    Found,
    Held,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Promised,
    Released,
    Resumed,
    Seat,
    Started,
    StoodDown,
    Stopping,
    Submitted,
    Suspended,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import After, Dependency, Job, single
from muster.model.node import Device, Health, Node, found_again
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.state import State
from muster.model.tenancy import Team
from muster.schedule import schedule
from muster.schedule.place import Placer
from muster.schedule.rank import Ranker
from muster.schedule.scratch import Scratch
from muster.store.fold import Fold
from room_check import validate

POLICY = Policy()
_STEPS = 60


class Story:
    """Random events about a world's nodes, teams and jobs, as many of them impossible as not."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)
        self.world: World = world_of(seed, ANY._replace(jobs=8))
        self.fold = Fold(POLICY)
        self.now = 0.0
        for node in self.world.nodes:
            self.fold.apply(NodeSeen(0.0, node))
        for team in self.world.teams:
            self.fold.apply(TeamSet(0.0, team))

    def next(self) -> Event:
        self.now += self.luck.choice([0.0, 1.0, 300.0])
        kinds: list[Callable[[str], Event]] = [
            *[self._submitted] * 4,
            *[self._placed] * 4,
            *[self._of_attempt] * 6,
            *[self._lined_up] * 3,
            *[self._of_waiting] * 2,
            *[self._node_changes] * 2,
            self._team_changes,
        ]
        return self.luck.choice(kinds)(self.luck.choice(self.world.jobs).id)

    def _submitted(self, job_id: str) -> Event:
        return Submitted(self.now, next(j for j in self.world.jobs if j.id == job_id))

    def _placed(self, job_id: str) -> Event:
        """Where there is room, if there is some."""
        record = self.fold.records.get(job_id)
        seats = None
        if record is not None and record.waiting is not None:
            snap = self.fold.snapshot()
            scratch = Scratch(snap.hardware, snap.room)
            seats = Placer(scratch, Ranker(scratch, POLICY, snap)).place(record.waiting.job.gang)
            self.fold.release()
        if seats is None:
            return Promised(self.now, job_id)
        return Placed(self.now, job_id, 1 + self._attempt(job_id), seats, 600.0)

    def _lined_up(self, job_id: str) -> Event:
        """Behind anybody, or recalled from there."""
        ahead = self.luck.choice(self.world.jobs).id
        record = self.fold.records.get(ahead)
        running = None if record is None else record.running
        if running is None or self.luck.random() < 0.3:
            return StoodDown(self.now, job_id, self._attempt(job_id))
        return Placed(self.now, job_id, 1 + self._attempt(job_id), running.seats, 60.0, behind=ahead)

    def _of_attempt(self, job_id: str) -> Event:
        attempt = self._attempt(job_id) + self.luck.choice([0, 0, 0, 0, 1])
        kinds: list[Callable[[], Event]] = [
            lambda: Started(self.now, job_id, attempt),
            lambda: Suspended(self.now, job_id, attempt),
            lambda: Resumed(self.now, job_id, attempt),
            lambda: Evicting(self.now, job_id, attempt, "priority"),
            lambda: Stopping(self.now, job_id, attempt, "asked"),
            lambda: Exited(self.now, job_id, attempt, self.luck.choice(list(Outcome))),
            lambda: Vacated(self.now, job_id, attempt, "node lost"),
            lambda: Found(self.now, job_id, attempt, "idle", "warn", "it is idle", 1),
        ]
        return self.luck.choice(kinds)()

    def _of_waiting(self, job_id: str) -> Event:
        return self.luck.choice([Held, Released, Withdrawn, Promised])(self.now, job_id)

    def _node_changes(self, job_id: str) -> Event:
        """Drained, back, or found again, as it was left or with other devices."""
        node, because = self.luck.choice(self.world.nodes), self.luck.choice(["", "a fan", "faults"])
        devices = tuple(msgspec.structs.replace(d, healthy=self.luck.random() < 0.8) for d in node.devices)
        another = self.luck.randint(-1, len(devices))
        kinds: list[Callable[[], Event]] = [
            lambda: NodeHealth(self.now, node.name, self.luck.choice(list(Health)), because),
            lambda: DeviceHealth(self.now, node.name, another, self.luck.random() < 0.5, because),
            lambda: NodeSeen(self.now, msgspec.structs.replace(node, devices=devices)),
            lambda: NodeSeen(self.now, found_again(node, self.fold.nodes[node.name])),
        ]
        return self.luck.choice(kinds)()

    def _team_changes(self, job_id: str) -> Event:
        parent = self.luck.choice(["", "org", "vision"])
        return TeamSet(self.now, Team(self.luck.choice(["nlp", "sub", "org"]), parent))

    def _attempt(self, job_id: str) -> int:
        record = self.fold.records.get(job_id)
        if record is None:
            return 0
        held = record.waiting or record.running
        return 0 if held is None else held.attempt


def print_of(snap: Snapshot, fold: Fold) -> object:
    """Everything a snapshot says, in a form that can be compared."""
    columns = ("cpus", "memory", "disk", "gpu", "is_open", "kinds")
    return (
        {name: getattr(snap.room, name).tolist() for name in columns},
        {key: list(jobs) for key, jobs in snap.lanes.items()},
        [dict(getattr(snap, name)) for name in ("ineligible", "unmet", "doomed", "running")],
        [dict(getattr(snap, name)) for name in ("held", "accounts", "active", "array_running")],
        (snap.tally, dict(snap.evicting), snap.promised, snap.generation, snap.tenancy.teams),
        {job_id: msgspec.structs.asdict(record) for job_id, record in fold.records.items()},
        (snap.hardware.nodes, dict(fold.nodes)),
    )


def seen(fold: Fold) -> object:
    snap = fold.snapshot()
    fold.release()
    return print_of(snap, fold)


@quick(25)
@given(seed=seeds)
def test_the_books_are_right_after_any_story(seed: int) -> None:
    story = Story(seed)
    for _ in range(_STEPS):
        try:
            story.fold.apply(story.next())
        except MusterError:
            continue
        validate(story.fold)


@quick(25)
@given(seed=seeds)
def test_what_is_not_allowed_raises_and_changes_nothing(seed: int) -> None:
    story = Story(seed)
    for _ in range(_STEPS):
        before, fact = seen(story.fold), story.next()
        try:
            story.fold.apply(fact)
        except (IllegalTransition, BadInput):
            assert seen(story.fold) == before, f"{fact} was refused, and left its mark"


@quick(25)
@given(seed=seeds)
def test_a_journal_folds_to_the_same_whether_or_not_anybody_looked(seed: int) -> None:
    story, journal = Story(seed), []
    for _ in range(_STEPS):
        fact = story.next()
        try:
            story.fold.apply(fact)
        except MusterError:
            continue
        journal.append(fact)
        seen(story.fold)
    again = Story(seed).fold
    for fact in journal:
        again.apply(fact)
    assert seen(again) == seen(story.fold)
    assert again.snapshot().mix.classes == story.fold.snapshot().mix.classes


@quick(20)
@given(seed=seeds)
def test_a_snapshot_on_loan_is_not_touched_by_later_facts(seed: int) -> None:
    story = Story(seed)
    for _ in range(3):
        snap = story.fold.snapshot()
        before = print_of(snap, Fold(POLICY))
        plan = schedule(snap, POLICY, now=story.now)
        now = story.now
        for _ in range(_STEPS // 3):
            try:
                story.fold.apply(story.next())
            except MusterError:
                continue
        assert print_of(snap, Fold(POLICY)) == before
        assert schedule(snap, POLICY, now=now) == plan


# --- Single stories -----------------------------------------------------------------------------------

NODE = Node("a", 8000, 1 << 30, devices=(Device(),) * 4)
SEAT = Seat("a", single(gpus=2).parts[0].shape, (0, 1), 1000)


def job(name: str, **more: object) -> Job:
    return Job(name, single(gpus=2), 0.0, **more)  # type: ignore[arg-type]


def running(*names: str) -> Fold:
    """A fold in which the first job runs, nobody having looked yet."""
    fold = Fold(POLICY)
    fold.apply(NodeSeen(0.0, NODE))
    for name in names:
        fold.apply(Submitted(0.0, job(name)))
    fold.apply(Placed(0.0, names[0], 1, (SEAT,)))
    return fold


def test_a_job_is_seated_once_if_nobody_looked_since_the_node_was_seen() -> None:
    validate(running("one"))


def test_a_job_that_ends_frees_its_seat_once_if_nobody_looked_since_the_node_changed() -> None:
    fold = running("one")
    fold.snapshot()
    fold.release()
    fold.apply(NodeSeen(1.0, NODE))
    fold.apply(Exited(2.0, "one", 1, Outcome.SUCCEEDED))
    validate(fold)


def test_a_team_that_gets_a_parent_takes_its_jobs_with_it() -> None:
    fold = Fold(POLICY)
    fold.apply(NodeSeen(0.0, NODE))
    fold.apply(TeamSet(0.0, Team("org")))
    fold.apply(Submitted(0.0, job("one", team="nlp")))
    fold.snapshot()
    fold.release()
    fold.apply(Placed(0.0, "one", 1, (SEAT,)))
    fold.apply(TeamSet(1.0, Team("nlp", parent="org")))
    validate(fold)
    fold.apply(Exited(2.0, "one", 1, Outcome.SUCCEEDED))
    validate(fold)


def test_a_job_placed_on_a_node_that_nobody_knows_is_refused() -> None:
    fold = running("one", "two")
    before = seen(fold)
    nowhere = msgspec.structs.replace(SEAT, node="nowhere")
    with pytest.raises(MusterError):
        fold.apply(Placed(1.0, "two", 1, (nowhere,)))
    assert seen(fold) == before


def test_a_node_that_comes_back_with_fewer_gpus_than_are_held_breaks_nothing() -> None:
    fold = running("one")
    small = msgspec.structs.replace(NODE, devices=(Device(),))
    fold.apply(NodeSeen(1.0, small))
    plan = schedule(fold.snapshot(), POLICY, now=1.0)
    assert plan.starts == ()


def test_an_event_of_an_earlier_attempt_is_refused() -> None:
    fold = running("one")
    fold.apply(Started(0.0, "one", 1))
    fold.apply(Vacated(1.0, "one", 1, "node lost"))
    fold.apply(Placed(2.0, "one", 2, (SEAT,)))
    with pytest.raises(IllegalTransition):
        fold.apply(Exited(3.0, "one", 1, Outcome.FAILED))
    assert fold.records["one"].state is State.STARTING


def test_a_second_job_of_the_same_name_is_refused() -> None:
    fold = running("one")
    with pytest.raises(BadInput):
        fold.apply(Submitted(1.0, job("one")))


def test_a_job_that_waits_for_one_job_in_two_ways_needs_both() -> None:
    fold = running("one")
    ways = (Dependency("one", After.ANY), Dependency("one", After.OK))
    fold.apply(Submitted(1.0, job("two", after=ways)))
    fold.apply(Exited(2.0, "one", 1, Outcome.FAILED))
    assert "two" in fold.snapshot().doomed


# --- Out of service -----------------------------------------------------------------------------------


def test_why_a_node_was_drained_is_remembered_until_it_is_back() -> None:
    fold = running("one")
    assert fold.is_open((SEAT,))
    fold.apply(NodeHealth(1.0, "a", Health.DRAINED, "fan is broken"))
    assert (fold.nodes["a"].health, fold.nodes["a"].because) == (Health.DRAINED, "fan is broken")
    assert fold.snapshot().hardware.nodes == tuple(fold.nodes.values())
    assert not fold.is_open((SEAT,))
    fold.apply(NodeHealth(2.0, "a", Health.UP, "said for nothing"))
    assert fold.nodes["a"] == NODE


def test_a_drained_device_offers_no_room_and_its_neighbours_do() -> None:
    fold = running("one")
    fold.apply(DeviceHealth(1.0, "a", 1, False, "faults"))
    validate(fold)
    assert fold.snapshot().room.gpu.tolist() == [[0, -1000, 1000, 1000]]  # and one more of it is held
    fold.release()
    assert [d.because for d in fold.nodes["a"].devices] == ["", "faults", "", ""]
    assert not fold.is_open((SEAT,))
    fold.apply(Exited(2.0, "one", 1, Outcome.SUCCEEDED))
    assert fold.snapshot().room.gpu.tolist() == [[1000, 0, 1000, 1000]]
    fold.release()
    fold.apply(DeviceHealth(3.0, "a", 1, True))
    assert fold.nodes["a"] == NODE
    validate(fold)


@pytest.mark.parametrize(("node", "device"), [("a", 4), ("a", -1), ("b", 0)])
def test_a_device_that_nobody_knows_is_refused(node: str, device: int) -> None:
    fold = running("one")
    before = seen(fold)
    with pytest.raises(BadInput):
        fold.apply(DeviceHealth(1.0, node, device, False))
    assert seen(fold) == before


def test_seats_of_which_a_gpu_is_gone_are_not_open() -> None:
    fold = running("one")
    fold.apply(NodeSeen(1.0, msgspec.structs.replace(NODE, devices=(Device(),))))
    assert not fold.is_open((SEAT,))
