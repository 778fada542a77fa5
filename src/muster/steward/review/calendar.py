"""When reviews close: a schedule as people write it, and the next time that it names.

The wall's clock is what people go by, and it jumps twice a year. So a schedule speaks of days and minutes by
the wall, and a *zone* says how far the wall is ahead of UTC at a moment. A time that a jump leaves out is the
moment of the jump; one that comes twice is the first.
"""

import re
from collections.abc import Callable

import msgspec

from muster.model.errors import BadInput
from muster.model.units import DAY, MINUTE

Zone = Callable[[float], float]  # seconds that the wall is ahead of UTC, at a moment

OFF = "off"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH_DAY = 3  # 1 January 1970 was a Thursday
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})", re.ASCII)
_HINT = 'write it like "Thu 17:00", "Mon,Thu 09:30", "daily 18:00" or "off"'


class Schedule(msgspec.Struct, frozen=True):
    """On these days of the week, 0 is Monday, so many minutes after midnight."""

    days: tuple[int, ...]
    minute: int

    def __str__(self) -> str:
        named = "daily" if len(self.days) == len(DAYS) else ",".join(DAYS[day] for day in self.days)
        return f"{named} {self.minute // 60:02}:{self.minute % 60:02}"


def parse_schedule(text: str) -> Schedule | None:
    """``Thu 17:00``, ``Mon,Thu 09:30``, ``daily 18:00``; None: ``off``."""
    words = text.split()
    if [word.lower() for word in words] == [OFF]:
        return None
    clock = _CLOCK.fullmatch(words[-1]) if len(words) >= 2 else None
    if clock is None or int(clock[1]) > 23 or int(clock[2]) > 59:
        raise BadInput(f"{text[:40]!r} is not a schedule; {_HINT}")
    return Schedule(_days("".join(words[:-1]), text), int(clock[1]) * 60 + int(clock[2]))


def _days(named: str, text: str) -> tuple[int, ...]:
    if named.lower() == "daily":
        return tuple(range(len(DAYS)))
    found = [_day(name, text) for name in named.split(",")]
    if len(set(found)) < len(found):
        raise BadInput(f"{text[:40]!r} names a day twice; {_HINT}")
    return tuple(sorted(found))


def _day(name: str, text: str) -> int:
    for number, day in enumerate(DAYS):
        if name.capitalize() == day:
            return number
    raise BadInput(f"{name[:20]!r} in {text[:40]!r} is not a day; days are {', '.join(DAYS)}")


def next_close(schedule: Schedule, after: float, zone: Zone) -> float:
    """The first time later than a moment that the schedule names."""
    today = int((after + zone(after)) // DAY)
    days = (day for day in range(today - 1, today + 9) if (day + _EPOCH_DAY) % 7 in schedule.days)
    return next(at for day in days if (at := moment(day, schedule.minute, zone)) > after)


def moment(day: int, minute: int, zone: Zone) -> float:
    """When the wall shows a minute of a day, counted from 1 January 1970."""
    wall = day * DAY + minute * MINUTE
    # A zone changes once in two days at most: only what it was a day before or will be a day later can hold.
    before, later = zone(wall - zone(wall) - DAY), zone(wall - zone(wall) + DAY)
    shown = [at for ahead in (before, later) if (at := wall - ahead) + zone(at) == wall]
    return min(shown) if shown else _jump(wall - max(before, later), wall - min(before, later), zone)


def _jump(first: float, last: float, zone: Zone) -> float:
    """The moment between two, to the second, at which the clock was set."""
    ahead = zone(first)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if zone(middle) == ahead else (first, middle)
    return last
