"""What was held and used: by whom, and by one job over time.

Sums come from the store; what lives, and the minutes that are under way, from the ledger. Nothing gets from
the one to the other while they are added up (``Metering.still``), so that nothing is counted twice or missed;
and it is a thread that asks, as a long history may take a second. Consumption is public inside a Muster.
"""

import asyncio
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

import msgspec

from muster.model.errors import BadInput
from muster.model.job import JobId
from muster.model.ledger import MINUTE_SECONDS, Amount, By, Entry, Number, over_teams, spent_in
from muster.model.resources import NOTHING
from muster.model.tenancy import ROOT, Tenancy
from muster.model.units import DAY, HOUR, MILLI, parse_seconds
from muster.model.usage import Usage
from muster.server import answers
from muster.server.measured import sources
from muster.server.metering import Metering
from muster.server.service import Service
from muster.server.use_series import series
from muster.steward.budget import CPU_HOURS, GPU_HOURS
from muster.store.journal import Journal

_MOST_ROWS = 1000

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[^\x00]*$")]  # what a database takes
Sums = dict[str | None, Usage]


class UseQuery(msgspec.Struct, forbid_unknown_fields=True):
    by: By = By.TEAM
    since: str | None = None  # seconds since the epoch, or how long ago; not said: a day before the end
    until: str | None = None
    owner: Name | None = None
    mine: bool = False
    team: Name | None = None  # and those below it
    limit: Count = _MOST_ROWS  # 0: as many as there are


class JobUseQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: str | None = None  # not said: all of it
    until: str | None = None


