"""Does a part fit on a node? The same questions asked of many nodes at once, and in words of one.

``feasible`` answers for columns of nodes; ``why_not`` finds the check that decides and gives it as a typed
reason; ``never`` asks of the empty cluster, to tell *infeasible* from *insufficient*.
"""

from collections.abc import Callable, Iterator

import numpy as np

from muster.model.job import Gang, Part, Shape, Together
from muster.model.node import Health
from muster.model.reasons import (
    GangTooLarge,
    NoRoom,
    NoRoomTogether,
    NoSuchCombination,
    NoSuchLabel,
    NoSuchModel,
    Out,
    OutOfService,
    Reason,
    TooLarge,
    TooLittleGpuMemory,
)
from muster.model.resources import Resources
from muster.model.room import Bools, Hardware, Ints, Nodes, Room
from muster.model.snapshot import Waiting
from muster.model.units import MILLI

ALL = slice(None)
_FEW = 3  # of what is out of service, in a sentence


def feasible(hw: Hardware, room: Room, shape: Shape, nodes: Nodes = ALL) -> Bools:
    """Which of ``nodes`` can take one part now."""
    ok: Bools = room.is_open[nodes] & (room.cpus[nodes] >= shape.cpus_milli)
    ok &= room.memory[nodes] >= shape.memory_bytes
    if shape.disk_bytes:
        ok &= room.disk[nodes] >= shape.disk_bytes
    if shape.labels:
        ok &= labelled(hw, shape.labels)[nodes]
    if shape.gpus == 1:
        ok &= usable_devices(hw, room, shape, nodes).any(axis=1)
    elif shape.gpus:
        ok &= usable_devices(hw, room, shape, nodes).sum(axis=1) >= shape.gpus
    return ok


def usable_devices(hw: Hardware, room: Room, shape: Shape, nodes: Nodes = ALL) -> Bools:
    """Which devices of ``nodes`` can serve one of the part's GPUs. Whole GPUs take only idle ones."""
    usable: Bools = room.gpu[nodes] >= device_need(hw, shape, nodes)
    suits = suitable_devices(hw, shape)
    return usable if suits is None else usable & suits[nodes]


def device_need(hw: Hardware, shape: Shape, nodes: Nodes = ALL) -> Ints | int:
    """The share asked of a device, in thousandths; by device where it is asked by memory."""
    if shape.gpu_milli == MILLI or not shape.gpu_memory_bytes:
        return shape.gpu_milli
    return need_by_memory(hw, shape)[nodes]


