"""The ledger's arithmetic: held and used in whole units, so that sums agree at every level.

*Time* is counted in ticks of 1/1024 of a second: a float holds them exactly, so that sums of seconds are
exact as well, in any order.

*Held* follows from two instants, that in which an attempt got its seats and that in which it left them, and
from what the seats are. Of any amount, the time from the first instant to a moment makes so many whole units;
what was held between two moments is the difference. So a day is the sum of its hours, however they are cut,
and a job is the sum of its days. GPUs are reckoned one by one, so that devices add up, too.

*Used* comes in minutes, already in whole units; hours are sums of minutes, and an attempt is the sum of all
of its. Where the edge of an interval cuts a minute (or an hour, when its minutes are no longer kept), it is
taken as spent evenly while the attempt held its seats in it, again as a difference of whole units.
"""

import enum
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Protocol, Self, TypeVar

import msgspec
from msgspec.structs import replace

from muster.model.events import Outcome, Seat
from muster.model.job import JobId
from muster.model.resources import Resources
from muster.model.tenancy import Tenancy
from muster.model.units import MILLI
from muster.model.usage import Rollup, Stat, Usage

TICKS = 1024  # in a second
MINUTE_SECONDS, HOUR_SECONDS = 60, 3600
_PER_OCTAVE = 8  # levels of cpu use: each is nine percent above the one below
_P95 = 0.95

Key = tuple[JobId, int]


