"""What a replay amounts to: figures, curves and the one sentence that sums them up.

A timeline of samples is piecewise constant, so its integral is piecewise linear and every mean over
time a difference of it: one interpolation serves a single mean and a curve of hundreds alike.
Figures of time speak of jobs that ended; what is not known is None, never 0.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.model.units import HOUR, MILLI, show_seconds
from muster.simulate.records import JobRecord, Replay

Floats = NDArray[np.float64]
SHORTEST_RUN_SECONDS = 10.0  # shorter jobs count as this long, or their slowdown drowns all others


class Spread(msgspec.Struct, frozen=True):
    """How a quantity is spread over the jobs that finished."""

    mean: float
    median: float
    p99: float


class Fairness(msgspec.Struct, frozen=True):
    """How evenly slowdown is spread: Jain's index (1 is perfectly even), and the worst off."""

    jain: float
    worst_to_mean: float


class Report(msgspec.Struct, frozen=True):
    """The figures of one policy on one trace. Shares of the cluster are between 0 and 1."""

    trace: str
    policy: str
    nodes: int
    gpus: float
    cpus: float
    interrupted: bool
    jobs: int
    finished: int
    unfinished: int
    infeasible: int
    completion_seconds: Spread | None
    wait_seconds: Spread | None
    slowdown: Spread | None
    gpu_utilisation: float | None
    gpu_peak: float | None
    cpu_utilisation: float | None
    cpu_peak: float | None
    fragmentation: float | None
    makespan_seconds: float | None
    preemptions: int
    moves: int
    failures: int
    gpu_hours_done: float | None
    gpu_hours_lost: float | None
    teams: Fairness | None
    users: Fairness | None
    cycles: int
    cycles_per_second: float | None
    wall_seconds: float | None


class SizeClass(msgspec.Struct, frozen=True):
    """Finished jobs of about one size, and how long they waited."""

    order: int
    label: str
    jobs: int
    wait_seconds: Spread


class Curve(msgspec.Struct, frozen=True):
    """Means over equal spans of time, each at its middle, in seconds since the first submission.

    Not a number after the last end.
    """

    seconds: Floats
    held: Floats
    waiting: Floats


class Allocation(msgspec.Struct, frozen=True):
    """What was held when so much had been asked for, both as shares of the cluster."""

    arrived: Floats
    held: Floats


class _Finished(msgspec.Struct, frozen=True):
    """The jobs that ran to an end, as columns."""

    records: list[JobRecord]
    turnaround: Floats
    run: Floats

    @property
    def wait(self) -> Floats:
        return np.round(self.turnaround - self.run, 6)  # less than that is noise of floats

    @property
    def slowdown(self) -> Floats:
        """Bounded slowdown."""
        bounded = self.turnaround / np.maximum(self.run, SHORTEST_RUN_SECONDS)
        return np.maximum(1.0, bounded)


def measure(replay: Replay) -> Report:
    """All figures of a replay."""
    records, done, window = replay.records, _finished(replay.records), span(replay)
    infeasible = sum(r.infeasible is not None and r.started_at is None for r in records)
    unfinished = len(records) - len(done.records) - infeasible
    on_gpus = counts_gpus(replay)
    gpus = _held_share(replay, gpus=True) if on_gpus else None
    cpus = _held_share(replay, gpus=False) if any(r.cpus_milli for r in records) else None
    return Report(
        trace=replay.trace,
        policy=replay.policy,
        nodes=replay.nodes,
        gpus=replay.gpus_total_milli / MILLI,
        cpus=replay.cpus_total_milli / MILLI,
        interrupted=replay.interrupted,
        jobs=len(records),
        finished=len(done.records),
        unfinished=unfinished,
        infeasible=infeasible,
        completion_seconds=_spread(done.turnaround),
        wait_seconds=_spread(done.wait),
        slowdown=_spread(done.slowdown),
        gpu_utilisation=_mean_over_time(replay, gpus),
        gpu_peak=_peak(replay, gpus),
        cpu_utilisation=_mean_over_time(replay, cpus),
        cpu_peak=_peak(replay, cpus),
        fragmentation=_fragmentation(replay) if on_gpus else None,
        makespan_seconds=window[1] - window[0] if window and not unfinished else None,
        preemptions=sum(r.preemptions for r in records),
        moves=sum(r.moves for r in records),
        failures=sum(r.failures for r in records),
        gpu_hours_done=_gpu_hours(done.records, done.run) if on_gpus else None,
        gpu_hours_lost=_gpu_hours(records, [r.lost_seconds for r in records]) if on_gpus else None,
        teams=_fairness((r.team for r in done.records), done.slowdown),
        users=_fairness((r.owner for r in done.records), done.slowdown),
        cycles=replay.cycles,
        cycles_per_second=replay.cycles / replay.wall_seconds if replay.wall_seconds else None,
        wall_seconds=replay.wall_seconds or None,
    )


