"""Facts. Each is appended to the journal before it is acted on; state is their fold.

Some come from people (Submitted, ArraySubmitted, Withdrawn, Held, Released, Stopping, and where they drain
or resume NodeHealth and DeviceHealth), three from the scheduler's decisions (Placed, Promised, Evicting),
Found from the steward, the rest from the engine.
"""

import enum
import itertools
from collections.abc import Iterator

import msgspec

from muster.model.charter import Charter, Verdict
from muster.model.job import ArrayPlace, Gang, Job, JobId, Shape
from muster.model.node import Health, Node
from muster.model.tenancy import Team
from muster.model.usage import AtEnd


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


class ArraySubmitted(Event, frozen=True):
    """Many jobs in one: the template once for each index, under an id such as ``7_3``."""

    template: Job  # its id is the array's
    indices: tuple[int, ...]
    most_at_once: int | None = None
    sweep: tuple[tuple[str, tuple[str, ...]], ...] = ()  # names and the values to try, every combination
    params: tuple[tuple[tuple[str, str], ...], ...] = ()  # of each member, where they are some of a sweep

    def members(self) -> Iterator[Job]:
        """The jobs. With a sweep the last name varies fastest, as an odometer does."""
        template, revives = self.template, self.template.revives
        for index, params in zip(self.indices, self._params(), strict=False):
            yield msgspec.structs.replace(
                template,
                id=f"{template.id}_{index}",
                array=ArrayPlace(template.id, index, self.most_at_once),
                params=params,
                revives=None if revives is None else f"{revives}_{index}",
            )

    def _params(self) -> Iterator[tuple[tuple[str, str], ...]]:
        names = [name for name, _ in self.sweep]
        combinations = itertools.product(*(values for _, values in self.sweep)) if names else ()
        tried = (tuple(zip(names, values, strict=True)) for values in combinations)
        return itertools.chain(self.params or tried, itertools.repeat(()))


class Held(Event, frozen=True):
    job: JobId
    because: str = ""  # empty: a person wanted it so


class Released(Event, frozen=True):
    job: JobId


class Withdrawn(Event, frozen=True):
    """A person, or a failed dependency, ended a job that was not running.

    ``taken_back``: who submitted it was told that it could not be written down. It is as if it never was.
    """

    job: JobId
    outcome: Outcome = Outcome.STOPPED
    taken_back: bool = False
    because: str = ""
    verdict: Verdict | None = None


class Promised(Event, frozen=True):
    """A waiting job was given a reservation; it keeps its place in front until it starts.

    ``made_room``: others had to leave for it, so that room is its own, whoever else comes.
    """

    job: JobId
    made_room: bool = False
    nodes: tuple[str, ...] = ()  # where it was promised room, one for each seat


class Placed(Event, frozen=True):
    """It was decided that the job goes. Without seats: where, the engine decides, and tells by ``Seated``."""

    job: JobId
    attempt: int
    seats: tuple[Seat, ...]
    expected_seconds: float | None = None  # how long it was thought to run, when it was decided
    at_most_seconds: float | None = None  # and the longest it could take
    behind: JobId | None = None  # it is lined up: the seats become its own when this job has left them


class StoodDown(Event, frozen=True):
    """One that was lined up and has not started waits again, as if nothing had been decided."""

    job: JobId
    attempt: int


class Seated(Event, frozen=True):
    """Where the attempt truly sits, and since when: what was decided before was only proposed.

    Until then it held nothing, but for what counts against its team's quota.
    """

    job: JobId
    attempt: int
    seats: tuple[Seat, ...]


class Started(Event, frozen=True):
    job: JobId
    attempt: int


class Suspended(Event, frozen=True):
    job: JobId
    attempt: int
    because: str = ""  # empty: a person wanted it so


class Resumed(Event, frozen=True):
    job: JobId
    attempt: int


class Evicting(Event, frozen=True):
    """A running job was told to leave so that another may start; it goes back to the queue.

    ``hold``: it was told to leave for a reason of its own, and waits there until it is released.
    """

    job: JobId
    attempt: int
    because: str
    in_favour_of: JobId | None = None
    hold: bool = False


class Stopping(Event, frozen=True):
    """A running job was told to end for good; by its charter, if there is a verdict."""

    job: JobId
    attempt: int
    because: str
    verdict: Verdict | None = None


class Exited(Event, frozen=True):
    """The attempt is over, and with it the job."""

    job: JobId
    attempt: int
    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None
    at_end: AtEnd | None = None
    verdict: Verdict | None = None
    because: str = ""  # of the verdict


class Amended(Event, frozen=True):
    """Somebody changed the charter of a job that has not ended, or its effort."""

    job: JobId
    charter: Charter
    by: str
    because: str = ""
    time_limit_seconds: float | None = None  # another, or infinite; None: as it was
    effort: str | None = None  # that it joins; None: as it was


class Retried(Event, frozen=True):
    """The attempt has failed, and the job waits for another."""

    job: JobId
    attempt: int
    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None
    begin_at: float | None = None  # not before: failures in a row are tried at growing intervals
    at_end: AtEnd | None = None
    gang: Gang | None = None  # what it asks for from now on; None: what it did
    because: str = ""  # what was mended; otherwise it is one of the retries that were asked for


class Reported(Event, frozen=True):
    """A running job told how it is doing."""

    job: JobId
    attempt: int
    values: dict[str, float]
    step: float | None = None


class Found(Event, frozen=True):
    """The steward has found something of a running job, and says what is done about it."""

    job: JobId
    attempt: int
    kind: str  # idle, stuck, gpu-memory
    act: str  # note, warn, suspend, stop
    sentence: str
    number: int = 0  # of warnings so far
    devices: tuple[int, ...] = ()
    whole: bool = True  # False: it is about these devices only, and the rest works


class Vacated(Event, frozen=True):
    """The attempt left its seats without being done; the job waits again.

    ``lost_seconds`` is the work that has to be done again.
    """

    job: JobId
    attempt: int
    because: str
    lost_seconds: float = 0.0
    at_end: AtEnd | None = None


class NodeSeen(Event, frozen=True):
    """A node is there, new or changed."""

    node: Node


class NodeHealth(Event, frozen=True):
    node: str
    health: Health
    because: str = ""


class DeviceHealth(Event, frozen=True):
    """One GPU was taken out of service, or is back. What runs on it goes on."""

    node: str
    device: int
    healthy: bool
    because: str = ""


class TeamSet(Event, frozen=True):
    team: Team
