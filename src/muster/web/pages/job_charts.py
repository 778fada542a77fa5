"""A job over time: what it reported, with its exits drawn in, and what it held against what it used."""

import math
from collections.abc import Iterable, Iterator, Sequence

from muster.model.errors import BadInput
from muster.model.state import State
from muster.model.units import show_bytes
from muster.model.usage import Rollup, Stat
from muster.server.answers import EffortView, JobMetrics, JobUse, JobView, MetricPoint, MetricSeries
from muster.steward.exits import Exit, compiled
from muster.steward.exits.terms import Compares, Span, Stalls, Term, Way, show, terms_of
from muster.web.charts import Chart, Mark, Series, bounds, with_gaps
from muster.web.words import number

MOST_CHARTS = 24  # metrics that are drawn; the others are in the list


def metric_charts(view: JobView, metrics: JobMetrics) -> list[Chart]:
    """One for each metric, since their scales differ; those that exits speak of come first."""
    exits = exits_of(view)
    named = {term.metric for one in exits for term in terms_of(one.condition)}
    ordered = sorted(metrics.series, key=lambda series: series.name not in named)
    return [_metric(f"metric-{place}", view, one, exits) for place, one in enumerate(ordered[:MOST_CHARTS])]


def exits_of(view: JobView | EffortView) -> tuple[Exit, ...]:
    try:
        return compiled(tuple(view.success), tuple(view.failure)).exits
    except BadInput:  # written by an older Muster
        return ()


def _metric(place: str, view: JobView, series: MetricSeries, exits: Iterable[Exit]) -> Chart:
    points = _each_moment_once(series.points)
    values = [_finite(point.value) for point in points]
    marks = tuple(dict.fromkeys(mark for one in exits for mark in _marks(one, view, series)))
    low, high = bounds(values, [mark.y for mark in marks if mark.y is not None])
    return Chart(
        place,
        series.name,
        _said(series, values),
        [point.at for point in points],
        (Series(series.name, values),),
        marks,
        low=low,
        high=high,
    )


def _each_moment_once(points: Sequence[MetricPoint]) -> list[MetricPoint]:
    """In order of time; of several at one moment the last."""
    by_time = {point.at: point for point in points}
    return [by_time[at] for at in sorted(by_time)]


def _finite(value: float | str) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _said(series: MetricSeries, values: Sequence[float | None]) -> str:
    last = number(series.last) if isinstance(series.last, int | float) else series.last
    said = f"last {last}"
    if series.least is not None and series.greatest is not None and series.count > 1:
        said += f", from {number(series.least)} to {number(series.greatest)} in {series.count:,} reports"
    odd = sum(value is None for value in values)
    return f"{said}; {odd} no number" if odd else said


# --- Exits ----------------------------------------------------------------------------------------------


def _marks(one: Exit, view: JobView, series: MetricSeries) -> Iterator[Mark]:
    """Where a condition would be met: a height, a moment from which on it counts, one at which it stalls."""
    terms = terms_of(one.condition)
    for term in terms:
        if term.metric != series.name:
            continue
        label = f"{one.verdict} if {show(term)}" + (", and more" if len(terms) > 1 else "")
        if isinstance(term, Compares) and math.isfinite(term.value):
            yield Mark(label, y=term.value, tone=one.verdict)
        yield from _counts_from(term, view, series, one)
        if isinstance(term, Stalls):
            yield from _stalls_at(term, view, series, one)


def _counts_from(term: Term, view: JobView, series: MetricSeries, one: Exit) -> Iterator[Mark]:
    """``after 2h``: by the time that it has run, as a report tells it, or else since it started."""
    if not term.after_seconds:
        return
    told = next((p for p in series.points if (p.ran_seconds or 0.0) >= term.after_seconds), None)
    known = series.points[-1] if series.points else None
    at = None
    if told is not None and told.ran_seconds is not None:
        at = told.at - (told.ran_seconds - term.after_seconds)
    elif known is not None and known.ran_seconds is not None:
        at = known.at + term.after_seconds - known.ran_seconds
    elif view.started_at is not None:
        at = view.started_at + term.after_seconds
    if at is not None:
        yield Mark(f"{show(term)}: counts from here", x=at, tone=one.verdict)


