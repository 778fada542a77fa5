"""Closing a review: when it may be, and who is stopped.

Stopped is what is undefended, lives, and was listed so long before that whoever answers for it had the notice
that they are promised. All else is carried to the next review. A notice is counted in steady time, as the
wall's clock may be set: it closes a review neither early nor twice. And it counts only while people could
have answered: who finds the server gone for most of the notice has had none.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from muster.model.job import JobId
from muster.model.review import Stopped
from muster.model.stewardship import Subject
from muster.model.units import DAY
from muster.steward.review.items import Days, Item, Kind

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
            known_at = _known_at(item, listed.get(item.subject, now))
            in_time = tuple(job for job, at in known_at.items() if now - at >= notice_seconds)
            late = tuple(job for job in known_at if job not in in_time)
            stopped += [replace(item, stops=in_time)] if in_time else []
            carried += [replace(item, stops=late)] if late else []
    return Close(tuple(stopped), tuple(carried))


def _known_at(item: Item, told_at: float) -> dict[JobId, float]:
    """Since when whoever answers for each job has known of it.

    Who was told of an effort knows of all its jobs, and who was told of a habit knows what comes next.
    Anything else that is submitted is another job, of which nobody was told before it was there.
    """
    if item.subject.startswith("effort:") or item.kind is Kind.HABIT:
        return dict.fromkeys(item.stops, told_at)
    submitted_at = {one.job: one.submitted_at for one in item.consumers}
    return {job: max(told_at, submitted_at[job]) for job in item.stops}


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
