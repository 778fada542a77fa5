"""One node's free resources as plain numbers: for questions about a single node and another time.

Columns (``fit``) answer for all nodes at once; a Row answers what-if about one: after these jobs have
ended, without those, with a promised one seated.
"""

from collections.abc import Sequence

import numpy as np

from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.room import FreeRow, Hardware, Room
from muster.model.units import MILLI
from muster.schedule.fit import labelled, need_by_memory, suitable_devices

_MANY = 1 << 40


class Row:
    """What is free on one node."""

    __slots__ = ("cpus", "disk", "gpu", "memory")

    def __init__(self, cpus: int, memory: int, disk: int, gpu: list[int]) -> None:
        self.cpus, self.memory, self.disk, self.gpu = cpus, memory, disk, gpu

    @classmethod
    def of(cls, room: Room, node: int) -> "Row":
        """The node as it is now."""
        cpus, memory, disk, gpu = room.row(node)
        return cls(cpus, memory, disk, gpu.copy())

    def copy(self) -> "Row":
        return Row(self.cpus, self.memory, self.disk, self.gpu.copy())

    def least(self, other: "Row") -> "Row":
        """What is free in both."""
        return Row(
            min(self.cpus, other.cpus),
            min(self.memory, other.memory),
            min(self.disk, other.disk),
            [min(a, b) for a, b in zip(self.gpu, other.gpu, strict=True)],
        )

    def give(self, seat: Seat) -> None:
        """Somebody leaves."""
        self._change(seat.shape, seat.devices, seat.device_milli, 1)

    def take(self, seat: Seat) -> None:
        """Somebody sits down."""
        self._change(seat.shape, seat.devices, seat.device_milli, -1)

    def _change(self, shape: Shape, devices: Sequence[int], device_milli: int, sign: int) -> None:
        self.cpus += sign * shape.cpus_milli
        self.memory += sign * shape.memory_bytes
        self.disk += sign * shape.disk_bytes
        for g in devices:
            self.gpu[g] += sign * device_milli


def row_capacity(hw: Hardware, node: int, row: Row, shape: Shape) -> int:
    """How many such parts the row can take; agrees with ``fit.capacity``."""
    if shape.labels and not labelled(hw, shape.labels)[node]:
        return 0
    many = _MANY
    if shape.cpus_milli:
        many = min(many, row.cpus // shape.cpus_milli)
    if shape.memory_bytes:
        many = min(many, row.memory // shape.memory_bytes)
    if shape.disk_bytes:
        many = min(many, row.disk // shape.disk_bytes)
    if shape.gpus and many > 0:
        if shape.gpu_milli == MILLI and not shape.gpu_models and not shape.gpu_memory_bytes:
            seats = row.gpu.count(MILLI)
        else:
            needs = device_needs(hw, node, shape)
            seats = sum(max(have, 0) // n for have, n in zip(row.gpu, needs, strict=True) if n)
        many = min(many, seats // shape.gpus)
    return max(many, 0)


def fits_one(hw: Hardware, node: int, row: FreeRow, shape: Shape) -> bool:
    """Whether one part fits; agrees with ``fit.feasible``."""
    cpus, memory, disk, gpu = row
    if cpus < shape.cpus_milli or memory < shape.memory_bytes or disk < shape.disk_bytes:
        return False
    if shape.labels and not labelled(hw, shape.labels)[node]:
        return False
    if not shape.gpus:
        return True
    wanted = shape.gpus
    for need, have in zip(device_needs(hw, node, shape), gpu, strict=True):
        if need and have >= need:
            wanted -= 1
            if not wanted:
                return True
    return False


def device_needs(hw: Hardware, node: int, shape: Shape) -> list[int]:
    """The share asked of each device of the node; 0 where it does not suit."""
    if not shape.gpu_models and not shape.gpu_memory_bytes:
        return _everywhere(hw, shape.gpu_milli)
    key = ("row need", node, shape.gpu_milli, shape.gpu_memory_bytes, shape.gpu_models)
    found: list[int] | None = hw.derived.get(key)
    if found is None:
        if shape.gpu_milli == MILLI or not shape.gpu_memory_bytes:
            need = np.full(hw.width, shape.gpu_milli)
        else:
            need = need_by_memory(hw, shape)[node]
        suits = suitable_devices(hw, shape)
        found = (need if suits is None else np.where(suits[node], need, 0)).tolist()
        hw.derived[key] = found
    return found


def _everywhere(hw: Hardware, milli: int) -> list[int]:
    found: list[int] | None = hw.derived.get(milli)
    if found is None:
        found = hw.derived[milli] = [milli] * hw.width
    return found


def seat_in(hw: Hardware, node: int, row: Row, shape: Shape) -> Seat | None:
    """A seat for one part, on the tightest devices that serve; None if there is no room."""
    if row_capacity(hw, node, row, shape) < 1:
        return None
    name = hw.nodes[node].name
    if not shape.gpus:
        return Seat(name, shape)
    needs = device_needs(hw, node, shape)
    usable = [g for g, n in enumerate(needs) if n and row.gpu[g] >= n]
    if shape.shares_gpu:
        usable.sort(key=lambda g: (row.gpu[g] - needs[g], g))
    chosen = tuple(sorted(usable[: shape.gpus]))
    return Seat(name, shape, chosen, max(needs[g] for g in chosen))
