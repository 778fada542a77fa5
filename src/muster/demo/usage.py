"""What the work of the simulated week used, as it would have been metered: an hour of each attempt at a time,
and of what runs now the last minutes.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from muster.demo.habits import Habit, busy_of, luck
from muster.demo.past import Past
from muster.demo.work import Kind
from muster.model.ledger import (
    HOUR_SECONDS,
    MINUTE_SECONDS,
    TICKS,
    Booked,
    Entry,
    span_of,
    spent_in,
    with_minute,
)
from muster.model.units import GIB, HOUR, MILLI
from muster.model.usage import Rollup, Stat
from muster.store.rows import UsageRows

_GPU_BYTES = 48 * GIB
_LOOKS = (0.25, 0.75)  # of an hour, at which it is looked what a device does
_MINUTES_SECONDS = HOUR / 2  # for which what runs has its minutes, too
_MOST_MINUTES = 5000  # of a large site, for some of what runs


def usage_of(past: Past, now: float) -> UsageRows:
    entries: list[Entry] = []
    hours: list[Booked] = []
    minutes: list[Booked] = []
    for key in past.keys:
        entry = past.ledger.entry(*key)
        assert entry is not None
        kind = past.kind_of(entry.job)
        if not kind.habit.is_silent and entry.started_at is not None:
            for hour in _booked(entry, kind, now, HOUR_SECONDS, entry.placed_at):
                hours.append(hour)
                entry = with_minute(entry, hour)
        if entry.ended_at is None:
            entry = replace(entry, counted_until=now)
            if not kind.habit.is_silent and len(minutes) < _MOST_MINUTES:
                minutes += _booked(entry, kind, now, MINUTE_SECONDS, now - _MINUTES_SECONDS)
        entries.append(entry)
    return UsageRows(entries=entries, hours=hours, minutes=minutes)


def minutes_of(entry: Entry, kind: Kind, now: float, since: float) -> tuple[Rollup, ...]:
    """Those of one attempt that are over."""
    booked = _booked(entry, kind, now // MINUTE_SECONDS * MINUTE_SECONDS, MINUTE_SECONDS, since)
    return tuple(minute.rollup for minute in booked)


def _booked(entry: Entry, kind: Kind, now: float, step: int, since: float) -> Iterator[Booked]:
    last = now if entry.ended_at is None else entry.ended_at
    start = int(max(since, entry.placed_at) // step) * step
    while start < last:
        first, until = span_of(entry, start, min(start + step, last))
        if until > first:
            rollup = _rollup(entry, kind.habit, start, step, (until - first) / TICKS)
            yield Booked(rollup, spent_in(rollup, entry))
        start += step


def _rollup(entry: Entry, habit: Habit, start: int, step: int, seconds: float) -> Rollup:
    looks = _LOOKS if step == HOUR_SECONDS else (0.5,)
    count, holds = len(entry.devices), entry.holds
    seen = [busy_of(habit, entry.job, count, start + part * step) for part in looks]
    gpu_bytes = habit.gpu_memory * _GPU_BYTES
    return Rollup(
        job=entry.job,
        attempt=entry.attempt,
        start=float(start),
        held_seconds=seconds,
        measured_seconds=seconds,
        cpus=_about(
            habit.cpus * holds.cpus_milli / MILLI * (0.97 + 0.06 * luck(f"{entry.job}%{start}")), seconds
        ),
        memory_bytes=_about(habit.memory * holds.memory_bytes, seconds, 0.06 if habit.busy else 0.0),
        memory_peak_bytes=round(habit.memory * holds.memory_bytes * 1.06),
        read_bytes=round(habit.disk_bytes * seconds),
        written_bytes=round(habit.disk_bytes * seconds / 20),
        gpu_busy=tuple(_stat(values, seconds) for values in zip(*seen, strict=True)),
        gpu_memory_bytes=tuple(_about(gpu_bytes * d.milli / MILLI, seconds) for d in entry.devices),
    )


def _about(mean: float, seconds: float, spread: float = 0.06) -> Stat:
    return Stat(mean * (1 - spread), mean, mean * (1 + spread), seconds)


def _stat(values: tuple[float, ...], seconds: float) -> Stat:
    return Stat(min(values), sum(values) / len(values), max(values), seconds)
