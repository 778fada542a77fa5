"""What the API answers about what stands on what."""

import msgspec

from muster.server.answers import Amounts, Grant


class UsedNow(msgspec.Struct):
    """What is used now, or was in the last minutes; None where it is not known."""

    cpus: float | None
    memory_bytes: int | None
    gpus: float | None


class StackDevice(msgspec.Struct):
    number: int
    model: str
    memory_bytes: int | None
    healthy: bool
    busy: float | None
    jobs: list[str]  # who holds it, or a part of it


class Layer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that stands on the one below it. ``children`` stand on this one."""

    layer: str  # site, rack, node, group, attempt, job, process; other engines may have more
    kind: str  # of its layer, in the engine's words: "cgroup v2", "A40"
    id: str
    name: str = ""
    state: str | None = None
    has: Amounts | None = None  # of hardware: all of it
    held: Amounts | None = None
    used: UsedNow | None = None
    facts: dict[str, str] = {}
    limits: list[Grant] = []
    devices: list[StackDevice] = []
    unknown: list[str] = []  # what can't be known of it, and why
    left_out: int = 0  # that stand on it and are not told
    children: list["Layer"] = []


class Stack(msgspec.Struct):
    """What stands on what, hardware at the bottom."""

    sentence: str
    at: float
    job: str | None
    node: str | None
    layers: list[str]  # the words of those that are there, from the bottom up
    bottom: Layer
