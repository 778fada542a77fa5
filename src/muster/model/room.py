"""Hardware and Room: columns over nodes.

``Hardware`` is what there is: built once per inventory and shared. ``Room`` is what is free now: a few
arrays that change one node at a time, with a log of which nodes changed, so that whoever keeps answers
about nodes (see ``schedule.rank``) refreshes only those.

A device that is absent or unhealthy has no free share, so nothing can be put on it.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.node import Health, Node
from muster.model.resources import NOTHING, Resources
from muster.model.units import MILLI

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]
FreeRow = tuple[int, int, int, list[int]]  # cpus, memory, disk, share of each device: not to be changed
Nodes = Any  # what may index a column: an Index, or a slice for all


class Hardware:
    """Static columns over nodes, in the order given."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.index = {node.name: i for i, node in enumerate(self.nodes)}
        self.count = len(self.nodes)
        self.width = max((len(n.devices) for n in self.nodes), default=0)
        self.models = tuple(sorted({d.model for n in self.nodes for d in n.devices}))
        self.racks = _groups([n.rack for n in self.nodes])
        self.switches = _groups([n.switch for n in self.nodes])
        self.most_cpus_milli = max((n.cpus_milli for n in self.nodes), default=0) or 1
        self.total = NOTHING
        self.derived: dict[object, Any] = {}  # facts that follow from the hardware alone, see schedule.fit
        self._fill()

    def _fill(self) -> None:
        shape = (self.count, self.width)
        self.gpu_model = np.full(shape, -1, np.int16)
        self.gpu_memory = np.zeros(shape, np.int64)
        self.gpu_healthy = np.zeros(shape, np.bool_)
        model_id = {name: i for i, name in enumerate(self.models)}
        for i, node in enumerate(self.nodes):
            self.total = self.total + node.total
            for g, device in enumerate(node.devices):
                self.gpu_model[i, g] = model_id[device.model]
                self.gpu_memory[i, g] = device.memory_bytes or 0
                self.gpu_healthy[i, g] = device.healthy

    def with_node(self, node: Node) -> "Hardware":
        """With one that is the same but for its health: of that, columns say nothing."""
        other, i = copy.copy(self), self.index[node.name]
        other.nodes = (*self.nodes[:i], node, *self.nodes[i + 1 :])
        return other

    def free_room(self) -> "Room":
        """The room when nothing runs."""
        return Room(
            cpus=np.array([n.cpus_milli for n in self.nodes], np.int64),
            memory=np.array([n.memory_bytes for n in self.nodes], np.int64),
            disk=np.array([n.disk_bytes for n in self.nodes], np.int64),
            gpu=np.where(self.gpu_healthy, MILLI, 0).astype(np.int64),
            is_open=np.array([n.health is Health.UP for n in self.nodes], np.bool_),
            kinds=np.zeros((self.count, 4), np.int64),
        )


def _groups(names: Sequence[str | None]) -> Ints:
    """Names → small numbers; None → -1."""
    known: dict[str, int] = {}
    ids = [-1 if n is None else known.setdefault(n, len(known)) for n in names]
    return np.array(ids, np.int64)


class ChangeLog:
    """Which nodes changed, in order. Forgets the distant past: who is that far behind starts anew."""

    __slots__ = ("base", "nodes")

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.nodes: list[int] = []

    @property
    def end(self) -> int:
        return self.base + len(self.nodes)

    def since(self, mark: int) -> list[int] | None:
        """Nodes changed from ``mark`` on; None if that is no longer known."""
        return self.nodes[mark - self.base :] if mark >= self.base else None

    def forget_before(self, keep: int) -> None:
        """Keep about the last ``keep`` entries."""
        if len(self.nodes) > 2 * keep:
            drop = len(self.nodes) - keep
            self.nodes = self.nodes[drop:]  # a new list: readers of the old one are not disturbed
            self.base += drop


class Room:
    """What is free, by node. ``take`` and ``give`` are exact inverses."""

    __slots__ = ("_rows", "cpus", "disk", "gpu", "is_open", "kinds", "log", "memory")

    def __init__(
        self,
        *,
        cpus: Ints,
        memory: Ints,
        disk: Ints,
        gpu: Ints,
        is_open: Bools,
        kinds: Ints,
        base: int = 0,
    ) -> None:
        self.cpus, self.memory, self.disk = cpus, memory, disk
        self.gpu = gpu  # free thousandths, one column per device
        self.is_open = is_open  # may start something new
        self.kinds = kinds  # how many parts sit there: shares of a GPU, one GPU, two, more
        self.log = ChangeLog(base)
        self._rows: dict[int, FreeRow] = {}

    def row(self, node: int) -> FreeRow:
        """One node's free resources as plain numbers; the same object until the node changes."""
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = (
                int(self.cpus[node]),
                int(self.memory[node]),
                int(self.disk[node]),
                self.gpu[node].tolist(),
            )
        return row

    def copy(self) -> "Room":
        """Columns of its own, and a log that goes on from here."""
        return Room(
            cpus=self.cpus.copy(),
            memory=self.memory.copy(),
            disk=self.disk.copy(),
            gpu=self.gpu.copy(),
            is_open=self.is_open.copy(),
            kinds=self.kinds.copy(),
            base=self.log.end,
        )

    def take(self, node: int, shape: Shape, devices: Sequence[int], device_milli: int) -> None:
        """Hold a part's resources."""
        self._change(node, shape, devices, device_milli, -1)

    def give(self, node: int, shape: Shape, devices: Sequence[int], device_milli: int) -> None:
        """Give a part's resources back."""
        self._change(node, shape, devices, device_milli, 1)

    def _change(self, node: int, shape: Shape, devices: Sequence[int], device_milli: int, sign: int) -> None:
        self.cpus[node] += sign * shape.cpus_milli
        self.memory[node] += sign * shape.memory_bytes
        if shape.disk_bytes:
            self.disk[node] += sign * shape.disk_bytes
        if devices:
            row = self.gpu[node]
            for g in devices:
                row[g] += sign * device_milli
            self.kinds[node, self.kind_of(shape)] -= sign
        self._rows.pop(node, None)
        self.log.nodes.append(node)

    @staticmethod
    def kind_of(shape: Shape) -> int:
        """Which of the kinds of parts with GPUs this is."""
        return 0 if shape.shares_gpu else min(shape.gpus, 3)


def held_by(seats: Sequence[Seat]) -> Resources:
    """What a placed gang holds, as a vector."""
    total = NOTHING
    for seat in seats:
        s = seat.shape
        total = total + Resources(
            s.cpus_milli, s.memory_bytes, len(seat.devices) * seat.device_milli, s.disk_bytes
        )
    return total
