"""What moving is worth: the same pods with lifetimes and a queue, with compaction and without.

Pods drawn from a trace arrive at random (Poisson) and live for random times (exponential), so that
on average they ask for exactly all GPUs there are: whatever placement wastes makes a queue. The
cluster starts as full as it is meant to be, which needs no history, since exponential lives have
no memory. Jobs keep checkpoints; being moved costs them time, which is charged. Every few nodes
stand for the cluster, so that it can be measured in about a minute.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from bench.ask import Say, replayed
from bench.figures import Figure
from muster.model.job import Checkpoint, Job
from muster.model.node import Node
from muster.model.policy import preset
from muster.model.room import Hardware
from muster.model.units import HOUR, MINUTE
from muster.schedule.fit import never
from muster.simulate.measure import measure as report_of
from muster.simulate.records import Replay
from muster.traces.trace import Trace, TraceJob

_NODES = 100  # about as many stand for the cluster
_LIFE_SECONDS = 4 * HOUR  # on average
_WARM, _MEASURED = 0.5, 2.5  # lives: as many arrivals as there are pods when the cluster is full
_CHECKPOINT = Checkpoint(every_seconds=10 * MINUTE, save_seconds=30.0, restore_seconds=30.0)
_SEED = 0


def measure(variant: str, trace: Trace, say: Say) -> Iterator[Figure]:
    """The time-weighted mean of what is allocated once the cluster has warmed up."""
    nodes = trace.nodes[:: max(1, len(trace.nodes) // _NODES)]
    drawn = _drawn(trace, nodes, np.random.default_rng(_SEED))
    for compact in (False, True):
        policy = msgspec.structs.replace(preset("fair"), compact=compact)
        label = f"compact={str(compact).lower()}"
        replay = replayed(drawn, nodes, policy, f"departures {variant} {label}", say)
        yield _figure(variant, label, replay)


def _figure(variant: str, label: str, replay: Replay) -> Figure:
    report = report_of(replay)
    begin, end = _WARM * _LIFE_SECONDS, (_WARM + _MEASURED) * _LIFE_SECONDS
    waits = [r.wait_seconds for r in replay.records if begin <= r.submitted_at < end]
    beside = {
        "moves": float(report.moves),
        "mean_wait_seconds": float(np.mean([wait for wait in waits if wait is not None])),
        "gpu_hours_lost": round(report.gpu_hours_lost or 0.0, 6),  # less is noise of floats
        "gpus": report.gpus,
    }
    percent = 100 * _mean_held_milli(replay, begin, end) / replay.gpus_total_milli
    return Figure("placement-departures", variant, label, percent, "% allocated", beside=beside)


def _mean_held_milli(replay: Replay, begin: float, end: float) -> float:
    """What was held between two times, on average: each sample counts until the next."""
    times = np.clip([sample.at for sample in replay.samples] + [end], begin, end)
    held = np.array([sample.gpus_held_milli for sample in replay.samples])
    return float(held @ np.diff(times) / (end - begin))


def _drawn(trace: Trace, nodes: tuple[Node, ...], rng: np.random.Generator) -> Trace:
    """Arrivals: a full cluster's worth at once, then a Poisson process at the rate that keeps it."""
    hardware = Hardware(nodes)
    pods = [entry.job for entry in trace.jobs if never(hardware, entry.job.gang) is None]
    asked_milli = float(np.mean([job.gang.asked().gpus_milli for job in pods]))
    full = max(1, round(hardware.total.gpus_milli / asked_milli))
    later = round((_WARM + _MEASURED) * full)
    gaps = np.append(np.zeros(full), rng.exponential(_LIFE_SECONDS / full, later))
    lives = rng.exponential(_LIFE_SECONDS, len(gaps))
    which = rng.integers(len(pods), size=len(gaps))
    drawn = zip(which.tolist(), np.cumsum(gaps).tolist(), lives.tolist(), strict=True)
    jobs = (TraceJob(_job(pods[i], n, at), life) for n, (i, at, life) in enumerate(drawn))
    return Trace(trace.name, tuple(jobs), nodes)


def _job(pod: Job, number: int, at: float) -> Job:
    return msgspec.structs.replace(pod, id=str(number), submitted_at=at, checkpoint=_CHECKPOINT)
