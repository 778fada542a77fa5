"""What an engine tells of its nodes, as facts for the map."""

from muster.layout.parts import (
    CPUS,
    GPU_MEMORY,
    GPU_MODEL,
    GPU_NUMA,
    GPUS,
    MEMORY,
    RACK,
    SWITCH,
    Fact,
    Found,
    Gpu,
    Value,
)
from muster.model.node import Node
from muster.model.units import MILLI


def found_by(source: str, node: Node) -> Found:
    """A node as the engine knows it. Its switch is closeness, and no rack."""
    gpus = tuple(
        Gpu(number, device.model, device.memory_bytes, device.numa, seen=True)
        for number, device in enumerate(node.devices)
    )
    said: dict[str, Value | None] = {
        CPUS: node.cpus_milli // MILLI or None,
        MEMORY: node.memory_bytes or None,
        RACK: node.rack,
        SWITCH: node.switch,
    }
    facts = tuple(Fact(about, value, source) for about, value in said.items() if value is not None)
    return Found(node.name, (*facts, *gpu_facts(gpus, source)), gpus)


def gpu_facts(gpus: tuple[Gpu, ...], source: str) -> tuple[Fact, ...]:
    """How many, and what all of them have in common."""
    said: list[tuple[str, Value | None]] = [(GPUS, len(gpus))]
    said += [
        (GPU_MODEL, _common([gpu.model for gpu in gpus])),
        (GPU_MEMORY, _common([gpu.memory_bytes for gpu in gpus])),
        (GPU_NUMA, _joined([gpu.numa for gpu in gpus])),
    ]
    return tuple(Fact(about, value, source) for about, value in said if value is not None)


def _common(values: list[str | None] | list[int | None]) -> Value | None:
    return values[0] if values and len(set(values)) == 1 else None


def _joined(numbers: list[int | None]) -> str | None:
    """In order, if all are known."""
    known = [str(number) for number in numbers if number is not None]
    return ",".join(known) if known and len(known) == len(numbers) else None
