"""What the API answers whoever watches from a terminal: small, since it is asked every second."""

import enum

import msgspec

from muster.layout.states import State
from muster.model.state import State as JobState


class Grain(enum.StrEnum):
    """What has a glyph of its own."""

    GPU = "gpu"
    NODE = "node"
    RACK = "rack"
    NONE = "none"


class Order(enum.StrEnum):
    """Who comes first."""

    HELD = "held"  # who holds most
    IDLE = "idle"  # who holds most that is not used
    OWNER = "owner"
    ENDS = "ends"  # who ends soonest
    NEW = "new"  # who started last


class Which(enum.StrEnum):
    ALL = "all"  # those that hold something, then those that wait
    HOLDING = "holding"
    WAITING = "waiting"


class Strip(msgspec.Struct):
    """A rack, with a word for each node, or one in which each node is a glyph; or a row of racks.

    ``use`` is as high as what is truly used, ``states`` what each does, glyph by glyph.
    """

    name: str
    use: list[str]
    states: list[str]


class CpuStrip(msgspec.Struct):
    """The nodes that have no GPUs, together."""

    nodes: int
    name: str | None  # if it is one
    cpus: float
    held: float
    used: float | None  # None: not known of all of them


class TopJob(msgspec.Struct):
    """A job in a line."""

    id: str
    name: str
    owner: str  # who answers for it
    team: str
    purpose: str | None
    state: JobState
    gpus: float
    cpus: float
    nodes: str  # folded
    share: float | None  # truly used, over the last minutes
    budget: float | None  # the part of it that is spent; None: there is none
    started_at: float | None
    ends_at: float | None  # at the latest, by date or time limit
    reason: str | None  # why it waits
    undefended: str | None  # that it is, and when that is decided
    defended_at: float | None  # last, by a person
    effort: str | None = None


class TopView(msgspec.Struct):
    """One frame: the place, what it does, and who holds most of it."""

    site: str
    at: float
    simulated: bool
    generation: int  # of the places
    counts: dict[State, int]  # GPUs
    share: float | None  # truly used of those that are held
    undefended: int
    by: Grain
    strips: list[Strip]
    cpus: CpuStrip | None  # None: all nodes have GPUs
    running: int
    waiting: int
    jobs: list[TopJob]
    more: int  # how many were left out


class Sparks(msgspec.Struct):
    """True use of jobs, hour by hour until now; null where nothing was held or measured."""

    since: float
    step_seconds: int
    sparks: dict[str, list[float | None]]
