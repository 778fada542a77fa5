"""Series: samples become minutes, and the last hours of minutes are kept at hand.

*Held* is not counted but known: an attempt holds its seats from when it was placed until it left, suspended
or not, and what of a minute lies between these two is held. So no minute is ever held for more than 60
seconds, and what was measured of it is never more than what was held.

*Clocks that jump.* Time that has been counted is not counted again; that is all, and what follows from it is:

- While samples follow each other, a wall that goes back is not followed: a sample begins where the one before
  ended. So does the engine's clock, by which facts are dated.
- A wall that jumps ahead leaves a gap, which was held, as far as the journal can tell, and not measured. When
  it comes back, we stay ahead, as the engine's clock does; meters do best to date their readings by it.
- A minute that was handed out is over. What comes for it later is lost, and lowers the coverage. So it is
  after a start with a clock that was set back, until the clock is where it was.

A minute is handed out when samples have passed its end, or nothing has come for a while; each once, also one
in which nothing was measured, so that a meter that has gone silent can be told from one that shows nothing.
"""

from array import array
from collections.abc import Iterator

from muster.model.job import JobId
from muster.model.ledger import MINUTE_SECONDS, TICKS, Key, ticks
from muster.model.rollups import FIGURES, FLOATS, packed, unpacked, width_of
from muster.model.units import HOUR
from muster.model.usage import Rollup, Sample, Stat

WINDOW_SECONDS = 3 * HOUR
_MINUTE = MINUTE_SECONDS * TICKS
_LATE = 60 * TICKS  # after which a minute is closed without its last samples
_LEFT_LATE = 10 * TICKS  # the same for one who has left: there may be many
_SNAP = TICKS // 8  # two clocks are not read at the same instant: so near is the same
_BACK_SECONDS = 1.0  # a wall that is so far behind was set back
_MOVED = ("read_bytes", "written_bytes", "refaulted_bytes")
_GAUGES = frozenset({"memory_bytes", "processes"})


