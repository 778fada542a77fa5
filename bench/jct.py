"""How soon jobs complete: training jobs on 8 × 8 GPUs, from the Muri study.

The figure is the mean time from submission to completion. Stopping and resuming cost nothing, as
in the study, but for ``jct-charged``, where they do. ``srtf`` and ``las`` are there to meet known
averages, which were found by counting 64 GPUs without placing anything: they run on one pool.
Everything else, ``srtf-nodes`` too, has to find GPUs on nodes.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from bench.ask import Ask, Family, replayed
from bench.figures import Figure
from muster.model.job import Checkpoint, single
from muster.model.node import Node
from muster.model.policy import preset
from muster.model.units import MINUTE, TIB
from muster.simulate.measure import SHORTEST_RUN_SECONDS, Report
from muster.simulate.measure import measure as report_of
from muster.simulate.records import Replay
from muster.traces import muri
from muster.traces.lines import has_columns, load
from muster.traces.trace import Trace, TraceJob

_OUTCOME = "ref_"  # per-job outcomes of the study's simulator carry this in their name
_FREE = Checkpoint()
_CHARGED = Checkpoint(every_seconds=30 * MINUTE, restore_seconds=60.0, on_signal=False)

# In the study's simulator every running job loses 4 to 46 s of progress at each event: it prints
# 193,082 for SRTF and 347,213 for Tiresias-L. These are the averages of the same rules without that.
_PUBLISHED = {("trace3", "srtf"): 190_377.0, ("trace3", "las"): 340_306.0}


class _Rule(msgspec.Struct, frozen=True):
    """A policy of this family: whose turn it is, and on what."""

    preset: str
    knows_durations: bool
    pooled: bool = False


_RULES = {
    "srtf": _Rule("srtf", knows_durations=True, pooled=True),
    "srtf-nodes": _Rule("srtf", knows_durations=True),
    "srsf": _Rule("srsf", knows_durations=True),
    "las": _Rule("las", knows_durations=False, pooled=True),
    "gittins": _Rule("gittins", knows_durations=False),
    "default": _Rule("fair", knows_durations=False),
}


def files(folder: Path) -> dict[str, Path]:
    found = (path for path in folder.glob("*.csv") if not path.name.startswith(_OUTCOME))
    return {path.stem: path for path in found if has_columns(load(str(path)), muri.COLUMNS)}


def measure(ask: Ask) -> Iterator[Figure]:
    for variant, path in ask.files.items():
        trace = muri.read(str(path))
        free = _keeping(trace, _FREE)
        for policy in ask.policies:
            replay = _replay(free, policy, variant, ask)
            yield _figure("jct", variant, policy, replay, _PUBLISHED.get((variant, policy)))
        if "gittins" in ask.policies:
            charged = _replay(_keeping(trace, _CHARGED), "gittins", variant, ask)
            yield _figure("jct-charged", variant, "gittins", charged)


FAMILY = Family(
    folder="muri",
    expects="*.csv of the Muri study",
    files=files,
    policies=tuple(_RULES),
    more_policies=(),
    measure=measure,
)


def _replay(trace: Trace, policy: str, variant: str, ask: Ask) -> Replay:
    rule = _RULES[policy]
    where = _pooled(trace) if rule.pooled else trace
    return replayed(where, where.nodes, preset(rule.preset), f"jct {variant} {policy}", ask.say)


def _keeping(trace: Trace, checkpoint: Checkpoint) -> Trace:
    """The trace with jobs that keep their work so."""
    replace = msgspec.structs.replace
    jobs = tuple(
        TraceJob(replace(entry.job, checkpoint=checkpoint), entry.run_seconds) for entry in trace.jobs
    )
    return replace(trace, jobs=jobs)


def _pooled(trace: Trace) -> Trace:
    """GPUs as processors of one node, so that only their number counts."""
    replace = msgspec.structs.replace
    jobs = tuple(
        TraceJob(
            replace(entry.job, gang=single(cpus_milli=entry.job.gang.asked().gpus_milli)),
            entry.run_seconds,
        )
        for entry in trace.jobs
    )
    gpus_milli = sum(node.total.gpus_milli for node in trace.nodes)
    return replace(trace, jobs=jobs, nodes=(Node("pool", gpus_milli, TIB),))


def _figure(name: str, variant: str, policy: str, replay: Replay, published: float | None = None) -> Figure:
    report = report_of(replay)
    assert report.completion_seconds is not None
    return Figure(
        name,
        variant,
        policy,
        report.completion_seconds.mean,
        "s",
        published=published,
        knows_durations=_RULES[policy].knows_durations,
        beside=_beside(replay, report),
    )


def _beside(replay: Replay, report: Report) -> dict[str, float]:
    assert report.completion_seconds is not None
    beside = {
        "median_seconds": report.completion_seconds.median,
        "p99_seconds": report.completion_seconds.p99,
        "preemptions_per_job": report.preemptions / report.jobs,
        "jain_slowdown": _jain_of_slowdown(replay),
    }
    if lost := round(report.gpu_hours_lost or 0.0, 6):  # less than that is noise of floats
        beside["gpu_hours_lost"] = lost
    if report.finished < report.jobs:
        beside["unfinished"] = float(report.jobs - report.finished)
    return beside


def _jain_of_slowdown(replay: Replay) -> float:
    """How evenly jobs are slowed down: 1 if all alike, 1/jobs if one takes it all."""
    slowdown = np.array(
        [
            max(1.0, (r.ended_at - r.submitted_at) / max(r.run_seconds, SHORTEST_RUN_SECONDS))
            for r in replay.records
            if r.ended_at is not None
        ]
    )
    return float(slowdown.sum() ** 2 / (len(slowdown) * (slowdown**2).sum()))