def counts_gpus(replay: Replay) -> bool:
    """Whether the story is about GPUs; otherwise cpus are what is shared."""
    return replay.gpus_total_milli > 0 and (
        any(r.gpus_milli for r in replay.records) or any(s.gpus_held_milli for s in replay.samples)
    )


def span(replay: Replay) -> tuple[float, float] | None:
    """First submission to last end, or to the last thing seen while jobs are still to finish."""
    records = replay.records
    ends = [r.ended_at for r in records if r.ended_at is not None]
    if replay.samples and any(r.ended_at is None and r.infeasible is None for r in records):
        ends.append(replay.samples[-1].at)
    start = min((r.submitted_at for r in records), default=0.0)
    end = max(ends, default=start)
    return (start, end) if end > start else None


def wait_by_size(replay: Replay) -> list[SizeClass]:
    """Waits of the finished jobs by what they asked for, in classes that double."""
    done = _finished(replay.records)
    if not done.records:
        return []
    asked = _asked(done.records, gpus=counts_gpus(replay))
    order = np.where(asked >= 1, 2 + np.ceil(np.log2(np.maximum(asked, 1))), asked > 0).astype(int)
    classes = []
    for at in np.unique(order):
        waits = done.wait[order == at]
        if (spread := _spread(waits)) is not None:
            classes.append(SizeClass(int(at), _size_label(int(at)), len(waits), spread))
    return classes


def curve(replay: Replay, points: int, seconds: float | None = None) -> Curve | None:
    """Utilisation and queue over its own time, or ``seconds``; None if no time has passed."""
    window = span(replay)
    if window is None:
        return None
    start, end = window
    edges = np.linspace(start, end if seconds is None else start + seconds, points + 1)
    held = _means(replay, _held_share(replay, gpus=counts_gpus(replay)), edges)
    waiting = _means(replay, np.array([s.waiting for s in replay.samples], float), edges)
    held[edges[:-1] >= end] = waiting[edges[:-1] >= end] = np.nan
    return Curve((edges[:-1] + edges[1:]) / 2 - start, held, waiting)


def allocation(replay: Replay, points: int) -> Allocation | None:
    """What is held right after each share of the cluster has been asked for, had or not."""
    gpus = counts_gpus(replay)
    total = replay.gpus_total_milli if gpus else replay.cpus_total_milli
    records = sorted(replay.records, key=lambda r: r.submitted_at)
    arrived = np.cumsum(_asked(records, gpus=gpus)) * MILLI / total if total else np.zeros(1)
    if not records or not replay.samples or arrived[-1] == 0:
        return None
    grid = np.linspace(arrived[0], arrived[-1], min(points, len(records)))
    latest = np.minimum(np.searchsorted(arrived, grid), len(records) - 1)
    submitted = np.array([r.submitted_at for r in records])[latest]
    after = np.searchsorted(_times(replay), submitted, side="right")
    held = np.concatenate(([0.0], _held_share(replay, gpus=gpus)))[after]
    return Allocation(arrived[latest], held)


