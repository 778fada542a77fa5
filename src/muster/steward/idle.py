"""Idle: held, and not used.

A minute is *used* if any meter that the rules name shows use in it, or does not know, or was silent: what
is not known counts as use, so a broken meter can exempt a job but never condemn one. Use ends when it gets
rare: with the last used minute that has so many others in the window before it that it is no blip. What
came after is a *stretch* of idleness, and a finding once it is as long as the window. So a pause between
epochs is too short to matter, a blip soon after work may be work, and blips later on, or an hour apart, do
not start the clock anew. But nothing is called idle in the very minute of one.

The more minutes are used, the later use ended: no figure that goes missing makes anybody look more idle.

The same is asked of each device alone. One GPU of four that nobody uses is a finding about that GPU.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from muster.model.units import MILLI, MINUTE
from muster.model.usage import Rollup, Stat
from muster.steward.findings import CpuUnused, Evidence, Finding, GpuUnused, IoUnused, Steady
from muster.steward.rules import Rules
from muster.steward.watch import Watched

_LEAST_MEASURED = 0.5  # of a minute, for its figures to speak for it


def find_idle(watched: Watched, rules: Rules, now: float) -> tuple[Finding, ...]:
    """The attempt, if all of it is idle; else the devices that are."""
    if watched.is_suspended or not (watched.devices or watched.held.cpus_milli):
        return ()
    if not watched.minutes or now - _end(watched.minutes[-1]) > rules.silent_seconds:
        return ()
    whole = _whole(watched, rules)
    if whole is not None:
        return (whole,)
    found = (_device(watched, rules, place) for place in range(len(watched.devices)))
    return tuple(finding for finding in found if finding is not None)


def idle_window_seconds(watched: Watched, rules: Rules) -> float:
    return rules.idle_seconds if watched.devices else rules.idle_cpu_seconds


# --- All of it, or a device -----------------------------------------------------------------------------


def _whole(watched: Watched, rules: Rules) -> Finding | None:
    meters = list(_meters(watched, rules))
    stretch = _stretch(watched, rules, meters, not_before=_last_progress(watched))
    if stretch is None or _is_frozen(watched, stretch):
        return None
    return _finding(watched, stretch, meters, watched.devices, whole=True)


def _device(watched: Watched, rules: Rules, place: int) -> Finding | None:
    meters = [_gpu_meter(watched, rules, place)]
    stretch = _stretch(watched, rules, meters)
    if stretch is None or _is_frozen(watched, stretch):
        return None
    return _finding(watched, stretch, meters, (watched.devices[place],), whole=False)


def _finding(
    watched: Watched,
    stretch: tuple[Rollup, ...],
    meters: list["_Meter"],
    devices: tuple[int, ...],
    *,
    whole: bool,
) -> Finding:
    return Finding(
        kind="idle",
        job=watched.job.id,
        attempt=watched.attempt,
        since=stretch[0].start,
        seconds=_end(stretch[-1]) - stretch[0].start,
        evidence=tuple(meter.evidence(stretch) for meter in meters),
        held=watched.held,
        devices=devices,
        whole=whole,
    )


def _last_progress(watched: Watched) -> float:
    """What makes progress is not idle, whatever the meters say.

    A log counts if the charter says so. Else it does without GPUs, where work may be nothing but waiting for
    answers from elsewhere; with GPUs it does not: a service that nobody asks anything logs that, too.
    """
    kinds = watched.job.charter.progress or ("report", "checkpoint", *(() if watched.devices else ("log",)))
    return max((s.last_at for s in watched.signs if s.kind in kinds and s.last_at is not None), default=0.0)


def _is_frozen(watched: Watched, stretch: tuple[Rollup, ...]) -> bool:
    """Whether the meters stand still: a sign was given meanwhile, and nobody writes without a cpu."""
    if any(minute.cpus is not None and minute.cpus.most > 0 for minute in stretch):
        return False
    since = stretch[0].start
    return any(sign.last_at is not None and sign.last_at > since for sign in watched.signs)


# --- The stretch ------------------------------------------------------------------------------------------


def _stretch(
    watched: Watched, rules: Rules, meters: list["_Meter"], not_before: float = 0.0
) -> tuple[Rollup, ...] | None:
    """The minutes since use ended; None unless they fill the window, were measured, and the last is quiet."""
    minutes, window = watched.minutes, idle_window_seconds(watched, rules)
    if _is_used(minutes[-1], meters):
        return None
    allowed = int(rules.blips * window / MINUTE + 1e-9)
    begin = max(watched.began_at + rules.settle_seconds, not_before)
    stretch = minutes[len(minutes) - _quiet(minutes, meters, begin, window, allowed) :]
    if not stretch or _end(stretch[-1]) - stretch[0].start < window:
        return None
    return stretch if _covered(stretch, window) >= rules.covered else None


def _quiet(
    minutes: tuple[Rollup, ...], meters: list["_Meter"], begin: float, window: float, allowed: int
) -> int:
    """How many of the last minutes came after the end of use."""
    used: deque[tuple[float, int]] = deque(maxlen=allowed + 1)  # when, and how many minutes came after
    later = minutes[-1].start + MINUTE
    for count, minute in enumerate(reversed(minutes)):
        if minute.start < begin:
            return count
        missing = round((later - minute.start) / MINUTE) - 1  # of which nothing is known, so they are used
        for n in range(missing, -1 if _is_used(minute, meters) else 0, -1):
            used.append((minute.start + MINUTE * n, count))
            if len(used) > allowed and used[0][0] - used[-1][0] < window:
                return used[0][1]
        later = minute.start
    return len(minutes)


def _is_used(minute: Rollup, meters: list["_Meter"]) -> bool:
    if not minute.measured_seconds > _LEAST_MEASURED * minute.held_seconds:
        return True
    return any(_is_use(meter.value(minute), meter.threshold) for meter in meters)


def _is_use(value: float | None, threshold: float) -> bool:
    """Unknown is, and so is what can't be."""
    return value is None or not 0 <= value < threshold


