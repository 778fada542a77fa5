"""How much work is ahead of a job that is deep in the queue, and how fast it drains.

A long queue is not played to its end: it is played for a while, and what got done in that time, of the work
that competes for the same hardware, is the rate at which the rest drains. Work is what jobs ask, times
how long they are thought to run. What is ahead in turn:

- all of higher priority, and of the owner's own what is older for its length;
- of other owners at most what is fair: as much as of this owner's work is ahead, by their weights.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator  # noqa: TID251 (luck is an argument; this is its name)

from muster.model.history import whose_history
from muster.model.job import Gang, Job
from muster.model.policy import Policy
from muster.model.room import Floats
from muster.model.snapshot import LaneKey, Snapshot, Waiting
from muster.model.units import HOUR, MILLI, MINUTE
from muster.schedule.predict import Estimate, estimate

_LEAST_MILLI = 50  # of a GPU, where a share is asked by memory
_KNOWN_PART = 0.5  # of the spread of single runs that is left in what is thought of an owner's mean


def weigher(snap: Snapshot, target: Job) -> Callable[[Job], float]:
    """What a job holds of what the target competes for: GPUs of its models, or else cpus and memory."""
    by_gang: dict[Gang, float] = {}
    models = {m for p in target.gang.parts if p.shape.gpus for m in p.shape.gpu_models}
    wants_gpus = any(p.shape.gpus for p in target.gang.parts)
    cpus, memory, _ = snap.hardware.total.vector()

    def weight(gang: Gang) -> float:
        if not wants_gpus:
            asked = gang.asked()
            return max(asked.cpus_milli / max(cpus, 1.0), asked.memory_bytes / max(memory, 1.0))
        parts = [p for p in gang.parts if p.shape.gpus]
        suited = (p for p in parts if not (models and p.shape.gpu_models) or models & {*p.shape.gpu_models})
        return sum(p.count * p.shape.gpus * max(p.shape.gpu_milli, _LEAST_MILLI) / MILLI for p in suited)

    def weigh(job: Job) -> float:
        found = by_gang.get(job.gang)
        if found is None:
            found = by_gang[job.gang] = weight(job.gang)
        return found

    return weigh


class Backlog:
    """The work ahead of one job, by owner."""

    def __init__(self, snap: Snapshot, policy: Policy, target: Waiting, now: float) -> None:
        weigh = weigher(snap, target.job)
        self._owners: dict[tuple[str, str], int] = {}
        self._fair: list[float] = []
        rows = []
        before = _Before(snap, policy, target, now)
        for key, lane in snap.lanes.items():
            weight = weigh(lane[0].job)
            if weight and key.priority >= target.job.priority:
                known = estimate(snap.history, key, snap.memo)
                limit = math.inf if key.limit_seconds is None else key.limit_seconds
                first, bounded = before.count(key, lane, known.mean)
                spread = _spread(snap, key, known)
                owner = self._owner(snap, key)
                rows.append((owner, first * weight, bounded * weight, known.mean, limit, spread))
        self._mine = self._owner(snap, target.lane)
        self._rows: Floats = np.array(rows or [(self._mine, 0.0, 0.0, 1.0, 1.0, 0.0)])
        self._at_once = _array_limit(snap, target)

    def by_prediction(self, rng: Generator) -> float:
        """The work, with the means of owners as little known as they are."""
        owners = self._rows[:, 0].astype(np.intp)
        luck, part = rng.standard_normal(len(self._fair))[owners], rng.random(len(self._fair))[owners]
        mean, limit, spread = self._rows[:, 3], self._rows[:, 4], self._rows[:, 5]
        asked = np.where(np.isfinite(limit), limit, mean)
        return self._sum(np.where(np.isinf(spread), asked * part, mean * np.exp(_spread_of(spread) * luck)))

    def by_limits(self) -> float:
        """The work, if all take as long as they may. Infinite where somebody has no limit."""
        return self._sum(self._rows[:, 4])

    def _sum(self, seconds: Floats) -> float:
        owners = self._rows[:, 0].astype(np.intp)
        count = len(self._fair)
        first = np.bincount(owners, weights=_times(self._rows[:, 1], seconds), minlength=count)
        bounded = np.bincount(owners, weights=_times(self._rows[:, 2], seconds), minlength=count)
        fair = np.array(self._fair)
        mine = first[self._mine]
        return float(first.sum() + np.minimum(bounded, mine * fair / fair[self._mine]).sum())

    def array_seconds(self, mean_seconds: float) -> float:
        """How long its array takes to come to it, if it runs only so many at once."""
        return 0.0 if self._at_once is None else self._at_once * mean_seconds

    def _owner(self, snap: Snapshot, key: LaneKey) -> int:
        found = self._owners.get((key.team, key.owner))
        if found is None:
            found = self._owners[key.team, key.owner] = len(self._fair)
            self._fair.append(snap.tenancy.weight(key.team))
        return found


def _spread(snap: Snapshot, key: LaneKey, known: Estimate) -> float:
    """Of the log of single run times; infinite if the owner has run nothing yet."""
    if not snap.history.runs.get(whose_history(key.owner, key.team)):
        return math.inf
    return math.sqrt(2 * math.log(max(1.0, known.mean / known.plan)))


def _spread_of(spreads: Floats) -> Floats:
    """What is left of it in an owner's mean."""
    return np.where(np.isinf(spreads), 0.0, _KNOWN_PART * spreads)


class _Before:
    """How many of a lane come before the target for certain, and how many more in fair turn."""

    def __init__(self, snap: Snapshot, policy: Policy, target: Waiting, now: float) -> None:
        self._target, self._fair = target, policy.order == "fair"
        mean = estimate(snap.history, target.lane, snap.memo).mean
        self._until = now + HOUR
        # A job's rank, see ``schedule.order``: how long it has waited for its length.
        self._rank = (self._until - target.job.submitted_at) / (mean + MINUTE)

    def count(self, key: LaneKey, lane: Sequence[Waiting], mean: float) -> tuple[int, int]:
        job = self._target.job
        if key.priority > job.priority:
            return len(lane), 0
        if not self._fair or key == self._target.lane:
            return _older(lane, job.submitted_at, job.id), 0
        if (key.team, key.owner) == (job.team, job.owner):
            return _older(lane, self._until - self._rank * (mean + MINUTE)), 0
        return 0, len(lane)


def _older(lane: Sequence[Waiting], than: float, job_id: str = "") -> int:
    return bisect_left(lane, (than, job_id), key=lambda w: (w.job.submitted_at, w.job.id))


def _array_limit(snap: Snapshot, target: Waiting) -> float | None:
    """How many rounds of its array come before it."""
    place = target.job.array
    if place is None or not place.most_at_once:
        return None
    before = _older(snap.lanes.get(target.lane, ()), target.job.submitted_at, target.job.id)
    return before / place.most_at_once


def _times(counts: Floats, seconds: Floats) -> Floats:
    """Nothing of what takes for ever is nothing."""
    return np.where(counts > 0, counts * np.where(counts > 0, seconds, 0.0), 0.0)
