"""Slurm's nodes as Muster's, and which partition has what a job needs."""

from collections.abc import Iterable, Sequence

from muster.engines.slurm.answers import SlurmNode, SlurmPartition
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.states import node_health
from muster.model.events import Seat
from muster.model.job import Job, Shape
from muster.model.node import Device, Health, Node
from muster.model.units import MILLI


def node_of(found: SlurmNode, notices: Notices) -> Node:
    """A node whose health is not known takes nothing new."""
    health = node_health(found, notices)
    because = found.reason or ("" if health is not None else "Slurm has not heard of it yet")
    devices = [Device(model=gpus.type or "gpu") for gpus in found.gpus or () for _ in range(gpus.count)]
    return Node(
        name=found.name,
        cpus_milli=(found.cpus or 0) * MILLI,
        memory_bytes=found.memory_bytes or 0,
        devices=tuple(devices),
        labels=frozenset(found.active_features or found.features or ()),
        health=Health.DOWN if health is None else health,
        because="" if health is Health.UP else because,
    )


class Inventory:
    """The nodes of the last look, and the partitions that they are in."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._partitions: dict[str, tuple[str, ...]] = {}
        self._default = ""

    def look(
        self, nodes: Iterable[SlurmNode], partitions: Iterable[SlurmPartition], notices: Notices
    ) -> list[tuple[Node | None, Node]]:
        """Take it in; what is new or has changed, each with what it was before."""
        self._default = next((one.name for one in partitions if one.default), "")
        found = list(nodes)
        self._partitions = {one.name: one.partitions for one in found}
        before, self.nodes = self.nodes, {one.name: node_of(one, notices) for one in found}
        changed = [(before.get(name), node) for name, node in self.nodes.items() if before.get(name) != node]
        return changed + [(node, _gone(node)) for name, node in before.items() if name not in self.nodes]

    def partition(self, job: Job, seats: Sequence[Seat]) -> str:
        """One that has the seats, or those that have nodes like it; empty: the default does."""
        if seats:
            shared = [set(self._partitions.get(seat.node, ())) for seat in seats]
            having = set.intersection(*shared)
        else:
            shape = job.gang.parts[0].shape
            fitting = [name for name, node in self.nodes.items() if _could_have(node, shape)]
            having = {name for node in fitting for name in self._partitions.get(node, ())}
        return "" if self._default in having else ",".join(sorted(having)[: 1 if seats else None])


def _gone(node: Node) -> Node:
    """Slurm no longer lists it."""
    return Node(node.name, 0, 0, health=Health.DOWN, because="it is no longer in Slurm")


def _could_have(node: Node, shape: Shape) -> bool:
    fitting = [one for one in node.devices if not shape.gpu_models or one.model in shape.gpu_models]
    has_labels = node.labels.issuperset(shape.labels)
    return (
        node.cpus_milli >= shape.cpus_milli
        and node.memory_bytes >= shape.memory_bytes
        and len(fitting) >= shape.gpus
        and has_labels
    )
