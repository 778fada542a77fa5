"""From two readings to what was used between them.

How long it was is told by the clock that nobody sets. A counter grows, and what it has grown by is used; a
gauge shows a moment. Memory is taken as the mean of both ends, which is exact while it grows or shrinks
evenly; how busy a GPU is, what it holds and how many processes there are, as they are at the end.

Meters lie: they show less than before, less than nothing, nothing that is a number, the largest number there
is, or more than the machine could do. Then that figure is lost, and no other.

When readings were missed, the interval is longer than it should be. Counters speak for all of it. A gauge
stands for as long as two and a half periods and no more: then, for one period at the end. The rest of the
interval is not measured in these figures.
"""

import math
from collections.abc import Sequence

from muster.model.usage import GpuShown, Reading, Sample

PERIOD_SECONDS = 5.0
_LONGEST_PERIODS = 2.5
_SLACK, _SLACK_SECONDS = 1.1, 0.1  # the kernel books time late, and in lumps
# More than any machine has, or does.
_MOST_CPUS = float(1 << 16)
_MOST_BYTES = 1 << 60
_MOST_BYTES_A_SECOND = 1 << 40
_MOST_PROCESSES = 1 << 22


def sample_between(
    before: Reading,
    after: Reading,
    *,
    cpus: float = _MOST_CPUS,
    devices: Sequence[int] | None = None,
    period_seconds: float = PERIOD_SECONDS,
) -> Sample | None:
    """What was used between two readings of one attempt; None if they tell nothing.

    Readings of different meters are not compared: the later one is what the next is compared with.
    ``cpus``: how many the machine has. ``devices``: the numbers of those that the attempt holds, in order, so
    that one which the meter no longer shows is not known, and does not shift the others. On several nodes a
    number comes again; then the meter has to show all of that number, in the same order.
    """
    seconds = after.since_boot_seconds - before.since_boot_seconds
    same = (before.job, before.attempt) == (after.job, after.attempt) and _same_meters(before, after)
    if not same or not math.isfinite(after.at) or not (math.isfinite(seconds) and seconds > 0):
        return None
    gpus = _in_order(after.gpus, devices)
    missed = seconds > _LONGEST_PERIODS * period_seconds
    sample = Sample(
        job=after.job,
        attempt=after.attempt,
        at=after.at,
        seconds=seconds,
        cpus=_rate(before.cpu_seconds, after.cpu_seconds, seconds, cpus),
        # Of a group on many cpus each may be held back: more than all of the time is all of it.
        throttled=_part(before.throttled_seconds, after.throttled_seconds, seconds, cpus),
        memory_bytes=_mean(None if missed else _gauge(before.memory_bytes), _gauge(after.memory_bytes)),
        memory_peak_bytes=_gauge(after.memory_peak_bytes),
        processes=_gauge(after.processes, _MOST_PROCESSES),
        read_bytes=_grown(before.read_bytes, after.read_bytes, seconds),
        written_bytes=_grown(before.written_bytes, after.written_bytes, seconds),
        refaulted_bytes=_grown(before.refaulted_bytes, after.refaulted_bytes, seconds),
        cpu_pressure=_part(before.cpu_stalled_seconds, after.cpu_stalled_seconds, seconds),
        memory_pressure=_part(before.memory_stalled_seconds, after.memory_stalled_seconds, seconds),
        io_pressure=_part(before.io_stalled_seconds, after.io_stalled_seconds, seconds),
        gpu_busy=tuple(map(_busy, gpus)),
        gpu_memory_bytes=tuple(None if gpu is None else _gauge(gpu.memory_bytes) for gpu in gpus),
        gauge_seconds=period_seconds if missed else None,
    )
    return sample if _tells_anything(sample) else None


def _same_meters(before: Reading, after: Reading) -> bool:
    """At the start there is nothing used, whoever measures."""
    return before.by is None or after.by is None or before.by == after.by


def _in_order(shown: Sequence[GpuShown], devices: Sequence[int] | None) -> list[GpuShown | None]:
    """Of each device what is shown of it; None: nothing, or nobody knows of which."""
    if devices is None or len(set(devices)) == len(devices):
        by_number = {gpu.device: gpu for gpu in shown}
        return [by_number.get(number) for number in (sorted(by_number) if devices is None else devices)]
    left: dict[int, list[GpuShown]] = {}
    for gpu in reversed(shown):
        left.setdefault(gpu.device, []).append(gpu)
    known = {number for number, some in left.items() if len(some) == devices.count(number)}
    return [left[number].pop() if number in known else None for number in devices]


def reading_at_start(job: str, attempt: int, at: float, since_boot_seconds: float) -> Reading:
    """An attempt begins with nothing used: what its first reading is compared with, if we saw it begin."""
    return Reading(
        job=job,
        attempt=attempt,
        at=at,
        since_boot_seconds=since_boot_seconds,
        cpu_seconds=0.0,
        throttled_seconds=0.0,
        read_bytes=0,
        written_bytes=0,
        refaulted_bytes=0,
        cpu_stalled_seconds=0.0,
        memory_stalled_seconds=0.0,
        io_stalled_seconds=0.0,
    )


def _rate(before: float | None, after: float | None, seconds: float, most: float) -> float | None:
    """How much of a second passes in a second, on at most so many cpus."""
    if before is None or after is None:
        return None
    grown = after - before
    possible = most * seconds * _SLACK + _SLACK_SECONDS
    return grown / seconds if before >= 0 and 0 <= grown <= possible else None


def _part(before: float | None, after: float | None, seconds: float, most: float = 1.0) -> float | None:
    rate = _rate(before, after, seconds, most)
    return None if rate is None else min(1.0, rate)


def _grown(before: int | None, after: int | None, seconds: float) -> int | None:
    before, after = _gauge(before), _gauge(after)
    if before is None or after is None:
        return None
    grown = after - before
    return grown if 0 <= grown <= _MOST_BYTES_A_SECOND * seconds else None


def _gauge(shown: int | None, most: int = _MOST_BYTES) -> int | None:
    return shown if shown is not None and 0 <= shown <= most else None


def _mean(before: int | None, after: int | None) -> int | None:
    return after if before is None or after is None else (before + after) // 2


def _busy(gpu: GpuShown | None) -> float | None:
    busy = None if gpu is None else gpu.busy
    return busy if busy is not None and 0 <= busy <= 1 else None


def _tells_anything(sample: Sample) -> bool:
    figures = (
        sample.cpus,
        sample.throttled,
        sample.memory_bytes,
        sample.memory_peak_bytes,
        sample.processes,
        sample.read_bytes,
        sample.written_bytes,
        sample.cpu_pressure,
        sample.memory_pressure,
        sample.io_pressure,
        *sample.gpu_busy,
        *sample.gpu_memory_bytes,
    )
    return any(figure is not None for figure in figures)
