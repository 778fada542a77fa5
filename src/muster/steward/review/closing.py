"""Closing a review: when it may be, and who is stopped.

Stopped is what is undefended, lives, and was listed so long before that whoever answers for it had the notice
that they are promised. All else is carried to the next review. A notice is counted in steady time, as the
wall's clock may be set: it closes a review neither early nor twice. And it counts only while people could
have answered: who finds the server gone for most of the notice has had none.
"""

from collections.abc import Iterable, Mapping

import msgspec

from muster.model.review import Stopped
from muster.model.stewardship import Subject
from muster.model.units import DAY
from muster.steward.review.items import Days, Item

_MOST_AWAY = 0.5  # of the notice


class Close(msgspec.Struct, frozen=True):
    """What follows from a close."""

    stopped: tuple[Item, ...]
    carried: tuple[Item, ...]  # undefended and alive, but told too late


def decided(
    items: Iterable[Item], listed: Mapping[Subject, float], now: float, notice_seconds: float
) -> Close:
    """Who is stopped, and who is carried. ``listed``: since when whoever answers for it knows."""
    stopped: list[Item] = []
    carried: list[Item] = []
    for item in items:
        if item.is_undefended and item.stops:
            told_at = listed.get(item.subject)
            in_time = told_at is not None and now - told_at >= notice_seconds
            (stopped if in_time else carried).append(item)
    return Close(tuple(stopped), tuple(carried))


def is_due(closes_at: float, wall: float, waits_from: float, now: float, notice_seconds: float) -> bool:
    """Whether the wall shows the time, and people had their notice by a clock that nobody sets."""
    return wall >= closes_at and now - waits_from >= notice_seconds


def closes_at_after(
    closes_at: float, wall: float, away_seconds: float, notice_seconds: float
) -> float | None:
    """When it closes, if nobody could answer for so long until now; None: as it was."""
    if away_seconds < _MOST_AWAY * notice_seconds or closes_at - wall >= notice_seconds:
        return None
    return wall + notice_seconds


def daily_rate(days: Days) -> tuple[float, float]:
    """GPU- and cpu-seconds a day, since the day on which it first held something. Days off count, too."""
    first = next((n for n, day in enumerate(days) if any(day)), len(days))
    held = days[first:]
    if not held:
        return 0.0, 0.0
    return sum(gpus for gpus, _ in held) / len(held), sum(cpus for _, cpus in held) / len(held)


def freed(item: Item) -> tuple[Stopped, ...]:
    """What is stopped of it, each with its recent rate."""
    rates = {one.job: daily_rate(one.days) for one in item.consumers}
    return tuple(Stopped(job, *rates[job]) for job in item.stops)


def projected(seconds_a_day: float, for_seconds: float) -> float:
    return seconds_a_day * for_seconds / DAY
