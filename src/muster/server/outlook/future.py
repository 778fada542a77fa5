"""A future that begins with the present: the simulator, started from a snapshot.

The snapshot is only read. ``play`` runs a world on, with given run times, until its target starts.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from muster.engines.sim import SimEngine
from muster.model.events import Event, Exited, NodeSeen, Placed, Submitted, Vacated
from muster.model.job import Job, JobId
from muster.model.node import Health
from muster.model.plan import Action, Evict, Start, Stop
from muster.model.policy import Policy
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.server.loop import Loop
from muster.server.outlook.arrivals import Coming
from muster.server.outlook.world import World, lasting_memory
from muster.store.fold import Fold
from muster.store.records import Record

_LEAST_CYCLES = 4  # before there is no time left: something has to be seen
HORIZON = 1e9  # seconds: what lies further ahead is never


class RunTimes(Protocol):
    """How long jobs take, in one draw after the other."""

    def begin(self) -> None: ...
    def of_waiting(self, waiting: Waiting) -> float: ...
    def of_running(self, running: Running, now: float) -> float: ...


class Future(Fold):
    """A fold that begins with a snapshot. What is known of the past, and of people, stays as it is."""

    def __init__(self, snap: Snapshot, policy: Policy, run_seconds: Mapping[JobId, float]) -> None:
        super().__init__(policy, dict(run_seconds))
        self._began_with = snap
        self._nodes = {node.name: node for node in snap.hardware.nodes}
        self._teams, self._tenancy = dict(snap.tenancy.teams), snap.tenancy
        self._hardware, self._room = snap.hardware, snap.room.copy()
        self._lanes = {key: list(lane) for key, lane in snap.lanes.items()}
        self._ineligible, self._timed = dict(snap.ineligible), dict(snap.timed)
        self._unmet = dict(snap.unmet)
        self._running, self._held = dict(snap.running), dict(snap.held)
        self._accounts, self._active = dict(snap.accounts), dict(snap.active)
        self._arrays, self._tally = dict(snap.array_running), snap.tally
        self._evicting, self._memo = dict(snap.evicting), lasting_memory(snap)
        self._promised = {
            w.job.id: (w.job.id in snap.favoured, snap.promised_on.get(w.job.id, ())) for w in snap.promised
        }
        self._enter_records()

    def _enter_records(self) -> None:
        for waiting in itertools.chain(self._ineligible.values(), *self._lanes.values()):
            state = State.HELD if waiting.job.held else State.QUEUED
            self.records[waiting.job.id] = Record(state, waiting)
        for running in self._running.values():
            self.records[running.job.id] = Record(running.state, running=running)
        for job_id, names in self._unmet.items():
            for name in names:
                self._dependents.setdefault(name, []).append(job_id)

    def apply(self, event: Event) -> None:
        if not isinstance(event, NodeSeen):  # the nodes are known
            super().apply(event)

    def snapshot(self) -> Snapshot:
        past = self._began_with
        snap = super().snapshot()
        return msgspec.structs.replace(snap, history=past.history, lives=past.lives, mix=past.mix)


class Played(msgspec.Struct):
    """What came of one draw."""

    started_at: float | None = None  # None: never, or not as far as it was looked ahead
    cut: bool = False  # whether there was no time to look further
    follows: tuple[JobId, ...] = ()  # who ended when it started
    seconds: float = 0.0  # how far it was looked ahead
    work: float = 0.0  # done meanwhile, as weighed


class _Notes:
    """Waits for the target to start, and sums up what others get done until then."""

    def __init__(self, world: World, now: float, weigh: Callable[[Job], float]) -> None:
        self._target, self._now = world.target.job.id, now
        running = world.snap.running
        jobs = itertools.chain((w.job for w in world.waiting()), (r.job for r in running.values()))
        self._weights_of = {job.id: weigh(job) for job in jobs}  # not of those who come: they drain nothing
        self._held = sum(self._weights_of[job_id] for job_id in running)
        self._as_of = now
        self._left: list[JobId] = []  # at this instant
        self.played = Played()

    def take(self, event: Event) -> None:
        if event.at > self._as_of:
            self.played.work += self._held * (event.at - self._as_of)
            self._as_of, self._left = event.at, []
        if isinstance(event, Placed):
            self._held += self._weights_of.get(event.job, 0.0)
            if event.job == self._target:
                self.played.started_at, self.played.follows = event.at, tuple(self._left)
        elif isinstance(event, Exited | Vacated):
            self._held -= self._weights_of.get(event.job, 0.0)
            self._left.append(event.job)

    def close(self) -> Played:
        if self._as_of > self._now + HORIZON:
            self.played.started_at = None
        self.played.seconds = self._as_of - self._now
        return self.played


def play(
    world: World,
    policy: Policy,
    times: RunTimes,
    *,
    now: float,
    weigh: Callable[[Job], float],
    go_on: Callable[[], bool],
    coming: Sequence[Coming] = (),
) -> Played:
    """Run the world on, with one draw of run times, until its target starts or there is no time left."""
    times.begin()
    seconds = {w.job.id: times.of_waiting(w) for w in world.waiting()}
    seconds |= {r.job.id: times.of_running(r, now) for r in world.snap.running.values()}
    seconds |= {one.job.id: one.seconds for one in coming}
    engine = _engine(world, seconds, now)
    for one in coming:
        engine.will(Submitted(one.job.submitted_at, one.job))
    notes = _Notes(world, now, weigh)
    loop = Loop(engine, policy, Future(world.snap, policy, seconds), notes.take)
    loop.decide()
    while notes.played.started_at is None and engine.now() < now + HORIZON:
        looked = loop.cycles >= _LEAST_CYCLES
        if (looked and not go_on()) or not (world.whole or loop.fold.waiting_count):
            notes.played.cut = True
            break
        if not loop.step():
            break
    return notes.close()


def _engine(world: World, seconds: Mapping[JobId, float], now: float) -> SimEngine:
    """An engine that has come to the present: what runs has run since it was placed."""
    running = sorted(world.snap.running.values(), key=lambda r: r.placed_at)
    nodes = [msgspec.structs.replace(n, health=Health.UP) for n in world.snap.hardware.nodes]
    engine = SimEngine(nodes, seconds, start_at=min([now, *(r.placed_at for r in running[:1])]))
    for one in running:
        engine.will(Submitted(engine.now(), one.job))
    for at, placed in itertools.groupby(running, key=lambda r: min(r.placed_at, now)):
        _pass_to(engine, at)
        for one in placed:
            engine.act(Start(one.job.id, one.attempt, one.seats))
    for waiting in world.waiting():
        engine.will(Submitted(now, waiting.job))
    _pass_to(engine, now)
    for one in running:
        if one.state is State.STOPPING:
            engine.act(_leaving(one))
    return engine


def _leaving(running: Running) -> Action:
    """What it was told, said again."""
    job_id, because = running.job.id, running.because or ""
    if running.evicted:
        return Evict(job_id, running.attempt, because, running.in_favour_of)
    return Stop(job_id, running.attempt, because)


def _pass_to(engine: SimEngine, at: float) -> None:
    """What happens on the way is known already."""
    while engine.observe(at):
        pass
