"""From a total to a gang: traces tell how much a job had, nodes hold it in parts."""

from functools import lru_cache

from muster.model.job import Gang, Part, Shape
from muster.model.units import MILLI

GPUS_PER_NODE = 8


@lru_cache(maxsize=4096)  # equal jobs share one gang: less memory, and equality at a glance
def whole_gpus(gpus: int, per_node: int) -> Gang:
    """As many full nodes' worth of GPUs as there are, and one part with the rest."""
    full, rest = divmod(gpus, per_node)
    parts = [Part(Shape(gpus=per_node), full)] if full else []
    if rest or not full:
        parts.append(Part(Shape(gpus=rest)))
    return Gang(tuple(parts))


def spread(nodes: int, *, cpus: int, memory_bytes: int, gpus: int, gpu_models: tuple[str, ...]) -> Gang:
    """One part on each of ``nodes``, as even as can be: GPUs that don't divide go to the first."""
    each, left = divmod(gpus, nodes)
    parts = []
    for count, part_gpus in ((left, each + 1), (nodes - left, each)):
        shape = Shape(
            cpus_milli=_split(cpus * MILLI, nodes),
            memory_bytes=_split(memory_bytes, nodes),
            gpus=part_gpus,
            gpu_models=gpu_models if part_gpus else (),
        )
        if count:
            parts.append(Part(shape, count))
    return Gang(tuple(parts))


def _split(amount: int, ways: int) -> int:
    """An even share, rounded up so that the shares cover the amount."""
    return -(-amount // ways)
