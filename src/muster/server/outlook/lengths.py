"""How long jobs may run, drawn by lot from what is known of jobs like them.

A draw takes one of the samples that the prediction is made of (see ``schedule.predict``), with three things
that matter when many jobs are drawn together:

- *What is known is little.* In each draw the samples of a lane get new weights (a Bayesian bootstrap), the
  same for all of the lane's jobs: they tend to be long together, or short together.
- *The limit asked* is a bound and not a guess: people ask for once to several times what they need. As a
  sample it stands for a part of itself, any part alike, and about the same for all of the lane's jobs.
- *What has run for a while* can't have been short: only what is longer counts. Who has outlived all that is
  known of may well take as long again.
"""

import math
from bisect import bisect_right
from typing import NamedTuple

from numpy.random import Generator  # noqa: TID251 (luck is an argument; this is its name)

from muster.model.history import History
from muster.model.snapshot import LaneKey, Running, Waiting
from muster.schedule.predict import samples

FOREVER = 1e10  # seconds, of who has no limit; beyond any horizon, and still a time to reckon with
_SHORTEST = 0.01
_SPREAD = 0.2  # of the log of a run time around its sample


class _Known:
    """What is known of a lane's run times: those of the past in order, and the limit asked."""

    __slots__ = ("limit", "values", "weights")

    def __init__(self, history: History, lane: LaneKey) -> None:
        self.limit = lane.limit_seconds
        found = samples(history, lane)
        past = sorted(found[1:] if self.limit is not None else found)
        self.values = [seconds for seconds, _ in past]
        self.weights = [weight for _, weight in past]


class _Drawn(NamedTuple):
    """A lane's luck in one draw."""

    sums: list[float]  # of the weights of past runs
    asked: float  # the weight of the limit
    part: float  # of the limit, that it stands for


class Lengths:
    """Run times for one draw after the other."""

    def __init__(self, history: History, rng: Generator) -> None:
        self._history, self._rng = history, rng
        self._known: dict[LaneKey, _Known] = {}
        self._drawn: dict[LaneKey, _Drawn] = {}

    def begin(self) -> None:
        """Another draw."""
        self._drawn = {}

    def of_waiting(self, waiting: Waiting) -> float:
        """What is left to run of a job that waits."""
        done = waiting.done_seconds
        return max(_SHORTEST, self._total(waiting.lane, done) - done)

    def of_running(self, running: Running, now: float) -> float:
        """How long the present attempt will have taken in all."""
        elapsed = max(0.0, running.elapsed(now))
        total = self._total(LaneKey.of(running.job), running.done_seconds + elapsed)
        return max(elapsed + _SHORTEST, total - running.done_seconds)

    def _total(self, lane: LaneKey, beyond: float) -> float:
        """A run time that is longer than ``beyond``."""
        known = self._known.get(lane)
        if known is None:
            known = self._known[lane] = _Known(self._history, lane)
        drawn = self._drawn.get(lane)
        if drawn is None:
            drawn = self._drawn[lane] = self._draw(known)
        sums, asked = drawn.sums, drawn.asked
        first = bisect_right(known.values, beyond)
        gone = sums[first - 1] if first else 0.0
        past = sums[-1] - gone if sums else 0.0
        if known.limit:
            asked *= max(0.0, 1 - beyond / known.limit)
        if past + asked <= 0.0:
            return beyond + (beyond or 1.0) * float(self._rng.standard_exponential())
        lot = float(self._rng.random()) * (past + asked)
        if lot < asked and known.limit:
            like = drawn.part * known.limit
            seconds = like if like > beyond else beyond + (known.limit - beyond) * lot / asked
        else:
            seconds = known.values[min(bisect_right(sums, gone + lot - asked), len(sums) - 1)]
        seconds = beyond + (seconds - beyond) * math.exp(_SPREAD * self._rng.standard_normal())
        return seconds if known.limit is None else min(seconds, known.limit)

    def _draw(self, known: _Known) -> _Drawn:
        luck = self._rng.standard_exponential(len(known.values) + 1)
        sums = (luck[1:] * known.weights).cumsum().tolist()
        return _Drawn(sums, float(luck[0]) if known.limit else 0.0, float(self._rng.random()))


class Limits:
    """Every job takes its whole time limit, and for ever without one."""

    def begin(self) -> None:
        """All draws are the same."""

    def of_waiting(self, waiting: Waiting) -> float:
        limit = waiting.job.time_limit_seconds
        return FOREVER if limit is None else max(limit, _SHORTEST)

    def of_running(self, running: Running, now: float) -> float:
        limit = running.job.time_limit_seconds
        elapsed = max(0.0, running.elapsed(now))
        return FOREVER if limit is None else max(limit, elapsed + _SHORTEST)
