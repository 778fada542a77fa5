"""What stands on what: site, rack, node, control group, attempt, job, process. Pure.

A layer is a word and a kind, so that an engine may have more of them. Of the whole place it goes up to jobs;
of one job up to its processes, through the group that holds it. What a layer holds is the sum of what stands
on it; what it uses is what was measured of it, and where that can't be known it says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from muster.model.job import JobId
from muster.model.node import Node
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Running
from muster.model.units import MILLI, show_bytes
from muster.model.usage import NodeReading
from muster.monitor.meters.parts import PartSeen
from muster.monitor.meters.processes import ProcessShown
from muster.server.answers import Amounts, Grant, Used
from muster.server.seeing.stack_answers import Layer, StackDevice, UsedNow

NOWHERE = "unplaced"  # the rack of those of which nobody said where they stand
MOST_JOBS = 200  # on one node


class Part(msgspec.Struct, frozen=True):
    """A part of a job as it is found: where it is, and who it is."""

    where: PartSeen
    processes: Sequence[ProcessShown]
    more: int = 0  # processes that were not looked at


class Place(msgspec.Struct, frozen=True):
    """All that is known."""

    site: str
    nodes: Mapping[str, Node]
    running: Sequence[Running]
    used: Mapping[JobId, Used]
    readings: Mapping[str, NodeReading]  # by node, where meters read it


def bottom_of(place: Place, chosen: Sequence[Node], most_nodes: int) -> Layer:
    """The site, up to jobs; up to racks, where there are more nodes than can be told."""
    by_node: dict[str, list[Running]] = {}
    for running in place.running:
        for name in dict.fromkeys(seat.node for seat in running.seats):
            by_node.setdefault(name, []).append(running)
    racks: dict[str, list[Node]] = {}
    for node in chosen:
        racks.setdefault(node.rack or NOWHERE, []).append(node)
    has_room = len(chosen) <= most_nodes
    told = [_rack(name, nodes, by_node, place, has_room) for name, nodes in sorted(racks.items())]
    return _over("site", "site", place.site, told)


def _rack(
    name: str, nodes: Sequence[Node], by_node: Mapping[str, list[Running]], place: Place, has_room: bool
) -> Layer:
    told = [_node(node, by_node.get(node.name, []), place) for node in nodes]
    rack = _over("rack", "rack", name, told)
    if name == NOWHERE:
        rack.unknown = ["in which rack they stand: the layout does not say"]
    if not has_room:
        rack.left_out, rack.children = len(told), []
    return rack


def _over(layer: str, kind: str, name: str, below: list[Layer]) -> Layer:
    """What is the sum of those that stand on it."""
    return Layer(
        layer=layer,
        kind=kind,
        id=name,
        name=name,
        has=_added(one.has for one in below),
        held=_added(one.held for one in below),
        used=_used_in_all([one.used for one in below]),
        children=below,
    )


def _node(node: Node, running: Sequence[Running], place: Place) -> Layer:
    held = sum((held_on(node.name, one) for one in running), NOTHING)
    reading = place.readings.get(node.name)
    jobs = [_job(one, node.name, place) for one in running[:MOST_JOBS]]
    return Layer(
        layer="node",
        kind=", ".join(dict.fromkeys(device.model for device in node.devices)) or "no GPUs",
        id=node.name,
        name=node.name,
        state=node.health.value,
        has=_amounts(node.total),
        held=_amounts(held),
        used=_used_by_node(reading, jobs),
        facts={"reason": node.because} if node.because else {},
        devices=_devices(node, running, reading),
        unknown=[] if reading is not None else ["what it uses besides jobs: no meter reads it from here"],
        left_out=max(0, len(running) - MOST_JOBS),
        children=jobs,
    )


def _devices(node: Node, running: Sequence[Running], reading: NodeReading | None) -> list[StackDevice]:
    busy = {} if reading is None else {gpu.index: gpu.busy for gpu in reading.gpus}
    holders: dict[int, list[JobId]] = {}
    for one in running:
        for seat in one.seats:
            if seat.node == node.name:
                for device in seat.devices:
                    holders.setdefault(device, []).append(one.job.id)
    return [
        StackDevice(i, gpu.model, gpu.memory_bytes, gpu.healthy, busy.get(i), holders.get(i, []))
        for i, gpu in enumerate(node.devices)
    ]


def _used_by_node(reading: NodeReading | None, jobs: Sequence[Layer]) -> UsedNow | None:
    """Memory as the node has it; of the rest what its jobs use, as far as all of them are measured."""
    by_jobs = _used_in_all([job.used for job in jobs]) if jobs else None
    if reading is None:
        return by_jobs
    cpus, gpus = (None, None) if by_jobs is None else (by_jobs.cpus, by_jobs.gpus)
    known = [gpu.busy for gpu in reading.gpus]
    if known and all(busy is not None for busy in known):
        gpus = sum(busy for busy in known if busy is not None)
    return UsedNow(cpus, reading.memory_used_bytes, gpus)


def _job(running: Running, node: str, place: Place) -> Layer:
    """On a node, what of it sits there."""
    job = running.job
    is_whole = all(seat.node == node for seat in running.seats)
    used = place.used.get(job.id)
    unknown = [] if is_whole else ["what it uses here: that is measured of the whole job"]
    if is_whole and used is None:
        unknown = ["what it uses: nothing was measured of it lately"]
    return Layer(
        layer="job",
        kind="array member" if job.array else "gang" if job.gang.size > 1 else "job",
        id=job.id,
        name=job.name,
        state=running.state.value,
        held=_amounts(held_on(node, running)),
        used=None if used is None or not is_whole else _used_now(used),
        facts=_facts(running),
        unknown=unknown,
    )


def _facts(running: Running) -> dict[str, str]:
    job = running.job
    said = {"owner": job.owner, "team": job.team, "effort": job.effort, "for": job.charter.purpose}
    return {name: text for name, text in said.items() if text}


def held_on(node: str, running: Running) -> Resources:
    """What of it is held on a node."""
    held = NOTHING
    for seat in running.seats:
        if seat.node == node:
            shape, gpus = seat.shape, len(seat.devices) * seat.device_milli
            held = held + Resources(shape.cpus_milli, shape.memory_bytes, gpus, shape.disk_bytes)
    return held


# --- One job ---------------------------------------------------------------------------------------------


def with_processes(
    bottom: Layer,
    running: Running,
    parts: Sequence[Part] | None,
    limits: Sequence[Grant],
    *,
    sees_words: bool,
) -> Layer:
    """The same with all that is between the node and the job's processes; None: nothing is known of them."""
    for node in (node for rack in bottom.children for node in rack.children):
        job = next((one for one in node.children if one.id == running.job.id), None)
        node.children = []
        if job is not None:
            mine = None if parts is None else [p for i, p in enumerate(parts) if _is_on(node.id, i, running)]
            node.children, node.left_out = list(_groups(job, running, mine, limits, sees_words)), 0
    return bottom


