"""Jobs: what a person asks to run, as values.

A job is a gang of parts; a part is a Shape (what it needs of one node) and a count. Jobs whose gangs
are equal are interchangeable for every question of room, which is what makes long queues cheap.
"""

import enum

import msgspec

from muster.model.charter import Charter
from muster.model.errors import BadInput
from muster.model.resources import NOTHING, Resources
from muster.model.run import Metrics, Run
from muster.model.units import MILLI, show_bytes, show_count, show_milli

JobId = str


class Priority(enum.IntEnum):
    """The one notion of priority. Low yields to all."""

    LOW = 0
    NORMAL = 1
    HIGH = 2

    __hash__ = int.__hash__  # Enum's own is slow, and every look at a lane hashes one


class Together(enum.StrEnum):
    """How close the parts of a gang must be."""

    ANYWHERE = "anywhere"
    NODE = "node"
    RACK = "rack"
    SWITCH = "switch"
    SPREAD = "spread"  # no two parts on one node


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """What one part needs of one node.

    A GPU is asked whole (``gpu_milli`` = 1000), by fraction, or by memory (``gpu_milli`` = 0 and
    ``gpu_memory_bytes`` set). A shared GPU has one currency, its share: the larger of the fraction
    asked and the fraction of the device's memory asked. So neither is ever oversubscribed.
    For whole GPUs ``gpu_memory_bytes`` is what each must at least have.
    """

    cpus_milli: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    gpu_milli: int = MILLI
    gpu_memory_bytes: int = 0
    gpu_models: tuple[str, ...] = ()  # empty: any
    labels: tuple[str, ...] = ()  # all of these must be on the node
    disk_bytes: int = 0

    def __post_init__(self) -> None:
        amounts = (self.cpus_milli, self.memory_bytes, self.gpus, self.gpu_milli, self.gpu_memory_bytes)
        if min(*amounts, self.disk_bytes) < 0:
            raise BadInput("a job can't ask for less than nothing")
        if self.gpus > 1 and self.gpu_milli != MILLI:
            raise BadInput("several GPUs are asked whole; only a single one can be shared")
        if self.gpus and not (self.gpu_milli or self.gpu_memory_bytes):
            raise BadInput("a share of a GPU needs a fraction or an amount of memory")
        if self.gpu_milli > MILLI:
            raise BadInput("of each GPU at most the whole can be asked")

    @property
    def shares_gpu(self) -> bool:
        return self.gpus == 1 and self.gpu_milli < MILLI

    def asked(self) -> Resources:
        """As a vector. A share asked by memory counts nothing until a device is chosen."""
        return Resources(self.cpus_milli, self.memory_bytes, self.gpus * self.gpu_milli, self.disk_bytes)

    def __str__(self) -> str:
        said = []
        if self.shares_gpu and self.gpu_milli:
            said.append(f"{show_milli(self.gpu_milli)} of a GPU")
        elif self.shares_gpu:
            said.append(f"{show_bytes(self.gpu_memory_bytes)} of a GPU's memory")
        elif self.gpus:
            said.append(show_count(self.gpus, "GPU"))
        if self.gpu_models and self.gpus:
            said[-1] += f" ({' or '.join(self.gpu_models)})"
        if self.cpus_milli:
            said.append(show_count(self.cpus_milli / MILLI, "cpu"))
        if self.memory_bytes:
            said.append(f"{show_bytes(self.memory_bytes)} memory")
        return ", ".join(said) or "nothing"


class Part(msgspec.Struct, frozen=True, cache_hash=True):
    """Equal members of a gang."""

    shape: Shape
    count: int = 1


class Gang(msgspec.Struct, frozen=True, cache_hash=True):
    """The parts of a job, that start together or not at all."""

    parts: tuple[Part, ...]
    together: Together = Together.ANYWHERE

    @property
    def size(self) -> int:
        return sum(p.count for p in self.parts)

    def asked(self) -> Resources:
        total = NOTHING
        for part in self.parts:
            total = total + part.shape.asked() * part.count
        return total

    def __str__(self) -> str:
        return " + ".join(f"{p.count} × {p.shape}" if p.count > 1 else str(p.shape) for p in self.parts)


class Checkpoint(msgspec.Struct, frozen=True):
    """How a job keeps its work. A job without one loses everything when it is stopped."""

    every_seconds: float = 0.0  # 0: only when asked
    save_seconds: float = 0.0
    restore_seconds: float = 0.0
    on_signal: bool = True  # saves when it is warned of a stop


class After(enum.StrEnum):
    OK = "ok"
    ANY = "any"
    NOT_OK = "not-ok"


class Dependency(msgspec.Struct, frozen=True):
    """Wait until another job has ended, in the way ``after`` says."""

    job: JobId
    after: After = After.OK


class ArrayPlace(msgspec.Struct, frozen=True):
    """Which member of which array, and how many of it may run at once."""

    array: str
    index: int
    most_at_once: int | None = None


class Job(msgspec.Struct, frozen=True):
    """What a person asks to run."""

    id: JobId
    gang: Gang
    submitted_at: float
    name: str = ""
    owner: str = ""
    team: str = ""
    priority: Priority = Priority.NORMAL
    time_limit_seconds: float | None = None
    begin_at: float | None = None
    after: tuple[Dependency, ...] = ()
    array: ArrayPlace | None = None
    checkpoint: Checkpoint | None = None
    charter: Charter = Charter()
    held: bool = False  # waits for a release by a person
    retries: int = 0  # times that it is tried again after it has failed
    run: Run | None = None  # None: only its shape and length are known, as in a trace
    params: tuple[tuple[str, str], ...] = ()  # of a sweep: what this member tries
    effort: str | None = None  # the larger work that it is part of
    metrics: Metrics | None = None  # where it tells how it is doing; None: nobody said, so ``auto``
    revives: JobId | None = None  # whose work it goes on with, and whose checkpoints it has
    adopted: str | None = None  # the engine in whose queue it was found, where Muster did not submit it


def single(
    *,
    cpus_milli: int = 0,
    memory_bytes: int = 0,
    gpus: int = 0,
    gpu_milli: int = MILLI,
    gpu_memory_bytes: int = 0,
    gpu_models: tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
    parts: int = 1,
    together: Together = Together.ANYWHERE,
) -> Gang:
    """A gang of equal parts, the common case."""
    shape = Shape(cpus_milli, memory_bytes, gpus, gpu_milli, gpu_memory_bytes, gpu_models, labels)
    return Gang((Part(shape, parts),), together)
