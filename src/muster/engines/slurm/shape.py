"""The cluster's shape: Slurm's nodes as Nodes of Muster's, and what is near to what.

A switch of Slurm's topology (or a block, where it is told in blocks) is closeness for placement. It is no
rack: where things stand, only people know, and write down in a layout.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import yaml

from muster.engines.slurm import hostlist
from muster.engines.slurm.answers import SlurmNode
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.states import node_health
from muster.model.errors import BadInput
from muster.model.node import Device, Health, Node
from muster.model.units import MILLI

SOURCE = "Slurm"
PARTITION = "partition:"  # what a label begins with that names one
_LINE = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_NOT_KNOWN = "Slurm does not know its state"


class Switch(msgspec.Struct, frozen=True):
    """A switch or a block with the nodes below it; what is above it says nothing about closeness."""

    name: str
    nodes: tuple[str, ...]
    level: int = 0


# --- Nodes -----------------------------------------------------------------------------------------


def node_of(found: SlurmNode, switches: Mapping[str, str], notices: Notices) -> Node:
    """What is not told is not there to be given: Slurm itself places nothing on it."""
    health = node_health(found, notices)
    features = found.active_features or found.features or ()
    return Node(
        name=found.name,
        cpus_milli=(found.cpus or 0) * MILLI,
        memory_bytes=found.memory_bytes or 0,
        devices=_devices(found),
        switch=switches.get(found.name),
        labels=frozenset((*features, *(f"{PARTITION}{name}" for name in found.partitions))) - {""},
        health=health or Health.DOWN,
        because="" if health is Health.UP else _because(found, health),
    )


def _devices(found: SlurmNode) -> tuple[Device, ...]:
    """In the order in which Slurm counts them: by kind, as they are listed."""
    return tuple(Device(gpus.type or "gpu") for gpus in found.gpus or () for _ in range(gpus.count))


def _because(found: SlurmNode, health: Health | None) -> str:
    if health is None:
        return _NOT_KNOWN
    said = " ".join(found.reason.split())
    by = f" ({found.reason_by})" if found.reason_by and said else ""
    return f"{said}{by}" if said else "/".join(found.states).lower()


# --- What is near to what --------------------------------------------------------------------------


def switch_of(switches: Iterable[Switch]) -> dict[str, str]:
    """Node → the lowest switch that it is below; of several, the smallest."""
    found: dict[str, str] = {}
    for switch in sorted(switches, key=lambda one: (one.level, len(one.nodes), one.name)):
        for node in switch.nodes:
            found.setdefault(node, switch.name)
    return found


def read_topology(text: str) -> tuple[Switch, ...]:
    """``scontrol show topology``, ``topology.conf`` or ``topology.yaml``. Without a topology: none."""
    if _is_yaml(text):
        return tuple(_of_yaml(text))
    return tuple(_of_lines(text))


def _is_yaml(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first == "---" or first.startswith("- ")


def _of_lines(text: str) -> Iterator[Switch]:
    for line in text.splitlines():
        words = {key.lower(): value for key, value in _LINE.findall(line.partition("#")[0])}
        name = words.get("switchname") or words.get("blockname")
        if name and words.get("nodes"):
            level = words.get("level", "")
            yield Switch(name, _unfolded(words["nodes"]), int(level) if level.isdecimal() else 0)


def _of_yaml(text: str) -> Iterator[Switch]:
    """Several topologies may be told; the cluster's own comes first, or else the first."""
    try:
        told = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"this topology can't be read as YAML: {' '.join(str(error).split())[:200]}") from None
    listed = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    chosen = next((one for one in listed if one.get("cluster_default")), listed[0] if listed else {})
    for kind, several, name in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        part = chosen.get(kind)
        for one in part.get(several) or () if isinstance(part, dict) else ():
            if isinstance(one, dict) and one.get(name) and one.get("nodes"):
                yield Switch(str(one[name]), _unfolded(str(one["nodes"])))


def _unfolded(text: str) -> tuple[str, ...]:
    return hostlist.unfolded(text)
