"""An axis of time: round moments, as people there read the clock."""

import math
from datetime import datetime, timedelta

import msgspec

from muster.model.units import DAY, HOUR, MINUTE

_STEPS = (
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)


class Tick(msgspec.Struct, frozen=True):
    """``is_day``: a day begins there."""

    at: float
    words: str
    is_day: bool


def ticks(since: float, until: float, most: int) -> list[Tick]:
    """Evenly, and so few that their words have room; days begin when they do here."""
    span = until - since
    far = _STEPS[-1] * math.ceil(span / most / _STEPS[-1])
    step = timedelta(seconds=next((one for one in _STEPS if span / one <= most), far))
    # Without a zone, by the clock on the wall: also on days on which an hour is missing or there twice.
    here = datetime.fromtimestamp(since).astimezone().replace(tzinfo=None)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    moments = (midnight + n * step for n in range(math.ceil((span + 2 * DAY) / step.total_seconds())))
    return [_tick(moment) for moment in moments if since <= moment.timestamp() < until]


def _tick(moment: datetime) -> Tick:
    is_day = (moment.hour, moment.minute) == (0, 0)
    return Tick(moment.timestamp(), f"{moment:%a %d %b}" if is_day else f"{moment:%H:%M}", is_day)
