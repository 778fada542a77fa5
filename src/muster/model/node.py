"""Hardware: a Node with its Devices, and where it stands."""

import enum

import msgspec

from muster.model.resources import Resources
from muster.model.units import MILLI


class Health(enum.StrEnum):
    UP = "up"
    DRAINED = "drained"  # what runs goes on, nothing new starts
    DOWN = "down"


class Device(msgspec.Struct, frozen=True):
    """One GPU."""

    model: str = "gpu"
    memory_bytes: int | None = None  # None: not known, so nothing can be asked of it by memory
    numa: int | None = None
    healthy: bool = True


class Node(msgspec.Struct, frozen=True):
    """One machine. ``rack`` and ``switch`` are closeness: gangs may ask for the same of either."""

    name: str
    cpus_milli: int
    memory_bytes: int
    disk_bytes: int = 0
    devices: tuple[Device, ...] = ()
    rack: str | None = None
    switch: str | None = None
    labels: frozenset[str] = frozenset()
    health: Health = Health.UP

    @property
    def total(self) -> Resources:
        return Resources(self.cpus_milli, self.memory_bytes, len(self.devices) * MILLI, self.disk_bytes)
