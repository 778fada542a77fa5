"""What a job has reported over time, a series for each name."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

import msgspec

from muster.model.job import JobId
from muster.monitor.reports.thin import shown
from muster.server import answers
from muster.server.errors import StoreTrouble
from muster.server.service import Service
from muster.store.report_rows import spelled
from muster.store.rows import ReportRow

_MOST_SERIES = 500


class MetricsQuery(msgspec.Struct, forbid_unknown_fields=True):
    points: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500  # of each series, about


async def told_over_time(service: Service, job: JobId, asked: MetricsQuery) -> answers.JobMetrics:
    """As it is in the store, once all that was reported so far is there."""
    if service.journal.sick is not None:
        raise StoreTrouble(service.journal.sick)
    await service.durable()
    ahead = service.fold.wall_ahead_seconds

    def answer() -> answers.JobMetrics:
        series = series_of(service.journal.reports(job), asked.points, ahead)
        return answers.JobMetrics(job, series)

    return await asyncio.to_thread(answer)


def series_of(rows: Iterable[ReportRow], most: int, ahead: float) -> list[answers.MetricSeries]:
    by_name: dict[str, list[tuple[ReportRow, float]]] = {}
    for row in rows:
        for name, value in row.report.values.items():
            if name in by_name or len(by_name) < _MOST_SERIES:
                by_name.setdefault(name, []).append((row, value))
    return [_series(name, found, most, ahead) for name, found in by_name.items()]


def _series(name: str, found: list[tuple[ReportRow, float]], most: int, ahead: float) -> answers.MetricSeries:
    finite = [value for _, value in found if value == value and abs(value) != float("inf")]
    points = [_point(*found[place], ahead) for place in shown([value for _, value in found], most)]
    return answers.MetricSeries(
        name,
        count=len(found),
        last=points[-1].value,
        least=min(finite, default=None),
        greatest=max(finite, default=None),
        points=points,
    )


def _point(row: ReportRow, value: float, ahead: float) -> answers.MetricPoint:
    report = row.report
    return answers.MetricPoint(
        report.at + ahead, report.attempt, row.ran_seconds, report.step, spelled({"": value})[""]
    )
