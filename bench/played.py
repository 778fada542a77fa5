"""A behaviour as its meters saw it: samples, minutes rolled up from them, and signs of progress.

Columns over samples, with nan where a meter says nothing. The jitter is seeded by the behaviour's name, so
that it is the same in every run.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from bench.behaviours import STEP_SECONDS, Behaviour, Meter
from muster.model.charter import Progress
from muster.model.resources import Resources
from muster.model.units import GIB, MILLI, MINUTE, parse_bytes, parse_seconds
from muster.model.usage import Rollup, Sample, Stat
from muster.steward.watch import Sign, Watched

METRIC = "nvml-utilization"
_BEGIN = 1_700_000_040.0  # a whole minute
_PER_MINUTE = 60 // STEP_SECONDS

Column: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"


class Played:
    def __init__(self, behaviour: Behaviour, seed: int = 0) -> None:
        self.behaviour = behaviour
        self._luck = np.random.default_rng((zlib.crc32(behaviour.name.encode()), seed))
        self._leaves = behaviour.leaves
        self._steps = np.array([leaf.steps for leaf in self._leaves])
        self._offset = int(self._luck.integers(0, _PER_MINUTE))  # few jobs start with a minute
        self.started_at = _BEGIN + STEP_SECONDS * self._offset
        self.ends_at = self.started_at + STEP_SECONDS * int(self._steps.sum())
        self._arrives = self._arrivals()
        self._gpu_memory = [self._column("gpu_memory", place, 0.0) for place in range(behaviour.holds.gpus)]
        self.minutes = tuple(self._rolled_up())
        self._minute_ends = [minute.start + MINUTE for minute in self.minutes]
        self._signs = self._progress()
        self._pauses = list(self._suspensions())
        self._job = behaviour.job()

    def looks(self, every_seconds: float = MINUTE) -> Iterator[float]:
        """Times to look at it: shortly after a minute has been rolled up."""
        now = _BEGIN + STEP_SECONDS
        while now <= self.ends_at:
            if now >= self.started_at:
                yield now
            now += every_seconds

    # --- Columns over samples ----------------------------------------------------------------------

    def _spread(self, values: list[float]) -> Column:
        return np.repeat(np.array(values, dtype=float), self._steps)

    def _column(self, what: str, place: int = 0, jitter: float | None = None) -> Column:
        column = self._spread([_number(getattr(leaf, what), place) for leaf in self._leaves])
        spread = self._spread([leaf.jitter if jitter is None else jitter for leaf in self._leaves])
        return np.maximum(0.0, column * (1 + spread * self._luck.standard_normal(len(column))))

    def _told(self, meter: Meter, column: Column) -> Column:
        """As the meter tells it: nothing where it is unknown, and its last word where it is frozen."""
        column[self._spread([float(meter in leaf.unknown) for leaf in self._leaves]) > 0] = np.nan
        for leaf, end in zip(self._leaves, np.cumsum(self._steps), strict=True):
            if meter in leaf.frozen:
                begin = end - leaf.steps
                is_gauge = meter in ("gpu", "memory") and begin > 0
                column[begin:end] = column[begin - 1] if is_gauge else 0.0  # a counter shows nothing new
        return column

    def _arrivals(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        part = self._spread([0.0 if leaf.lost else leaf.measured for leaf in self._leaves])
        return self._luck.random(len(part)) < part

    # --- Minutes -----------------------------------------------------------------------------------

    def _rolled_up(self) -> Iterator[Rollup]:
        gpus = range(self.behaviour.holds.gpus)
        busy = [self._stats(self._told("gpu", np.minimum(1.0, self._column("gpu", n) / 100))) for n in gpus]
        taken = [self._stats(column) for column in self._gpu_memory]
        cpus = self._stats(self._told("cpu", self._column("cpu")))
        memory = self._stats(self._told("memory", GIB + np.cumsum(self._column("grows") / _PER_MINUTE)))
        read, written = self._totals("read"), self._totals("written")
        held = self._by_minute(np.ones(len(self._arrives)))
        arrived = self._by_minute(self._arrives.astype(float))
        for n in range(len(held)):
            if np.nansum(arrived[n]):
                yield Rollup(
                    job=self.behaviour.name,
                    attempt=1,
                    start=_BEGIN + MINUTE * n,
                    held_seconds=float(STEP_SECONDS * np.nansum(held[n])),
                    measured_seconds=float(STEP_SECONDS * np.nansum(arrived[n])),
                    cpus=cpus[n],
                    memory_bytes=memory[n],
                    read_bytes=read[n],
                    written_bytes=written[n],
                    gpu_busy=tuple(stats[n] for stats in busy),
                    gpu_memory_bytes=tuple(stats[n] for stats in taken),
                )

    def _by_minute(self, column: Column) -> Column:
        """A row for each minute by the wall; nan before the start and after the end."""
        tail = -(self._offset + len(column)) % _PER_MINUTE
        return np.pad(column, (self._offset, tail), constant_values=np.nan).reshape(-1, _PER_MINUTE)

    def _stats(self, column: Column) -> list[Stat | None]:
        rows = self._by_minute(np.where(self._arrives, column, np.nan))
        known = ~np.isnan(rows)
        counts = known.sum(axis=1)
        least = np.where(known, rows, np.inf).min(axis=1)
        most = np.where(known, rows, -np.inf).max(axis=1)
        mean = np.where(known, rows, 0.0).sum(axis=1) / np.maximum(1, counts)
        figures = zip(counts.tolist(), least.tolist(), mean.tolist(), most.tolist(), strict=True)
        return [Stat(*amounts) if count else None for count, *amounts in figures]

    def _totals(self, what: str) -> list[int | None]:
        stats = self._stats(self._told("io", self._column(what) / _PER_MINUTE))
        return [None if stat is None else int(stat.mean * _PER_MINUTE) for stat in stats]

    # --- Signs, and standing still -----------------------------------------------------------------

    def _progress(self) -> list[list[Sign]]:
        """Of each kind, how it stood after every time that it was seen, beginning with never."""
        return [self._seen(kind) for kind in self.behaviour.watched]

    def _seen(self, kind: Progress) -> list[Sign]:
        states, begin = [Sign(kind, self.started_at)], self.started_at
        for leaf in self._leaves:
            lasts = leaf.steps * STEP_SECONDS
            every = getattr(leaf, kind)
            if every is not None:
                interval = parse_seconds(every)
                for n in range(1, int(lasts / interval) + 1):
                    states.append(states[-1].again(begin + n * interval))
            begin += lasts
        return states

    def _suspensions(self) -> Iterator[tuple[float, float]]:
        begin = self.started_at
        for leaf in self._leaves:
            end = begin + leaf.steps * STEP_SECONDS
            if leaf.suspended:
                yield begin, end
            begin = end

    # --- What the steward sees ---------------------------------------------------------------------

    def watched_at(self, now: float, back_seconds: float) -> Watched:
        """The attempt at this time, with its minutes as far back as said."""
        holds = self.behaviour.holds
        until = bisect_right(self._minute_ends, now)
        since = bisect_right(self._minute_ends, now - back_seconds)
        granted = None if holds.gpu_memory is None else parse_bytes(holds.gpu_memory)
        return Watched(
            job=self._job,
            attempt=1,
            started_at=self.started_at,
            resumed_at=max((end for _, end in self._pauses if end <= now), default=None),
            is_suspended=any(begin <= now < end for begin, end in self._pauses),
            held=Resources(round(holds.cpus * MILLI), parse_bytes(holds.memory), holds.gpus * MILLI),
            devices=tuple(range(holds.gpus)),
            gpu_granted_bytes=(granted,) * holds.gpus,
            gpu_metric=METRIC,
            minutes=self.minutes[since:until],
            newest=self._newest(now),
            signs=tuple(_as_of(states, now) for states in self._signs),
        )

    def _newest(self, now: float) -> Sample | None:
        step = min(int((now - self.started_at) // STEP_SECONDS), len(self._arrives)) - 1
        if step < 0 or not self._arrives[step]:
            return None
        return Sample(
            job=self.behaviour.name,
            attempt=1,
            at=self.started_at + STEP_SECONDS * (step + 1),
            seconds=float(STEP_SECONDS),
            gpu_memory_bytes=tuple(int(column[step]) for column in self._gpu_memory),
        )


def _number(value: float | str | tuple[float, ...] | tuple[str, ...], place: int) -> float:
    one = value[place] if isinstance(value, tuple) else value
    return float(parse_bytes(one)) if isinstance(one, str) else float(one)


def _as_of(states: list[Sign], now: float) -> Sign:
    return states[bisect_right(states, now, lo=1, key=lambda sign: sign.last_at or 0.0) - 1]
