"""Looking up what was spent after an exit would have ended it, and summing it up.

It is asked of jobs that have ended in some time, each as a whole. Who has no row has reported nothing, or was
not looked at: of those nothing is known.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, case, exists, func, select

from muster.model.hindsight import LookedBack
from muster.model.job import JobId
from muster.model.ledger import By, ended_as, summed
from muster.model.resources import Resources
from muster.store.lookup import Lookup
from muster.store.rows import HindsightRow
from muster.store.tables import hindsights, jobs, reports, usage_attempts

_MANY = 500  # values in one question
_EVERYBODY: Mapping[By, tuple[str, ...]] = MappingProxyType({})

Among = Mapping[By, tuple[str, ...]]


class HindsightReads(Lookup):
    """The questions about hindsight."""

    def hindsights(self, wanted: Collection[JobId]) -> dict[JobId, HindsightRow]:
        """Of these jobs, as far as they can be judged."""
        found: dict[JobId, HindsightRow] = {}
        ids = sorted(wanted)
        for i in range(0, len(ids), _MANY):
            rows = self._rows(select(hindsights).where(hindsights.c.job.in_(ids[i : i + _MANY])))
            found |= {row.job: HindsightRow(*row) for row in rows}
        return found

    def looked_back(
        self, since: float, until: float, by: By, among: Among = _EVERYBODY
    ) -> tuple[dict[str | None, LookedBack], dict[str, LookedBack]]:
        """Of jobs that ended in an interval, by the clock on the wall: by group, and by why they should have.

        ``None`` is who is in no effort; who ended in time has no reason.
        """
        ended, why = _ended(since, until, among), hindsights.c.because
        how = (ended.c.outcome, ended.c.verdict) if by is By.VERDICT else (ended.c[by.value],)
        with self._at_once() as ask:
            rows = ask(_joined(ended, *how, *_sums(ended)).group_by(*how))
            late = ask(_joined(ended, why, *_sums(ended)).where(why.is_not(None)).group_by(why))
        groups = (ended_as(row.outcome, row.verdict) if by is By.VERDICT else row[0] for row in rows)
        by_group = summed(zip(groups, map(_looked_back_from, rows), strict=True))
        return by_group, {row[0]: _looked_back_from(row) for row in late}

    def jobs_to_look_back_on(self, since: float, limit: int) -> list[JobId]:
        """Who has ended since and reported something, and was not looked at."""
        has_reports, is_done = exists().where(reports.c.job == jobs.c.id), _of(jobs.c.id)
        query = select(jobs.c.id).where(jobs.c.ended_at >= since, has_reports, ~exists().where(is_done))
        return [row[0] for row in self._rows(query.order_by(jobs.c.ended_at.desc()).limit(limit))]


def _of(job: ColumnElement[str]) -> ColumnElement[bool]:
    return hindsights.c.job == job


def _ended(since: float, until: float, among: Among) -> Subquery:
    """A row for each job, with what all of its attempts have held. Whose it is is the same for all."""
    entry = usage_attempts.c
    whose = (func.min(entry[by.value]).label(by.value) for by in (By.OWNER, By.TEAM, By.EFFORT))
    held = (func.sum(entry[name]).label(name) for name in ("cpus_held", "gpus_held"))
    query = select(entry.job, jobs.c.outcome, jobs.c.verdict, *whose, *held)
    query = query.join_from(jobs, usage_attempts, entry.job == jobs.c.id)
    query = query.where(jobs.c.ended_at >= since, jobs.c.ended_at < until)
    query = query.where(*(entry[by.value].in_(who) for by, who in among.items()))
    return query.group_by(entry.job, jobs.c.outcome, jobs.c.verdict).subquery()


def _joined(ended: Subquery, *columns: ColumnElement[Any]) -> Select[Any]:
    return select(*columns).outerjoin_from(ended, hindsights, _of(ended.c.job))


def _sums(ended: Subquery) -> list[ColumnElement[Any]]:
    """Nothing is 0 here: whoever has no row is counted as not judged."""
    held, after = (ended.c.cpus_held, ended.c.gpus_held), (hindsights.c.cpus_after, hindsights.c.gpus_after)
    is_judged = hindsights.c.job.is_not(None)
    return [
        func.count(ended.c.job).label("jobs"),
        func.count(hindsights.c.job).label("judged"),
        func.count(hindsights.c.condition).label("late"),
        *(func.sum(amount).label(amount.name) for amount in held),
        *(func.sum(case((is_judged, a), else_=0)).label(f"{a.name}_by_judged") for a in held),
        *(func.coalesce(func.sum(amount), 0).label(amount.name) for amount in after),
    ]


def _looked_back_from(row: Any) -> LookedBack:
    """To a database, a sum of whole numbers may be another kind of number."""
    return LookedBack(
        row.jobs,
        row.judged,
        row.late,
        Resources(int(row.cpus_held), gpus_milli=int(row.gpus_held)),
        Resources(int(row.cpus_held_by_judged), gpus_milli=int(row.gpus_held_by_judged)),
        Resources(int(row.cpus_after), gpus_milli=int(row.gpus_after)),
    )
