"""Roll-ups: many minutes in little room, and several into one.

Packed, a roll-up is a row of floats of four bytes: seven digits, which is more than any meter has. NaN
stands for what is not known. Seconds are ticks of 1/1024 (see ``ledger``), and those of an hour are still
exact. What has to be exact to the last unit, sums of held and used, is not taken from here.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence

from muster.model.job import JobId
from muster.model.usage import Rollup, Stat

FIGURES = (
    "cpus",
    "throttled",
    "memory_bytes",
    "processes",
    "cpu_pressure",
    "memory_pressure",
    "io_pressure",
)
FLOATS = "f"
_UNKNOWN = (math.nan,) * 4
_PLAIN = 6  # held, measured, peak, read, written, refaulted
_STAT = 4
_BEFORE_DEVICES = _PLAIN + _STAT * len(FIGURES)
_DEVICE = 2 * _STAT  # how busy, and its memory


def width_of(devices: int) -> int:
    """How many floats a packed roll-up has."""
    return _BEFORE_DEVICES + _DEVICE * devices


def packed(rollup: Rollup) -> "array[float]":
    row = array(FLOATS, (rollup.held_seconds, rollup.measured_seconds))
    amounts = (rollup.memory_peak_bytes, rollup.read_bytes, rollup.written_bytes, rollup.refaulted_bytes)
    row.extend(math.nan if amount is None else amount for amount in amounts)
    for name in FIGURES:
        row.extend(_numbers(getattr(rollup, name)))
    for busy, memory in zip(rollup.gpu_busy, rollup.gpu_memory_bytes, strict=True):
        row.extend(_numbers(busy))
        row.extend(_numbers(memory))
    return row


def unpacked(job: JobId, attempt: int, start: float, row: Sequence[float]) -> Rollup:
    stats = list(_stats(row))
    gpus = stats[len(FIGURES) :]
    return Rollup(
        job=job,
        attempt=attempt,
        start=start,
        held_seconds=row[0],
        measured_seconds=row[1],
        memory_peak_bytes=_whole(row[2]),
        read_bytes=_whole(row[3]),
        written_bytes=_whole(row[4]),
        refaulted_bytes=_whole(row[5]),
        gpu_busy=tuple(gpus[::2]),
        gpu_memory_bytes=tuple(gpus[1::2]),
        **dict(zip(FIGURES, stats, strict=False)),
    )


def _numbers(stat: Stat | None) -> tuple[float, ...]:
    return _UNKNOWN if stat is None else (stat.least, stat.mean, stat.most, stat.seconds)


def _stats(row: Sequence[float]) -> Iterator[Stat | None]:
    for i in range(_PLAIN, len(row), _STAT):
        yield None if math.isnan(row[i]) else Stat(row[i], row[i + 1], row[i + 2], row[i + 3])


def _whole(amount: float) -> int | None:
    return None if math.isnan(amount) else int(amount)


# --- Several into one -----------------------------------------------------------------------------------


def rolled(minutes: Sequence[Rollup], start: float, held_seconds: float) -> Rollup:
    """What these of one attempt make together. Means are weighted by the time that was measured.

    How long the attempt was held is said by who knows: of a time in which nobody looked there are no minutes.
    """
    last = minutes[-1]
    devices = max(len(minute.gpu_busy) for minute in minutes)
    peaks = [m.memory_peak_bytes for m in minutes if m.memory_peak_bytes is not None]
    return Rollup(
        job=last.job,
        attempt=last.attempt,
        start=start,
        held_seconds=held_seconds,
        measured_seconds=sum(minute.measured_seconds for minute in minutes),
        memory_peak_bytes=max(peaks, default=None),
        read_bytes=_summed(minute.read_bytes for minute in minutes),
        written_bytes=_summed(minute.written_bytes for minute in minutes),
        refaulted_bytes=_summed(minute.refaulted_bytes for minute in minutes),
        gpu_busy=tuple(_together(_each(m.gpu_busy, g) for m in minutes) for g in range(devices)),
        gpu_memory_bytes=tuple(
            _together(_each(m.gpu_memory_bytes, g) for m in minutes) for g in range(devices)
        ),
        **{name: _together(getattr(minute, name) for minute in minutes) for name in FIGURES},
    )


def _each(stats: tuple[Stat | None, ...], device: int) -> Stat | None:
    return stats[device] if device < len(stats) else None


def _together(stats: Iterable[Stat | None]) -> Stat | None:
    known = [stat for stat in stats if stat is not None]
    seconds = sum(stat.seconds for stat in known)
    if not seconds:
        return None
    least, most = min(stat.least for stat in known), max(stat.most for stat in known)
    mean = sum(stat.mean * stat.seconds for stat in known) / seconds
    return Stat(least, min(max(mean, least), most), most, seconds)


def _summed(amounts: Iterable[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