def _finished(records: Iterable[JobRecord]) -> _Finished:
    done, turnaround, run = [], [], []
    for r in records:
        if r.started_at is not None and r.ended_at is not None:
            done.append(r)
            turnaround.append(r.ended_at - r.submitted_at)
            # a job cut off at its time limit ran for less than the work it had
            run.append(min(r.run_seconds, r.ended_at - r.started_at))
    return _Finished(done, np.array(turnaround), np.array(run))


def _spread(values: Floats) -> Spread | None:
    if not len(values):
        return None
    return Spread(float(values.mean()), float(np.median(values)), float(np.percentile(values, 99)))


def _times(replay: Replay) -> Floats:
    return np.array([s.at for s in replay.samples], float)


def _held_share(replay: Replay, *, gpus: bool) -> Floats:
    if gpus:
        held, total = [s.gpus_held_milli for s in replay.samples], replay.gpus_total_milli
    else:
        held, total = [s.cpus_held_milli for s in replay.samples], replay.cpus_total_milli
    return np.array(held, float) / (total or np.nan)


def _means(replay: Replay, values: Floats, edges: Floats) -> Floats:
    """The mean of a piecewise constant series between each two edges; 0 before its first sample."""
    if not len(values):
        return np.full(len(edges) - 1, np.nan)
    times = _times(replay)
    times = np.append(times, max(edges[-1], times[-1]))
    integral = np.concatenate(([0.0], np.cumsum(values * np.diff(times))))
    means: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
    return means


def _mean_over_time(replay: Replay, values: Floats | None) -> float | None:
    window = span(replay)
    if values is None or window is None or not len(values):
        return None
    return float(_means(replay, values, np.array(window))[0])


def _peak(replay: Replay, values: Floats | None) -> float | None:
    """The most at once, of what lasted: a state within an instant was never there."""
    if values is None or not len(values):
        return None
    lasted = np.append(np.diff(_times(replay)) > 0, True)
    return float(values[lasted].max())


def _fragmentation(replay: Replay) -> float | None:
    """The share of all GPUs that was free and of no use, over the time that somebody waited."""
    somebody = np.array([s.fragmented_milli is not None for s in replay.samples], float)
    waited = _mean_over_time(replay, somebody)
    if not waited:
        return None
    useless = np.array([s.fragmented_milli or 0 for s in replay.samples]) / replay.gpus_total_milli
    share = _mean_over_time(replay, useless)
    return None if share is None else share / waited


def _gpu_hours(records: Iterable[JobRecord], seconds: Iterable[float]) -> float:
    return float(sum(r.gpus_milli * s for r, s in zip(records, seconds, strict=True)) / MILLI / HOUR)


