"""What a job tells over the API, as it is sent, and as reports."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from muster.model.errors import BadInput
from muster.model.events import Reported
from muster.model.report import MOST_LETTERS, MOST_NAMES, Report, is_name
from muster.model.snapshot import Running
from muster.model.state import after

SOURCE = "report"
_MOST_AT_ONCE = 1000

Odd = Literal["nan", "inf", "-inf"]  # numbers that JSON has no words for
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_LETTERS)]
Values = dict[Name, float | Odd]


class Told(msgspec.Struct, forbid_unknown_fields=True):
    """Values that belong together."""

    values: Values
    step: float | None = None
    at: float | None = None  # by the clock on the wall; None: now


class ReportBody(msgspec.Struct, forbid_unknown_fields=True):
    """One report, or many."""

    values: Values = {}
    step: float | None = None
    at: float | None = None
    reports: Annotated[list[Told], msgspec.Meta(max_length=_MOST_AT_ONCE)] = []

    def told(self) -> list[Told]:
        found = [Told(self.values, self.step, self.at)] if self.values else []
        found += [one for one in self.reports if one.values]
        if any(len(one.values) > MOST_NAMES for one in found):
            raise BadInput(f"at most {MOST_NAMES} values can be reported at once")
        for name in (name for one in found for name in one.values):
            if not is_name(name):
                raise BadInput(f"{name[:80]!r} can't be a metric's name: it is not printable")
        return found


def check_may_report(running: Running) -> None:
    """What does not run has nothing to report, and raises."""
    after(running.state, Reported(0.0, running.job.id, running.attempt, {}))


def as_reports(told: Sequence[Told], running: Running, now: float, wall: float) -> list[Report]:
    """By our clock, and within the attempt's life, whatever theirs shows."""
    job, attempt, began = running.job.id, running.attempt, running.started_at or running.placed_at

    def when(at: float | None) -> float:
        return now if at is None or not math.isfinite(at) else min(now, max(began, at - (wall - now)))

    return [
        Report(job, attempt, when(one.at), one.step, {n: float(v) for n, v in one.values.items()}, SOURCE)
        for one in told
    ]
