"""What the API answers about where things are."""

import msgspec

from muster.layout.parts import Rack, Switch
from muster.layout.states import State
from muster.model.state import State as JobState


class GpuView(msgspec.Struct):
    """A GPU on the map. Who holds it is the first of its jobs, if it has several."""

    number: int
    model: str | None
    state: State
    share: float | None  # truly used, over the last minutes; None: not known
    held: float = 0.0  # of it: 1 is all
    jobs: list[str] = []
    owner: str | None = None
    team: str | None = None
    effort: str | None = None
    purpose: str | None = None
    since: float | None = None  # when its jobs got it
    idle_since: float | None = None  # as the steward has found
    undefended: bool = False
    words: str = ""
    memory_bytes: int | None = None
    numa: int | None = None


class MapNode(msgspec.Struct):
    """A node in its place; what its jobs hold and truly use."""

    name: str
    rack: str
    at_u: int | None  # the lowest unit that it takes
    units: int
    column: int  # from the left, of ``across`` that stand beside each other
    across: int
    switch: str | None
    kind: str | None
    state: State
    health: str | None  # None: the layout has it, and the engine does not know it
    reason: str | None
    cpus: float | None
    cpus_held: float
    cpu_share: float | None  # of all that it has, as it is with memory
    memory_bytes: int | None
    memory_held_bytes: int
    memory_share: float | None
    jobs: list[str]
    gpus: list[GpuView]


class MapView(msgspec.Struct):
    """The place, or a part of it, and what it does now."""

    site: str
    at: float
    generation: int  # of the places: another one means that the map has to be drawn anew
    sentence: str
    counts: dict[State, int]  # GPUs
    share: float | None  # truly used of those that are held, as far as it is known
    undefended: int
    racks: list[Rack]
    nodes: list[MapNode]
    switches: list[Switch]
    contradictions: list[str]


class PlaceGpu(msgspec.Struct):
    """A GPU that a job holds."""

    number: int
    model: str | None
    numa: int | None
    share: float | None
    held: float


class ProcessView(msgspec.Struct):
    """A process of a job."""

    pid: int
    command: str | None
    memory_bytes: int | None
    gpu_memory_bytes: int | None


class PlaceView(msgspec.Struct):
    """A node that a job sits on, and what it has there. ``processes`` None: not known."""

    node: str
    rack: str | None
    room: str | None
    row: str | None
    at_u: int | None
    cpus: float
    memory_bytes: int
    gpus: list[PlaceGpu]
    processes: list[ProcessView] | None = None


class Where(msgspec.Struct):
    """Where a job is, was, or is likely to be."""

    id: str
    name: str
    state: JobState
    sentence: str
    places: list[PlaceView]
    drawing: list[str]  # its racks, with its nodes and GPUs marked