class _Sum(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


Amount = TypeVar("Amount", bound=_Sum)
Group = TypeVar("Group", bound=Hashable)
Number = TypeVar("Number", int, float)


def ticks(at: float) -> int:
    """The tick in which a moment lies."""
    return math.floor(at * TICKS)


class By(enum.StrEnum):
    """What usage is summed by."""

    JOB = "job"
    OWNER = "owner"
    TEAM = "team"
    EFFORT = "effort"
    VERDICT = "verdict"  # of the job
    GPU = "gpu"


class DeviceHeld(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A device that an attempt holds, and how much of it."""

    node: str
    device: int
    milli: int

    def __str__(self) -> str:
        return f"{self.node}/{self.device}"


class GpuSpent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of one device: thousandths of it times seconds, measured and used."""

    measured: int = 0
    used: int = 0


class Spent(msgspec.Struct, frozen=True):
    """What was measured of an attempt over some time, in whole units: these add up."""

    seconds: float = 0.0
    cpus_measured: int = 0  # what was held while it was measured, as is the rest of its kind
    cpus_used: int = 0
    memory_measured: int = 0
    memory_used: int = 0
    gpus: tuple[GpuSpent, ...] = ()

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.seconds + other.seconds,
            self.cpus_measured + other.cpus_measured,
            self.cpus_used + other.cpus_used,
            self.memory_measured + other.memory_measured,
            self.memory_used + other.memory_used,
            _added(self.gpus, other.gpus),
        )

    @property
    def measured(self) -> Resources:
        return Resources(self.cpus_measured, self.memory_measured, sum(gpu.measured for gpu in self.gpus))

    @property
    def used(self) -> Resources:
        return Resources(self.cpus_used, self.memory_used, sum(gpu.used for gpu in self.gpus))


class Booked(msgspec.Struct, frozen=True):
    """A minute or an hour of an attempt, and what it adds to the ledger."""

    rollup: Rollup
    spent: Spent

    @property
    def key(self) -> Key:
        return (self.rollup.job, self.rollup.attempt)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in the ledger: what it held, from when to when, and all that was measured of it."""

    job: JobId
    attempt: int
    owner: str
    team: str
    effort: str | None = None
    name: str = ""
    kind: str = ""  # of name
    holds: Resources  # at any moment
    devices: tuple[DeviceHeld, ...] = ()  # in order
    placed_at: float
    started_at: float | None = None
    ended_at: float | None = None
    outcome: Outcome | None = None  # None: it lives, or had to leave before it was done
    suspended_at: float | None = None
    resumed_at: float | None = None  # the last time
    suspended_seconds: float = 0.0  # until then
    spent: Spent = Spent()
    counted_until: float | None = None  # the end of its last minute here: nothing before is counted again
    memory_most_bytes: int | None = None  # at any reading, without what the kernel could take back
    memory_peak_bytes: int | None = None  # as the kernel counts it, with caches
    gpu_memory_most_bytes: int | None = None  # on one device
    cpus_most: float | None = None  # on average over its busiest minute
    cpu_levels: tuple[tuple[int, float], ...] = ()  # for how many seconds it used how much

    @property
    def key(self) -> Key:
        return (self.job, self.attempt)

    @property
    def run_seconds(self) -> float | None:
        """How long it ran until its end, without the time for which it was suspended."""
        if self.ended_at is None or self.started_at is None:
            return None
        suspended = self.suspended_seconds
        if self.suspended_at is not None:
            suspended += self.ended_at - self.suspended_at
        return max(0.0, self.ended_at - self.started_at - suspended)

    @property
    def cpus_mean(self) -> float | None:
        seconds = sum(seconds for _, seconds in self.cpu_levels)
        return self.spent.cpus_used / MILLI / seconds if seconds else None

    @property
    def cpus_p95(self) -> float | None:
        """So many were enough for 95 of a hundred minutes, to within nine percent."""
        if not self.cpu_levels or self.cpus_most is None:
            return None
        left = _P95 * sum(seconds for _, seconds in self.cpu_levels)
        for level, seconds in sorted(self.cpu_levels):
            left -= seconds
            if left <= 0:
                return min(_cpus_at(level), self.cpus_most)
        return self.cpus_most


def devices_of(seats: Iterable[Seat]) -> tuple[DeviceHeld, ...]:
    """All devices of a gang, in order; parts that share one hold it together."""
    milli: dict[tuple[str, int], int] = {}
    for seat in seats:
        for device in seat.devices:
            where = (seat.node, device)
            milli[where] = milli.get(where, 0) + seat.device_milli
    return tuple(DeviceHeld(*where, milli[where]) for where in sorted(milli))


# --- Held -----------------------------------------------------------------------------------------------


def span_of(entry: Entry, since: float, until: float) -> tuple[int, int]:
    """From which tick to which it held its seats in an interval. A clock that was set back makes it empty."""
    first = ticks(max(entry.placed_at, since))
    last = ticks(until if entry.ended_at is None else min(entry.ended_at, until))
    return first, max(first, last)


def held_between(entry: Entry, first: int, last: int) -> Resources:
    """What it held between two ticks in its life."""
    start, holds = ticks(entry.placed_at), entry.holds
    first, last = first - start, last - start
    return Resources(
        grown(holds.cpus_milli, first, last),
        grown(holds.memory_bytes, first, last),
        sum(grown(device.milli, first, last) for device in entry.devices),
        grown(holds.disk_bytes, first, last),
    )


def grown(amount: int, first: int, last: int) -> int:
    return amount * last // TICKS - amount * first // TICKS


# --- Used -----------------------------------------------------------------------------------------------


def spent_in(rollup: Rollup, entry: Entry) -> Spent:
    """What a minute adds to the ledger. More may be used than is held: it is kept as it is."""
    cpus, memory = rollup.cpus, rollup.memory_bytes
    return Spent(
        rollup.measured_seconds,
        _measured(entry.holds.cpus_milli, cpus),
        _amount(cpus, MILLI),
        _measured(entry.holds.memory_bytes, memory),
        _amount(memory, 1),
        tuple(
            GpuSpent(_measured(device.milli, busy), _amount(busy, device.milli))
            for device, busy in zip(entry.devices, rollup.gpu_busy, strict=False)
        ),
    )


def _measured(amount: int, stat: Stat | None) -> int:
    return 0 if stat is None else amount * ticks(stat.seconds) // TICKS


def _amount(stat: Stat | None, unit: int) -> int:
    return 0 if stat is None else round(stat.mean * stat.seconds * unit)


def with_minute(entry: Entry, minute: Booked) -> Entry:
    """The entry with one more minute of it."""
    rollup = minute.rollup
    return replace(
        entry,
        spent=entry.spent + minute.spent,
        counted_until=max(entry.counted_until or 0.0, rollup.start + MINUTE_SECONDS),
        memory_most_bytes=_most(entry.memory_most_bytes, _top(rollup.memory_bytes)),
        memory_peak_bytes=_most(entry.memory_peak_bytes, rollup.memory_peak_bytes),
        gpu_memory_most_bytes=_most(entry.gpu_memory_most_bytes, *map(_top, rollup.gpu_memory_bytes)),
        cpus_most=_most(entry.cpus_most, rollup.cpus.mean if rollup.cpus else None),
        cpu_levels=_with_level(entry.cpu_levels, rollup.cpus),
    )


def _top(stat: Stat | None) -> int | None:
    return None if stat is None else round(stat.most)


def _most(*amounts: Number | None) -> Number | None:
    return max((amount for amount in amounts if amount is not None), default=None)


def _with_level(levels: tuple[tuple[int, float], ...], cpus: Stat | None) -> tuple[tuple[int, float], ...]:
    if cpus is None:
        return levels
    milli = cpus.mean * MILLI
    level = 0 if milli < 1 else 1 + math.ceil(_PER_OCTAVE * math.log2(milli))
    seconds = dict(levels)
    seconds[level] = seconds.get(level, 0.0) + cpus.seconds
    return tuple(sorted(seconds.items()))


def _cpus_at(level: int) -> float:
    return 0.001 if level == 0 else 2 ** ((level - 1) / _PER_OCTAVE) / MILLI


def _added(some: tuple[GpuSpent, ...], more: tuple[GpuSpent, ...]) -> tuple[GpuSpent, ...]:
    if not some or not more:
        return some or more
    pairs = zip(some, more, strict=True)
    return tuple(GpuSpent(a.measured + b.measured, a.used + b.used) for a, b in pairs)


def part_of(spent: Spent, start: float, seconds: int, entry: Entry, since: float, until: float) -> Spent:
    """What of a minute or an hour, in which so much was spent, falls into an interval."""
    begin, end = span_of(entry, start, start + seconds)
    first, last = max(begin, ticks(since)), min(end, ticks(until))
    if (first, last) == (begin, end):
        return spent
    return _cut(spent, first - begin, last - begin, end - begin) if first < last else Spent()


def _cut(spent: Spent, first: int, last: int, whole: int) -> Spent:
    def share(units: int) -> int:
        return units * last // whole - units * first // whole

    return Spent(
        share(ticks(spent.seconds)) / TICKS,
        share(spent.cpus_measured),
        share(spent.cpus_used),
        share(spent.memory_measured),
        share(spent.memory_used),
        tuple(GpuSpent(share(gpu.measured), share(gpu.used)) for gpu in spent.gpus),
    )


# --- Sums -----------------------------------------------------------------------------------------------


def lies_within(entry: Entry, since: float, until: float, now: float) -> bool:
    """Whether all of it so far lies in an interval."""
    end = now if entry.ended_at is None else entry.ended_at
    return ticks(since) <= ticks(entry.placed_at) and ticks(end) <= ticks(until)


def usage_of(entry: Entry, spent: Spent, since: float, until: float) -> Usage:
    """What an attempt held in an interval, and what it spent in it."""
    first, last = span_of(entry, since, until)
    held = held_between(entry, first, last)
    return Usage(held, spent.measured, spent.used, (last - first) / TICKS, spent.seconds)


def usage_by_gpu(entry: Entry, spent: Spent, since: float, until: float) -> Iterator[tuple[str, Usage]]:
    """The same for each device that it held: GPUs alone, which add up to the attempt's."""
    first, last = span_of(entry, since, until)
    start, seconds = ticks(entry.placed_at), (last - first) / TICKS
    for i, device in enumerate(entry.devices):
        gpu = spent.gpus[i] if i < len(spent.gpus) else GpuSpent()
        held = Resources(gpus_milli=grown(device.milli, first - start, last - start))
        measured, used = Resources(gpus_milli=gpu.measured), Resources(gpus_milli=gpu.used)
        yield str(device), Usage(held, measured, used, seconds, gpu.measured * TICKS // device.milli / TICKS)


# A verdict is not the attempt's but the job's: whoever sums by it asks how that has ended (``ended_as``).
KEYS: dict[By, Callable[[Entry], str | None]] = {
    By.JOB: lambda entry: entry.job,
    By.OWNER: lambda entry: entry.owner,
    By.TEAM: lambda entry: entry.team,
    By.EFFORT: lambda entry: entry.effort,
}


UNDER_WAY = "running"  # what has not ended yet, also while it waits to go on


def ended_as(outcome: str | None, verdict: str | None) -> str:
    """How a job has ended, in a word: by its charter, else by its outcome; without one it has not."""
    if outcome is None:
        return UNDER_WAY
    return verdict or outcome.lower().replace("_", "-")


def summed(parts: Iterable[tuple[Group, Amount]]) -> dict[Group, Amount]:
    """By group, whatever the order in which they come."""
    sums: dict[Group, Amount] = {}
    for group, amount in parts:
        before = sums.get(group)
        sums[group] = amount if before is None else before + amount
    return sums


def over_teams(by_team: Mapping[str, Amount], tenancy: Tenancy) -> dict[str, Amount]:
    """Each team with all teams below it; at the root is the cluster."""
    return summed((above, amount) for team, amount in by_team.items() for above in tenancy.path(team))
