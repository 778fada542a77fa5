"""A quarter through the real loop, in virtual time, and what is noted of it.

The loop, the scheduler and the engine are those that replay traces. Stewardship comes in between engine
and loop: at regular times the steward looks, and what it decides reaches the loop as facts, as a
person's command would. Without a steward nothing is in between but a call.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from bench.quarter_world import Work, World
from muster.engines.base import Capabilities
from muster.engines.sim import SimEngine
from muster.model.events import Event, Exited, Placed, Submitted, Vacated, Withdrawn
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.plan import Action
from muster.model.policy import Policy, preset
from muster.model.units import MINUTE
from muster.server.loop import Loop
from muster.store.fold import Fold

LOOK_SECONDS = 15 * MINUTE  # as often as trainings report; the server looks at a report when it comes


class Steward(Protocol):
    """Who looks after the work that runs."""

    def look(self, now: float) -> Sequence[Event]:
        """What is decided now, as facts; acts were ordered already."""
        ...

    def expects(self) -> bool:
        """Whether people have still to do something."""
        ...


class Span(msgspec.Struct, gc=False):
    """A time in which a job held its seats, and what of its own run it got done."""

    begin: float
    end: float
    done_from: float  # seconds of the run that were done and kept when it began
    done_to: float  # and when it ended, kept or not


class Track(msgspec.Struct):
    """One job of the simulation: a work, or what was left of it when it was revived."""

    work: Work
    job: Job
    offset_seconds: float = 0.0  # of the work's run, done in a life before this one
    kept_seconds: float = 0.0  # by earlier attempts of this job, so that they are not done again
    first_start: float | None = None
    placed_at: float | None = None
    attempt: int = 0
    spans: list[Span] = []
    ended_at: float | None = None
    won: bool = False  # by its own exit

    def done_seconds(self, now: float) -> float:
        """How far the work's run has come."""
        before = self.offset_seconds + self.kept_seconds
        if self.placed_at is None:
            return before
        restore = self.job.checkpoint.restore_seconds if self.job.checkpoint and self.kept_seconds else 0.0
        return before + max(0.0, now - self.placed_at - restore)

    def left(self, now: float, lost_seconds: float | None) -> None:
        """It holds no seats any more; of what it did in them, all but ``lost_seconds`` is kept."""
        assert self.placed_at is not None
        begun = self.offset_seconds + self.kept_seconds
        done = min(self.done_seconds(now), self.work.run_seconds)
        self.spans.append(Span(self.placed_at, now, begun, done))
        if lost_seconds is not None:
            self.kept_seconds += max(0.0, now - self.placed_at - lost_seconds)
        self.placed_at = None


class Notes:
    """Follows every job through the facts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tracks: dict[JobId, Track] = {}
        self.running: dict[JobId, Track] = {}
        self.waiting = 0
        self.facts = 0

    def take(self, event: Event) -> None:
        self.facts += 1
        if isinstance(event, Submitted):
            self.waiting += 1
            if event.job.id not in self.tracks:
                self.tracks[event.job.id] = Track(self.world.works[event.job.id], event.job)
        elif isinstance(event, Placed):
            self._placed(self.tracks[event.job], event)
        elif isinstance(event, Exited | Vacated):
            track = self.running.pop(event.job)
            if isinstance(event, Exited):
                track.left(event.at, None)
                track.ended_at = event.at
            else:
                track.left(event.at, event.lost_seconds)
                self.waiting += 1
        elif isinstance(event, Withdrawn):
            self.tracks[event.job].ended_at = event.at
            self.waiting -= 1

    def is_going_on(self, now: float) -> bool:
        """Whether something runs, waits or is still to come."""
        return bool(self.running or self.waiting) or now < self.world.end

    def _placed(self, track: Track, event: Placed) -> None:
        self.waiting -= 1
        if track.first_start is None:
            track.first_start = event.at
        track.placed_at, track.attempt = event.at, event.attempt
        self.running[event.job] = track


class Tended:
    """An engine at which somebody looks regularly."""

    def __init__(self, engine: SimEngine, notes: Notes, every_seconds: float = LOOK_SECONDS) -> None:
        self.engine, self._notes, self._every = engine, notes, every_seconds
        self.steward: Steward | None = None
        self._next = every_seconds

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    def now(self) -> float:
        return self.engine.now()

    def nodes(self) -> Sequence[Node]:
        return self.engine.nodes()

    def act(self, action: Action) -> None:
        self.engine.act(action)

    def observe(self, until: float | None = None) -> Sequence[Event]:
        """What happens next, of itself or since the steward wills it."""
        if self.steward is None:
            return self.engine.observe(until)
        while until is None or self._next <= until:
            facts = self.engine.observe(self._next)
            if facts:
                return facts
            now, self._next = self._next, self._next + self._every
            facts = self.steward.look(now)
            if facts or not (self._notes.is_going_on(now) or self.steward.expects()):
                return facts
        return self.engine.observe(until)


class Outcome(msgspec.Struct):
    """A quarter that has been."""

    world: World
    tracks: dict[JobId, Track]
    cycles: int
    facts: int
    cpu_seconds: float


class Stage:
    """The world, set up to run. A steward may be put in before it does."""

    def __init__(self, world: World, policy: Policy | None = None) -> None:
        self.world, policy = world, policy or preset("fair")
        self.run_seconds = {work.job.id: work.run_seconds for work in world.works.values()}
        self.notes = Notes(world)
        self.engine = SimEngine(world.nodes, self.run_seconds)
        for work in world.works.values():
            self.engine.will(Submitted(work.job.submitted_at, work.job))
        self.fold = Fold(policy, self.run_seconds)
        self.tended = Tended(self.engine, self.notes)
        self.loop = Loop(self.tended, policy, self.fold, self.notes.take)

    def run(self) -> Outcome:
        begun = time.process_time()
        while self.loop.step():
            pass
        taken = time.process_time() - begun
        return Outcome(self.world, self.notes.tracks, self.loop.cycles, self.notes.facts, taken)
