"""How long will it run? From the owner's last runs, bounded by the limit asked.

Each of the owner's last runs is a sample; it weighs three times more for each of: the same limit asked, the
same gang, the same kind of name. The limit asked is one more sample, of weight one: people know something.
Two averages serve two purposes. The *mean* errs on the long side and orders the queue; the geometric mean,
the *plan*, is what most jobs stay near, and says when room becomes free. ``spread`` tells between what
bounds eight tenths of the samples lie.

Where a no must be certain, only the *ceiling* counts: the limit asked, or, without one, several times the plan.
"""

import math
from typing import NamedTuple

from muster.model.history import EVERYBODY, History
from muster.model.policy import Policy
from muster.model.snapshot import LaneKey, Running, Snapshot, Waiting
from muster.model.units import DAY, HOUR

_LIKER = 3.0  # how much more a like run weighs
_UNHEARD_OF = DAY  # a first guess when nothing has ended yet and no limit was asked
_CEILING = 3.0  # without a limit: no more than this many times the plan, and an hour


class Estimate(NamedTuple):
    """What history says of a job's run time, in seconds."""

    mean: float
    plan: float


def estimate(history: History, lane: LaneKey, memo: dict[object, object]) -> Estimate:
    """The lane's run time as history has it. Remembered until one of the owner's jobs ends."""
    runs = history.runs.get(lane.owner, ())
    key = ("estimate", lane)
    kept = memo.get(key)
    if isinstance(kept, tuple) and kept[0] is runs:
        found: Estimate = kept[1]
        return found
    samples = _samples(history, lane)
    total = sum(w for _, w in samples)
    mean = sum(s * w for s, w in samples) / total
    plan = math.exp(sum(math.log(s) * w for s, w in samples) / total)
    made = Estimate(mean, plan)
    memo[key] = (runs, made)
    return made


def spread(history: History, lane: LaneKey, part: float = 0.8) -> tuple[float, float]:
    """Between what bounds the run time lies, this often."""
    samples = sorted(_samples(history, lane))
    outside = (1 - part) / 2
    return _quantile(samples, outside), _quantile(samples, 1 - outside)


def _samples(history: History, lane: LaneKey) -> list[tuple[float, float]]:
    """Run times with their weights."""
    limit = lane.limit_seconds if lane.limit_seconds is not None else math.inf
    samples = [(max(_first_guess(history, lane), 1.0), 1.0)]
    for run in history.runs.get(lane.owner, ()):
        weight = 1.0
        if run.limit_seconds == lane.limit_seconds:
            weight *= _LIKER
        if run.gang == lane.gang:
            weight *= _LIKER
        if run.kind and run.kind == lane.kind:
            weight *= _LIKER
        samples.append((max(min(run.seconds, limit), 1.0), weight))
    return samples


def _first_guess(history: History, lane: LaneKey) -> float:
    """What is known before the owner has run anything: the limit asked, or what others ran."""
    if lane.limit_seconds is not None:
        return lane.limit_seconds
    others = history.runs.get(EVERYBODY, ())
    if not others:
        return _UNHEARD_OF
    return math.exp(sum(math.log(max(r.seconds, 1.0)) for r in others) / len(others))


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


def leaves_at(running: Running, policy: Policy, now: float, *, firm: bool) -> float:
    """When a running job's seats become free. One that outlived its plan is given its ceiling."""
    expected = running.expected_seconds
    if expected is None:
        return math.inf
    if policy.runtimes == "predicted":
        longest = ceiling(running.job.time_limit_seconds, expected)
        if firm or running.placed_at + expected <= now:
            expected = max(longest, expected)
    return max(running.placed_at + expected, now)
