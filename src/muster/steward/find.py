"""What is to be found of an attempt that runs: idle, stuck, or too large on a GPU that it shares.

A function of values: the same look at the same minutes finds the same, here, in a replay and in a test.
"""

from collections.abc import Iterator

from muster.model.usage import Rollup, Sample
from muster.steward.findings import Finding, GpuMemoryOver
from muster.steward.idle import find_idle
from muster.steward.rules import Rules
from muster.steward.stuck import find_stuck
from muster.steward.watch import Watched


def find(watched: Watched, rules: Rules, now: float) -> tuple[Finding, ...]:
    """All that is found, most urgent first."""
    stuck = find_stuck(watched, rules, now)
    idle = find_idle(watched, rules, now)
    return (*find_gpu_memory(watched, rules, now), *idle, *(() if stuck is None else (stuck,)))


def find_gpu_memory(watched: Watched, rules: Rules, now: float) -> Iterator[Finding]:
    """Devices of which the attempt takes more than it was granted. A whole one can't be exceeded."""
    newest = watched.newest
    if newest is None or now - newest.at > rules.silent_seconds:
        return
    for place, device in enumerate(watched.devices):
        granted = watched.granted_bytes(place)
        taken = _at(newest.gpu_memory_bytes, place)
        if granted is None or taken is None:
            continue
        limit = granted + max(int(rules.gpu_memory_over * granted), rules.gpu_memory_over_bytes)
        if taken > limit:
            since = _over_since(watched.minutes, newest, place, limit)
            yield Finding(
                kind="gpu-memory",
                job=watched.job.id,
                attempt=watched.attempt,
                since=since,
                seconds=now - since,
                evidence=(GpuMemoryOver(device, taken, granted, limit),),
                held=watched.held,
                devices=(device,),
            )


def _at(amounts: tuple[int | None, ...], place: int) -> int | None:
    return amounts[place] if place < len(amounts) else None


def _over_since(minutes: tuple[Rollup, ...], newest: Sample, place: int, limit: int) -> float:
    """The begin of the minutes up to now in which it took too much."""
    since = newest.at
    for minute in reversed(minutes):
        taken = minute.gpu_memory_bytes[place] if place < len(minute.gpu_memory_bytes) else None
        if taken is None or taken.most <= limit:
            break
        since = min(since, minute.start)
    return since
