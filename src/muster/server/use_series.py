"""What a job used, as points to draw: minutes, or hours when it is long ago or a long time.

Hours are made once all of their minutes are written. What there is of those that are not is summed up here.
"""

from itertools import groupby

from muster.model.job import JobId
from muster.model.ledger import HOUR_SECONDS, MINUTE_SECONDS, TICKS, Entry, Key, span_of
from muster.model.rollups import rolled
from muster.model.units import DAY
from muster.model.usage import Rollup
from muster.store.journal import Journal


def series(
    journal: Journal,
    entries: dict[Key, Entry],
    job: JobId,
    since: float,
    until: float,
    under_way: list[Rollup],
    now: float,
) -> tuple[int, list[Rollup]]:
    """Minutes, if it is a day at most and all of them are kept; else hours."""
    first = _start_of(since, HOUR_SECONDS)
    hours = journal.rollups_of(job, hourly=True, since=first, until=until)
    is_long = until - since > DAY
    unrolled = max((hour.start for hour in hours), default=first) if is_long else first
    minutes = journal.rollups_of(job, since=unrolled, until=until) + under_way
    minutes = [minute for minute in minutes if minute.start < until]
    if is_long or set(map(_hour, hours)) - set(map(_hour, minutes)):
        return HOUR_SECONDS, _hourly(hours, minutes, entries, now)
    return MINUTE_SECONDS, [m for m in minutes if m.start >= _start_of(since, MINUTE_SECONDS)]


def _hourly(
    hours: list[Rollup], minutes: list[Rollup], entries: dict[Key, Entry], now: float
) -> list[Rollup]:
    """Hours, and what there is of those that have not been made yet."""
    made = {_hour(hour) for hour in hours}
    left = sorted((m for m in minutes if _hour(m) not in made), key=lambda m: (_hour(m), m.start))
    for (attempt, start), some in groupby(left, key=_hour):
        first, last = span_of(entries[left[0].job, attempt], start, min(start + HOUR_SECONDS, now))
        hours.append(rolled(list(some), float(start), (last - first) / TICKS))
    return sorted(hours, key=lambda hour: (hour.start, hour.attempt))


def _hour(rollup: Rollup) -> tuple[int, int]:
    """Of which attempt, and in which hour it starts."""
    return rollup.attempt, _start_of(rollup.start, HOUR_SECONDS)


def _start_of(at: float, seconds: int) -> int:
    return int(at // seconds) * seconds
