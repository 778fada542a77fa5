"""From the facts to the scene, at the cost of what has changed.

While a job, its last sample and what the steward says of it are the same, so is what it does. Only the GPUs,
nodes and racks of which something else is true by now are looked at again.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

import msgspec

from muster.layout.geometry import node_id, rack_id
from muster.layout.states import State
from muster.model.job import JobId
from muster.model.node import Health, Node
from muster.model.snapshot import Running
from muster.model.units import MILLI
from muster.model.usage import Sample
from muster.monitor.lately import Lately
from muster.server.seeing.holding import Holding
from muster.server.seeing.places import Map
from muster.server.seeing.scene import GpuNow, NodeNow, Scene, Tally, tally_of
from muster.steward.findings import Finding
from muster.steward.rules import Rules
from muster.store.reviews import unit_of

T = TypeVar("T")
_MOST_MEASURED = 2500  # GPUs at one look, so that it stays short: the others' turn is at the next


class Facts(msgspec.Struct, frozen=True):
    """What is known at one moment."""

    at: float  # by the wall
    wall_ahead_seconds: float
    nodes: Mapping[str, Node]
    running: Mapping[JobId, Running]
    rules: Rules  # by which things are idle
    lately: Callable[[Running], Lately | None]
    newest: Mapping[tuple[JobId, int], Sample]  # of each attempt: while it is the same, so is what was used
    speaks_from: float = -math.inf  # older samples tell nothing of the present
    marks: Mapping[JobId, str] = {}  # a word about what nobody defends, by job or array
    findings: Mapping[JobId, tuple[Finding, ...]] = {}
    lost: Set[tuple[str, int]] = frozenset()  # devices that no longer answer


class Tracker:
    """The scene as of the last look, on one map."""

    def __init__(self, here: Map) -> None:
        self.map = here
        self._facts: Facts | None = None
        self._lost: Set[tuple[str, int]] = frozenset()
        self._jobs: dict[JobId, Holding] = {}
        self._turn = 0  # with whom the next look at samples begins
        self._nodes: dict[str, Node] = {}
        self._on_gpu: dict[str, list[Holding]] = {box: [] for box in here.gpus}
        self._on_node: dict[str, list[Holding]] = {name: [] for name in here.spots}
        self._gpus_of: dict[str, list[str]] = {name: [] for name in here.spots}
        for box, at in here.gpus.items():
            self._gpus_of[at.node].append(box)
        self._in_rack = {name: [s.name for s in spots] for name, spots in here.layout.by_rack().items()}
        self._stale_gpus, self._stale_nodes = set(here.gpus), set(here.spots)
        # As they were given out: what is another by now is put into new ones.
        self._gpu_nows: dict[str, GpuNow] = {}
        self._node_nows: dict[str, NodeNow] = {}
        self._racks = {rack_id(name): Tally() for name in self._in_rack}

    def look(self, facts: Facts) -> Scene:
        before, self._facts = self._facts, facts
        if before is not None and not _are_alike(before, facts):
            self._forget_jobs()
        self._look_at_jobs(facts)
        self._look_at_nodes(facts)
        self._draw()
        total = sum(self._racks.values(), Tally())
        return Scene(facts.at, self.map.generation, self._gpu_nows, self._node_nows, self._racks, total)

    # --- Jobs -----------------------------------------------------------------------------------------

    def _forget_jobs(self) -> None:
        for job in self._jobs.values():
            self._leave(job)
        self._jobs.clear()

    def _look_at_jobs(self, facts: Facts) -> None:
        jobs, newest, marks, found = self._jobs, facts.newest, facts.marks, facts.findings
        for gone in jobs.keys() - facts.running.keys():
            self._leave(jobs.pop(gone))
        left = _MOST_MEASURED
        for at, (job_id, running) in enumerate(self._in_turn(facts.running)):
            job, sample = jobs.get(job_id), newest.get((job_id, running.attempt))
            if sample is not None and sample.at < facts.speaks_from:
                sample = None
            mark = marks.get(unit_of(running.job)) if marks else None
            findings = found.get(job_id, ())
            if job is None or job.running is not running or job.mark != mark:
                if job is not None:
                    self._leave(job)
                job = jobs[job_id] = Holding(self.map, running, facts.wall_ahead_seconds, mark)
                self._enter(job)
            elif (job.sample is sample and job.findings == findings) or left <= 0:
                continue
            else:
                left -= max(1, len(job.milli))
                self._turn += at + 1 if left <= 0 else 0
            gpus, nodes = job.measure(sample, facts.lately(running), findings, facts.rules)
            self._stale_gpus.update(gpus)
            self._stale_nodes.update(nodes)

    def _in_turn(self, running: Mapping[JobId, Running]) -> list[tuple[JobId, Running]]:
        """All of them; first those whom the last look did not get to."""
        order = list(running.items())
        self._turn %= max(1, len(order))
        return order[self._turn :] + order[: self._turn]

    def _enter(self, job: Holding) -> None:
        """Who was there first is named first."""
        for box in job.milli:
            insort(self._on_gpu[box], job, key=_order)
        for node in job.on_node:
            insort(self._on_node[node], job, key=_order)

    def _leave(self, job: Holding) -> None:
        for box in job.milli:
            self._on_gpu[box].remove(job)
        for node in job.on_node:
            self._on_node[node].remove(job)
        self._stale_gpus.update(job.milli)
        self._stale_nodes.update(job.on_node)

    # --- Nodes ----------------------------------------------------------------------------------------

    def _look_at_nodes(self, facts: Facts) -> None:
        changed = {name for name, _ in facts.lost ^ self._lost}
        self._lost = facts.lost
        changed |= {name for name, node in facts.nodes.items() if self._nodes.get(name) is not node}
        gone = self._nodes.keys() - facts.nodes.keys()
        self._nodes.update((name, facts.nodes[name]) for name in changed & facts.nodes.keys())
        for name in gone:
            del self._nodes[name]
        for name in (changed | gone) & self._gpus_of.keys():
            self._stale_gpus.update(self._gpus_of[name])
            self._stale_nodes.add(name)

    # --- Drawing --------------------------------------------------------------------------------------

    def _draw(self) -> None:
        gpus = _others(self._gpu_nows, {box: self._gpu(box) for box in self._stale_gpus})
        if gpus:
            self._gpu_nows = {**self._gpu_nows, **gpus}
        counted_anew = {self.map.gpus[box].node for box in gpus} - self._stale_nodes
        nodes = {node_id(name): self._node(name) for name in self._stale_nodes}
        nodes |= {node_id(name): self._counted_anew(name) for name in counted_anew}
        nodes = _others(self._node_nows, nodes)
        if nodes:
            self._node_nows = {**self._node_nows, **nodes}
        self._draw_racks({self.map.spots[now.name].rack for now in nodes.values()})
        self._stale_gpus.clear()
        self._stale_nodes.clear()

    def _draw_racks(self, stale: Iterable[str]) -> None:
        racks = _others(self._racks, {rack_id(name): self._rack(name) for name in stale})
        if racks:
            self._racks = {**self._racks, **racks}

    def _gpu(self, box: str) -> GpuNow:
        at = self.map.gpus[box]
        node = self._nodes.get(at.node)
        if node is None or not at.is_seen or at.device >= len(node.devices):
            return _UNSEEN
        device, jobs = node.devices[at.device], self._on_gpu[box]
        because = node.because if node.health is not Health.UP else device.because
        if node.health is Health.DOWN or (at.node, at.device) in self._lost:
            return _held(box, jobs, State.DOWN, because)
        if jobs:
            works = any(job.gpus[box].works for job in jobs)
            return _held(box, jobs, State.WORKING if works else State.IDLE)
        if node.health is Health.DRAINED or not device.healthy:
            return GpuNow(State.DRAINED, words=because)
        return _FREE

    def _node(self, name: str) -> NodeNow:
        node, jobs = self._nodes.get(name), self._on_node[name]
        tally = self._tally(name)
        if node is None:
            return NodeNow(name, State.UNKNOWN, None, "the engine does not know it", tally=tally)
        held, here = [job.on_node[name] for job in jobs], [job.nodes[name] for job in jobs]
        return NodeNow(
            name,
            _node_state(node, [one.works for one in here]),
            node.health.value,
            node.because,
            node.cpus_milli,
            sum(cpus_milli for cpus_milli, _ in held),
            _share([one.cpus for one in here], node.cpus_milli / MILLI),
            node.memory_bytes,
            sum(memory_bytes for _, memory_bytes in held),
            _share([one.memory_bytes for one in here], node.memory_bytes),
            tuple(job.holder for job in jobs),
            tally,
        )

    def _counted_anew(self, name: str) -> NodeNow:
        """Only what its GPUs do is another."""
        return msgspec.structs.replace(self._node_nows[node_id(name)], tally=self._tally(name))

    def _tally(self, name: str) -> Tally:
        return tally_of([self._gpu_nows[box] for box in self._gpus_of[name]])

    def _rack(self, rack: str) -> Tally:
        return sum((self._node_nows[node_id(name)].tally for name in self._in_rack[rack]), Tally())


_FREE, _UNSEEN = GpuNow(State.FREE), GpuNow(State.UNKNOWN, words="nobody sees it")


def _order(job: Holding) -> tuple[float, JobId]:
    return job.running.placed_at, job.running.job.id


def _are_alike(before: Facts, after: Facts) -> bool:
    """Whether what was concluded of jobs still follows."""
    return before.rules == after.rules and before.wall_ahead_seconds == after.wall_ahead_seconds


def _others(known: Mapping[str, T], now: Mapping[str, T]) -> dict[str, T]:
    """Those that are not as they were."""
    return {box: one for box, one in now.items() if known.get(box) != one}


def _held(box: str, jobs: list[Holding], state: State, because: str = "") -> GpuNow:
    if len(jobs) == 1:  # as it nearly always is
        (job,) = jobs
        doing, holder, words = job.gpus[box], job.holder, job.words
        said = f"{because}; {words}" if because else words
        since = doing.idle_since if state is State.IDLE else None
        return GpuNow(state, doing.share, holder.undefended, said, job.milli[box], (holder,), since)
    together = [job.gpus[box] for job in jobs]
    times = [one.idle_since for one in together if one.idle_since is not None]
    return GpuNow(
        state,
        max((one.share for one in together if one.share is not None), default=None),
        any(job.holder.undefended for job in jobs),
        "; ".join(filter(None, (because, *(job.words for job in jobs)))),
        sum(job.milli[box] for job in jobs),
        tuple(job.holder for job in jobs),
        min(times, default=None) if state is State.IDLE else None,
    )


def _node_state(node: Node, works: list[bool]) -> State:
    if node.health is Health.DOWN:
        return State.DOWN
    if works:
        return State.WORKING if any(works) else State.IDLE
    return State.DRAINED if node.health is Health.DRAINED else State.FREE


def _share(used: list[float | None], total: float) -> float | None:
    """Of all that the node has; unless it is known of all jobs, it is not."""
    if None in used or not total:
        return None
    return round(sum(one for one in used if one is not None) / total, 2)
