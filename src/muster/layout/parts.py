"""The nouns of the map: kinds, racks, switches, nodes in their places, and who says what of them.

Of a node there may be several sources: people, who wrote a file, and instruments, who looked. Each ``Fact``
keeps its own. The first about a thing holds; others about the same thing stay, and are a contradiction if
they differ.
"""

import functools

import msgspec

from muster.model.units import show_bytes

UNPLACED = "unplaced"  # the rack of nodes of which nobody has said where they stand
USUAL_UNITS = 42
Value = int | str

# What facts are about.
KIND, CORES, RAM, RACK, SWITCH = "kind", "cores", "ram", "rack", "switch"
GPUS, GPU_MODEL, GPU_MEMORY, GPU_NUMA, GPU_LINK = "gpus", "GPU model", "GPU memory", "GPU NUMA", "GPU link"
CPUS, MEMORY = "cpus for jobs", "memory for jobs"  # what an engine gives, which may be less
_BYTES = (RAM, MEMORY, GPU_MEMORY)


class Fact(msgspec.Struct, frozen=True):
    """What somebody says of a node."""

    about: str
    value: Value
    source: str

    def __str__(self) -> str:
        return (
            show_bytes(self.value)
            if self.about in _BYTES and isinstance(self.value, int)
            else str(self.value)
        )


class Gpus(msgspec.Struct, frozen=True):
    """The GPUs of a kind of node; ``numa`` says the memory node of each, or nothing."""

    count: int
    model: str | None = None
    memory_bytes: int | None = None
    numa: tuple[int, ...] = ()
    link: str | None = None


class Gpu(msgspec.Struct, frozen=True):
    """One GPU of a node, by its number there."""

    number: int
    model: str | None = None
    memory_bytes: int | None = None
    numa: int | None = None
    bus: str | None = None  # its PCI address
    seen: bool | None = None  # False: the file has it, and who looked has not found it; None: nobody looked
    found_as: int | None = None  # its number for who found it, where the map has one of its own

    @property
    def device(self) -> int:
        """The number by which it is granted."""
        return self.number if self.found_as is None else self.found_as


class Kind(msgspec.Struct, frozen=True):
    """Nodes that are alike. ``across``: how many stand beside each other at the same height."""

    name: str
    u: int = 1
    across: int = 1
    cores: int | None = None
    ram_bytes: int | None = None
    gpus: Gpus | None = None
    line: int | None = None  # where it was written

    @property
    def each_gpu(self) -> tuple[Gpu, ...]:
        """One by one, as the file has them; made once, and shared by all nodes of the kind."""
        return _each_gpu(self.gpus) if self.gpus is not None else ()


@functools.lru_cache(maxsize=1000)
def _each_gpu(gpus: Gpus) -> tuple[Gpu, ...]:
    numa = gpus.numa or (None,) * gpus.count
    return tuple(Gpu(number, gpus.model, gpus.memory_bytes, numa[number]) for number in range(gpus.count))


class Rack(msgspec.Struct, frozen=True):
    """``room`` and ``row`` None: nobody said."""

    name: str
    room: str | None = None
    row: str | None = None
    units: int = USUAL_UNITS


class Switch(msgspec.Struct, frozen=True):
    """Closeness that is not a rack: the nodes below one switch. ``up``: the one above it."""

    name: str
    nodes: tuple[str, ...]
    up: str | None = None


class Spot(msgspec.Struct, frozen=True):
    """A node in its place. ``at_u`` is the lowest unit it takes, None if not known or not free."""

    name: str
    rack: str
    at_u: int | None = None
    column: int = 0  # from the left, of ``across``
    u: int = 1
    across: int = 1
    switch: str | None = None
    kind: str | None = None
    gpus: tuple[Gpu, ...] = ()
    facts: tuple[Fact, ...] = ()

    def fact(self, about: str) -> Fact | None:
        """The one that holds."""
        return next((fact for fact in self.facts if fact.about == about), None)


class Contradiction(msgspec.Struct, frozen=True):
    """Two sources that disagree about a node; the first is believed."""

    node: str
    believed: Fact
    other: Fact

    def __str__(self) -> str:
        one, two = self.believed, self.other
        return f"{self.node}: {one.about}: {one.source} says {one}, {two.source} sees {two}"


class Layout(msgspec.Struct, frozen=True):
    """The whole map. Spots are in the order of the file, then of who was found."""

    site: str
    racks: tuple[Rack, ...] = ()
    spots: tuple[Spot, ...] = ()
    switches: tuple[Switch, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def gpu_count(self) -> int:
        return sum(len(spot.gpus) for spot in self.spots)

    def by_rack(self) -> dict[str, list[Spot]]:
        """Of every rack, empty ones too, the nodes in it."""
        found: dict[str, list[Spot]] = {rack.name: [] for rack in self.racks}
        for spot in self.spots:
            found[spot.rack].append(spot)
        return found

    def spot(self, name: str) -> Spot | None:
        return next((spot for spot in self.spots if spot.name == name), None)


class Found(msgspec.Struct, frozen=True):
    """A node that somebody found, and what is known of it: facts, and its GPUs one by one.

    ``gpus`` None: nobody could look for them, which is something else than none.
    """

    name: str
    facts: tuple[Fact, ...] = ()
    gpus: tuple[Gpu, ...] | None = None