def _fairness(names: Iterable[str], slowdown: Floats) -> Fairness | None:
    """Between those who have a name; None where there is nobody to compare with."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, value in zip(names, slowdown, strict=True):
        by_name[name].append(value)
    means = np.array([np.mean(values) for name, values in by_name.items() if name])
    if len(means) < 2:
        return None
    jain = means.sum() ** 2 / (len(means) * (means**2).sum())
    return Fairness(float(jain), float(means.max() / means.mean()))


def _asked(records: Sequence[JobRecord], *, gpus: bool) -> Floats:
    return np.array([r.gpus_milli if gpus else r.cpus_milli for r in records], float) / MILLI


def _size_label(order: int) -> str:
    """0: none, 1: a fraction, then 1, 2, 3–4, 5–8 and so on."""
    if order < 2:
        return ("none", "under 1")[order]
    most = 2 ** (order - 2)
    return f"{most}" if most <= 2 else f"{most // 2 + 1:,}–{most:,}"


class Row(msgspec.Struct, frozen=True):
    """One figure of several reports as people read it, and which of them are best."""

    heading: str
    label: str
    cells: tuple[str, ...]
    best: frozenset[int]


def count(value: float) -> str:
    return f"{value:,.0f}"


def percent(value: float) -> str:
    return f"{value * 100:,.1f} %"


def number(value: float) -> str:
    return f"{value:,.2f}"


_LESS, _MORE, _NEITHER = -1, 1, 0  # what is better
FIGURES: tuple[tuple[str, str, str, Callable[[float], str], int], ...] = (
    ("Jobs", "finished", "finished", count, _MORE),
    ("Jobs", "unfinished", "unfinished", count, _LESS),
    ("Jobs", "can never run", "infeasible", count, _LESS),
    ("Completion time", "mean", "completion_seconds.mean", show_seconds, _LESS),
    ("Completion time", "median", "completion_seconds.median", show_seconds, _LESS),
    ("Completion time", "99th percentile", "completion_seconds.p99", show_seconds, _LESS),
    ("Wait", "mean", "wait_seconds.mean", show_seconds, _LESS),
    ("Wait", "median", "wait_seconds.median", show_seconds, _LESS),
    ("Wait", "99th percentile", "wait_seconds.p99", show_seconds, _LESS),
    ("Bounded slowdown", "mean", "slowdown.mean", number, _LESS),
    ("Bounded slowdown", "median", "slowdown.median", number, _LESS),
    ("Cluster", "GPUs held", "gpu_utilisation", percent, _MORE),
    ("Cluster", "GPUs held, peak", "gpu_peak", percent, _MORE),
    ("Cluster", "cpus held", "cpu_utilisation", percent, _MORE),
    ("Cluster", "cpus held, peak", "cpu_peak", percent, _MORE),
    ("Cluster", "fragmented while jobs wait", "fragmentation", percent, _LESS),
    ("Cluster", "makespan", "makespan_seconds", show_seconds, _LESS),
    ("Work", "GPU-hours done", "gpu_hours_done", count, _MORE),
    ("Work", "GPU-hours lost", "gpu_hours_lost", number, _LESS),
    ("Work", "preemptions", "preemptions", count, _LESS),
    ("Work", "of which moves", "moves", count, _LESS),
    ("Work", "node failures met", "failures", count, _NEITHER),
    ("Fairness of slowdown", "teams, Jain's index", "teams.jain", number, _MORE),
    ("Fairness of slowdown", "teams, worst to mean", "teams.worst_to_mean", number, _LESS),
    ("Fairness of slowdown", "users, Jain's index", "users.jain", number, _MORE),
    ("Fairness of slowdown", "users, worst to mean", "users.worst_to_mean", number, _LESS),
    ("Simulation", "cycles", "cycles", count, _NEITHER),
    ("Simulation", "cycles per second", "cycles_per_second", count, _NEITHER),
    ("Simulation", "time taken", "wall_seconds", show_seconds, _NEITHER),
)


def rows(reports: Sequence[Report]) -> list[Row]:
    """The figures side by side, without those that nobody knows."""
    # a policy that left its long jobs unfinished would look quick: then only counts are compared
    comparable = len({r.finished for r in reports}) == 1
    table = []
    for heading, label, attribute, show, better in FIGURES:
        values = [_read(r, attribute) for r in reports]
        if any(v is not None for v in values):
            cells = tuple("–" if v is None else show(v) for v in values)
            judged = better if comparable or heading == "Jobs" else _NEITHER
            table.append(Row(heading, label, cells, _best(values, cells, judged)))
    return table


def _read(report: Report, attribute: str) -> float | None:
    value: object = report
    for name in attribute.split("."):
        value = getattr(value, name, None)
    return value if isinstance(value, int | float) else None


def _best(values: list[float | None], cells: tuple[str, ...], better: int) -> frozenset[int]:
    """All that read like the best; nobody where all read the same."""
    known = [(v * better, c) for v, c in zip(values, cells, strict=True) if v is not None]
    if better == _NEITHER or len(set(cells)) < 2:
        return frozenset()
    winner = max(known)[1]
    return frozenset(i for i, cell in enumerate(cells) if cell == winner)