def _is_on(node: str, part: int, running: Running) -> bool:
    """Parts are in the order of their seats."""
    return part < len(running.seats) and running.seats[part].node == node


def _groups(
    job: Layer, running: Running, parts: Sequence[Part] | None, limits: Sequence[Grant], sees_words: bool
) -> Iterator[Layer]:
    if parts is None:
        job.unknown = [*job.unknown, "its processes: the engine has not said where they are; ask again"]
        yield _attempt(running, [job])
        return
    for number, part in enumerate(parts):
        one = msgspec.structs.replace(job, children=list(_processes(part, sees_words)), left_out=part.more)
        yield _group(part.where, number, [_attempt(running, [one])], limits)


def _group(where: PartSeen, number: int, above: list[Layer], limits: Sequence[Grant]) -> Layer:
    paths = sorted(set((where.group or {}).values()))
    return Layer(
        layer="group",
        kind=f"cgroup v{where.version}" if paths else "processes without a control group",
        id=paths[0] if paths else f"session of {where.pid}",
        name=f"part {number}",
        facts={name: path for name, path in sorted((where.group or {}).items()) if name},
        limits=list(limits),
        unknown=[] if paths else ["what its processes did not inherit: there is no control group"],
        children=above,
    )


def _attempt(running: Running, above: list[Layer]) -> Layer:
    return Layer(
        layer="attempt",
        kind="attempt",
        id=f"{running.job.id}.{running.attempt}",
        name=f"attempt {running.attempt}",
        state=running.state.value,
        children=above,
    )


