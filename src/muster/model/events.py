"""Facts. Each is appended to the journal before it is acted on; state is their fold.

Three come from people (Submitted, Withdrawn, Held/Released), three from the scheduler's decisions
(Placed, Promised, Evicting), the rest from the engine.
"""

import enum

import msgspec

from muster.model.job import Job, JobId, Shape
from muster.model.node import Health, Node
from muster.model.tenancy import Team


class Outcome(enum.StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    NODE_LOST = "NODE_LOST"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"


class Seat(msgspec.Struct, frozen=True):
    """Where one part of a gang sits: its node, its devices, and the share of each that it holds."""

    node: str
    shape: Shape
    devices: tuple[int, ...] = ()
    device_milli: int = 0


class Event(msgspec.Struct, frozen=True, tag=True):
    at: float


class Submitted(Event, frozen=True):
    job: Job


class Held(Event, frozen=True):
    job: JobId


class Released(Event, frozen=True):
    job: JobId


class Withdrawn(Event, frozen=True):
    """A person, or a failed dependency, ended a job that was not running."""

    job: JobId
    outcome: Outcome = Outcome.STOPPED


class Promised(Event, frozen=True):
    """A waiting job was given a reservation; it keeps its place in front until it starts.

    ``made_room``: others had to leave for it, so that room is its own, whoever else comes.
    """

    job: JobId
    made_room: bool = False
    nodes: tuple[str, ...] = ()  # where it was promised room


class Placed(Event, frozen=True):
    job: JobId
    attempt: int
    seats: tuple[Seat, ...]
    expected_seconds: float | None = None  # how long it was thought to run, when it was decided
    at_most_seconds: float | None = None  # and the longest it could take


class Started(Event, frozen=True):
    job: JobId
    attempt: int


class Suspended(Event, frozen=True):
    job: JobId
    attempt: int


class Resumed(Event, frozen=True):
    job: JobId
    attempt: int


class Evicting(Event, frozen=True):
    """A running job was told to leave so that another may start; it goes back to the queue."""

    job: JobId
    attempt: int
    because: str
    in_favour_of: JobId | None = None


class Stopping(Event, frozen=True):
    """A running job was told to end for good."""

    job: JobId
    attempt: int
    because: str


class Exited(Event, frozen=True):
    """The attempt is over, and with it the job."""

    job: JobId
    attempt: int
    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None


class Vacated(Event, frozen=True):
    """The attempt left its seats without being done; the job waits again.

    ``lost_seconds`` is the work that has to be done again.
    """

    job: JobId
    attempt: int
    because: str
    lost_seconds: float = 0.0


class NodeSeen(Event, frozen=True):
    """A node is there, new or changed."""

    node: Node


class NodeHealth(Event, frozen=True):
    node: str
    health: Health


class TeamSet(Event, frozen=True):
    team: Team
