"""What the API answers about the queue as a whole."""

import msgspec

from muster.model.state import State
from muster.server.answers import ArrayView, ReasonView


class KeptEstimate(msgspec.Struct, frozen=True):
    """When it was thought to start, the last time that somebody asked; nothing is simulated for this."""

    earliest: float
    latest: float
    probability: float
    made_at: float
    age_seconds: float


class Reserved(msgspec.Struct, frozen=True):
    """Room is kept for it."""

    starts_at: float | None  # None: not worked out, as nobody is there who could delay it
    nodes: list[str]
    firm: bool  # at the latest then; else likely


class QueueRow(msgspec.Struct, kw_only=True):
    """A waiting job, or the waiting members of an array that ask for the same."""

    id: str
    first: str  # the job of it whose turn comes first
    name: str
    owner: str
    team: str
    effort: str | None
    purpose: str | None
    priority: str
    state: State
    count: int  # jobs that it stands for
    array: ArrayView | None
    position: (
        int | None
    )  # in the order in which room is offered, from 1; None: it is in no turn, or far behind
    team_position: int | None  # among those of its team
    wants: str  # in words
    gpus: float
    cpus: float
    memory_bytes: int
    time_limit_seconds: float | None
    submitted_at: float
    adopted: str | None  # the host in whose queue others put it
    reason: ReasonView | None  # the deciding one; None: it came just now, and the next cycle decides
    estimate: KeptEstimate | None
    reserved: Reserved | None
    ask_why: bool  # whether it waits for room, so that asking why says when it starts, and what would help


class ReasonCount(msgspec.Struct, frozen=True):
    kind: str | None  # None: nothing was decided yet
    words: str  # what these wait for
    jobs: int


class QueueView(msgspec.Struct):
    """Who waits, in the order in which room is offered."""

    sentence: str
    at: float
    waiting: int  # jobs, of those that are asked about
    reasons: list[ReasonCount]  # what they wait for, the most first
    ranked: int  # how far the order was worked out; who comes later has no position
    jobs: list[QueueRow]
    more: int  # jobs that wait and are in no row
