"""What sources of single numbers have in common: what was written for one step belongs together."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from muster.model.job import JobId
from muster.model.report import MOST_NAMES
from muster.monitor.reports.report import Report, numbers_in


class Point(NamedTuple):
    """A number under a name, as trackers keep them. ``at``: by the clock that nobody sets."""

    at: float
    step: float
    name: str
    value: float


def reports_of(job: JobId, attempt: int, source: str, points: Iterable[Point]) -> list[Report]:
    """One for each step, in the order of the points; a name that comes again for a step begins another."""
    made: list[Report] = []
    for group in _grouped(points):
        at = max(point.at for point in group)
        for some in _batches(group):
            values = numbers_in({point.name: point.value for point in some})
            if values:
                made.append(Report(job, attempt, at, group[0].step, values, source))
    return made


def _grouped(points: Iterable[Point]) -> list[list[Point]]:
    groups: list[dict[str, Point]] = []
    last: dict[float, dict[str, Point]] = {}  # of each step
    for point in points:
        group = last.get(point.step)
        if group is None or point.name in group:
            group = last[point.step] = {}
            groups.append(group)
        group[point.name] = point
    return [list(group.values()) for group in groups]


def _batches(points: list[Point]) -> Iterator[list[Point]]:
    """A report has only so many names; what is beyond goes into another of the same step."""
    left = iter(points)
    while some := list(islice(left, MOST_NAMES)):
        yield some


def short(text: str) -> int:
    """A hash by which a text is known again, also in another process. It takes little room in a position."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=7).digest())