class Using:
    """Answers about what was used."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def _metering(self) -> Metering:
        metering = self._service.metering
        assert metering is not None, "a server meters"
        return metering

    def _metrics(self) -> answers.UseMetrics:
        """By what is measured now; what was before is not kept."""
        readings = self._metering.readings().values()
        found = dict.fromkeys(gpu.metric for read in readings for gpu in read.gpus if gpu.metric)
        counted = sources(self._metering, self._service.fold.running.values())
        return answers.UseMetrics(", ".join(found) or None, sources=counted)

    # --- Sums ---------------------------------------------------------------------------------------

    async def summed(self, asked: UseQuery, person: str) -> answers.Use:
        tenancy, journal, metering = self._service.fold.tenancy, self._service.journal, self._metering
        among = whom(asked, person, tenancy)
        async with metering.still():
            now = self._service.now()
            since, until = interval(asked.since, asked.until, now)
            living, under_way = metering.ledger.living, metering.ledger.under_way(now)
            metrics = self._metrics()

            def answer() -> answers.Use:
                sums = journal.usage_between(
                    since, until, asked.by, now=now, living=living, under_way=under_way, among=among
                )
                rows, more = rows_of(sums, asked, tenancy)
                if asked.by is By.JOB:
                    _name(rows, journal)
                total = _row(None, sum(sums.values(), Usage()), asked.by)
                return answers.Use(asked.by, since, until, metrics, rows, total, more)

            return await asyncio.to_thread(answer)

    async def used_of(self, job: JobId, budget: str) -> float | None:
        """What a living job has used of what its budget counts, in that unit; None: not known, or money."""
        ledger, now = self._metering.ledger, self._service.now()
        living = {entry.key: entry for entry in ledger.living if entry.job == job}
        under_way = [spent_in(m, living[key]) for key in living for m in ledger.series.not_booked(*key, now)]
        stored = await asyncio.to_thread(self._service.journal.entries_of, {job})
        spent = [entry.spent for entry in (stored | living).values()] + under_way
        used, measured = sum((s.used for s in spent), NOTHING), sum((s.measured for s in spent), NOTHING)
        if budget.endswith(GPU_HOURS):
            found = _known(used.gpus_milli / MILLI, measured.gpus_milli)
        elif budget.endswith(CPU_HOURS):
            found = _known(used.cpus_milli / MILLI, measured.cpus_milli)
        else:
            return None
        return None if found is None else found / HOUR

    # --- A job over time ----------------------------------------------------------------------------

    async def of_job(self, job: JobId, asked: JobUseQuery) -> answers.JobUse:
        journal, metering = self._service.journal, self._metering
        async with metering.still():
            now = self._service.now()
            living = {entry.key: entry for entry in metering.ledger.living if entry.job == job}
            under_way = [m.rollup for m in metering.ledger.under_way(now) if m.rollup.job == job]
            metrics = self._metrics()

            def answer() -> answers.JobUse:
                entries = journal.entries_of({job}) | living
                since, until = interval(asked.since, asked.until, now, *_life(entries.values(), now))
                step, points = series(journal, entries, job, since, until, under_way, now)
                holds = entries[max(entries)].holds if entries else NOTHING
                held = answers.Amounts(holds.cpus_milli / MILLI, holds.memory_bytes, holds.gpus_milli / MILLI)
                return answers.JobUse(job, step, since, until, metrics, held, points)

            return await asyncio.to_thread(answer)


def _life(attempts: Collection[Entry], now: float) -> tuple[float, float]:
    """From a minute before it first held something to its end, or to now."""
    ends = (now if attempt.ended_at is None else attempt.ended_at for attempt in attempts)
    end = max(ends, default=now)
    return min((attempt.placed_at for attempt in attempts), default=end) - MINUTE_SECONDS, end


def interval(
    since: str | None,
    until: str | None,
    now: float,
    usual_begin: float | None = None,
    usual_end: float = math.inf,
) -> tuple[float, float]:
    """From when to when, at most until now. Without a begin: from the usual one, or the last day."""
    end = min(now, usual_end if until is None else moment(until, now))
    usual_begin = end - DAY if usual_begin is None else usual_begin
    begin = usual_begin if since is None else moment(since, now)
    if begin >= end:
        raise BadInput("there is nothing between since and until; since lies in the past, and before until")
    return begin, end


def moment(text: str, now: float) -> float:
    try:
        at = float(text)
    except ValueError:
        at = now - _ago(text)
    if not math.isfinite(at):
        raise BadInput(f"{text[:40]!r} is not a moment; {_MOMENTS}")
    return max(0.0, at)  # nothing was before that


def _ago(text: str) -> float:
    try:
        return parse_seconds(text)
    except BadInput:
        raise BadInput(f"{text[:40]!r} is not a moment; {_MOMENTS}") from None


_MOMENTS = "write seconds since the epoch, or how long ago it was, such as 24h or 7d"


# --- Rows -----------------------------------------------------------------------------------------------


def whom(asked: UseQuery, person: str, tenancy: Tenancy) -> dict[By, tuple[str, ...]]:
    """Whom it is about."""
    among: dict[By, tuple[str, ...]] = {}
    owner = person if asked.mine else asked.owner
    if owner is not None:
        among[By.OWNER] = (owner,)
    if asked.team is not None:
        among[By.TEAM] = _with_those_below(asked.team, tenancy)
    return among


def _with_those_below(team: str, tenancy: Tenancy) -> tuple[str, ...]:
    below = (t for t in tenancy.teams if t != team and team in tenancy.path(t))
    return (team, *below) if team != ROOT else (ROOT,)


def rows_of(sums: Sums, asked: UseQuery, tenancy: Tenancy) -> tuple[list[answers.UseRow], int]:
    """Who held most first, and how many were left out. A team comes after the one above it."""
    above: dict[str | None, tuple[str, ...]] = {}
    if asked.by is By.TEAM:
        sums = dict(by_team(sums, asked.team, tenancy))
        above = {team: tenancy.path(team)[1:] for team in sums if team is not None}

    def most_first(group: str | None) -> tuple[int, int, int, int, str]:
        held = sums[group].held
        depth = len(above.get(group, ()))
        return (-held.gpus_milli, -held.cpus_milli, -held.memory_bytes, depth, group or "")

    groups = sorted(sums, key=most_first)
    listed = groups[: asked.limit or None]
    rows = [_row(group, sums[group], asked.by, next(iter(above.get(group, ())), None)) for group in listed]
    return rows, len(groups) - len(listed)


def by_team(
    sums: Mapping[str | None, Amount], within: str | None, tenancy: Tenancy
) -> Iterator[tuple[str, Amount]]:
    """Each team with those below it, and who is in none. The cluster is the total."""
    own = {team: amount for team, amount in sums.items() if team is not None}
    asked = None if within is None else _with_those_below(within, tenancy)
    for team, amount in over_teams(own, tenancy).items():
        if team != ROOT and (asked is None or team in asked):
            yield team, amount
    if ROOT in own:
        yield ROOT, own[ROOT]


def _row(group: str | None, usage: Usage, by: By, parent: str | None = None) -> answers.UseRow:
    held, measured, used = usage.held, usage.measured, usage.used
    has_all = by is not By.GPU
    return answers.UseRow(
        group=group,
        parent=parent,
        held_seconds=usage.held_seconds,
        measured_seconds=usage.measured_seconds,
        coverage=usage.coverage,
        gpu_held_seconds=held.gpus_milli / MILLI,
        gpu_measured_seconds=measured.gpus_milli / MILLI,
        gpu_used_seconds=_known(used.gpus_milli / MILLI, measured.gpus_milli),
        cpu_held_seconds=held.cpus_milli / MILLI if has_all else None,
        cpu_measured_seconds=measured.cpus_milli / MILLI if has_all else None,
        cpu_used_seconds=_known(used.cpus_milli / MILLI, measured.cpus_milli),
        memory_held_byte_seconds=held.memory_bytes if has_all else None,
        memory_measured_byte_seconds=measured.memory_bytes if has_all else None,
        memory_used_byte_seconds=_known(used.memory_bytes, measured.memory_bytes),
    )


def row_of(usage: Usage, group: str | None = None) -> answers.UseRow:
    """Held and used, of whatever it was summed up over."""
    return _row(group, usage, By.JOB)


def _known(used: Number, measured: int) -> Number | None:
    """Who asks for no memory holds none, and what is measured of that is nothing; but it may use some."""
    return used if used or measured else None


def _name(rows: list[answers.UseRow], journal: Journal) -> None:
    """Say what the jobs are called, and whose they are."""
    entries = journal.entries_of({row.group for row in rows if row.group is not None})
    by_job = {job: entry for (job, _), entry in entries.items()}
    for row in rows:
        entry = by_job.get(row.group or "")
        if entry is not None:
            row.name, row.owner = entry.name, entry.owner