class Series:
    """The minutes of all attempts that hold seats."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window = int(window_seconds // MINUTE_SECONDS)
        self._attempts: dict[Key, _Attempt] = {}

    def hold(
        self, job: JobId, attempt: int, since: float, devices: int = 0, counted_until: float | None = None
    ) -> None:
        """An attempt has its seats. ``counted_until``: what came before has been counted by another."""
        placed = ticks(since)
        counted = placed if counted_until is None else max(placed, ticks(counted_until))
        self._attempts.setdefault((job, attempt), _Attempt(job, attempt, placed, counted, devices))

    def leave(self, job: JobId, attempt: int, at: float) -> None:
        """It has left them. It is forgotten once its last minute has been handed out."""
        found = self._attempts.get((job, attempt))
        if found is not None:
            found.left = max(found.placed, ticks(at))

    def forget(self, job: JobId, attempt: int) -> None:
        """As if it had never had its seats."""
        self._attempts.pop((job, attempt), None)

    def knows(self, job: JobId, attempt: int) -> bool:
        return (job, attempt) in self._attempts

    def add(self, sample: Sample) -> None:
        """Take a sample in. One of an attempt that holds nothing is of no interest."""
        found = self._attempts.get((sample.job, sample.attempt))
        if found is not None:
            found.add(sample, self._window * _MINUTE)

    def closed(self, now: float) -> list[Rollup]:
        """The minutes that are over, each once, in order for each attempt."""
        found: list[Rollup] = []
        for key, attempt in list(self._attempts.items()):
            found += attempt.close(ticks(now), self._window)
            if attempt.is_over:
                del self._attempts[key]
        return found

    def under_way(self, now: float) -> list[Rollup]:
        """What there is of the minutes that are not over yet."""
        return [minute for attempt in self._attempts.values() for minute in attempt.under_way(ticks(now))]

    def so_far(self, job: JobId, attempt: int, now: float) -> tuple[Rollup, ...]:
        """All that is at hand of an attempt, with the minute that is under way."""
        found = self._attempts.get((job, attempt))
        return () if found is None else (*found.past.since(0.0), *found.under_way(ticks(now)))

    def not_booked(self, job: JobId, attempt: int, now: float) -> tuple[Rollup, ...]:
        """What of an attempt was not handed out yet."""
        found = self._attempts.get((job, attempt))
        return () if found is None else tuple(found.under_way(ticks(now)))

    def minutes(self, job: JobId, attempt: int, since: float) -> tuple[Rollup, ...]:
        """Those that are over and begin at ``since`` or later, as far back as they are kept."""
        found = self._attempts.get((job, attempt))
        return () if found is None else tuple(found.past.since(since))


class _Attempt:
    """The minutes of one attempt. All times in ticks."""

    __slots__ = ("attempt", "counted", "devices", "job", "left", "next", "open", "past", "placed", "reached")

    def __init__(self, job: JobId, attempt: int, placed: int, counted: int, devices: int) -> None:
        self.job, self.attempt, self.devices = job, attempt, devices
        self.placed, self.counted = placed, counted
        self.left: int | None = None
        self.reached: float | None = None  # where the last sample ended, in seconds
        self.next = counted // _MINUTE  # the first minute that is not over
        self.open: dict[int, _Minute] = {}
        self.past = _Past(job, attempt, devices)

    @property
    def is_over(self) -> bool:
        return self.left is not None and self.next * _MINUTE >= self.left

    def add(self, sample: Sample, most: int) -> None:
        end = self.reached = self._end_of(sample)
        first, last = ticks(end - sample.seconds), ticks(end)
        if abs(first - self.counted) <= _SNAP:
            first = self.counted
        begin = max(first, self.counted, last - most)
        stop = last if self.left is None else min(last, self.left)
        if begin >= stop:
            return
        self.counted = stop
        gauged = first if sample.gauge_seconds is None else ticks(end - sample.gauge_seconds)
        for minute in range(begin // _MINUTE, (stop - 1) // _MINUTE + 1):
            into = self.open.get(minute)
            if into is None:
                into = self.open[minute] = _Minute(self.devices)
            a, b = max(begin, minute * _MINUTE), min(stop, (minute + 1) * _MINUTE)
            into.add(sample, b - a, max(0, b - max(a, gauged)), (b - a) / (last - first))

    def _end_of(self, sample: Sample) -> float:
        """By the wall; unless that was set back while we looked."""
        follows = sample.at if self.reached is None else self.reached + sample.seconds
        return follows if sample.at < follows - _BACK_SECONDS else sample.at

    def close(self, now: int, window: int) -> Iterator[Rollup]:
        """Hand out what is over. Of a gap that is longer than the window only its end."""
        until = self._over_until(now)
        if until <= self.next:
            return
        empty = range(max(self.next, until - window), until)
        for minute in sorted({*empty, *(m for m in self.open if m < until)}):
            rollup = self._rollup(minute, self.left)
            if rollup is not None:
                self.past.keep(rollup, window)
                yield rollup
            self.open.pop(minute, None)
        self.next = until
        self.counted = max(self.counted, until * _MINUTE)

    def _over_until(self, now: int) -> int:
        """The first minute that is not over."""
        if self.left is not None and max(self.counted, now - _LEFT_LATE) >= self.left:
            return -(-self.left // _MINUTE)
        return max(self.counted, now - _LATE) // _MINUTE

    def under_way(self, now: int) -> Iterator[Rollup]:
        for minute in sorted(self.open):
            rollup = self._rollup(minute, now if self.left is None else min(now, self.left))
            if rollup is not None:
                yield rollup

    def _rollup(self, minute: int, until: int | None) -> Rollup | None:
        first, last = max(self.placed, minute * _MINUTE), (minute + 1) * _MINUTE
        held = (last if until is None else min(last, until)) - first
        if held <= 0:
            return None
        found = self.open.get(minute) or _Minute(self.devices)
        return found.rollup(self.job, self.attempt, float(minute * MINUTE_SECONDS), held)


class _Past:
    """Minutes that are over, packed, the oldest first."""

    __slots__ = ("_key", "_rows", "_starts", "_width")

    def __init__(self, job: JobId, attempt: int, devices: int) -> None:
        self._key = (job, attempt)
        self._width = width_of(devices)
        self._starts = array("q")
        self._rows: array[float] = array(FLOATS)

    def keep(self, rollup: Rollup, most: int) -> None:
        self._starts.append(int(rollup.start))
        self._rows += packed(rollup)
        if len(self._starts) > most:
            del self._starts[0], self._rows[: self._width]

    def since(self, since: float) -> Iterator[Rollup]:
        for i, start in enumerate(self._starts):
            if start >= since:
                row = self._rows[i * self._width : (i + 1) * self._width]
                yield unpacked(*self._key, float(start), row)


class _Minute:
    """A minute that is being filled."""

    __slots__ = ("figures", "gpu_busy", "gpu_memory", "measured", "moved", "peak")

    def __init__(self, devices: int) -> None:
        self.measured = 0
        self.figures = [_Sum() for _ in FIGURES]
        self.gpu_busy = [_Sum() for _ in range(devices)]
        self.gpu_memory = [_Sum() for _ in range(devices)]
        self.peak: int | None = None
        self.moved: dict[str, float] = {}

    def add(self, sample: Sample, counted: int, gauged: int, share: float) -> None:
        """``counted`` ticks of it, in ``gauged`` of which gauges stand; a share of what was moved."""
        self.measured += counted
        for name, figure in zip(FIGURES, self.figures, strict=True):
            figure.add(getattr(sample, name), gauged if name in _GAUGES else counted)
        if len(sample.gpu_busy) == len(self.gpu_busy):  # else nobody knows which is which
            for busy, value in zip(self.gpu_busy, sample.gpu_busy, strict=True):
                busy.add(value, gauged)
        if len(sample.gpu_memory_bytes) == len(self.gpu_memory):
            for memory, value in zip(self.gpu_memory, sample.gpu_memory_bytes, strict=True):
                memory.add(value, gauged)
        if sample.memory_peak_bytes is not None:
            self.peak = max(self.peak or 0, sample.memory_peak_bytes)
        for name in _MOVED:
            if (moved := getattr(sample, name)) is not None:
                self.moved[name] = self.moved.get(name, 0.0) + share * moved

    def _in_all(self, name: str) -> int | None:
        return round(self.moved[name]) if name in self.moved else None

    def rollup(self, job: JobId, attempt: int, start: float, held: int) -> Rollup:
        """What it came to. It may have been left earlier than was known when it was measured."""
        stats = {name: figure.stat(held) for name, figure in zip(FIGURES, self.figures, strict=True)}
        return Rollup(
            job=job,
            attempt=attempt,
            start=start,
            held_seconds=held / TICKS,
            measured_seconds=min(self.measured, held) / TICKS,
            memory_peak_bytes=self.peak,
            read_bytes=self._in_all("read_bytes"),
            written_bytes=self._in_all("written_bytes"),
            refaulted_bytes=self._in_all("refaulted_bytes"),
            gpu_busy=tuple(figure.stat(held) for figure in self.gpu_busy),
            gpu_memory_bytes=tuple(figure.stat(held) for figure in self.gpu_memory),
            **stats,
        )


class _Sum:
    """One figure over a minute, weighted by time."""

    __slots__ = ("least", "most", "ticks", "total")

    def __init__(self) -> None:
        self.least = self.most = self.total = 0.0
        self.ticks = 0

    def add(self, value: float | None, length: int) -> None:
        if value is None or length <= 0:
            return
        self.least = value if not self.ticks else min(self.least, value)
        self.most = value if not self.ticks else max(self.most, value)
        self.total += value * length
        self.ticks += length

    def stat(self, held: int) -> Stat | None:
        if not self.ticks:
            return None
        mean = min(max(self.total / self.ticks, self.least), self.most)
        return Stat(self.least, mean, self.most, min(self.ticks, held) / TICKS)
