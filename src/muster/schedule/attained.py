"""Time sharing: ranks of all jobs, running or waiting, by what they have had or still need.

- ``las``: least attained service, in a few queues by GPU-seconds; within a queue those that run go first,
  then those evicted lately, then by age. Nothing has to be known of run times.
- ``gittins``: who is most likely to end soon for the time it takes, from the lives of other jobs (see
  ``model.lives``): all jobs, then those that ask for the same, then those submitted together. A running
  job must be beaten clearly.
- ``srtf``, ``srsf``: least remaining time, or remaining time × GPUs; for comparison, with run times known.

Each rank function also says when a job's rank changes by its running, so that the loop decides again then.
"""

import math
from typing import NamedTuple

import numpy as np

from muster.model.job import Gang, Job, JobId
from muster.model.lives import EDGES, LEVELS, WIDTHS, Lives, level_of, life
from muster.model.policy import Policy
from muster.model.room import Floats
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.units import MILLI

_SOON = 1e-6

# gittins
_PRIOR_JOBS = 8.0  # of which half end before they are twice as old
_PRIOR = 1 - 0.5 ** math.log2(1.5)
_ALL_JOBS = 4.0  # what all jobs count for against those that ask for the same
_SAME_GANG = 0.25  # what those count for against mates
_SIZE_POWER = 0.5
_STAYING = 3.0  # how much better a waiting job must be than a running one


class Contender(NamedTuple):
    """A job in the contest, waiting or running."""

    job: Job
    waiting: Waiting | None
    running: Running | None
    served_seconds: float  # attained, lost work included: it never goes back
    done_seconds: float
    size: float  # GPUs, or cpus where it asks for none


class Ranking(NamedTuple):
    """The best first, and after how many seconds of running its rank changes, by job."""

    contenders: list[Contender]
    changes_in: dict[JobId, float]


def waiting_contender(waiting: Waiting) -> Contender:
    size = (waiting.asked.gpus_milli or waiting.asked.cpus_milli) / MILLI
    return Contender(waiting.job, waiting, None, waiting.attained_seconds, waiting.done_seconds, size)


def running_contender(running: Running, now: float) -> Contender:
    size = (running.held.gpus_milli or running.held.cpus_milli) / MILLI
    elapsed = running.elapsed(now)
    served, done = running.attained_seconds + elapsed, running.done_seconds + elapsed
    return Contender(running.job, None, running, served, done, size)


def ranked(contenders: list[Contender], snap: Snapshot, policy: Policy, now: float) -> Ranking:
    """All contenders, the best first."""
    if policy.order == "las":
        return _las(contenders, policy, now)
    if policy.order == "gittins":
        return _gittins(contenders, snap)
    return _shortest(contenders, snap, by_size=policy.order == "srsf")


# --- srtf, srsf ---------------------------------------------------------------------------------------


def _shortest(contenders: list[Contender], snap: Snapshot, *, by_size: bool) -> Ranking:
    def left(c: Contender) -> tuple[float, float, str]:
        seconds = snap.known_seconds.get(c.job.id, math.inf) - c.done_seconds
        return (seconds * c.size if by_size else seconds, c.job.submitted_at, c.job.id)

    return Ranking(sorted(contenders, key=left), {})


# --- las ----------------------------------------------------------------------------------------------


def _las(contenders: list[Contender], policy: Policy, now: float) -> Ranking:
    limits = policy.levels_gpu_seconds
    changes: dict[JobId, float] = {}

    def rank(c: Contender) -> tuple[int, int, float, float, str]:
        # A job is demoted after so many whole seconds of service, to the tail of the next queue.
        steps = [math.ceil(limit / max(c.size, _SOON)) for limit in limits]
        queue = sum(c.served_seconds >= step - _SOON for step in steps)
        in_queue = c.served_seconds - (steps[queue - 1] if queue else 0.0)
        if queue < len(steps):
            changes[c.job.id] = steps[queue] - c.served_seconds
        block, since = _place_in_queue(c, in_queue, now)
        return (queue, block, since, c.job.submitted_at, c.job.id)

    return Ranking(sorted(contenders, key=rank), changes)


