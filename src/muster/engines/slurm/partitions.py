"""Which partition has what a job needs."""

from collections.abc import Iterable, Mapping, Sequence

from muster.engines.slurm.answers import SlurmNode, SlurmPartition
from muster.engines.slurm.shape import PARTITION
from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.node import Node


class Partitions:
    """Those that the nodes of the last look were in."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}
        self._default = ""

    def look(self, nodes: Iterable[SlurmNode], partitions: Iterable[SlurmPartition]) -> None:
        self._default = next((one.name for one in partitions if one.default), "")
        self._of = {one.name: one.partitions for one in nodes}

    def best(self, shape: Shape, seats: Sequence[Seat], nodes: Mapping[str, Node]) -> str:
        """One that has the seats, or those that have nodes like it; empty: the default does."""
        if seats:
            having = set.intersection(*(set(self._of.get(seat.node, ())) for seat in seats))
        else:
            fitting = [node.name for node in tuple(nodes.values()) if _could_have(node, shape)]
            having = {name for node in fitting for name in self._of.get(node, ())}
            having &= _named(shape) or having
        return "" if self._default in having else ",".join(sorted(having)[: 1 if seats else None])


def _named(shape: Shape) -> set[str]:
    """Those that the job asks for by label."""
    return {label.removeprefix(PARTITION) for label in shape.labels if label.startswith(PARTITION)}


def _could_have(node: Node, shape: Shape) -> bool:
    fitting = [one for one in node.devices if not shape.gpu_models or one.model in shape.gpu_models]
    return (
        node.cpus_milli >= shape.cpus_milli
        and node.memory_bytes >= shape.memory_bytes
        and len(fitting) >= shape.gpus
        and node.labels.issuperset(shape.labels)
    )
