"""How well are run times foretold? A replay of logs, in which each job is foretold before it is known.

A job is foretold when it is submitted, by what has ended until then; every job is taken to start at once. The
figure is the part of runs that stay within the bounds that eight of ten should: 80 % is right, more is too
wide, less too narrow. ``samples`` are the bounds of the samples alone, for comparison.
"""

import heapq
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import backfill
from bench.ask import Ask, Family
from bench.figures import Figure
from muster.model.history import History, HistoryBook
from muster.model.snapshot import LaneKey
from muster.schedule.accuracy import Foretold, errors
from muster.schedule.predict import estimate, samples, spread
from muster.steward.past import quantile
from muster.traces.lines import load
from muster.traces.registry import FORMATS, read_trace
from muster.traces.trace import Trace, TraceJob

Bounds = Callable[[History, LaneKey], tuple[float, float]]


def files(folder: Path) -> dict[str, Path]:
    """Logs of the standard format, and tables of jobs that tell run times."""
    tables = (path for path in sorted(folder.glob("*.csv")) if _tells_run_times(path))
    return {**backfill.files(folder), **{path.stem: path for path in tables}}


def _tells_run_times(path: Path) -> bool:
    file = load(str(path))
    return any(FORMATS[name].recognises(file) for name in ("muri", "philly"))


def measure(ask: Ask) -> Iterator[Figure]:
    for variant, path in ask.files.items():
        ask.say(f"prediction {variant}")
        trace = read_trace(str(path))
        for policy in ask.policies:
            yield _figure(variant, policy, list(_foretold(trace, _BOUNDS[policy])))


def _foretold(trace: Trace, bounds: Bounds) -> Iterator[Foretold]:
    book = HistoryBook()
    running: list[tuple[float, int, TraceJob]] = []
    for number, one in enumerate(trace.jobs):
        while running and running[0][0] <= one.job.submitted_at:
            ended = heapq.heappop(running)[2]
            book.ended(ended.job, ended.run_seconds)
        history, lane = book.view(), LaneKey.of(one.job)
        low, high = bounds(history, lane)
        yield Foretold(estimate(history, lane, {}).plan, low, high, one.run_seconds)
        heapq.heappush(running, (one.job.submitted_at + one.run_seconds, number, one))


def _of_samples(history: History, lane: LaneKey) -> tuple[float, float]:
    found = samples(history, lane)
    return quantile(found, 0.1) or 1.0, quantile(found, 0.9) or 1.0


_BOUNDS: dict[str, Bounds] = {"default": spread, "samples": _of_samples}


def _figure(variant: str, policy: str, foretold: list[Foretold]) -> Figure:
    found = errors(foretold)
    beside = {
        "median_relative_error": found.median_relative or 0.0,
        "longer_than_planned_percent": 100 * (found.under or 0.0),
        "interval_score": sum(map(_score, foretold)) / max(1, len(foretold)),
        "jobs": found.count,
    }
    return Figure("prediction", variant, policy, 100 * (found.inside or 0.0), "% within", beside=beside)


def _score(one: Foretold) -> float:
    """Of logarithms, and less is better: the width, and ten times by how much the truth is outside."""
    low, high, truth = (math.log(max(1.0, value)) for value in (one.low, one.high, one.seconds))
    return (high - low) + 10 * max(0.0, low - truth) + 10 * max(0.0, truth - high)


FAMILY = Family(
    folder="hpc",
    expects="*.swf, or *.csv of Philly jobs",
    files=files,
    policies=tuple(_BOUNDS),
    more_policies=(),
    measure=measure,
)
