"""Replay a trace through the loop in virtual time, and keep what the figures need."""

import time
from collections.abc import Callable

import msgspec
import numpy as np

from muster.engines.sim import Outage, SimEngine
from muster.model.errors import BadInput
from muster.model.events import (
    Event,
    Evicting,
    Exited,
    Outcome,
    Placed,
    Submitted,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import Checkpoint, JobId
from muster.model.node import Node
from muster.model.policy import Policy
from muster.model.tenancy import Team
from muster.server.loop import Loop
from muster.simulate.records import JobRecord, Replay, Sample
from muster.store.fold import Fold
from muster.traces.trace import Trace, TraceJob

Progress = Callable[[int, int, float], None]

_REPORT_EVERY = 256  # steps between two calls of ``progress``


def replay(
    trace: Trace,
    nodes: tuple[Node, ...],
    policy: Policy,
    *,
    seed: int = 0,
    teams: tuple[Team, ...] = (),
    outages: tuple[Outage, ...] = (),
    progress: Progress | None = None,
) -> Replay:
    """Run the whole trace. Ctrl-C ends it early, with what is known so far."""
    policy = msgspec.structs.replace(policy, seed=seed)
    if not nodes:
        raise BadInput("there are no nodes to run on; give some with --nodes, such as --nodes 8x8")
    run_seconds = {t.job.id: t.run_seconds for t in trace.jobs}
    engine = SimEngine(nodes, run_seconds, outages=outages)
    for entry in trace.jobs:
        engine.will(Submitted(entry.job.submitted_at, entry.job))
    fold = Fold(policy, run_seconds)
    notes = _Notes(trace, nodes, policy)
    loop = Loop(engine, policy, fold, notes.take)
    for team in teams:
        fold.apply(TeamSet(engine.now(), team))
    begun = time.perf_counter()
    try:
        _run(loop, notes, progress)
    except KeyboardInterrupt:
        notes.replay.interrupted = True
    notes.close(loop, time.perf_counter() - begun)
    return notes.replay


def failures(
    nodes: tuple[Node, ...], trace: Trace, between_seconds: float, repair_seconds: float, seed: int
) -> tuple[Outage, ...]:
    """Nodes that are lost at random, each so often on average, while the trace's jobs arrive and run."""
    if not between_seconds > 0:
        raise BadInput("the mean time between failures of a node must be above zero, such as 30d")
    rng = np.random.default_rng(seed)
    begin = min((t.job.submitted_at for t in trace.jobs), default=0.0)
    end = max((t.job.submitted_at + t.run_seconds for t in trace.jobs), default=0.0)
    outages = []
    for node in nodes:
        at = begin + rng.exponential(between_seconds)
        while at < end:
            outages.append(Outage(node.name, float(at), repair_seconds))
            at += repair_seconds + rng.exponential(between_seconds)
    return tuple(outages)


def with_checkpoints(trace: Trace, kept: Checkpoint) -> Trace:
    """The trace, with its jobs keeping checkpoints, for formats that do not tell."""
    jobs = tuple(
        TraceJob(msgspec.structs.replace(t.job, checkpoint=t.job.checkpoint or kept), t.run_seconds)
        for t in trace.jobs
    )
    return msgspec.structs.replace(trace, jobs=jobs)


def _run(loop: Loop, notes: "_Notes", progress: Progress | None) -> None:
    steps = 0
    while loop.step():
        notes.sample(loop)
        steps += 1
        if progress is not None and steps % _REPORT_EVERY == 0:
            progress(notes.ended, len(notes.replay.records), loop.engine.now())
    if progress is not None:
        progress(notes.ended, len(notes.replay.records), loop.engine.now())


class _Notes:
    """Listens to the facts and writes the records."""

    def __init__(self, trace: Trace, nodes: tuple[Node, ...], policy: Policy) -> None:
        total = sum((n.total for n in nodes[1:]), nodes[0].total)
        self._by_id: dict[JobId, JobRecord] = {t.job.id: _record(t) for t in trace.jobs}
        self._held_gpus = self._held_cpus = 0
        self._seats: dict[JobId, tuple[int, int]] = {}
        self._placed_at: dict[JobId, float] = {}
        self._held: dict[JobId, float] = {}
        self.ended = 0
        self.replay = Replay(
            trace=trace.name,
            policy=policy.name,
            gpus_total_milli=total.gpus_milli,
            cpus_total_milli=total.cpus_milli,
            nodes=len(nodes),
            records=list(self._by_id.values()),
            samples=[],
        )

    def take(self, event: Event) -> None:
        """One fact."""
        if isinstance(event, Placed):
            self._sits(event)
        elif isinstance(event, Exited):
            record = self._by_id[event.job]
            record.ended_at = event.at
            if event.outcome is Outcome.SUCCEEDED:
                record.lost_seconds = max(0.0, self._held_seconds(event.job, event.at) - record.run_seconds)
            self._rises(event.job, event.at)
            self.ended += 1
        elif isinstance(event, Withdrawn):
            self._by_id[event.job].ended_at = event.at
            self.ended += 1
        elif isinstance(event, Evicting):
            record = self._by_id[event.job]
            record.preemptions += 1
            record.moves += event.because == "compact"
        elif isinstance(event, Vacated):
            record = self._by_id[event.job]
            record.failures += event.because == "node lost"
            record.lost_seconds += event.lost_seconds
            self._rises(event.job, event.at)

    def _sits(self, event: Placed) -> None:
        record = self._by_id[event.job]
        if record.started_at is None:
            record.started_at = event.at
        gpus = sum(len(s.devices) * s.device_milli for s in event.seats)
        cpus = sum(s.shape.cpus_milli for s in event.seats)
        self._seats[event.job] = (gpus, cpus)
        self._placed_at[event.job] = event.at
        self._held_gpus += gpus
        self._held_cpus += cpus

    def _held_seconds(self, job_id: JobId, now: float) -> float:
        """All the time it has had seats, so far."""
        return self._held.get(job_id, 0.0) + now - self._placed_at[job_id]

    def _rises(self, job_id: JobId, now: float) -> None:
        self._held[job_id] = self._held_seconds(job_id, now)
        gpus, cpus = self._seats.pop(job_id)
        self._held_gpus -= gpus
        self._held_cpus -= cpus

    def sample(self, loop: Loop) -> None:
        """The cluster from now on. While somebody is kept room, what is free is of no use to it."""
        short = bool(loop.plan.promises)
        self.replay.samples.append(
            Sample(
                at=loop.engine.now(),
                gpus_held_milli=self._held_gpus,
                cpus_held_milli=self._held_cpus,
                running=loop.fold.running_count,
                waiting=loop.fold.waiting_count,
                fragmented_milli=self.replay.gpus_total_milli - self._held_gpus if short else None,
            )
        )

    def close(self, loop: Loop, wall_seconds: float) -> None:
        """Who never started, and why."""
        self.replay.cycles = loop.cycles
        self.replay.wall_seconds = wall_seconds
        snap = loop.fold.snapshot()
        for jobs in snap.lanes.values():
            for waiting in jobs:
                wait = loop.plan.wait_of(waiting, snap.unmet)
                if wait is not None and wait.infeasible:
                    self._by_id[waiting.job.id].infeasible = wait.reasons[0].sentence()


def _record(entry: TraceJob) -> JobRecord:
    job, asked = entry.job, entry.job.gang.asked()
    return JobRecord(
        id=job.id,
        name=job.name,
        owner=job.owner,
        team=job.team,
        gpus_milli=asked.gpus_milli,
        cpus_milli=asked.cpus_milli,
        submitted_at=job.submitted_at,
        run_seconds=entry.run_seconds,
    )
