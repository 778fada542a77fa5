"""How long jobs really ran: the last runs of each owner, and of everybody."""

import re
from collections.abc import Mapping

import msgspec

from muster.model.job import Gang, Job

RECENT = 20  # runs kept per owner: more do not predict better
EVERYBODY = None

_DIGITS = re.compile(r"\d+")


class Run(msgspec.Struct, frozen=True, gc=False):
    """A run that came to its end, and what makes another one like it."""

    seconds: float
    limit_seconds: float | None
    gang: Gang
    kind: str


class History(msgspec.Struct, frozen=True):
    """A frozen view: the last runs by owner, the latest last."""

    runs: Mapping[str | None, tuple[Run, ...]]


class HistoryBook:
    """Collects run times as jobs end."""

    __slots__ = ("_runs",)

    def __init__(self, runs: dict[str | None, tuple[Run, ...]] | None = None) -> None:
        self._runs = runs if runs is not None else {}

    def ended(self, job: Job, seconds: float) -> None:
        run = Run(seconds, job.time_limit_seconds, job.gang, kind_of(job.name))
        for owner in (job.owner, EVERYBODY):
            self._runs[owner] = (*self._runs.get(owner, ()), run)[-RECENT:]

    def view(self) -> History:
        return History(self._runs)

    def copy(self) -> "HistoryBook":
        return HistoryBook(dict(self._runs))


def kind_of(name: str) -> str:
    """The name without its numbers: ``sweep-17`` and ``sweep-18`` are of one kind."""
    return _DIGITS.sub("", name)
