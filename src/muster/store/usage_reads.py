"""Looking up what was held and used, and what the ledger and its upkeep go by."""

import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Table, exists, select, tuple_

from muster.model.job import JobId
from muster.model.ledger import HOUR_SECONDS, Booked, By, Entry, Key
from muster.model.usage import Rollup, Usage
from muster.store.lookup import Lookup
from muster.store.rows import PastRow, RowKey
from muster.store.tables import (
    USAGE_SEQ,
    jobs,
    meta,
    past_uses,
    usage_attempts,
    usage_hours,
    usage_minutes,
    usage_totals,
)
from muster.store.usage_rows import booked_from, entry_from, usage_from
from muster.store.usage_sums import Names, Sums, starts_in

_MANY = 500  # values in one question


class UsageReads(Lookup):
    """The questions about usage."""

    # --- What people ask ----------------------------------------------------------------------------

    def usage_between(
        self,
        since: float,
        until: float,
        by: By,
        *,
        now: float,
        living: Iterable[Entry] = (),
        under_way: Iterable[Booked] = (),
        among: Mapping[By, Names] = MappingProxyType({}),
    ) -> dict[str | None, Usage]:
        """Held and used in an interval, by group; ``None`` is who is in no effort.

        ``living`` and ``under_way`` are the ledger's, and go before what is written down. ``among`` limits it
        to those of a job, an owner, a team or an effort, or of several. By GPU, nothing but GPUs is counted.
        """
        with self._at_once() as ask:
            return Sums(ask, since, until, now, among).by(by, living, under_way)

    def usage_totals(self) -> dict[str, Usage]:
        """What each team's attempts have used ever, and have held until they ended. These never fall."""
        return {row.team: usage_from(row) for row in self._rows(select(usage_totals))}

    def attempts_ended(
        self,
        limit: int = 1000,
        *,
        owner: str | None = None,
        team: str | None = None,
        kind: str | None = None,
        job: JobId | None = None,
        effort: str | None = None,
        since: float | None = None,
    ) -> list[Entry]:
        """Attempts that are over, the latest first: the history that the next request is made from."""
        table = usage_attempts.c
        wanted = (
            (table.owner, owner),
            (table.team, team),
            (table.kind, kind),
            (table.job, job),
            (table.effort, effort),
        )
        query = select(usage_attempts).where(*(column == v for column, v in wanted if v is not None))
        query = query.where(table.ended_at.is_not(None) if since is None else table.ended_at >= since)
        query = query.order_by(table.ended_at.desc(), table.job.desc(), table.attempt.desc()).limit(limit)
        return [entry_from(row) for row in self._rows(query)]

    def rollups_of(
        self,
        job: JobId,
        *,
        attempt: int | None = None,
        hourly: bool = False,
        since: float = 0.0,
        until: float = math.inf,
    ) -> list[Rollup]:
        """The minutes, or the hours, of a job that begin in an interval, in order."""
        table = usage_hours if hourly else usage_minutes
        query = select(table).where(table.c.job == job, *starts_in(table, since, until))
        if attempt is not None:
            query = query.where(table.c.attempt == attempt)
        rows = self._rows(query.order_by(table.c.start, table.c.attempt))
        return [booked_from(row).rollup for row in rows]

    def past_uses(self, limit: int, *, whose: str | None = None) -> list[PastRow]:
        """What attempts used, the latest first."""
        query = select(past_uses).order_by(past_uses.c.ended_at.desc(), past_uses.c.job).limit(limit)
        if whose is not None:
            query = query.where(past_uses.c.whose == whose)
        return [PastRow(*row) for row in self._rows(query)]

    # --- What the ledger goes on from ---------------------------------------------------------------

    def usage_seq(self) -> int:
        """The last event that is in the ledger as it is written down."""
        found = self._rows(select(meta.c.value).where(meta.c.key == USAGE_SEQ))
        return int(found[0][0]) if found else 0

    def entries_living(self) -> list[Entry]:
        query = select(usage_attempts).where(usage_attempts.c.ended_at.is_(None))
        return [entry_from(row) for row in self._rows(query)]

    def entries_of(self, wanted: Collection[JobId]) -> dict[Key, Entry]:
        """All entries of some jobs."""
        found: dict[Key, Entry] = {}
        ids = sorted(wanted)
        for i in range(0, len(ids), _MANY):
            query = select(usage_attempts).where(usage_attempts.c.job.in_(ids[i : i + _MANY]))
            found |= {(row.job, row.attempt): entry_from(row) for row in self._rows(query)}
        return found

    # --- What the upkeep asks -----------------------------------------------------------------------

    def hours_to_roll_up(self, before: int) -> list[int]:
        """Hours that are over and of which some attempt has minutes, but not the hour."""
        minutes = usage_minutes.c
        hour = minutes.start // HOUR_SECONDS
        query = select(hour).where(minutes.start < before, ~_has_hour()).distinct()
        return sorted(int(row[0]) * HOUR_SECONDS for row in self._rows(query))

    def minutes_of_hour(self, hour: int) -> list[Booked]:
        """All minutes in an hour, by attempt and in order."""
        table = usage_minutes
        query = select(table).where(*starts_in(table, hour, hour + HOUR_SECONDS))
        rows = self._rows(query.order_by(table.c.job, table.c.attempt, table.c.start))
        return [booked_from(row) for row in rows]

    def old_minutes(self, before: float, after: RowKey | None, limit: int) -> list[RowKey]:
        """Keys of minutes that are in their hours, the oldest first; ``after``: go on from there."""
        return self._old(usage_minutes, usage_minutes.c.start, _has_hour(), before, after, limit)

    def old_hours(self, before: float, after: RowKey | None, limit: int) -> list[RowKey]:
        """The same of hours, of jobs that have ended."""
        return self._old(usage_hours, usage_hours.c.start, _has_ended(usage_hours), before, after, limit)

    def old_entries(self, before: float, after: RowKey | None, limit: int) -> list[RowKey]:
        """The same of entries, each with when it ended."""
        when = _has_ended(usage_attempts)
        return self._old(usage_attempts, usage_attempts.c.ended_at, when, before, after, limit)

    def _old(
        self,
        table: Table,
        at: ColumnElement[Any],
        when: ColumnElement[bool],
        before: float,
        after: RowKey | None,
        limit: int,
    ) -> list[RowKey]:
        order = (at, table.c.job, table.c.attempt)
        query = select(table.c.job, table.c.attempt, at).where(at < before, when)
        if after is not None:
            job, attempt, then = after
            query = query.where(tuple_(*order) > tuple_(then, job, attempt))
        return [(row[0], row[1], row[2]) for row in self._rows(query.order_by(*order).limit(limit))]


def _has_hour() -> ColumnElement[bool]:
    minute, hour = usage_minutes.c, usage_hours.c
    start = (minute.start // HOUR_SECONDS) * HOUR_SECONDS
    return exists().where(hour.job == minute.job, hour.attempt == minute.attempt, hour.start == start)


def _has_ended(table: Table) -> ColumnElement[bool]:
    return exists().where(jobs.c.id == table.c.job)
