"""Taking hardware out of service, and bringing it back: what event that is, or why it makes no sense.

A node, or one GPU of it, that is *drained* keeps what runs and takes nothing new. People drain what they want
to mend, Muster what has failed again and again; only people bring it back.
"""

from muster.model.errors import IllegalTransition
from muster.model.events import DeviceHealth, NodeHealth
from muster.model.node import Health, Node
from muster.server.config_values import nearest, shown
from muster.server.errors import NotFound
from muster.store.fold import Fold


def draining(
    fold: Fold, now: float, name: str, device: int | None, because: str
) -> NodeHealth | DeviceHealth:
    """The event that drains it; raises if it is out of service already."""
    node = _checked(fold, name, device)
    health, why = _state(node, device)
    if health is not Health.UP:
        raise IllegalTransition(f"{_called(name, device)} is {health.value} already" + (why and f" ({why})"))
    if device is None:
        return NodeHealth(now, name, Health.DRAINED, because)
    return DeviceHealth(now, name, device, False, because)


def resuming(fold: Fold, now: float, name: str, device: int | None) -> NodeHealth | DeviceHealth:
    """The event that brings it back; raises if it was not drained."""
    node = _checked(fold, name, device)
    health, _ = _state(node, device)
    if health is not Health.DRAINED:
        said = f"{_called(name, device)} is {health.value}; only what is drained can be resumed"
        raise IllegalTransition(said + _drained_devices(node, device))
    return NodeHealth(now, name, Health.UP) if device is None else DeviceHealth(now, name, device, True)


def _checked(fold: Fold, name: str, device: int | None) -> Node:
    node = fold.nodes.get(name)
    if node is None:
        raise NotFound(f"there is no node {shown(name)}; {nearest(name, fold.nodes)}")
    if device is not None and not 0 <= device < len(node.devices):
        has = f"has {len(node.devices)} GPUs, counted from 0" if node.devices else "has no GPUs"
        raise NotFound(f"node {name} {has}; there is no GPU {device}")
    return node


def _state(node: Node, device: int | None) -> tuple[Health, str]:
    if device is None:
        return node.health, node.because
    one = node.devices[device]
    return (Health.UP, "") if one.healthy else (Health.DRAINED, one.because)


def _called(name: str, device: int | None) -> str:
    return f"node {name}" if device is None else f"GPU {device} of {name}"


def _drained_devices(node: Node, device: int | None) -> str:
    """Who resumes a node that is up may mean one of its GPUs."""
    drained = [] if device is not None else [str(g) for g, d in enumerate(node.devices) if not d.healthy]
    return f" (name its GPU: --gpu {' or '.join(drained)})" if drained else ""
