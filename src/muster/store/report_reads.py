"""Looking up what jobs have reported."""

from sqlalchemy import exists, func, select

from muster.model.job import JobId
from muster.model.ledger import Key
from muster.store.lookup import Lookup
from muster.store.report_rows import report_row_from
from muster.store.rows import ReportKey, ReportRow
from muster.store.tables import jobs, report_states, reports

_COUNTED = (reports.c.job, reports.c.attempt)


class ReportReads(Lookup):
    """The questions about reports."""

    def reports(self, job: JobId, since: float = 0.0, limit: int | None = None) -> list[ReportRow]:
        """What a job has reported from a time on, in order, over all of its attempts."""
        query = select(reports).where(reports.c.job == job, reports.c.at >= since)
        query = query.order_by(reports.c.attempt, reports.c.number).limit(limit)
        return [report_row_from(row) for row in self._rows(query)]

    def report_states(self, kind: str) -> dict[Key, bytes]:
        """Where somebody had come to who goes by reports, of each attempt that has a state."""
        table = report_states.c
        rows = self._rows(select(table.job, table.attempt, table.body).where(table.kind == kind))
        return {(row.job, row.attempt): row.body for row in rows}

    # --- What the upkeep asks -----------------------------------------------------------------------

    def attempts_with_reports_above(self, count: int) -> list[Key]:
        query = select(*_COUNTED).group_by(*_COUNTED).having(func.count() > count)
        return [(row.job, row.attempt) for row in self._rows(query)]

    def reports_of(self, key: Key) -> list[ReportRow]:
        """Those of one attempt."""
        job, attempt = key
        query = select(reports).where(reports.c.job == job, reports.c.attempt == attempt)
        return [report_row_from(row) for row in self._rows(query.order_by(reports.c.number))]

    def jobs_with_reports_before(self, ended_before: float) -> list[JobId]:
        """Jobs that ended before and whose reports are still there, the oldest first."""
        has_some = exists().where(reports.c.job == jobs.c.id)
        query = select(jobs.c.id).where(jobs.c.ended_at < ended_before, has_some)
        return [row[0] for row in self._rows(query.order_by(jobs.c.ended_at))]

    def report_keys(self, job: JobId, limit: int) -> list[ReportKey]:
        query = select(*_COUNTED, reports.c.number).where(reports.c.job == job).limit(limit)
        return [(row.job, row.attempt, row.number) for row in self._rows(query)]
