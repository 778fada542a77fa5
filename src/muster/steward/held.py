"""What was held, in whole units that add up: thousandths of cpus and GPUs times seconds, bytes times seconds.

It is the ledger's arithmetic (``model.ledger``): time in ticks, each attempt and each GPU rounded down to
whole units as it leaves its seats. So what a budget has spent and what ``muster use`` shows are one figure.
Here GPUs are told apart by model, as their prices differ.
"""

import functools
from collections.abc import Callable, Iterable

import msgspec

from muster.model.events import Seat
from muster.model.ledger import TICKS, devices_of, grown, ticks
from muster.model.resources import Resources
from muster.model.units import DAY

ByModel = tuple[tuple[str, int], ...]

PERIODS = ("week", "month", "quarter", "year")
_FIRST_MONDAY = 4  # days after the epoch, which was a Thursday
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}


class HeldTime(msgspec.Struct, frozen=True):
    """Amounts times time. Of one second it is what is held at a moment."""

    cpu_milli_seconds: int = 0
    memory_byte_seconds: int = 0
    gpu_milli_seconds: ByModel = ()  # in order of the models

    def __add__(self, other: "HeldTime") -> "HeldTime":
        return HeldTime(
            self.cpu_milli_seconds + other.cpu_milli_seconds,
            self.memory_byte_seconds + other.memory_byte_seconds,
            _merged(self.gpu_milli_seconds, other.gpu_milli_seconds),
        )

    def __sub__(self, other: "HeldTime") -> "HeldTime":
        return self + other * -1

    def __mul__(self, factor: int) -> "HeldTime":
        gpus = tuple((model, amount * factor) for model, amount in self.gpu_milli_seconds if amount * factor)
        return HeldTime(self.cpu_milli_seconds * factor, self.memory_byte_seconds * factor, gpus)

    @property
    def all_gpus_milli_seconds(self) -> int:
        return sum(amount for _, amount in self.gpu_milli_seconds)


NOTHING_HELD = HeldTime()


def _merged(some: ByModel, more: ByModel) -> ByModel:
    if not some or not more:
        return some or more
    sums = dict(some)
    for model, amount in more:
        sums[model] = sums.get(model, 0) + amount
    return tuple(sorted((model, amount) for model, amount in sums.items() if amount))


def _some(model: str, amount: int) -> ByModel:
    return ((model, amount),) if amount else ()


class Holding(msgspec.Struct, frozen=True):
    """What a placed gang holds, with the model of each of its GPUs."""

    cpus_milli: int = 0
    memory_bytes: int = 0
    devices: ByModel = ()  # one for each

    def between(self, since: float, first: float, last: float) -> HeldTime:
        """What it held from one moment to another, if it has its seats since so long. Parts add up."""
        start = ticks(since)
        begin = max(0, ticks(first) - start)
        end = max(begin, ticks(last) - start)
        gpus: ByModel = ()
        for model, milli in self.devices:
            gpus = _merged(gpus, _some(model, grown(milli, begin, end)))
        return HeldTime(grown(self.cpus_milli, begin, end), grown(self.memory_bytes, begin, end), gpus)

    @property
    def rate(self) -> HeldTime:
        """In one second."""
        return self.between(0.0, 0.0, 1.0)


def holding_of(held: Resources, seats: Iterable[Seat], model_of: Callable[[str, int], str]) -> Holding:
    """What is held on these seats; ``model_of`` a node's device."""
    devices: ByModel = ()
    if held.gpus_milli:
        devices = tuple((model_of(one.node, one.device), one.milli) for one in devices_of(seats))
    return Holding(held.cpus_milli, held.memory_bytes, devices)


class Burning:
    """What those that run hold together: a sum that is right at any moment, and costs nothing to look at."""

    def __init__(self) -> None:
        self.rate = NOTHING_HELD
        self._offset = NOTHING_HELD  # each rate times the tick from which on it counts

    def begin(self, rate: HeldTime, since: float) -> None:
        self.rate = self.rate + rate
        self._offset = self._offset + rate * ticks(since)

    def end(self, rate: HeldTime, since: float) -> None:
        self.rate = self.rate + rate * -1
        self._offset = self._offset + rate * -ticks(since)

    def at(self, now: float) -> HeldTime:
        grown_ticks = self.rate * ticks(now) + self._offset * -1
        gpus = tuple(g for model, n in grown_ticks.gpu_milli_seconds for g in _some(model, n // TICKS))
        cpus, memory = grown_ticks.cpu_milli_seconds, grown_ticks.memory_byte_seconds
        return HeldTime(cpus // TICKS, memory // TICKS, gpus)


# --- Periods ------------------------------------------------------------------------------------------


def period_of(kind: str, at: float) -> tuple[float, float]:
    """From when to when the week, month, quarter or year lasts in which a moment lies; by UTC."""
    first, last = _days_of(kind, int(at // DAY))
    return first * DAY, last * DAY


@functools.lru_cache(maxsize=64)
def _days_of(kind: str, day: int) -> tuple[int, int]:
    if kind == "week":
        first = day - (day - _FIRST_MONDAY) % 7
        return first, first + 7
    length = _MONTHS_IN[kind]
    year = _year_of(day)
    month = next(m for m in range(12, 0, -1) if _first_of(year, m) <= day)
    begin = month - (month - 1) % length
    following = begin + length
    return _first_of(year, begin), _first_of(year + (following > 12), (following - 1) % 12 + 1)


def _year_of(day: int) -> int:
    year = 1970 + day // 366  # never too late
    while _first_of(year + 1, 1) <= day:
        year += 1
    return year


def _first_of(year: int, month: int) -> int:
    """The first day of a month, counted from the epoch."""
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400 - (1969 // 4 - 1969 // 100 + 1969 // 400)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return (year - 1970) * 365 + leap_days + sum(lengths[: month - 1])