def need_by_memory(hw: Hardware, shape: Shape) -> Ints:
    """The larger of the fraction asked and the fraction of memory asked, rounded up."""
    key = ("need", shape.gpu_milli, shape.gpu_memory_bytes)
    found: Ints | None = hw.derived.get(key)
    if found is None:
        memory = np.maximum(hw.gpu_memory, 1)
        by_memory = -(-shape.gpu_memory_bytes * MILLI // memory)
        found = hw.derived[key] = np.maximum(by_memory, shape.gpu_milli)
    return found


def suitable_devices(hw: Hardware, shape: Shape) -> Bools | None:
    """Devices of an allowed model with enough memory. None: all are."""
    if not shape.gpu_models and not shape.gpu_memory_bytes:
        return None
    key = ("suits", shape.gpu_models, shape.gpu_memory_bytes)
    found: Bools | None = hw.derived.get(key)
    if found is None:
        found = hw.gpu_memory >= shape.gpu_memory_bytes
        if shape.gpu_models:
            allowed = [i for i, name in enumerate(hw.models) if name in shape.gpu_models]
            found &= np.isin(hw.gpu_model, allowed)
        hw.derived[key] = found
    return found


def labelled(hw: Hardware, labels: tuple[str, ...]) -> Bools:
    """Nodes that carry all of the labels."""
    key = ("labels", labels)
    found: Bools | None = hw.derived.get(key)
    if found is None:
        wanted = frozenset(labels)
        found = hw.derived[key] = np.array([wanted <= n.labels for n in hw.nodes], np.bool_)
    return found


def capacity(hw: Hardware, room: Room, shape: Shape, nodes: Nodes = ALL) -> Ints:
    """How many such parts each node can take, one after the other."""
    many = np.where(feasible(hw, room, shape, nodes), np.iinfo(np.int64).max, 0)
    for free, asked in (
        (room.cpus, shape.cpus_milli),
        (room.memory, shape.memory_bytes),
        (room.disk, shape.disk_bytes),
    ):
        if asked:
            many = np.minimum(many, free[nodes] // asked)
    if shape.gpus:
        usable = usable_devices(hw, room, shape, nodes)
        each = np.where(usable, room.gpu[nodes] // np.maximum(device_need(hw, shape, nodes), 1), 0)
        many = np.minimum(many, each.sum(axis=1) // shape.gpus)
    return np.minimum(many, 1 << 40)


def asked_at_least(hw: Hardware, waiting: Waiting) -> Resources:
    """What the job will hold: where GPUs are asked by memory, their share of the device that suits best."""
    gang = waiting.job.gang
    if all(p.shape.gpu_milli or not p.shape.gpus for p in gang.parts):
        return waiting.asked
    key = ("asked", gang)
    found: Resources | None = hw.derived.get(key)
    if found is None:
        found = waiting.asked
        for part in gang.parts:
            suits = suitable_devices(hw, part.shape)
            if suits is not None and part.shape.gpus and not part.shape.gpu_milli:
                least = int(need_by_memory(hw, part.shape)[suits].min(initial=MILLI))
                found = found + Resources(gpus_milli=least * part.shape.gpus * part.count)
        hw.derived[key] = found
    return found


# --- Saying no ---------------------------------------------------------------------------------------


def never(hw: Hardware, gang: Gang) -> Reason | None:
    """Why the gang could not run even if the cluster were empty and whole; None if it could."""
    key = ("never", gang)
    if key not in hw.derived:
        hw.derived[key] = _never(hw, empty_room(hw), gang)
    found: Reason | None = hw.derived[key]
    return found


def empty_room(hw: Hardware) -> Room:
    """The room if nothing ran and all were well: what is down or broken may come back."""
    empty: Room | None = hw.derived.get("empty")
    if empty is None:
        empty = hw.derived["empty"] = hw.free_room()
        empty.is_open[:] = True
        empty.gpu[hw.gpu_model >= 0] = MILLI
    return empty


def _never(hw: Hardware, empty: Room, gang: Gang) -> Reason | None:
    for part in gang.parts:
        if not feasible(hw, empty, part.shape).any():
            return _too_large(hw, empty, part.shape)
        most = together_capacity(hw, empty, part, gang.together)
        if most < part.count:
            return GangTooLarge(part.count, most, gang.together)
    return None


def _too_large(hw: Hardware, empty: Room, shape: Shape) -> Reason:
    if shape.gpus and shape.gpu_models and not set(shape.gpu_models) & set(hw.models):
        return NoSuchModel(shape.gpu_models, hw.models)
    if shape.gpus and shape.gpu_memory_bytes:
        allowed = [not shape.gpu_models or name in shape.gpu_models for name in hw.models]
        most = int(hw.gpu_memory[np.isin(hw.gpu_model, np.flatnonzero(allowed))].max(initial=0))
        if most < shape.gpu_memory_bytes:
            return TooLittleGpuMemory(shape.gpu_memory_bytes, most)
    if shape.labels and not labelled(hw, shape.labels).any():
        return NoSuchLabel(shape.labels)
    for what, amounts, asked in amounts_by_node(hw, empty, shape):
        if asked and (not amounts.size or amounts.max() < asked):
            best = int(amounts.argmax()) if amounts.size else 0
            most = int(amounts[best]) if amounts.size else 0
            return TooLarge(what, asked, most, hw.nodes[best].name if most else None)
    return NoSuchCombination(str(shape))


def why_not(hw: Hardware, room: Room, gang: Gang) -> Reason | None:
    """The deciding reason why a gang that could run does not fit; None if no single check tells."""
    for part in gang.parts:
        short = _too_little(hw, room, part, gang.together)
        if short is not None:
            return _out_of_service(hw, room, part, gang.together) or short
    return None


def _too_little(hw: Hardware, room: Room, part: Part, together: Together) -> Reason | None:
    if not feasible(hw, room, part.shape).any():
        return _no_room(hw, room, part.shape)
    most = together_capacity(hw, room, part, together)
    return NoRoomTogether(part.count, most, together) if most < part.count else None


def _out_of_service(hw: Hardware, room: Room, part: Part, together: Together) -> Reason | None:
    """Whether it waits for what is drained or down, and not for who runs."""
    if room.is_open.all() and not _broken(hw).any():
        return None
    left = _room_in_service(hw, room)
    short = _too_little(hw, left, part, together)
    if short is None:
        return None
    would_do = capacity(hw, empty_room(hw), part.shape) > capacity(hw, left, part.shape)
    out = [one for node in np.flatnonzero(would_do).tolist() for one in _out(hw, node, part.shape)]
    return OutOfService(tuple(out[:_FEW]), len(out[_FEW:]), short)


def _out(hw: Hardware, node: int, shape: Shape) -> Iterator[Out]:
    """What is out of service there and would serve the part: the node, or devices of it."""
    there, suits = hw.nodes[node], suitable_devices(hw, shape)
    if there.health is not Health.UP:
        yield Out(there.name, None, there.health, there.because)
        return
    for g, device in enumerate(there.devices):
        if not device.healthy and (suits is None or suits[node, g]):
            yield Out(there.name, g, Health.DRAINED, device.because)


def _broken(hw: Hardware) -> Bools:
    """Devices that are there, and not healthy."""
    found: Bools | None = hw.derived.get("broken")
    if found is None:
        found = hw.derived["broken"] = (hw.gpu_model >= 0) & ~hw.gpu_healthy
    return found


def _room_in_service(hw: Hardware, room: Room) -> Room:
    """The room if nothing ran, and what is out of service were still out."""
    free: Room | None = hw.derived.get("free")
    if free is None:
        free = hw.derived["free"] = hw.free_room()
    return Room(
        cpus=free.cpus,
        memory=free.memory,
        disk=free.disk,
        gpu=free.gpu,
        is_open=room.is_open,
        kinds=free.kinds,
    )


def _no_room(hw: Hardware, room: Room, shape: Shape) -> Reason:
    """Relax one check after the other: the one whose absence helps is the one that decides."""
    amounts = amounts_by_node(hw, room, shape)
    checks = [check for check in amounts if check[2]] or amounts[:1]
    static = room.is_open & labelled(hw, shape.labels) if shape.labels else room.is_open
    for what, free, asked in checks:
        rest = static
        for other, others, other_asked in checks:
            if other != what:
                rest = rest & (others >= other_asked)
        among = np.where(rest, free, -1)
        best = int(among.argmax()) if among.size else 0
        if among.size and 0 <= among[best] < asked:
            return NoRoom(what, asked, int(among[best]), hw.nodes[best].name)
    what, _, asked = checks[0]
    return NoRoom(what, asked, 0, None)


def amounts_by_node(hw: Hardware, room: Room, shape: Shape) -> list[tuple[str, Ints, int]]:
    """What each node has of each thing asked, with the amount asked."""
    rows: list[tuple[str, Ints, int]] = []
    if shape.gpus:
        suits = suitable_devices(hw, shape)
        gpu = room.gpu if suits is None else np.where(suits, room.gpu, 0)
        if shape.gpu_milli < MILLI and shape.gpus == 1:
            need = np.broadcast_to(np.asarray(device_need(hw, shape)), gpu.shape)
            gap = gpu - need  # the device that comes closest speaks for its node
            best = gap.argmax(axis=1, keepdims=True) if hw.width else np.zeros((hw.count, 1), int)
            asked = int(need.min()) if need.size else shape.gpu_milli
            amounts = np.take_along_axis(gpu, best, 1)[:, 0] if hw.width else np.zeros(hw.count, int)
            rows.append(("GPU share", amounts, max(asked, 1)))
        else:
            usable = usable_devices(hw, room, shape)
            rows.append(("GPUs", np.count_nonzero(usable, axis=1), shape.gpus))
    rows.append(("cpus", room.cpus, shape.cpus_milli))
    rows.append(("memory", room.memory, shape.memory_bytes))
    rows.append(("disk", room.disk, shape.disk_bytes))
    return rows


def together_capacity(hw: Hardware, room: Room, part: Part, together: Together) -> int:
    """The most parts of this kind that fit as close as asked. One part is together wherever it is."""
    if part.count == 1:
        together = Together.ANYWHERE
    many = capacity(hw, room, part.shape)
    if not many.size:
        return 0
    grouped: dict[Together, Callable[[], int]] = {
        Together.NODE: lambda: int(many.max()),
        Together.RACK: lambda: int(by_group(hw.racks, many).max(initial=0)),
        Together.SWITCH: lambda: int(by_group(hw.switches, many).max(initial=0)),
        Together.SPREAD: lambda: int(np.count_nonzero(many)),
        Together.ANYWHERE: lambda: int(many.sum()),
    }
    return grouped[together]()


def by_group(groups: Ints, amounts: Ints) -> Ints:
    """Sums per rack or switch; nodes without one belong to none."""
    known = groups >= 0
    if not known.any():
        return np.zeros(0, np.int64)
    return np.bincount(groups[known], weights=amounts[known]).astype(np.int64)