def _processes(part: Part, sees_words: bool) -> Iterator[Layer]:
    for one in part.processes:
        words = (one.command or "") if sees_words else ""
        unknown = [] if sees_words else ["its command: that is for who may read its log"]
        mean = one.cpu_seconds / one.age_seconds if one.age_seconds > 0 else None
        yield Layer(
            layer="process",
            kind="main" if one.pid == part.where.pid else "process",
            id=str(one.pid),
            name=words,
            used=UsedNow(mean, one.memory_bytes, None),
            facts={"parent": str(one.parent), "threads": str(one.threads)},
            unknown=unknown,
        )


# --- Amounts ---------------------------------------------------------------------------------------------


def _amounts(held: Resources) -> Amounts:
    return Amounts(held.cpus_milli / MILLI, held.memory_bytes, held.gpus_milli / MILLI)


def _added(some: Iterable[Amounts | None]) -> Amounts | None:
    known = [one for one in some if one is not None]
    return Amounts(sum(o.cpus for o in known), sum(o.memory_bytes for o in known), sum(o.gpus for o in known))


def _used_now(used: Used) -> UsedNow:
    busy = [one for one in used.gpu_busy if one is not None]
    return UsedNow(
        used.cpus, used.memory_bytes, sum(busy) if len(busy) == len(used.gpu_busy) and busy else None
    )


def _used_in_all(some: Sequence[UsedNow | None]) -> UsedNow | None:
    """What is not known of one is not known of all."""
    if not some or any(one is None for one in some):
        return None
    known = [one for one in some if one is not None]

    def total(values: list[float | None]) -> float | None:
        return None if None in values else sum(value for value in values if value is not None)

    memory = total([one.memory_bytes for one in known])
    return UsedNow(
        total([one.cpus for one in known]),
        None if memory is None else int(memory),
        total([one.gpus for one in known]),
    )


# --- In words --------------------------------------------------------------------------------------------


def words_of(bottom: Layer) -> list[str]:
    """The layers that are there, from the bottom up."""
    found: list[str] = []
    below = [bottom]
    while below:
        found += [one.layer for one in below if one.layer not in found]
        below = [one for layer in below for one in layer.children]
    return list(dict.fromkeys(found))


def sentence_of_place(bottom: Layer, jobs: int) -> str:
    nodes = _count(bottom, "node")
    held, has = bottom.held, bottom.has
    on = f"{nodes} node{'s' * (nodes != 1)}"
    run = "nothing runs" if not jobs else f"{jobs:,} job{'s' * (jobs != 1)} run{'s' * (jobs == 1)}"
    if held is None or has is None or not jobs:
        return f"On {on} {run}."
    what = f"{held.gpus:g} of {has.gpus:g} GPUs" if has.gpus else f"{held.cpus:g} of {has.cpus:g} cpus"
    return f"On {on} {run} and hold{'s' * (jobs == 1)} {what}."


def sentence_of_job(bottom: Layer, running: Running, parts: Sequence[Part] | None) -> str:
    """``Job 481 stands on gpub031 in rack R04, in a cgroup v2 of 64G: 5 processes.``"""
    nodes = list(dict.fromkeys(seat.node for seat in running.seats))
    racks = [rack.name for rack in bottom.children if rack.name != NOWHERE]
    where = f"{', '.join(nodes[:3])}{' and more' * (len(nodes) > 3)}"
    rack = f" in rack {', '.join(racks[:3])}" if racks else ""
    said = f"Job {running.job.id} stands on {where}{rack}"
    if parts is None:
        return f"{said}; its processes are not known yet."
    memory = running.held.memory_bytes
    of = f" with {show_bytes(memory)} of memory" if memory else ""
    groups = "a control group" if any(part.where.group for part in parts) else "no control group"
    count = sum(len(part.processes) + part.more for part in parts)
    return f"{said}, in {groups}{of}: {count} process{'es' * (count != 1)}."


def _count(bottom: Layer, layer: str) -> int:
    if bottom.layer == "rack" and layer == "node":
        return len(bottom.children) or bottom.left_out
    return (bottom.layer == layer) + sum(_count(child, layer) for child in bottom.children)
