"""Who will come: others submit while a job waits, and some of them go first.

What an owner is used to submit follows from what the scheduler knows of it: its account tells how much it
has held on average lately, its history of what size and length its jobs are. So many of them make up so much.
The rate is known as well as so few runs can tell it: each draw takes another (a gamma distribution).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator  # noqa: TID251 (luck is an argument; this is its name)

from muster.model.history import PastRun, whose_history
from muster.model.job import Job
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.schedule.shares import brought_to

_MOST = 128  # that come in one draw
_SHORTEST = 0.01


class Coming(NamedTuple):
    """A job that may come, and how long it would run."""

    job: Job
    seconds: float


class _Habit(NamedTuple):
    """What an owner submits, and how often."""

    team: str
    owner: str
    runs: tuple[PastRun, ...]
    per_second: float


class Arrivals:
    """Jobs that may come, in one draw after the other."""

    def __init__(self, snap: Snapshot, policy: Policy, now: float, rng: Generator) -> None:
        self._now, self._rng = now, rng
        self._habits = _habits(snap, policy, now)

    def draw(self) -> list[Coming]:
        """Jobs in the order in which they come."""
        if not self._habits:
            return []
        counts = np.array([len(h.runs) for h in self._habits])
        rates = np.array([h.per_second for h in self._habits]) * self._rng.standard_gamma(counts) / counts
        total = float(rates.sum())
        at = self._now + self._rng.standard_exponential(_MOST).cumsum() / total
        whose = np.searchsorted(rates.cumsum(), self._rng.random(_MOST) * total)
        which = self._rng.random(_MOST)
        return [
            self._coming(n, self._habits[min(i, len(counts) - 1)], lot, when)
            for n, (i, lot, when) in enumerate(zip(whose.tolist(), which.tolist(), at.tolist(), strict=True))
        ]

    def _coming(self, number: int, habit: _Habit, lot: float, at: float) -> Coming:
        run = habit.runs[int(lot * len(habit.runs))]
        job = Job(
            id=f"~{number}",
            gang=run.gang,
            submitted_at=at,
            name=run.kind,
            owner=habit.owner,
            team=habit.team,
            time_limit_seconds=run.limit_seconds,
        )
        return Coming(job, max(run.seconds, _SHORTEST))


def _habits(snap: Snapshot, policy: Policy, now: float) -> list[_Habit]:
    """Of all who have an account and a history."""
    fades = math.log(2) / policy.half_life_seconds
    found = []
    for (team, owner), account in snap.accounts.items():
        runs = () if owner is None else snap.history.runs.get(whose_history(owner, team), ())
        if owner is not None and runs:
            use = brought_to(account, now, policy.half_life_seconds).use
            held = use[2] or use[0]  # GPUs, or else cpus
            asked = (run.gang.asked() for run in runs)
            each = sum(
                (a.gpus_milli if use[2] else a.cpus_milli) * max(r.seconds, _SHORTEST)
                for a, r in zip(asked, runs, strict=True)
            )
            if each > 0 and held > 0:
                found.append(_Habit(team, owner, runs, held * fades * len(runs) / each))
    return found
