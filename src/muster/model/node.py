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
    healthy: bool = True  # if not, nothing new starts on it
    because: str = ""  # why it is not, if somebody said


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
    because: str = ""  # why it is not up, if somebody said

    @property
    def total(self) -> Resources:
        return Resources(self.cpus_milli, self.memory_bytes, len(self.devices) * MILLI, self.disk_bytes)

    def with_device(self, number: int, device: Device) -> "Node":
        devices = (*self.devices[:number], device, *self.devices[number + 1 :])
        return msgspec.structs.replace(self, devices=devices)


def found_again(found: Node, known: Node) -> Node:
    """A node as it was found, with what was drained before still drained: looking again mends nothing.

    Only a device of another model where a drained one was has certainly been exchanged. Whether a node is
    down, who looks knows best.
    """
    drained = found.health is Health.UP and known.health is Health.DRAINED
    one = known if drained else found
    devices = (*map(_again, found.devices, known.devices), *found.devices[len(known.devices) :])
    return msgspec.structs.replace(found, devices=devices, health=one.health, because=one.because)


def _again(found: Device, known: Device) -> Device:
    if known.healthy or known.model != found.model:
        return found
    return msgspec.structs.replace(found, healthy=False, because=known.because)