def _covered(stretch: tuple[Rollup, ...], window: float) -> float:
    """The part of the last window that was measured."""
    begin = _end(stretch[-1]) - window
    return sum(min(m.measured_seconds, MINUTE) for m in stretch if m.start >= begin) / window


def _end(minute: Rollup) -> float:
    return minute.start + MINUTE


# --- Meters -----------------------------------------------------------------------------------------------


class _Meter(NamedTuple):
    """How much a minute shows, what is use, and how to say that it was less."""

    value: Callable[[Rollup], float | None]
    threshold: float
    says: Callable[[int, int, float], Evidence]  # of how many minutes, with use, and the most without

    def evidence(self, stretch: tuple[Rollup, ...]) -> Evidence:
        values = [self.value(minute) for minute in stretch]
        quiet = [v for v in values if v is not None and not _is_use(v, self.threshold)]
        return self.says(len(values), len(values) - len(quiet), max(quiet, default=0.0))


def _meters(watched: Watched, rules: Rules) -> Iterator[_Meter]:
    places = range(len(watched.devices))
    yield from (_gpu_meter(watched, rules, place) for place in places)
    yield _cpu_meter(watched, rules)
    if "io" in rules.also:
        yield _io_meter(rules)
    if "memory" in rules.also:
        yield _steady_meter("memory", lambda minute: minute.memory_bytes, rules.memory_bytes)
    if "gpu-memory" in rules.also:
        yield from (_gpu_memory_meter(watched, rules, place) for place in places)


def _gpu_meter(watched: Watched, rules: Rules, place: int) -> _Meter:
    device, of, metric = watched.devices[place], len(watched.devices), watched.gpu_metric

    def says(minutes: int, with_use: int, most: float) -> Evidence:
        return GpuUnused(minutes, with_use, device, of, metric, most, rules.gpu_busy)

    return _Meter(lambda minute: _mean(_at(minute.gpu_busy, place)), rules.gpu_busy, says)


def _cpu_meter(watched: Watched, rules: Rules) -> _Meter:
    """Use is not a part of what is held: one thread at work on 64 cpus holds too much, and is not idle."""
    held = watched.held.cpus_milli
    threshold = rules.cpus * min(MILLI, held or MILLI) / MILLI
    return _Meter(
        lambda minute: _mean(minute.cpus),
        threshold,
        lambda minutes, with_use, most: CpuUnused(minutes, with_use, most, held, threshold),
    )


def _io_meter(rules: Rules) -> _Meter:
    return _Meter(
        _io_bytes,
        rules.io_bytes,
        lambda minutes, with_use, most: IoUnused(minutes, with_use, int(most), rules.io_bytes),
    )


def _gpu_memory_meter(watched: Watched, rules: Rules, place: int) -> _Meter:
    what = f"memory of GPU {watched.devices[place]}"
    return _steady_meter(what, lambda minute: _at(minute.gpu_memory_bytes, place), rules.memory_bytes)


def _steady_meter(what: str, stat: Callable[[Rollup], Stat | None], threshold: int) -> _Meter:
    return _Meter(
        lambda minute: _change(stat(minute)),
        threshold,
        lambda minutes, with_use, most: Steady(minutes, with_use, what, int(most), threshold),
    )


def _mean(stat: Stat | None) -> float | None:
    return None if stat is None else stat.mean


def _change(stat: Stat | None) -> float | None:
    return None if stat is None else stat.most - stat.least


def _at(stats: tuple[Stat | None, ...], place: int) -> Stat | None:
    return stats[place] if place < len(stats) else None


def _io_bytes(minute: Rollup) -> float | None:
    if minute.read_bytes is None or minute.written_bytes is None:
        return None
    if minute.read_bytes < 0 or minute.written_bytes < 0:
        return None
    return minute.read_bytes + minute.written_bytes
