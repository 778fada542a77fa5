"""How long jobs wait on a machine that is counted in processors: logs in the standard format.

The figure is AVEbsld, the mean of max(1, (wait + run) / max(run, 10 s)). A policy can make it
small at the cost of large jobs, so what the widest and the largest tenth of jobs wait is told
beside it, as a ratio to EASY with the times that people asked for.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from bench.ask import Ask, Family, replayed, rows_of
from bench.figures import Figure
from muster.model.node import Node
from muster.model.policy import preset
from muster.model.units import TIB, parse_number
from muster.simulate.measure import measure as report_of
from muster.simulate.records import JobRecord, Replay
from muster.traces import swf
from muster.traces.trace import Trace

_BASE = "easy-asked"
_PRESETS = {
    "default": "fair",
    _BASE: "easy",
    "easy-true": "easy-true",
    "easy-sjbf-true": "easy-sjbf-true",
}
_KNOW_DURATIONS = frozenset({"easy-true", "easy-sjbf-true"})
_PUBLISHED_AS = {
    _BASE: "easy requested times",
    "easy-true": "easy true times",
    "easy-sjbf-true": "easy-sjbf true times",
}
_OUTCOME = ".res_"  # logs that a simulator wrote carry this in their name


def files(folder: Path) -> dict[str, Path]:
    found = sorted([*folder.glob("*.swf.gz"), *folder.glob("*.swf")])
    logs = (path for path in found if _OUTCOME not in path.name)
    return {path.name.removesuffix(".gz").removesuffix(".swf"): path for path in logs}


def measure(ask: Ask) -> Iterator[Figure]:
    for variant, path in ask.files.items():
        trace = _with_machine(swf.read(str(path)))
        published = _published(path.parent / "published.csv", variant)

        def run(policy: str, variant: str = variant, trace: Trace = trace) -> Replay:
            named = preset(_PRESETS[policy])
            return replayed(trace, trace.nodes, named, f"backfill {variant} {policy}", ask.say)

        base = run(_BASE)
        for policy in ask.policies:
            replay = base if policy == _BASE else run(policy)
            yield _figure(variant, policy, replay, base, published.get(policy))


FAMILY = Family(
    folder="hpc",
    expects="*.swf or *.swf.gz",
    files=files,
    policies=tuple(_PRESETS),
    more_policies=(),
    measure=measure,
)


def _with_machine(trace: Trace) -> Trace:
    """A log that does not tell its size is taken to be as large as its widest job."""
    if trace.nodes:
        return trace
    widest_milli = max(entry.job.gang.asked().cpus_milli for entry in trace.jobs)
    return msgspec.structs.replace(trace, nodes=(Node("pool", widest_milli, 1024 * TIB),))


def _figure(variant: str, policy: str, replay: Replay, base: Replay, published: float | None) -> Figure:
    report = report_of(replay)
    assert report.slowdown is not None
    assert report.wait_seconds is not None
    beside = {"mean_wait_seconds": report.wait_seconds.mean}
    for name, size in _SIZES.items():
        expected = _wait_of_top_tenth(base, size)
        if expected:
            beside[name] = _wait_of_top_tenth(replay, size) / expected
    if report.finished < report.jobs:
        beside["unfinished"] = float(report.jobs - report.finished)
    return Figure(
        "backfill",
        variant,
        policy,
        report.slowdown.mean,
        "bounded slowdown",
        published=published,
        knows_durations=policy in _KNOW_DURATIONS,
        beside=beside,
    )


_SIZES: dict[str, Callable[[JobRecord], float]] = {
    "widest_tenth_wait_ratio": lambda record: record.cpus_milli,
    "largest_tenth_wait_ratio": lambda record: record.cpus_milli * record.run_seconds,
}


def _wait_of_top_tenth(replay: Replay, size: Callable[[JobRecord], float]) -> float:
    """The mean wait of the tenth of jobs that is greatest in ``size``."""
    done = sorted((r for r in replay.records if r.ended_at is not None), key=size, reverse=True)
    waits = [r.wait_seconds or 0.0 for r in done[: max(1, len(done) // 10)]]
    return float(np.mean(waits))


def _published(path: Path, variant: str) -> dict[str, float]:
    ours = {published: policy for policy, published in _PUBLISHED_AS.items()}
    return {
        ours[policy]: parse_number(value)
        for log, policy, value in rows_of(path, ("log", "policy", "avebsld"))
        if log == variant and policy in ours
    }
