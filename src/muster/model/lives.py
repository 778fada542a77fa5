"""Lives of jobs as a life table: at each age, how many were there, and how many ended there.

Time sharing without knowing run times needs to guess, from how long a job has run, how soon it will end.
Ages are levels that grow by half: 0, 5 min, 7.5 min, … Ended jobs are counted here; those that still live
count as well, as far as they have come (see ``schedule.attained``), since the ended ones alone are the short
ones. Jobs that one owner submitted together and that ask for the same are *mates*: they tend to live alike.
"""

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from muster.model.job import Gang, Job, JobId
from muster.model.room import Floats

_FIRST_SECONDS, _GROWTH, LEVELS = 300.0, 1.5, 25
EDGES: Floats = np.concatenate([[0.0], _FIRST_SECONDS * _GROWTH ** np.arange(LEVELS)])
WIDTHS: Floats = np.diff(EDGES)

_MATES_EACH_SIDE = 2
_MATE_FADES_SECONDS = 600.0
_LEAST_WEIGHT = 1e-3

Mates = tuple[tuple[float, JobId], ...]
Ended = tuple[tuple[float, float], ...]  # weight and seconds served


class Lives(msgspec.Struct, frozen=True):
    """A frozen view."""

    deaths: Mapping[Gang, Floats]
    exposure: Mapping[Gang, Floats]
    mates: Mapping[JobId, Mates]  # that still live
    ended_mates: Mapping[JobId, Ended]


class LivesBook:
    """Keeps the table as jobs arrive and end."""

    def __init__(self) -> None:
        self._deaths: dict[Gang, Floats] = {}
        self._exposure: dict[Gang, Floats] = {}
        self._mates: dict[JobId, Mates] = {}
        self._ended: dict[JobId, Ended] = {}
        self._latest: dict[tuple[str, Gang], list[tuple[float, JobId]]] = {}

    def arrived(self, job: Job) -> None:
        before = self._latest.setdefault((job.owner, job.gang), [])
        for at, mate in before:
            weight = math.exp(-abs(job.submitted_at - at) / _MATE_FADES_SECONDS)
            if weight >= _LEAST_WEIGHT and mate in self._mates:
                self._mates[mate] = (*self._mates[mate], (weight, job.id))
                self._mates[job.id] = (*self._mates.get(job.id, ()), (weight, mate))
        self._mates.setdefault(job.id, ())
        before.append((job.submitted_at, job.id))
        del before[:-_MATES_EACH_SIDE]

    def ended(self, job: Job, served_seconds: float) -> None:
        gone, stayed = life(served_seconds, ended=True)
        self._deaths[job.gang] = self._deaths.get(job.gang, 0.0) + gone
        self._exposure[job.gang] = self._exposure.get(job.gang, 0.0) + stayed
        self.forget(job.id, served_seconds)

    def forget(self, job_id: JobId, served_seconds: float | None = None) -> None:
        """The job is no more; its mates remember how long it served, if it came to its end."""
        for weight, mate in self._mates.pop(job_id, ()):
            others = self._mates.get(mate)
            if others is not None:
                self._mates[mate] = tuple(m for m in others if m[1] != job_id)
                if served_seconds is not None:
                    self._ended[mate] = (*self._ended.get(mate, ()), (weight, served_seconds))
        self._ended.pop(job_id, None)

    def view(self) -> Lives:
        return Lives(self._deaths, self._exposure, self._mates, self._ended)

    def copy(self) -> "LivesBook":
        twin = LivesBook()
        twin._deaths, twin._exposure = dict(self._deaths), dict(self._exposure)
        twin._mates, twin._ended = dict(self._mates), dict(self._ended)
        twin._latest = {key: list(latest) for key, latest in self._latest.items()}
        return twin


def level_of(age_seconds: float) -> int:
    """Which level an age is on; an age on an edge is on the level that begins there."""
    level = int(np.searchsorted(EDGES, age_seconds + 1e-6, "right")) - 1
    return min(level, LEVELS - 1)


def life(age_seconds: float, *, ended: bool) -> tuple[Floats, Floats]:
    """One life as (deaths, exposure) by level: what it passed counts one, where it is now its part."""
    stayed = np.clip((age_seconds - EDGES[:-1]) / WIDTHS, 0.0, 1.0)
    gone = np.zeros(LEVELS)
    if ended:
        last = min(max(int(np.searchsorted(EDGES, age_seconds, "left")) - 1, 0), LEVELS - 1)
        stayed[last] = gone[last] = 1.0
    return gone, stayed