def _stalls_at(term: Stalls, view: JobView, series: MetricSeries, one: Exit) -> Iterator[Mark]:
    """The best so far, and when it will have lasted too long, if the clock runs on as it does."""
    best = series.greatest if term.way is Way.RISING else series.least
    if best is None:
        return
    yield Mark(f"best so far; {one.verdict} if {show(term)}", y=best, tone=one.verdict)
    since = next((point for point in series.points if point.value == best), None)
    runs = view.state is State.RUNNING and since is not None and since.attempt == view.attempt
    if runs and since is not None and isinstance(term.lasting, Span):
        yield Mark("stalls here, unless it gets better", x=since.at + term.lasting.seconds, tone=one.verdict)


# --- Use ------------------------------------------------------------------------------------------------


def use_charts(use: JobUse) -> list[Chart]:
    """Held against used: GPUs, or cpus if it has none; and memory."""
    if not use.points:
        return []
    points = sorted(use.points, key=lambda point: (point.start, point.attempt))
    points = list({point.start: point for point in points}.values())
    return [_gpus(use, points) if use.held.gpus else _cpus(use, points), *_memory(use, points)]


def _gpus(use: JobUse, points: Sequence[Rollup]) -> Chart:
    each = [_mean(point.gpu_busy) for point in points]
    used = [None if share is None else share * use.held.gpus for share in each]
    metric = f", by {use.metrics.gpu}" if use.metrics.gpu else ""
    return _held_and_used("use-gpus", "GPUs", use, points, use.held.gpus, used, metric)


def _cpus(use: JobUse, points: Sequence[Rollup]) -> Chart:
    used = [None if point.cpus is None else point.cpus.mean for point in points]
    return _held_and_used("use-cpus", "cpus", use, points, use.held.cpus, used, f", by {use.metrics.cpu}")


def _held_and_used(
    place: str,
    what: str,
    use: JobUse,
    points: Sequence[Rollup],
    holds: float,
    used: list[float | None],
    metric: str,
) -> Chart:
    held: list[float | None] = [holds] * len(points)
    at, (held, used) = with_gaps([point.start for point in points], (held, used), use.step_seconds)
    known = [value for value in used if value is not None]
    share = (
        f"used {sum(known) / len(known) / holds:.0%} of what was held" if known and holds else "not measured"
    )
    return Chart(
        place,
        f"{what} held and used",
        f"{share}{metric}",
        at,
        (Series(f"{what} held", held, "hatched"), Series(f"{what} used", used, "filled")),
        low=0.0,
        high=1.1 * max([holds, *known]) or 1.0,
    )


def _memory(use: JobUse, points: Sequence[Rollup]) -> Iterator[Chart]:
    used = [None if point.memory_bytes is None else point.memory_bytes.mean for point in points]
    known = [value for value in used if value is not None]
    if not known:
        return
    holds = use.held.memory_bytes
    at, (used,) = with_gaps([point.start for point in points], (used,), use.step_seconds)
    marks = (Mark(f"held: {show_bytes(holds)}", y=float(holds)),) if holds else ()
    low, high = bounds(used, [float(holds)] if holds else [])
    yield Chart(
        "use-memory",
        "Memory used",
        f"at most {show_bytes(int(max(known)))}"
        + (f" of {show_bytes(holds)} held" if holds else "; none was asked for"),
        at,
        (Series("memory used", used, "filled"),),
        marks,
        unit="bytes",
        low=min(0.0, low or 0.0) if low is not None else 0.0,
        high=high,
    )


def _mean(stats: Sequence[Stat | None]) -> float | None:
    known = [stat.mean for stat in stats if stat is not None]
    return sum(known) / len(known) if known else None
