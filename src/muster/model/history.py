"""How long jobs really ran: the last runs of each owner, and what is typical of everybody."""

import functools
import math
import re
from collections.abc import Mapping

import msgspec

from muster.model.job import Gang, Job

RECENT = 20  # runs kept per owner: more do not predict better
LIKER = 3.0  # how much more a run tells of one that it is like, for each thing that they have in common

_DIGITS = re.compile(r"\d+")


class PastRun(msgspec.Struct, frozen=True, gc=False):
    """A run that came to its end, and what makes another one like it."""

    seconds: float
    limit_seconds: float | None
    gang: Gang
    kind: str


class History(msgspec.Struct, frozen=True):
    """A frozen view."""

    runs: Mapping[str, tuple[PastRun, ...]]  # the last of each owner, the latest last
    typical_seconds: float | None  # of all jobs lately; None if none has ended yet


class HistoryBook:
    """Collects run times as jobs end."""

    __slots__ = ("_lately", "_runs", "_typical")

    def __init__(self) -> None:
        self._runs: dict[str, tuple[PastRun, ...]] = {}
        self._lately: tuple[float, ...] = ()
        self._typical: float | None = None

    def ended(self, job: Job, seconds: float) -> None:
        run = PastRun(seconds, job.time_limit_seconds, job.gang, kind_of(job.name))
        whose = whose_history(job.owner, job.team)
        self._runs[whose] = (*self._runs.get(whose, ()), run)[-RECENT:]
        self._lately = (*self._lately, math.log(max(seconds, 1.0)))[-RECENT:]
        self._typical = math.exp(sum(self._lately) / len(self._lately))

    def view(self) -> History:
        return History(self._runs, self._typical)

    def copy(self) -> "HistoryBook":
        twin = HistoryBook()
        twin._runs, twin._lately, twin._typical = dict(self._runs), self._lately, self._typical
        return twin


def whose_history(owner: str, team: str) -> str:
    """Jobs without an owner are their team's."""
    return owner or team


@functools.lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """The name without its numbers: ``sweep-17`` and ``sweep-18`` are of one kind."""
    return _DIGITS.sub("", name)
