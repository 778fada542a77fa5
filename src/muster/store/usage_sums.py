"""What was held and used in an interval: one answer, from one state of the store.

Most attempts lie in an interval as a whole, and the database sums them up. Of the few that reach beyond its
edges, held is reckoned here, cut to the interval, and what was used is taken from their hours and minutes: so
a quarter of a year costs little more than a day. An hour is cut by its minutes as long as they are kept.

By verdict, attempts are joined with the ended job that they were of. So all attempts of a job count to its
one verdict, those before the last too, and that it has ended changes no entry.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Select, Table, and_, func, or_, select

from muster.model.job import JobId
from muster.model.ledger import (
    HOUR_SECONDS,
    KEYS,
    MINUTE_SECONDS,
    UNDER_WAY,
    Booked,
    By,
    Entry,
    Key,
    Spent,
    ended_as,
    lies_within,
    part_of,
    summed,
    usage_by_gpu,
    usage_of,
)
from muster.model.usage import Usage
from muster.store.lookup import Ask
from muster.store.tables import jobs, usage_attempts, usage_hours, usage_minutes
from muster.store.usage_rows import SUMS, entry_from, gpus_from, spent_from, usage_from

_MANY = 500  # values in one question

Names = str | tuple[str, ...]  # one, or any of several
Piece = tuple[Key, int, int, Spent]  # of whom, from when, for how many seconds at most, and what


class Sums:
    """A question: an interval, and whose usage it is about."""

    def __init__(
        self, ask: Ask, since: float, until: float, now: float, among: Mapping[By, Names] | None = None
    ) -> None:
        self._ask = ask
        self._among = {what: (who,) if isinstance(who, str) else who for what, who in (among or {}).items()}
        self._since, self._until, self._now = since, min(until, now), now
        table = usage_attempts.c
        self._held_in = and_(
            table.placed_at < self._until,
            or_(table.ended_at.is_(None), table.ended_at > since),
            *(table[what.value].in_(who) for what, who in self._among.items()),
        )
        # Reaches beyond an edge, or may still do so: what lives is never summed by the database.
        self._is_cut = or_(table.placed_at < since, table.ended_at.is_(None), table.ended_at > self._until)

    def by(self, by: By, living: Iterable[Entry], under_way: Iterable[Booked]) -> dict[str | None, Usage]:
        """The answer, by group."""
        since, until = self._since, self._until
        entries = self._entries_cut() | self._not_written(living)
        spent = self._spent(entries, under_way)
        found = [(e, spent[e.key]) for e in entries.values() if self._overlaps(e)]
        if by is By.GPU:
            found += [(e, e.spent) for e in self._gpus_within()]
            return summed(each for e, s in found for each in usage_by_gpu(e, s, since, until))
        group = KEYS.get(by) or self._verdicts(entry.job for entry, _ in found)
        cut = ((group(e), usage_of(e, s, since, until)) for e, s in found)
        return summed(chain(self._sums_within(by), cut))

    def cut(self, living: Iterable[Entry], under_way: Iterable[Booked]) -> list[tuple[Entry, Usage]]:
        """Those across an edge and those that live, each by itself, with what they held and used in it."""
        entries = self._entries_cut() | self._not_written(living)
        spent = self._spent(entries, under_way)
        overlapping = (entry for entry in entries.values() if self._overlaps(entry))
        return [(e, usage_of(e, spent[e.key], self._since, self._until)) for e in overlapping]

    def within(self, *columns: ColumnElement[Any]) -> Sequence[Any]:
        """Those that lie in it as a whole, each by itself; some columns of them."""
        return self._ask(select(*columns).where(self._held_in, ~self._is_cut))

    # --- Those within -------------------------------------------------------------------------------

    def _sums_within(self, by: By) -> Iterator[tuple[str | None, Usage]]:
        sums = [func.sum(usage_attempts.c[name]).label(name) for name in SUMS]
        if by is By.VERDICT:
            how = (jobs.c.outcome, jobs.c.verdict)
            query = select(*how, *sums).outerjoin_from(
                usage_attempts, jobs, jobs.c.id == usage_attempts.c.job
            )
            rows = self._ask(query.where(self._held_in, ~self._is_cut).group_by(*how))
            return ((ended_as(row.outcome, row.verdict), usage_from(row)) for row in rows)
        group = usage_attempts.c[by.value]
        query = select(group, *sums).where(self._held_in, ~self._is_cut).group_by(group)
        return ((row[0], usage_from(row)) for row in self._ask(query))

    def _gpus_within(self) -> Iterator[Entry]:
        """The same by device, which the database can't. Nothing but what that needs is filled in."""
        table = usage_attempts.c
        query = select(table.placed_at, table.ended_at, table.devices)
        query = query.where(table.devices.is_not(None), self._held_in, ~self._is_cut)
        return (gpus_from(row) for row in self._ask(query))

    def _verdicts(self, wanted: Iterable[JobId]) -> Callable[[Entry], str]:
        """How the jobs of entries have ended, as far as it is written down."""
        ids, found = sorted(set(wanted)), dict[JobId, str]()
        for i in range(0, len(ids), _MANY):
            query = select(jobs.c.id, jobs.c.outcome, jobs.c.verdict).where(jobs.c.id.in_(ids[i : i + _MANY]))
            found |= {row.id: ended_as(row.outcome, row.verdict) for row in self._ask(query)}
        return lambda entry: found.get(entry.job, UNDER_WAY)

    # --- Those across an edge -----------------------------------------------------------------------

    def _entries_cut(self) -> dict[Key, Entry]:
        rows = self._ask(select(usage_attempts).where(self._held_in, self._is_cut))
        return {(row.job, row.attempt): entry_from(row) for row in rows}

    def _not_written(self, living: Iterable[Entry]) -> dict[Key, Entry]:
        """Those of the ledger's that are asked about, but those of whom the end is written down by now."""
        among = self._among.items()
        wanted = {e.key: e for e in living if all(KEYS[what](e) in who for what, who in among)}
        ids, table = sorted({job for job, _ in wanted}), usage_attempts.c
        for i in range(0, len(ids), _MANY):
            query = select(table.job, table.attempt).where(table.job.in_(ids[i : i + _MANY]))
            for row in self._ask(query.where(table.ended_at.is_not(None))):
                wanted.pop((row.job, row.attempt), None)
        return wanted

    def _overlaps(self, entry: Entry) -> bool:
        return entry.placed_at < self._until and (entry.ended_at is None or entry.ended_at > self._since)

    def _spent(self, entries: dict[Key, Entry], under_way: Iterable[Booked]) -> defaultdict[Key, Spent]:
        """What each spent in the interval."""
        since, until = self._since, self._until
        spent: defaultdict[Key, Spent] = defaultdict(Spent)
        cut: dict[Key, Entry] = {}
        for key, entry in entries.items():
            if lies_within(entry, since, until, self._now):
                spent[key] = entry.spent
            elif self._overlaps(entry):
                cut[key] = entry
        for key, start, seconds, some in self._pieces(cut) if cut else ():
            spent[key] += part_of(some, start, seconds, cut[key], since, until)
        for minute in under_way:
            if minute.key in entries:
                entry, begin = entries[minute.key], minute.rollup.start
                so_far = replace(entry, ended_at=self._now if entry.ended_at is None else entry.ended_at)
                spent[minute.key] += part_of(minute.spent, begin, MINUTE_SECONDS, so_far, since, until)
        return spent

    def _pieces(self, cut: dict[Key, Entry]) -> Iterator[Piece]:
        """By minutes where all of an hour's are there, else by hours."""
        first, last = _hour_of(self._since), _hour_of(self._until)
        hours = {(key, start): some for key, start, some in self._rows(usage_hours, cut)}
        begins = by_attempt(usage_minutes)
        edges = or_(begins < first + HOUR_SECONDS, begins >= min(last, self._rolled_up_to()))
        minutes: defaultdict[tuple[Key, int], list[Piece]] = defaultdict(list)
        for key, start, some in self._rows(usage_minutes, cut, edges):
            minutes[key, _hour_of(start)].append((key, start, MINUTE_SECONDS, some))
        for (key, start), pieces in minutes.items():
            hour = hours.get((key, start))
            if hour is None or sum(some.seconds for *_, some in pieces) >= hour.seconds:
                hours.pop((key, start), None)
                yield from pieces
        yield from ((key, start, HOUR_SECONDS, some) for (key, start), some in hours.items())

    def _rows(
        self, table: Table, cut: dict[Key, Entry], *more: ColumnElement[bool]
    ) -> Iterator[tuple[Key, int, Spent]]:
        same = and_(table.c.job == usage_attempts.c.job, table.c.attempt == usage_attempts.c.attempt)
        columns = [column for column in table.c if column.name != "figures"]
        query: Select[Any] = select(*columns).join(usage_attempts, same).where(self._held_in, self._is_cut)
        begins = by_attempt(table)
        hours = (begins >= _hour_of(self._since), begins < -_hour_of(-self._until))  # whole ones
        for row in self._ask(query.where(*hours, *more)):
            key = (row.job, row.attempt)
            if key in cut:
                yield key, row.start, spent_from(row)

    def _rolled_up_to(self) -> int:
        """The last hour that was rolled up, for some at least; all before were, for all."""
        query = select(func.max(usage_hours.c.start)).where(usage_hours.c.start <= int(self._now))
        found = self._ask(query)[0][0]
        return 0 if found is None else int(found)


def by_attempt(table: Table) -> ColumnElement[int]:
    """When minutes or hours begin, as a sum, of which there is no index: they are looked for by attempt.

    By time, those of all others would be read as well.
    """
    found: ColumnElement[int] = table.c.start + 0
    return found


def starts_in(table: Table, since: float, until: float) -> list[ColumnElement[bool]]:
    """Minutes or hours that begin in an interval."""
    found: list[ColumnElement[bool]] = [table.c.start >= math.ceil(since)]
    if until < math.inf:
        found.append(table.c.start < math.ceil(until))
    return found


def _hour_of(at: float) -> int:
    return int(at // HOUR_SECONDS) * HOUR_SECONDS
