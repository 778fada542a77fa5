"""``scontrol show node --json``, or ``sinfo --json`` of either shape → nodes."""

from muster.engines.slurm import lift2205
from muster.engines.slurm.answers import Gpus, SlurmNode
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.tres import read_gres
from muster.engines.slurm.values import Reader
from muster.engines.slurm.versions import Version, chain
from muster.engines.slurm.wire import WireNode, decode_nodes
from muster.model.errors import BadInput
from muster.model.units import MIB

LIFTS = ((Version(24, 11), lift2205.lift_node),)
_LOAD_UNIT = 100  # loads are told in hundredths


def read_nodes(answer: bytes, notices: Notices, *, stderr: str = "") -> tuple[SlurmNode, ...]:
    version, found = decode_nodes(answer, notices, stderr=stderr)
    lifts = chain(version, LIFTS)
    reader = Reader(notices, "sinfo")
    nodes = []
    for node in found:
        for lift in lifts:
            lift(node)
        nodes.append(_node(node, reader))
    return tuple(nodes)


def _node(node: WireNode, read: Reader) -> SlurmNode:
    load = read.whole(node.cpu_load)
    return SlurmNode(
        name=node.name,
        states=read.words(node.state),
        cpus=read.whole(node.cpus),
        memory_bytes=_bytes(node.real_memory, read),
        gpus=_gpus(node.gres, read),
        taken_cpus=read.whole(node.alloc_cpus),
        taken_memory_bytes=_bytes(node.alloc_memory, read),
        taken_gpus=_gpus(node.gres_used, read),
        free_memory_bytes=_bytes(node.free_mem, read),
        load=None if load is None else load / _LOAD_UNIT,
        partitions=read.words(node.partitions),
        features=None if node.features is None else read.words(node.features),
        active_features=None if node.active_features is None else read.words(node.active_features),
        reason=read.text(node.reason),
        reason_by=read.text(node.reason_set_by_user),
        reason_at=read.instant(node.reason_changed_at),
        address=read.text(node.address),
        weight=read.whole(node.weight),
        version=read.text(node.version),
    )


def _bytes(value: object, read: Reader) -> int | None:
    mebibytes = read.whole(value)
    return None if mebibytes is None else mebibytes * MIB


def _gpus(value: object, read: Reader) -> tuple[Gpus, ...] | None:
    if value is None:
        return None
    try:
        return tuple(gpus for gpus in read_gres(read.text(value)) if gpus.count)
    except BadInput:
        read.odd(value)
        return None
