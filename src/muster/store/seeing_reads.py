"""What pictures are drawn from: who held what and when, what was used meanwhile, and what was said of a job.

Columns and not whole rows: a picture of a week is of many thousand attempts, and decoding all of each would
cost more than drawing.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Table, and_, func, or_, select

from muster.model.job import JobId
from muster.model.ledger import HOUR_SECONDS, Booked, DeviceHeld, Entry, Key
from muster.model.units import MINUTE
from muster.model.usage import Usage
from muster.store.lookup import Lookup
from muster.store.rows import Estimate
from muster.store.tables import estimates, jobs, usage_attempts, usage_hours, usage_minutes
from muster.store.usage_sums import Sums, by_attempt

_MANY = 500  # values in one question
_held_devices = msgspec.msgpack.Decoder(tuple[tuple[DeviceHeld, ...], msgspec.Raw]).decode
_gpus = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode  # measured and used, of each


class Span(NamedTuple):
    """An attempt, whose it is, and what it held from when to when."""

    job: JobId
    attempt: int
    team: str
    owner: str
    placed_at: float
    ended_at: float | None  # None: it lives
    gpus_milli: int
    cpus_milli: int

    @property
    def key(self) -> Key:
        return (self.job, self.attempt)


class Piece(NamedTuple):
    """What was measured of an attempt in a minute or an hour: thousandths of GPUs, or cpus, times seconds."""

    key: Key
    team: str
    owner: str
    start: int
    measured: int
    used: int


class Stay(NamedTuple):
    """An attempt that is over, and which GPUs it had."""

    job: JobId
    attempt: int
    name: str
    owner: str
    team: str
    placed_at: float
    ended_at: float
    outcome: str | None  # None: it had to leave before it was done
    gpus_milli: int
    devices: Sequence[DeviceHeld]  # in order


class AttemptUse(NamedTuple):
    """What an attempt held and used in some time, and whose it is."""

    job: JobId
    team: str
    owner: str
    effort: str | None
    name: str
    amounts: Sequence[float]  # as ``AMOUNTS`` has them


# Seconds; then thousandths of cpus, and of GPUs, times seconds.
AMOUNTS = (
    "held_seconds",
    "measured_seconds",
    "cpus_held",
    "cpus_measured",
    "cpus_used",
    "gpus_held",
    "gpus_measured",
    "gpus_used",
)
_USE = (*AttemptUse._fields[:-1], *AMOUNTS)


def amounts_of(usage: Usage) -> tuple[float, ...]:
    held, measured, used = usage.held, usage.measured, usage.used
    cpus = (held.cpus_milli, measured.cpus_milli, used.cpus_milli)
    gpus = (held.gpus_milli, measured.gpus_milli, used.gpus_milli)
    return (usage.held_seconds, usage.measured_seconds, *cpus, *gpus)


class _Purpose(msgspec.Struct):
    """What is asked of the view of a job that has ended."""

    purpose: str | None = None


_purpose = msgspec.json.Decoder(_Purpose).decode


class SeeingReads(Lookup):
    """The questions of pictures."""

    # --- Use ----------------------------------------------------------------------------------------

    def used_by_attempt(
        self, since: float, until: float, *, now: float, living: Iterable[Entry], under_way: Iterable[Booked]
    ) -> Iterator[AttemptUse]:
        """What each attempt held and used in an interval, and whose it is."""
        with self._at_once() as ask:
            sums = Sums(ask, since, until, now)
            within = sums.within(*(usage_attempts.c[name] for name in _USE))
            cut = sums.cut(living, under_way)
        for job, team, owner, effort, name, *amounts in within:
            yield AttemptUse(job, team, owner, effort, name, amounts)
        for entry, usage in cut:
            whose = (entry.job, entry.team, entry.owner, entry.effort, entry.name)
            yield AttemptUse(*whose, amounts_of(usage))

    def purposes_of(self, wanted: Collection[JobId]) -> dict[JobId, str | None]:
        """Of jobs that have ended."""
        found: dict[JobId, str | None] = {}
        for some in _in_pieces(wanted):
            for row in self._rows(select(jobs.c.id, jobs.c.body).where(jobs.c.id.in_(some))):
                found[row[0]] = _purpose(row[1]).purpose
        return found

    def spans_between(self, since: float, until: float) -> list[Span]:
        """Attempts that held something in an interval, as far as they are written down."""
        table = usage_attempts.c
        query = select(*(table[name] for name in Span._fields)).where(*held_in(since, until))
        return [Span(*row) for row in self._rows(query)]

    def rolled_up_to(self, now: float) -> int:
        """The last hour that was rolled up, for some at least; all before were, for all."""
        query = select(func.max(usage_hours.c.start)).where(usage_hours.c.start <= int(now))
        found = self._rows(query)[0][0]
        return 0 if found is None else int(found)

    def hours_between(self, since: int, until: float, *, of_gpus: bool) -> Iterator[Piece]:
        """What was measured in hours that begin in an interval, by attempt."""
        return self._pieces(usage_hours, since, until, of_gpus)

    def hours_summed(self, since: int, until: int, *, of_gpus: bool) -> dict[tuple[int, str, str], list[int]]:
        """The same by hour, team and owner: measured and used."""
        sums: dict[tuple[int, str, str], list[int]] = {}
        for _, _, team, owner, start, *amounts in self._measured(usage_hours, since, until, of_gpus):
            key = (start, team, owner)
            known = sums.get(key)
            if known is None:
                known = sums[key] = [0, 0]
            for measured, used in _gpus(amounts[0]) if of_gpus else (amounts,):
                known[0] += measured
                known[1] += used
        return sums

    def minutes_between(self, since: int, until: float, *, of_gpus: bool, every: int = 1) -> Iterator[Piece]:
        """The same in minutes; ``every``: only each so many-th of them, which then stands for as many."""
        begins = by_attempt(usage_minutes)
        only = () if every == 1 else (begins % int(every * MINUTE) == 0,)
        for piece in self._pieces(usage_minutes, since, until, of_gpus, *only):
            yield piece._replace(measured=piece.measured * every, used=piece.used * every)

    def _pieces(
        self, table: Table, since: int, until: float, of_gpus: bool, *only: ColumnElement[bool]
    ) -> Iterator[Piece]:
        rows = self._measured(table, since, until, of_gpus, *only)
        return map(_piece_of_gpus if of_gpus else _piece_of_cpus, rows)

    def _measured(
        self, table: Table, since: int, until: float, of_gpus: bool, *only: ColumnElement[bool]
    ) -> Sequence[Any]:
        c, a, begins = table.c, usage_attempts.c, by_attempt(table)
        amounts = (c.gpus,) if of_gpus else (c.cpus_measured, c.cpus_used)
        query = select(c.job, c.attempt, a.team, a.owner, c.start, *amounts)
        job = func.coalesce(a.job, "")  # of which there is no index, either: the attempt comes first
        query = query.join(usage_attempts, and_(c.job == job, c.attempt == a.attempt))
        query = query.where(*held_in(since, until), begins >= since, begins < until, *only)
        return self._rows(query.where(c.gpus.is_not(None)) if of_gpus else query)

    # --- Time ---------------------------------------------------------------------------------------

    def stays_between(
        self, since: float, until: float, limit: int, *, with_devices: bool = True
    ) -> Iterator[Stay]:
        """Attempts that are over and held something in an interval, the latest first."""
        table, names = usage_attempts.c, Stay._fields if with_devices else Stay._fields[:-1]
        query = select(*(table[name] for name in names))
        query = query.where(table.ended_at > since, table.placed_at < until)
        for row in self._rows(query.order_by(table.ended_at.desc()).limit(limit)):
            if with_devices:
                yield Stay._make((*row[:-1], _held_devices(row[-1])[0] if row[-1] else ()))
            else:
                yield Stay._make((*row, ()))

    def verdicts_since(self, since: float) -> dict[JobId, str]:
        """Of jobs that ended since then, by the wall, with one."""
        query = select(jobs.c.id, jobs.c.verdict).where(jobs.c.ended_at >= since, jobs.c.verdict.is_not(None))
        return {row[0]: row[1] for row in self._rows(query)}

    # --- The queue ----------------------------------------------------------------------------------

    def last_estimates(self, wanted: Collection[JobId]) -> dict[JobId, Estimate]:
        """What was said last about when each starts, of those about whom something was."""
        found: dict[JobId, Estimate] = {}
        for some in _in_pieces(wanted):
            query = select(estimates).where(estimates.c.job.in_(some)).order_by(estimates.c.made_at)
            found |= {row.job: Estimate(*row) for row in self._rows(query)}
        return found


def held_in(since: float, until: float) -> tuple[ColumnElement[bool], ...]:
    """Attempts that held something then."""
    table = usage_attempts.c
    return (table.placed_at < until, or_(table.ended_at.is_(None), table.ended_at > since))


def hour_of(at: float) -> int:
    return int(at // HOUR_SECONDS) * HOUR_SECONDS


def _piece_of_gpus(row: Any) -> Piece:
    measured = used = 0
    for gpu in _gpus(row[5]):
        measured += gpu[0]
        used += gpu[1]
    return Piece((row[0], row[1]), row[2], row[3], row[4], measured, used)


def _piece_of_cpus(row: Any) -> Piece:
    return Piece((row[0], row[1]), *row[2:])


def _in_pieces(wanted: Collection[JobId]) -> Iterator[list[JobId]]:
    ids = sorted(wanted)
    return (ids[i : i + _MANY] for i in range(0, len(ids), _MANY))
