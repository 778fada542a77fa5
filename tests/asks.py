"""What a case asks for, in words: spans and sizes as text, gangs by their parts."""

from typing import Any

from muster.model.job import Gang, Part, Shape, Together
from muster.model.node import Node
from muster.model.tenancy import Quota
from muster.model.units import MILLI, parse_bytes, parse_seconds

Span = float | str


def gang_of(
    *,
    gpus: int = 0,
    share: float | None = None,
    gpu_memory: str | None = None,
    cpus: float = 1,
    memory: str | None = None,
    disk: str | None = None,
    parts: int | tuple[dict[str, Any], ...] = 1,
    together: str = "anywhere",
    model: str | tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
) -> Gang:
    """A gang in words. ``parts`` is how many there are, or a tuple of what each asks for."""
    if isinstance(parts, tuple):
        kinds = tuple(p for words in parts for p in gang_of(**words).parts)
        return Gang(kinds, Together(together))
    by_memory = gpu_memory is not None and not gpus and share is None
    whole = share is None and not by_memory
    shape = Shape(
        cpus_milli=round(cpus * MILLI),
        memory_bytes=parse_bytes(memory or "0"),
        gpus=gpus if whole else 1,
        gpu_milli=MILLI if whole else round((share or 0) * MILLI),
        gpu_memory_bytes=parse_bytes(gpu_memory or "0"),
        gpu_models=(model,) if isinstance(model, str) else model,
        labels=labels,
        disk_bytes=parse_bytes(disk or "0"),
    )
    return Gang((Part(shape, parts),), Together(together))


def share_on(shape: Shape, node: Node) -> int:
    """What the part holds of a device of this node, in thousandths."""
    memory = node.devices[0].memory_bytes or 1
    by_memory = -(-shape.gpu_memory_bytes * MILLI // memory) if shape.gpu_milli < MILLI else 0
    return max(shape.gpu_milli, by_memory)


def milli_of(amount: float | None) -> int | None:
    return None if amount is None else round(amount * MILLI)


def quota_of(gpus: float | None) -> Quota | None:
    return None if gpus is None else Quota(gpus_milli=milli_of(gpus))


def seconds_of(span: Span) -> float:
    return parse_seconds(span) if isinstance(span, str) else span
