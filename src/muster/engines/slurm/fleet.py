"""What there is of hardware, from look to look: nodes that are new or changed, and how they are.

Whether a node is drained is Slurm's to say. That a GPU of it was taken out of service is Muster's own, and
stays until a person brings it back.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from muster.engines.slurm.answers import SlurmNode
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.shape import node_of, read_topology, switch_of
from muster.model.errors import MusterError
from muster.model.events import Event, NodeHealth, NodeSeen
from muster.model.node import Health, Node, found_again

_GONE = "Slurm no longer lists it"

Stand = tuple[str | None, str | None]  # a rack and a switch, as far as somebody has said


class Fleet:
    """Nodes as they were told last."""

    def __init__(self, notices: Notices, stands: Mapping[str, Stand] | None = None) -> None:
        self._notices, self.stands = notices, stands or {}
        self.nodes: dict[str, Node] = {}
        self.gpus: dict[str, int] = {}
        self._switches: dict[str, str] = {}
        self._names: frozenset[str] | None = None  # for which the topology was asked

    def knows(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._remember(node)

    def changed(self, found: Sequence[SlurmNode], topology: Callable[[], str], now: float) -> list[Event]:
        """The facts. The topology is asked for when there are other nodes than before."""
        names = frozenset(node.name for node in found)
        if names != self._names:
            self._switches = self._near(topology)
            self._names = names
        events: list[Event] = []
        for one in found:
            events += self._compared(self._stood(node_of(one, self._switches, self._notices)), now)
        for name in self.nodes.keys() - names:
            events += self._compared(replace(self.nodes[name], health=Health.DOWN, because=_GONE), now)
        return events

    def _stood(self, node: Node) -> Node:
        """Where people say that it stands; of its switch Slurm's word holds where they say nothing."""
        rack, switch = self.stands.get(node.name, (None, None))
        return (
            node
            if rack is None and switch is None
            else replace(node, rack=rack, switch=switch or node.switch)
        )

    def _near(self, topology: Callable[[], str]) -> dict[str, str]:
        try:
            return switch_of(read_topology(topology()))
        except MusterError as error:
            self._notices.say(f"what is near to what in Slurm is not known: {error}")
            return {}

    def _compared(self, node: Node, now: float) -> list[Event]:
        known = self.nodes.get(node.name)
        if known is not None:
            health = (node.health, node.because)
            node = replace(found_again(node, known), health=health[0], because=health[1])
        if node == known:
            return []
        self._remember(node)
        if known is not None and replace(node, health=known.health, because=known.because) == known:
            return [NodeHealth(now, node.name, node.health, node.because)]
        return [NodeSeen(now, node)]

    def _remember(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.gpus[node.name] = len(node.devices)
