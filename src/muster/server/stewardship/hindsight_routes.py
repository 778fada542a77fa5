"""What can be asked about hindsight: sums over the jobs that have ended in some time."""

import asyncio
from collections.abc import Iterable

from muster.model.errors import BadInput
from muster.model.hindsight import LookedBack
from muster.model.ledger import By
from muster.model.resources import Resources
from muster.model.tenancy import Tenancy
from muster.model.units import MILLI
from muster.server.answers import JobHindsight, JobView
from muster.server.http import Call, Route
from muster.server.service import Service
from muster.server.stewardship.hindsight_answers import Hindsight, HindsightReason, HindsightRow
from muster.server.use import UseQuery, by_team, interval, whom
from muster.store.journal import Journal

_MOST_REASONS = 5

Sums = dict[str | None, LookedBack]


class HindsightRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def hindsight(self, call: Call) -> Hindsight:
        asked: UseQuery = call.query
        if asked.by is By.GPU:
            raise BadInput("hindsight is of jobs, not of GPUs; ask by team, owner, effort, job or verdict")
        metering, fold = self._service.metering, self._service.fold
        assert metering is not None, "a server meters"
        tenancy, ahead = fold.tenancy, fold.wall_ahead_seconds
        among = whom(asked, call.person.name, tenancy)
        async with metering.still():  # so that what is over is in the store
            since, until = interval(asked.since, asked.until, self._service.now())
        when = (since + ahead, until + ahead)

        def answer() -> Hindsight:
            journal = self._service.journal
            sums, reasons = journal.looked_back(*when, asked.by, among)
            rows, more = _rows(sums, asked, tenancy)
            if asked.by is By.JOB:
                _name(rows, journal)
            total = _row(None, sum(sums.values(), LookedBack()))
            return Hindsight(asked.by, since, until, rows, total, _reasons(reasons), more)

        return await asyncio.to_thread(answer)

    def table(self) -> list[Route]:
        summary = "What was held after an exit would have ended it, by whom: an estimate."
        path, errors = "/api/v1/hindsight", (507,)
        return [Route("GET", path, self.hindsight, Hindsight, summary, query=UseQuery, errors=errors)]


def _rows(sums: Sums, asked: UseQuery, tenancy: Tenancy) -> tuple[list[HindsightRow], int]:
    """Who held most too late first, and how many were left out."""
    above: dict[str | None, str] = {}
    if asked.by is By.TEAM:
        sums = dict(by_team(sums, asked.team, tenancy))
        above = {team: path[1] for team in sums if len(path := tenancy.path(team or "")) > 1}
    groups = sorted(sums, key=lambda group: _most_first(group, sums[group]))
    listed = groups[: asked.limit or None]
    return [_row(group, sums[group], above.get(group)) for group in listed], len(groups) - len(listed)


def _most_first(group: str | None, sums: LookedBack) -> tuple[int, int, int, int, str]:
    after, held = sums.held_after, sums.held
    return (-after.gpus_milli, -after.cpus_milli, -held.gpus_milli, -held.cpus_milli, group or "")


def _row(group: str | None, sums: LookedBack, parent: str | None = None) -> HindsightRow:
    held, judged, after = (_gpus_and_cpus(some) for some in (sums.held, sums.held_by_judged, sums.held_after))
    return HindsightRow(
        group=group,
        parent=parent,
        jobs=sums.jobs,
        judged=sums.judged,
        late=sums.late,
        gpu_held_seconds=held[0],
        gpu_judged_seconds=judged[0],
        gpu_after_seconds=after[0] if sums.judged else None,
        cpu_held_seconds=held[1],
        cpu_judged_seconds=judged[1],
        cpu_after_seconds=after[1] if sums.judged else None,
    )


def _gpus_and_cpus(some: Resources) -> tuple[float, float]:
    return some.gpus_milli / MILLI, some.cpus_milli / MILLI


def _name(rows: Iterable[HindsightRow], journal: Journal) -> None:
    """Say what the jobs are called, whose they are, and why they should have ended."""
    ids = {row.group for row in rows if row.group is not None}
    entries = {job: entry for (job, _), entry in journal.entries_of(ids).items()}
    found = journal.hindsights(ids)
    for row in rows:
        entry, hindsight = entries[row.group or ""], found.get(row.group or "")
        row.name, row.owner = entry.name, entry.owner
        row.because = None if hindsight is None else hindsight.because


def _reasons(found: dict[str, LookedBack]) -> list[HindsightReason]:
    """The few that cost most."""
    most = sorted(found, key=lambda because: _most_first(because, found[because]))[:_MOST_REASONS]
    return [HindsightReason(why, found[why].jobs, *_gpus_and_cpus(found[why].held_after)) for why in most]


async def hindsight_on(journal: Journal, view: JobView) -> JobHindsight | None:
    """Of one job; None: it is not known, or nothing would have ended it sooner."""
    if not view.metrics and view.attempt == 1 and view.started_at is not None:
        return None  # it has reported nothing: most have not, and many are asked for
    found = (await asyncio.to_thread(journal.hindsights, {view.id})).get(view.id)
    if found is None or found.verdict is None or found.condition is None or found.because is None:
        return None
    gpus, cpus = found.gpus_after / MILLI, found.cpus_after / MILLI
    return JobHindsight(found.after_seconds, gpus, cpus, found.because, found.verdict, found.condition)
