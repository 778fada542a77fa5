"""A frozen view of all facts, with a generation: what deciding sees.

Waiting jobs come in lanes. A lane holds the jobs of one owner that ask for the same thing, with the same
priority, for as long, under the same kind of name, oldest first. For most questions its head answers for
all, so a cycle costs what differs, not what is queued.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from muster.model.charter import Verdict
from muster.model.events import Outcome, Seat
from muster.model.history import History, kind_of
from muster.model.job import Gang, Job, JobId, Priority
from muster.model.lives import Lives
from muster.model.mix import Mix
from muster.model.resources import Resources
from muster.model.room import Hardware, Room
from muster.model.state import State
from muster.model.tenancy import Tenancy


class LaneKey(NamedTuple):
    team: str
    owner: str
    priority: Priority
    gang: Gang
    limit_seconds: float | None
    kind: str  # of name

    @classmethod
    def of(cls, job: Job) -> "LaneKey":
        return cls(job.team, job.owner, job.priority, job.gang, job.time_limit_seconds, kind_of(job.name))


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A job that is not running, and what it has had so far."""

    job: Job
    lane: LaneKey
    asked: Resources
    attempt: int = 0  # attempts made
    queued_at: float = 0.0
    attained_seconds: float = 0.0  # run in earlier attempts, lost work included
    done_seconds: float = 0.0  # of which saved
    vacated_at: float | None = None  # when it was last made to leave
    mended: str | None = None  # what was mended before it is run again
    held_because: str = ""  # empty: a person wanted it so


class Running(msgspec.Struct, frozen=True, gc=False):
    """A job that has seats, or is lined up for those of another."""

    job: Job
    attempt: int
    seats: tuple[Seat, ...]
    held: Resources
    placed_at: float
    expected_end: float  # infinite where nothing is known
    latest_end: float
    started_at: float | None
    state: State
    attained_seconds: float = 0.0  # in earlier attempts
    done_seconds: float = 0.0
    because: str | None = None  # why it is stopping, or was suspended if it was not by a person
    evicted: bool = False  # stopping means that it goes back to the queue
    in_favour_of: JobId | None = None
    behind: JobId | None = None  # who has the seats until it leaves
    hold: bool = False  # once it has left, it waits until it is released
    verdict: Verdict | None = None  # by which it was told to end
    holds_since: float | None = None  # None: it was lined up, and nothing was heard of it yet

    def elapsed(self, now: float) -> float:
        """Seconds since it has the seats."""
        return now - self.placed_at if self.behind is None else 0.0

    def attained(self, now: float) -> float:
        return self.attained_seconds + self.elapsed(now)

    def unsaved_seconds(self, now: float) -> float:
        """Work that would have to be done again if it left now."""
        kept = self.job.checkpoint
        elapsed = self.elapsed(now)
        if kept is None:
            return elapsed
        if kept.on_signal:
            return 0.0
        return elapsed % kept.every_seconds if kept.every_seconds else elapsed


Holder = tuple[str, str | None]  # a team and one of its owners; None: all of the team and below it


class Account(msgspec.Struct, frozen=True, gc=False):
    """Decayed held use, as of a time, and the rate at which it grows since. Cpus, memory, GPUs."""

    use: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rate: tuple[float, float, float] = (0.0, 0.0, 0.0)
    as_of: float = 0.0


class Tally(msgspec.Struct, frozen=True):
    """Counts of running jobs that tell quickly whether anybody could yield."""

    by_priority: tuple[int, int, int] = (0, 0, 0)
    movable: int = 0  # keep checkpoints

    def changed(self, running: Running, sign: int) -> "Tally":
        counts = list(self.by_priority)
        counts[running.job.priority] += sign
        movable = self.movable + sign * (running.job.checkpoint is not None)
        return Tally((counts[0], counts[1], counts[2]), movable)


class Snapshot(msgspec.Struct, frozen=True):
    """All facts at one instant."""

    generation: int
    hardware: Hardware
    room: Room
    tenancy: Tenancy
    lanes: Mapping[LaneKey, Sequence[Waiting]]
    ineligible: Mapping[JobId, Waiting]  # held, dependent, or not before a time
    timed: Mapping[JobId, Waiting]  # of these, who wait for nothing but a time
    unmet: Mapping[JobId, tuple[JobId, ...]]  # dependencies that have not ended
    doomed: Mapping[JobId, Outcome]  # dependencies that can no longer be met
    running: Mapping[JobId, Running]
    held: Mapping[str, Resources]  # by team, its own jobs only
    accounts: Mapping[Holder, Account]
    active: Mapping[Holder, int]  # how many jobs wait or run
    array_running: Mapping[str, int]
    tally: Tally
    evicting: Mapping[JobId, tuple[JobId, ...]]  # who leaves in whose favour
    promised: tuple[Waiting, ...]  # in the order promised
    promised_on: Mapping[JobId, tuple[str, ...]]  # the nodes where each was promised room
    favoured: frozenset[JobId]  # of those, for whom others had to leave: they go before all
    history: History
    lives: Lives
    mix: Mix
    known_seconds: Mapping[JobId, float]  # true run times: filled by a simulator, read by *-true presets
    memo: dict[object, object]  # remembered answers that a generation may reuse; never changes a plan
