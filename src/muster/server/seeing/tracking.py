"""From the facts to the scene, at the cost of what has changed.

Of each running job it is remembered what was seen of it: itself, its last sample, what the steward says. While
these are the same, so is what it does. Only the GPUs, nodes and racks of jobs that are others, came or went
are looked at again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

import msgspec

from muster.layout.geometry import node_id, rack_id
from muster.layout.states import State
from muster.model.job import Job, JobId
from muster.model.ledger import devices_of
from muster.model.node import Health, Node
from muster.model.snapshot import Running
from muster.model.state import State as JobState
from muster.model.units import MILLI
from muster.model.usage import Sample
from muster.server.answers import Used
from muster.server.seeing.places import Map
from muster.server.seeing.scene import STATES, GpuNow, Holder, NodeNow, Scene, Tally
from muster.steward.findings import Finding
from muster.steward.rules import Rules


class Facts(msgspec.Struct, frozen=True):
    """What is known at one moment."""

    at: float  # by the wall
    wall_ahead_seconds: float
    nodes: Mapping[str, Node]
    running: Mapping[JobId, Running]
    rules: Rules  # by which things are idle
    latest: Callable[[Running], Sample | None]  # while it is the same, so is what was used
    used: Callable[[Running], Used | None]
    mark: Callable[[Job], str | None]  # a word about what nobody defends
    findings: Mapping[JobId, tuple[Finding, ...]] = {}
    lost: Set[tuple[str, int]] = frozenset()  # devices that no longer answer


class _OnGpu(NamedTuple):
    """What a job has of one GPU."""

    holder: Holder
    milli: int
    share: float | None
    works: bool
    idle_since: float | None


class _OnNode(NamedTuple):
    """What a job has of one node; of a gang on several, what it uses is shared out as it is held."""

    holder: Holder
    cpus_milli: int
    memory_bytes: int
    cpus_used: float | None
    memory_used_bytes: float | None
    works: bool


class _Seen(NamedTuple):
    """A job as it was seen last, and what followed."""

    running: Running
    sample: Sample | None
    mark: str | None
    findings: tuple[Finding, ...]
    gpus: dict[str, _OnGpu]
    nodes: dict[str, _OnNode]


class Tracker:
    """The scene as of the last look."""

    def __init__(self, here: Map) -> None:
        self.map = here
        self._facts: Facts | None = None
        self._jobs: dict[JobId, _Seen] = {}
        self._nodes: dict[str, Node] = {}
        self._on_gpu: dict[str, dict[JobId, _OnGpu]] = {}
        self._on_node: dict[str, dict[JobId, _OnNode]] = {}
        self._gpus_of: dict[str, list[str]] = {name: [] for name in here.spots}
        for box, at in here.gpus.items():
            self._gpus_of[at.node].append(box)
        self._rack_nodes = {name: [s.name for s in spots] for name, spots in here.layout.by_rack().items()}
        self._stale_gpus: set[str] = set(here.gpus)
        self._stale_nodes: set[str] = set(here.spots)
        self._gpus: dict[str, GpuNow] = {}
        self._tallies: dict[str, NodeNow] = {}
        self._racks: dict[str, Tally] = {}

    def look(self, facts: Facts) -> Scene:
        before, self._facts = self._facts, facts
        if before is not None and not _are_alike(before, facts):
            self._forget_jobs()
        self._look_at_jobs(facts)
        self._look_at_nodes(facts, before)
        self._draw()
        total = sum(self._racks.values(), Tally())
        return Scene(facts.at, self.map.generation, self._gpus, self._tallies, self._racks, total)

    # --- Jobs -----------------------------------------------------------------------------------------

    def _forget_jobs(self) -> None:
        for seen in self._jobs.values():
            self._remove(seen)
        self._jobs.clear()

    def _look_at_jobs(self, facts: Facts) -> None:
        jobs, latest, mark_of, found = self._jobs, facts.latest, facts.mark, facts.findings
        for gone in jobs.keys() - facts.running.keys():
            self._remove(jobs.pop(gone))
        for job_id, running in facts.running.items():
            sample, mark, findings = latest(running), mark_of(running.job), found.get(job_id, ())
            seen = jobs.get(job_id)
            if seen is not None:
                same = seen.running is running and seen.sample is sample and seen.mark == mark
                if same and seen.findings == findings:
                    continue
                self._remove(seen)
            jobs[job_id] = self._taken(facts, running, sample, mark, findings)

    def _remove(self, seen: _Seen) -> None:
        job_id = seen.running.job.id
        for box in seen.gpus:
            del self._on_gpu[box][job_id]
        for node in seen.nodes:
            del self._on_node[node][job_id]
        self._stale_gpus.update(seen.gpus)
        self._stale_nodes.update(seen.nodes)

    def _taken(
        self,
        facts: Facts,
        running: Running,
        sample: Sample | None,
        mark: str | None,
        findings: tuple[Finding, ...],
    ) -> _Seen:
        holder = _holder(running, facts.wall_ahead_seconds, is_undefended=mark is not None)
        used = None if sample is None else facts.used(running)
        gpus = dict(self._of_gpus(facts, running, holder, used, findings))
        nodes = dict(self._of_nodes(facts, running, holder, used, gpus))
        for box, on_gpu in gpus.items():
            self._on_gpu.setdefault(box, {})[holder.id] = on_gpu
        for node, on_node in nodes.items():
            self._on_node.setdefault(node, {})[holder.id] = on_node
        self._stale_gpus.update(gpus)
        self._stale_nodes.update(nodes)
        return _Seen(running, sample, mark, findings, gpus, nodes)

    def _of_gpus(
        self,
        facts: Facts,
        running: Running,
        holder: Holder,
        used: Used | None,
        findings: tuple[Finding, ...],
    ) -> Iterator[tuple[str, _OnGpu]]:
        held = devices_of(running.seats)
        busy = [] if used is None else used.gpu_busy
        if len(busy) != len(held):  # nobody knows which is which
            busy = [None] * len(held)
        is_still, least = running.state is JobState.SUSPENDED, facts.rules.gpu_busy
        for one, share in zip(held, busy, strict=True):
            box = self.map.box_of.get((one.node, one.device))
            if box is not None:  # a node may come back with fewer
                works = not is_still and (share is None or share >= least)
                since = None if works else _idle_since(findings, one.device, facts.wall_ahead_seconds)
                yield box, _OnGpu(holder, one.milli, _percent(share), works, since)

    def _of_nodes(
        self, facts: Facts, running: Running, holder: Holder, used: Used | None, gpus: dict[str, _OnGpu]
    ) -> Iterator[tuple[str, _OnNode]]:
        held, cpus, memory = running.held, None, None
        if used is not None:
            cpus, memory = used.cpus, used.memory_bytes
        works = _works(running, cpus, facts.rules) if not gpus else any(one.works for one in gpus.values())
        on: dict[str, tuple[int, int]] = {}
        for seat in running.seats:
            before = on.get(seat.node, (0, 0))
            on[seat.node] = (before[0] + seat.shape.cpus_milli, before[1] + seat.shape.memory_bytes)
        for node, (cpus_milli, memory_bytes) in on.items():
            if node in self.map.spots:
                cpus_here = _part(cpus, cpus_milli, held.cpus_milli, len(on))
                memory_here = _part(memory, memory_bytes, held.memory_bytes, len(on))
                yield node, _OnNode(holder, cpus_milli, memory_bytes, cpus_here, memory_here, works)

    # --- Nodes ----------------------------------------------------------------------------------------

    def _look_at_nodes(self, facts: Facts, before: Facts | None) -> None:
        lost = facts.lost if before is None else facts.lost ^ before.lost
        changed = {name for name, _ in lost}
        changed |= {name for name, node in facts.nodes.items() if self._nodes.get(name) is not node}
        changed |= self._nodes.keys() - facts.nodes.keys()
        self._nodes.update({name: facts.nodes[name] for name in changed & facts.nodes.keys()})
        for name in changed & self._gpus_of.keys():
            self._stale_gpus.update(self._gpus_of[name])
            self._stale_nodes.add(name)
        for gone in self._nodes.keys() - facts.nodes.keys():
            del self._nodes[gone]

    # --- Drawing --------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """New mappings where something is another, so that scenes given out stay as they were."""
        gpus = {box: self._gpu(box) for box in self._stale_gpus}
        new = {box: now for box, now in gpus.items() if self._gpus.get(box) != now}
        if new:
            self._gpus = {**self._gpus, **new}
        self._stale_nodes.update(self.map.gpus[box].node for box in new)
        nodes = {node_id(name): self._node(name) for name in self._stale_nodes}
        other = {box: now for box, now in nodes.items() if self._tallies.get(box) != now}
        if other:
            self._tallies = {**self._tallies, **other}
        self._draw_racks({self.map.spots[now.name].rack for now in other.values()})
        self._stale_gpus.clear()
        self._stale_nodes.clear()

    def _draw_racks(self, stale: Iterable[str]) -> None:
        racks = {rack_id(rack): self._rack(rack) for rack in stale}
        if not self._racks:  # empty ones, too
            racks = {rack_id(rack): Tally() for rack in self._rack_nodes} | racks
        other = {box: tally for box, tally in racks.items() if self._racks.get(box) != tally}
        if other:
            self._racks = {**self._racks, **other}

    def _gpu(self, box: str) -> GpuNow:
        at, node = self.map.gpus[box], self._nodes.get(self.map.gpus[box].node)
        parts = tuple(self._on_gpu.get(box, {}).values())
        if node is None or not at.is_seen or at.device >= len(node.devices):
            return GpuNow(State.UNKNOWN, words="nobody sees it")
        device = node.devices[at.device]
        because = node.because if node.health is not Health.UP else device.because
        if node.health is Health.DOWN or (at.node, at.device) in self._lost:
            return _held(State.DOWN, parts, because)
        if parts:
            return _held(State.WORKING if any(part.works for part in parts) else State.IDLE, parts)
        if node.health is Health.DRAINED or not device.healthy:
            return GpuNow(State.DRAINED, words=because)
        return _FREE

    @property
    def _lost(self) -> Set[tuple[str, int]]:
        return frozenset() if self._facts is None else self._facts.lost

    def _node(self, name: str) -> NodeNow:
        node, parts = self._nodes.get(name), self._on_node.get(name, {}).values()
        tally = _tally([self._gpus[box] for box in self._gpus_of[name]])
        if node is None:
            return NodeNow(name, State.UNKNOWN, None, "the engine does not know it", tally=tally)
        memory = [part.memory_used_bytes for part in parts]
        return NodeNow(
            name,
            _node_state(node, [part.works for part in parts]),
            node.health.value,
            node.because,
            node.cpus_milli,
            sum(part.cpus_milli for part in parts),
            _cpu_share(node, [part.cpus_used for part in parts]),
            node.memory_bytes,
            sum(part.memory_bytes for part in parts),
            None if None in memory else int(sum(filter(None, memory))),
            tuple(part.holder for part in parts),
            tally,
        )

    def _rack(self, rack: str) -> Tally:
        nodes = (self._tallies[node_id(name)].tally for name in self._rack_nodes[rack])
        return sum(nodes, Tally())


_FREE = GpuNow(State.FREE)


def _are_alike(before: Facts, after: Facts) -> bool:
    """Whether what was concluded of jobs still follows."""
    return before.rules == after.rules and before.wall_ahead_seconds == after.wall_ahead_seconds


def _holder(running: Running, ahead_seconds: float, *, is_undefended: bool) -> Holder:
    job = running.job
    since = running.placed_at if running.started_at is None else running.started_at
    return Holder(
        job.id,
        job.name,
        job.owner,
        job.team,
        job.effort,
        job.charter.purpose,
        since + ahead_seconds,
        job.charter.owner or job.owner,
        is_undefended,
    )


def _idle_since(findings: tuple[Finding, ...], device: int, ahead_seconds: float) -> float | None:
    since = (f.since for f in findings if f.kind == "idle" and (f.whole or device in f.devices))
    found = next(since, None)
    return None if found is None else found + ahead_seconds


def _works(running: Running, cpus: float | None, rules: Rules) -> bool:
    """By its cpus, as the steward judges who has no GPUs: one thread at work is not idle."""
    if running.state is JobState.SUSPENDED:
        return False
    return cpus is None or cpus >= rules.cpus * min(MILLI, running.held.cpus_milli or MILLI) / MILLI


def _part(used: float | None, here: int, held: int, nodes: int) -> float | None:
    if used is None or nodes == 1:
        return used
    return used * here / held if held else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share, 2)


def _held(state: State, parts: tuple[_OnGpu, ...], because: str = "") -> GpuNow:
    shares = [part.share for part in parts if part.share is not None]
    since = [part.idle_since for part in parts if part.idle_since is not None]
    holders = tuple(part.holder for part in parts)
    return GpuNow(
        state,
        max(shares, default=None),
        any(holder.undefended for holder in holders),
        "; ".join(filter(None, (because, *map(str, holders)))),
        sum(part.milli for part in parts),
        holders,
        min(since, default=None) if state is State.IDLE else None,
    )


def _tally(gpus: list[GpuNow]) -> Tally:
    counts = [0] * len(STATES)
    measured, used, undefended = 0, 0.0, 0
    for gpu in gpus:
        counts[_PLACE[gpu.state]] += 1
        undefended += gpu.undefended
        if gpu.share is not None:
            measured, used = measured + 1, used + gpu.share
    return Tally(tuple(counts), measured, used, undefended)


_PLACE = {state: place for place, state in enumerate(STATES)}


def _node_state(node: Node, works: list[bool]) -> State:
    if node.health is Health.DOWN:
        return State.DOWN
    if works:
        return State.WORKING if any(works) else State.IDLE
    return State.DRAINED if node.health is Health.DRAINED else State.FREE


def _cpu_share(node: Node, used: list[float | None]) -> float | None:
    """Of all cpus of the node; unless all is known, it is not."""
    if None in used or not node.cpus_milli:
        return None
    return round(sum(filter(None, used)) * MILLI / node.cpus_milli, 2)
