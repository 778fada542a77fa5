"""How long will it run? From the owner's last runs, bounded by the limit asked.

Each of the owner's last runs is a sample; it weighs three times more for each of: the same limit asked, the
same gang, the same kind of name. The limit asked is one more sample, of weight one: people know something.
Without a limit, and until its owner has run anything, what others ran lately has to serve.
Two averages serve two purposes. The *mean* errs on the long side and orders the queue; the geometric mean,
the *plan*, is what most jobs stay near, and says when room becomes free. ``spread`` tells between what
bounds eight tenths of runs lie: a little beyond those of the samples, since the next run is one more than
there are of them, and like none of them exactly.

Where a no must be certain, only the *ceiling* counts: the limit asked, or, without one, several times
the plan.
"""

import math
from typing import NamedTuple

from muster.model.history import LIKER, History, whose_history
from muster.model.policy import Policy
from muster.model.snapshot import LaneKey, Running, Snapshot, Waiting
from muster.model.units import DAY, HOUR

_UNHEARD_OF = DAY  # a first guess when nothing has ended yet and no limit was asked
_BESIDE = 0.2  # of the log of a run time, around the sample that it is like
_CEILING = 3.0  # without a limit: no more than this many times the plan, and an hour


class Estimate(NamedTuple):
    """What history says of a job's run time, in seconds."""

    mean: float
    plan: float


def estimate(history: History, lane: LaneKey, memo: dict[object, object]) -> Estimate:
    """The lane's run time as history has it. Remembered until one of the owner's jobs ends."""
    runs = history.runs.get(whose_history(lane.owner, lane.team), ())
    key = ("estimate", lane)
    basis = runs or history.typical_seconds
    kept = memo.get(key)
    if isinstance(kept, tuple) and (kept[0] is basis or kept[0] == basis):
        found: Estimate = kept[1]
        return found
    total = mean = logs = 0.0
    for seconds, weight in samples(history, lane):
        total += weight
        mean += weight * seconds
        logs += weight * math.log(seconds)
    made = Estimate(mean / total, math.exp(logs / total))
    memo[key] = (basis, made)
    return made


def spread(history: History, lane: LaneKey, part: float = 0.8) -> tuple[float, float]:
    """Between what bounds the run time lies, this often."""
    found = sorted(samples(history, lane))
    count = sum(w for _, w in found) ** 2 / sum(w * w for _, w in found)  # as many as would weigh alike
    outside = (1 - part) / 2 * count / (count + 1)
    low, high = _quantile(found, outside), _quantile(found, 1 - outside)
    limit = math.inf if lane.limit_seconds is None else max(lane.limit_seconds, 1.0)
    return max(1.0, low * math.exp(-_BESIDE)), min(limit, high * math.exp(_BESIDE))


def samples(history: History, lane: LaneKey) -> list[tuple[float, float]]:
    """Run times with their weights."""
    runs = history.runs.get(whose_history(lane.owner, lane.team), ())
    limit = lane.limit_seconds
    if limit is None:
        limit = math.inf
        found = [] if runs else [(_first_guess(history), 1.0)]
    else:
        found = [(max(limit, 1.0), 1.0)]
    for run in runs:
        weight = 1.0
        if run.limit_seconds == lane.limit_seconds:
            weight *= LIKER
        if run.gang == lane.gang:
            weight *= LIKER
        if run.kind and run.kind == lane.kind:
            weight *= LIKER
        found.append((max(min(run.seconds, limit), 1.0), weight))
    return found


def _first_guess(history: History) -> float:
    """What is known of a job without a limit before its owner has run anything: what others ran."""
    return _UNHEARD_OF if history.typical_seconds is None else history.typical_seconds


def _quantile(samples: list[tuple[float, float]], part: float) -> float:
    """The value below which ``part`` of the weight lies. Samples come sorted."""
    wanted = part * sum(w for _, w in samples)
    for seconds, weight in samples:
        wanted -= weight
        if wanted <= 0:
            return seconds
    return samples[-1][0]


def ceiling(limit_seconds: float | None, plan: float) -> float:
    """The longest it can take."""
    return limit_seconds if limit_seconds is not None else _CEILING * max(plan, HOUR)


class Lasts(NamedTuple):
    """How long a job lasts: what is planned with, and what promises are made with."""

    plan: float
    firm: float


def lasts(snap: Snapshot, policy: Policy, waiting: Waiting) -> Lasts:
    """How long the next attempt takes, as the policy knows run times."""
    job = waiting.job
    if policy.runtimes == "true":
        left = snap.known_seconds.get(job.id, math.inf) - waiting.done_seconds
        return Lasts(left, left)
    limit = job.time_limit_seconds
    if policy.runtimes == "asked":
        asked = math.inf if limit is None else limit
        return Lasts(asked, asked)
    plan = estimate(snap.history, waiting.lane, snap.memo).plan
    return Lasts(plan, ceiling(limit, plan))


def leaves_at(running: Running, now: float, *, firm: bool) -> float:
    """When a running job's seats become free.

    One that outlived its plan is given the longest it can take; one that outlived even that may well take
    as long again as it has run.
    """
    end = running.latest_end if firm or running.expected_end <= now else running.expected_end
    return end if end > now else now + running.elapsed(now)