def _place_in_queue(c: Contender, in_queue_seconds: float, now: float) -> tuple[int, float]:
    """Those that run, those evicted from among them (the latest first), those that came to the tail."""
    if c.running is not None:
        if in_queue_seconds <= _SOON and c.served_seconds > _SOON:
            return (2, now)  # demoted at this instant
        return (0, max(c.running.placed_at, now - in_queue_seconds))
    assert c.waiting is not None
    evicted_at = c.waiting.vacated_at
    if evicted_at is None:
        return (2, c.job.submitted_at)
    return (2, evicted_at) if in_queue_seconds <= _SOON else (1, -evicted_at)


# --- gittins ------------------------------------------------------------------------------------------


def _gittins(contenders: list[Contender], snap: Snapshot) -> Ranking:
    if not contenders:
        return Ranking([], {})
    ages = np.array([c.served_seconds for c in contenders])
    levels = np.array([level_of(age) for age in ages])
    index = _gittins_index(_hazards(contenders, ages, snap.lives), levels)
    sizes = np.array([max(c.size, 1 / MILLI) for c in contenders])
    runs = np.array([c.running is not None for c in contenders])
    rank = sizes**_SIZE_POWER / index
    rank[runs] /= _STAYING
    arrival = np.array([c.job.submitted_at for c in contenders])
    order = np.lexsort((arrival, -ages, ~runs, rank))
    changes = {
        c.job.id: float(EDGES[level + 1] - age)
        for c, level, age in zip(contenders, levels, ages, strict=True)
        if level < LEVELS - 1
    }
    return Ranking([contenders[i] for i in order], changes)


def _hazards(contenders: list[Contender], ages: Floats, lives: Lives) -> Floats:
    """For each contender and level, the chance to end there once it is there."""
    living = {c.job.id: life(age, ended=False)[1] for c, age in zip(contenders, ages, strict=True)}
    deaths: dict[Gang, Floats] = dict(lives.deaths)
    exposure: dict[Gang, Floats] = dict(lives.exposure)
    for c in contenders:
        exposure[c.job.gang] = exposure.get(c.job.gang, 0.0) + living[c.job.id]
    none = np.zeros(LEVELS)
    gone, stayed = sum(deaths.values(), none), sum(exposure.values(), none)
    overall = (gone + _PRIOR_JOBS * _PRIOR) / (stayed + _PRIOR_JOBS)
    by_gang = {
        gang: (deaths.get(gang, none) + _ALL_JOBS * overall) / (seen + _ALL_JOBS)
        for gang, seen in exposure.items()
    }
    hazards = np.empty((len(contenders), LEVELS))
    for i, c in enumerate(contenders):
        d, e = _SAME_GANG * by_gang[c.job.gang], np.full(LEVELS, _SAME_GANG)
        for weight, mate in lives.mates.get(c.job.id, ()):
            if mate in living:
                e = e + weight * living[mate]
        for weight, served in lives.ended_mates.get(c.job.id, ()):
            mate_gone, mate_stayed = life(served, ended=True)
            d, e = d + weight * mate_gone, e + weight * mate_stayed
        hazards[i] = d / e
    hazards[:, -1] = 1.0
    return hazards


def _gittins_index(hazards: Floats, levels: Floats) -> Floats:
    """The best ratio, over all horizons, of the chance to end by then to the service spent until then."""
    past = np.arange(LEVELS) < levels[:, None]
    hazards = np.where(past, 0.0, hazards)
    ahead = np.ones((len(hazards), 1))
    alive = np.cumprod(np.hstack([ahead, 1 - hazards[:, :-1]]), axis=1)
    spent = np.where(past, 0.0, alive * WIDTHS * (1 - hazards / 2))
    won = np.cumsum(alive * hazards, axis=1)
    ratio = np.where(past, 0.0, won / np.where(past, 1.0, np.cumsum(spent, axis=1)))
    best: Floats = ratio.max(axis=1)
    return best
