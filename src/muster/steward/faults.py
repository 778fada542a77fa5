"""Faults of hardware, and what is no longer to be trusted after them.

A fault is what meters and the engine have seen, never what a job has printed: who could drain a node by
printing three lines would. One fault is bad luck; several within a day, while different jobs were there, are
the device's; and a device that no longer answers needs no second time. What a person has brought back is
judged by what happened since.
"""

import enum
from collections.abc import Mapping, Sequence

import msgspec

from muster.model.job import JobId
from muster.model.units import DAY, show_seconds

# Of the errors that NVIDIA's driver numbers, those that hardware makes; most others a program can cause.
HARDWARE_XIDS = frozenset({48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 121, 140, 143})
_MOST_NAMED = 3


class FaultKind(enum.StrEnum):
    DEVICE_LOST = "device lost"  # it was there, and no longer answers
    UNCORRECTED = "uncorrected memory errors"
    XID = "driver error"
    NODE = "node fault"  # the node was lost, or could not run what it was given


class Fault(msgspec.Struct, frozen=True):
    """Something went wrong with a device, or, with ``device`` None, with the node."""

    node: str
    device: int | None
    kind: FaultKind
    at: float
    job: JobId | None = None  # who was there
    code: int | None = None  # of an XID

    @property
    def is_hardware(self) -> bool:
        """Whether hardware is to blame. Most driver errors, and those without a number, may be the job's."""
        return self.kind is not FaultKind.XID or self.code in HARDWARE_XIDS

    def __str__(self) -> str:
        return f"{self.kind} {self.code}" if self.code is not None else str(self.kind)


class QuarantineRules(msgspec.Struct, frozen=True):
    faults: int = 3  # by as many different jobs …
    within_seconds: float = DAY  # … in this time
    devices: int = 2  # so many bad devices make a bad node


class Quarantine(msgspec.Struct, frozen=True):
    """What is to be drained: a device, or, with ``device`` None, the node."""

    node: str
    device: int | None
    because: str
    faults: int


def quarantine(
    faults: Sequence[Fault], rules: QuarantineRules, now: float, resumed_at: Mapping[str, float] | None = None
) -> tuple[Quarantine, ...]:
    """What is to be drained by now. ``resumed_at``: when people brought nodes back, by their name."""
    resumed = resumed_at or {}
    since = now - rules.within_seconds
    seen: dict[tuple[str, int | None], list[Fault]] = {}
    for fault in faults:
        if fault.is_hardware and fault.at > max(since, resumed.get(fault.node, since)):
            seen.setdefault((fault.node, fault.device), []).append(fault)
    found = [bad for where, those in seen.items() if (bad := _judged(where, those, rules)) is not None]
    return tuple(sorted(found + _bad_nodes(found, rules), key=_place))


def _judged(where: tuple[str, int | None], faults: list[Fault], rules: QuarantineRules) -> Quarantine | None:
    node, device = where
    if any(fault.kind is FaultKind.DEVICE_LOST for fault in faults):
        return Quarantine(node, device, _sentence(node, device, "no longer answers"), len(faults))
    # A fault while nobody was there is one more by itself: no job can have caused it.
    jobs = {fault.job for fault in faults if fault.job is not None}
    count = len(jobs) + sum(fault.job is None for fault in faults)
    if count < rules.faults:
        return None
    kinds = ", ".join(sorted({str(fault) for fault in faults})[:_MOST_NAMED])
    said = f"had {len(faults)} faults within {show_seconds(rules.within_seconds)} ({kinds})"
    if jobs:
        said += f", under {len(jobs)} different jobs" if len(jobs) > 1 else ", under one job"
    return Quarantine(node, device, _sentence(node, device, said), len(faults))


def _bad_nodes(found: list[Quarantine], rules: QuarantineRules) -> list[Quarantine]:
    """Several bad devices are seldom the devices' fault."""
    by_node: dict[str, list[Quarantine]] = {}
    for bad in found:
        by_node.setdefault(bad.node, []).append(bad)
    nodes = []
    for node, bads in by_node.items():
        if len(bads) >= rules.devices and all(bad.device is not None for bad in bads):
            because = _sentence(node, None, f"has {len(bads)} bad GPUs")
            nodes.append(Quarantine(node, None, because, sum(bad.faults for bad in bads)))
    return nodes


def _sentence(node: str, device: int | None, said: str) -> str:
    what = f"node {node}" if device is None else f"GPU {device} of {node}"
    return f"{what} {said}: it is drained until someone has looked at it (muster node resume {node})"


def _place(bad: Quarantine) -> tuple[str, int]:
    return (bad.node, -1 if bad.device is None else bad.device)
