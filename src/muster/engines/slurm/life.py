"""One attempt as a job of Slurm's: what is known of it, what it was told, what Slurm's words mean for it.

An attempt is one try of one job of Slurm's: jobs are handed over as not to be requeued, so whatever makes
Slurm take one back ends the attempt, and Muster starts the next. Should an operator requeue it all the same,
the attempt is over too, and the job that waits under its number is cancelled.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muster.engines.base import Key
from muster.engines.slurm.answers import Exit, SlurmAttempt, SlurmJob
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.seating import seats_of
from muster.engines.slurm.states import attempt_standing
from muster.model.events import Event, Exited, Outcome, Resumed, Seat, Seated, Started, Suspended, Vacated
from muster.model.job import Job

STOP, EVICT, TIME, BACK = "stop", "evict", "time", "back"
NODE_LOST = "node lost"
_OUTCOMES = {STOP: Outcome.STOPPED, TIME: Outcome.TIMEOUT}
_LOST_STATES = frozenset(("NODE_FAIL", "BOOT_FAIL"))
_OUT_OF_MEMORY = 125  # Slurm's signal for it


class Told(NamedTuple):
    """Why it is to leave, and when what happens. By the wall, so that it holds after a restart."""

    kind: str
    because: str
    at: float
    ask_at: float  # SIGTERM
    end_at: float  # Slurm is told to end it: it asks, waits as long as it always does, and kills
    deadline: float


class Life:
    """What the engine knows of an attempt."""

    def __init__(self, key: Key, job: Job | None, user: str) -> None:
        self.key, self.job, self.user = key, job, user
        self.seats: tuple[Seat, ...] = ()  # as proposed
        self.id: int | None = None
        self.components: tuple[int, ...] = ()  # of a gang of unlike parts, with the leader, whose id it has
        self.since = 0.0  # when it was to be handed over, by the wall
        self.began_at: float | None = None
        self.suspended = False
        self.told: Told | None = None
        self.has_warned = self.has_asked = False  # that it has to leave; with SIGTERM
        self.ended_wall: float | None = None  # when Slurm was told to end it
        self.missing_since: float | None = None
        self.seen_wall: float | None = None  # in Slurm's queue, last
        self.limit_seconds: float | None = None  # as Slurm was told
        self.is_over = self.has_exited = False  # the attempt; and with it the job
        self.waits: SlurmJob | None = None  # as Slurm has it in its queue
        self.waits_since: float | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Under which Slurm knows it, all of them."""
        return self.components or (() if self.id is None else (self.id,))

    # --- From Slurm's words to facts ---

    def begins(self, found: SlurmJob, at: float) -> Iterator[Event]:
        if self.began_at is not None:
            return
        self.began_at, self.waits = at, None
        seats = None if self.job is None else seats_of(self.job, found, self.seats)
        if seats is not None:
            yield Seated(at, *self.key, seats)
        yield Started(at, *self.key)

    def stands_still(self, suspended: bool, at: float) -> Iterator[Event]:
        if suspended is not self.suspended and self.began_at is not None:
            self.suspended = suspended
            yield Suspended(at, *self.key) if suspended else Resumed(at, *self.key)

    def ends(self, end: "End", at: float) -> Event:
        """The fact of its end. Who was told to leave has left for that, unless it was over before."""
        self.is_over, self.waits = True, None
        told = self.told
        if told is not None and end.wall is not None and end.wall < int(told.at):
            told = None
        if told is not None and told.kind in (EVICT, BACK):
            return Vacated(at, *self.key, told.because, self._lost_seconds(at, end, told))
        if told is None and end.vacated is not None:
            return Vacated(at, *self.key, end.vacated, self._lost_seconds(at, end, None))
        self.has_exited = True
        outcome = end.outcome if told is None else _OUTCOMES[told.kind]
        code, signal = _code_and_signal(end.exit)
        return Exited(at, *self.key, outcome, code, signal)

    def _lost_seconds(self, at: float, end: "End", told: Told | None) -> float:
        """What the next attempt has to do again. Who had to be killed did not save."""
        if self.began_at is None:
            return 0.0
        lasted = max(0.0, at - self.began_at)
        kept = None if self.job is None else self.job.checkpoint
        if kept is None:
            return lasted
        in_time = told is not None and end.wall is not None and end.wall < told.deadline
        if kept.on_signal and in_time:
            return 0.0
        return lasted % kept.every_seconds if kept.every_seconds else lasted


class End(NamedTuple):
    """How Slurm says that it ended, in Slurm's time."""

    wall: float | None
    outcome: Outcome
    exit: Exit | None = None
    vacated: str | None = None  # why it is to be run again


def end_of_job(found: SlurmJob, outcome: Outcome) -> End:
    return End(found.end_at, outcome, found.exit, _vacated_by(found.states, found.qos))


def end_of_tries(tries: Sequence[SlurmAttempt], notices: Notices) -> End | None:
    """Of the first try of its job: that is the attempt. None: it is not over, or not known yet."""
    for one in tries[:1]:
        standing = attempt_standing(one, notices)
        if standing.outcome is not None:
            why = _vacated_by(one.states, one.qos)
            if standing.vacated and why is None:
                why = "requeued by Slurm"
            return End(one.ended_at, standing.outcome, one.exit, why)
    return None


def _vacated_by(states: Iterable[str], qos: str) -> str | None:
    """Why it has to leave though it was not done; None: it was."""
    if "PREEMPTED" in states:
        return f"preempted by Slurm (its QOS is {qos})" if qos else "preempted by Slurm"
    return NODE_LOST if _LOST_STATES.intersection(states) else None


def _code_and_signal(ended: Exit | None) -> tuple[int | None, int | None]:
    if ended is None:
        return None, None
    if ended.signal:
        return None, None if ended.signal == _OUT_OF_MEMORY else ended.signal
    return ended.code, None
