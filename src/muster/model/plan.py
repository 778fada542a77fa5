"""The answer of a cycle: actions, each a value with its cause, and a reason for every wait."""

from collections.abc import Mapping

import msgspec

from muster.model.events import Outcome, Seat
from muster.model.job import JobId
from muster.model.reasons import DependsOn, HeldBack, Reason
from muster.model.snapshot import LaneKey, Waiting


class Action(msgspec.Struct, frozen=True, tag=True):
    job: JobId
    attempt: int


class Start(Action, frozen=True):
    seats: tuple[Seat, ...]
    expected_seconds: float | None = None
    at_most_seconds: float | None = None
    because: str = "order"  # or: backfill
    behind: tuple[JobId, int] | None = None  # not before this attempt has left the seats


class Evict(Action, frozen=True):
    """Leave, with a checkpoint if there is one, and wait again."""

    because: str  # priority, reclaim, compact, turn
    in_favour_of: JobId | None = None


class Recall(Action, frozen=True):
    """Who was lined up and has not started does not; for who has, it is nothing."""


class Stop(Action, frozen=True):
    """End for good. Without grace of its own, the job's counts."""

    because: str
    grace_seconds: float | None = None


class Suspend(Action, frozen=True):
    """Stand still, and keep the seats."""


class Resume(Action, frozen=True):
    """Go on."""


class Limit(Action, frozen=True):
    """Run so long at most from now on, in all; None: as long as it likes. Again does no harm."""

    seconds: float | None


class Withdraw(msgspec.Struct, frozen=True, tag=True):
    """A waiting job can no longer run."""

    job: JobId
    outcome: Outcome


class Promise(msgspec.Struct, frozen=True, tag=True):
    """A reservation: the job starts at ``starts_at`` on ``nodes``; likely, or, if firm, at the latest.

    ``starts_at`` is None where it was not worked out, since nobody was there who could have delayed it.
    """

    job: JobId
    starts_at: float | None = None
    nodes: tuple[str, ...] = ()  # one for each seat
    firm: bool = True
    made_room: bool = False


class Wait(msgspec.Struct, frozen=True):
    """Why a job was not started, the deciding reason first."""

    reasons: tuple[Reason, ...]

    @property
    def infeasible(self) -> bool:
        return self.reasons[0].infeasible


class Plan(msgspec.Struct, frozen=True):
    """What to do now. Waits are kept by lane, since a lane's jobs wait for the same thing."""

    starts: tuple[Start, ...] = ()
    evicts: tuple[Evict, ...] = ()
    withdraws: tuple[Withdraw, ...] = ()
    promises: tuple[Promise, ...] = ()
    lane_waits: Mapping[LaneKey, Wait] = {}
    job_waits: Mapping[JobId, Wait] = {}
    wake_at: float | None = None  # decide again then, even if nothing happens

    def wait_of(self, waiting: Waiting, unmet: Mapping[JobId, tuple[JobId, ...]]) -> Wait | None:
        """Why this job waits: its own reason, or its lane's. Who is held or dependent needs no cycle."""
        if waiting.job.held:
            return Wait((HeldBack(waiting.held_because),))
        if waiting.job.id in unmet:
            return Wait((DependsOn(unmet[waiting.job.id]),))
        own = self.job_waits.get(waiting.job.id)
        return own if own is not None else self.lane_waits.get(waiting.lane)
