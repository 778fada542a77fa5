"""The people of the simulated quarter: when they work, when they are away or gone, and whether they answer.

Nothing about them is published. Every constant is an assumption; those that matter are varied in the bench.
"""

import msgspec
import numpy as np

from muster.model.units import DAY, HOUR, WEEK

OPENS, CLOSES = 9 * HOUR, 18 * HOUR  # of a working day; the quarter begins on a Monday
LEAVES = 0.05  # part of the people who leave in a quarter: about one in five in a year
HOLIDAY = 0.5  # part who are away once in the quarter
HOLIDAY_DAYS = (5, 14)
ANSWERS = 0.8  # of questions that reach somebody who is there; the rest is overlooked
ANSWER_SECONDS = 3 * HOUR  # on average, of working time
NOTICES_SECONDS = 6 * HOUR  # of working time until somebody notices, on average, that wanted work was stopped
REVIVES = 0.95  # of wanted work that was stopped and is noticed


class Person(msgspec.Struct, frozen=True):
    name: str
    number: int
    team: str
    leaves_at: float | None = None
    away: tuple[float, float] | None = None


def people(count: int, teams: int, end: float, luck: np.random.Generator) -> dict[str, Person]:
    staff = {}
    for number in range(count):
        leaves = float(luck.random() * end) if luck.random() < LEAVES else None
        begin, lasts = luck.random() * end, luck.uniform(*HOLIDAY_DAYS) * DAY
        away = (float(begin), float(begin + lasts)) if luck.random() < HOLIDAY else None
        name = f"person{number + 1}"
        staff[name] = Person(name, number, f"team{number % teams + 1}", leaves, away)
    return staff


def has_left(person: Person, now: float) -> bool:
    return person.leaves_at is not None and now >= person.leaves_at


def works_at(person: Person, now: float) -> bool:
    """Whether they are there these days."""
    is_away = person.away is not None and person.away[0] <= now < person.away[1]
    return not is_away and not has_left(person, now)


def is_open(now: float) -> bool:
    return now % WEEK < 5 * DAY and OPENS <= now % DAY < CLOSES


def after_working(now: float, seconds: float) -> float:
    """The time at which so much working time has passed."""
    while True:
        if not is_open(now):
            now = _next_opening(now)
        closes = now - now % DAY + CLOSES
        if now + seconds < closes:
            return now + seconds
        seconds -= closes - now
        now = closes


def _next_opening(now: float) -> float:
    day = now - now % DAY
    opens = day + OPENS if now % DAY < OPENS else day + DAY + OPENS
    while opens % WEEK >= 5 * DAY:
        opens += DAY
    return opens
