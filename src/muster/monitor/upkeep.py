"""Upkeep of what was metered: minutes become hours, and what is old goes.

Both go through the journal's writer in small parcels, and each is waited for before the next: nobody else
ever waits for more than one of them. So this is for a thread of its own, once an hour or so.

An hour is the sum of its minutes as they are written down, and is made once all of them are. Until then no
minute goes, however old. Of jobs that live, hours and attempts stay; and of those that a budget or a review
still needs everything does. Minutes of a long-living job go when they are in its hours: these have the same
sums, to the last unit.
"""

import threading
from collections.abc import Callable, Iterator
from itertools import groupby

from muster.model.job import JobId
from muster.model.ledger import HOUR_SECONDS, TICKS, Booked, Entry, Key, Spent, span_of
from muster.model.rollups import rolled
from muster.monitor.reports.thin import MOST_KEPT, to_drop
from muster.store.database import StoreError
from muster.store.journal import Journal
from muster.store.rows import Batch, Retention, RowKey, UsageRows

_LATE_SECONDS = 300.0  # after the end of an hour, all of its minutes have been handed over
_ROWS_AT_ONCE = 100
_REPORTS_AT_ONCE = 1000

Old = Callable[[float, RowKey | None, int], list[RowKey]]
Gone = Callable[[list[RowKey]], UsageRows]


class Upkeep:
    """Looks after the tables of usage in one journal."""

    def __init__(self, journal: Journal, retention: Retention | None = None) -> None:
        self._journal = journal
        self._retention = retention or Retention()

    def roll_up(self, now: float) -> int:
        """Make the hours that are missing; say how many rows there were. Doing it again changes nothing."""
        self._write(UsageRows())  # what was handed over before is written then
        count = 0
        for hour in self._journal.hours_to_roll_up(_hour_of(now - _LATE_SECONDS)):
            hours = list(self._hours(hour))
            for i in range(0, len(hours), _ROWS_AT_ONCE):
                self._write(UsageRows(hours=hours[i : i + _ROWS_AT_ONCE]))
            count += len(hours)
        return count

    def _hours(self, hour: int) -> Iterator[Booked]:
        minutes = self._journal.minutes_of_hour(hour)
        entries = self._journal.entries_of({minute.rollup.job for minute in minutes})
        for key, some in groupby(minutes, key=lambda minute: minute.key):
            yield hour_of(list(some), hour, entries[key])

    def prune(self, now: float, keep_jobs: frozenset[JobId] = frozenset()) -> int:
        """Delete what is older than it has to be kept; say how many rows that were."""
        keep, read = self._retention, self._journal
        before = _hour_of(now - keep.minutes_seconds)
        count = self._delete(read.old_minutes, before, keep_jobs, _gone_minutes)
        before = _hour_of(now - keep.hours_seconds)
        count += self._delete(read.old_hours, before, keep_jobs, _gone_hours)
        if keep.attempts_seconds is not None:
            before = _hour_of(now - max(keep.attempts_seconds, keep.hours_seconds))
            count += self._delete(read.old_entries, before, keep_jobs, _gone_entries)
        return count + self._delete_reports(now - keep.hours_seconds, keep_jobs)

    def _delete_reports(self, before: float, keep_jobs: frozenset[JobId]) -> int:
        """Reports are over time, as hours are, and go with them."""
        count = 0
        for job in self._journal.jobs_with_reports_before(before):
            while job not in keep_jobs and (keys := self._journal.report_keys(job, _REPORTS_AT_ONCE)):
                self._write(UsageRows(gone_reports=keys))
                count += len(keys)
        return count

    def thin_all(self) -> int:
        """Thin out the reports of whoever has made too many; say how many rows went."""
        return sum(self.thin(key) for key in self._journal.attempts_with_reports_above(MOST_KEPT))

    def thin(self, key: Key) -> int:
        """The same of one attempt."""
        rows = self._journal.reports_of(key)
        gone = [rows[i].number for i in to_drop([row.report.values for row in rows])]
        for i in range(0, len(gone), _REPORTS_AT_ONCE):
            some = gone[i : i + _REPORTS_AT_ONCE]
            self._write(UsageRows(gone_reports=[(*key, number) for number in some]))
        return len(gone)

    def _delete(self, old: Old, before: float, keep_jobs: frozenset[JobId], gone: Gone) -> int:
        count, last = 0, None
        while found := old(before, last, _ROWS_AT_ONCE):
            last = found[-1]
            keys = [key for key in found if key[0] not in keep_jobs]
            if keys:
                self._write(gone(keys))
                count += len(keys)
        return count

    def _write(self, rows: UsageRows) -> None:
        """Hand over, and wait until it is durable."""
        is_done, errors = threading.Event(), list[BaseException]()

        def done(error: BaseException | None) -> None:
            errors.extend([] if error is None else [error])
            is_done.set()

        self._journal.write(Batch(usage=rows), done)
        is_done.wait()
        if errors:
            raise StoreError(str(errors[0]))


def hour_of(minutes: list[Booked], start: int, entry: Entry) -> Booked:
    """An hour of an attempt, from its minutes there. How long it was held its entry says."""
    first, last = span_of(entry, start, start + HOUR_SECONDS)
    rollup = rolled([minute.rollup for minute in minutes], float(start), (last - first) / TICKS)
    return Booked(rollup, sum((minute.spent for minute in minutes), Spent()))


def _hour_of(at: float) -> int:
    return int(at // HOUR_SECONDS) * HOUR_SECONDS


def _gone_minutes(keys: list[RowKey]) -> UsageRows:
    return UsageRows(gone_minutes=keys)


def _gone_hours(keys: list[RowKey]) -> UsageRows:
    return UsageRows(gone_hours=keys)


def _gone_entries(keys: list[RowKey]) -> UsageRows:
    return UsageRows(gone_entries=[(job, attempt) for job, attempt, _ in keys])
