"""When will a waiting job start? The simulator is run forward from the present, several times.

Each draw takes run times by lot from what is known of jobs like these (``lengths``), and plays what matters
of the queue (``world``) through the same loop, fold and scheduler as in production until the job starts
(``future``). Eight tenths of the draws lie between *earliest* and *latest*. One more run, with every job
taking its whole limit, says how late it may get.

The work is bounded by a budget of time. Where it does not suffice, or the job is too deep in the queue, a
draw ends early, and the rest is reckoned: from the rate at which work drained in it (``drain``), or, for a
job that nobody is ahead of, from how long it has waited.

How good it is, on generated traces (8 and 48 GPUs, loads of 0.7 to 1.0), asked at random moments about a
random job that waited: with 0.2 s for each (four traces, 581 jobs) 66, 76, 78 and 80 % started within the
range that claims 80 %; with 0.084 s, as in ``explain`` (three traces, 471 jobs), 64, 75 and 77 %. So the
ranges are somewhat too narrow, the most at a load of 1; their width (``_OF_DRAWS``) was chosen on the
trace with 80 %. They are wide all the same: the median error was 0.5 to 1.0 of the wait that was left. The
latest by limits reckons only with those who are there now, so it is no promise: 6 to 14 % started later.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Protocol

import msgspec
import numpy as np
from numpy.random import Generator  # noqa: TID251 (luck is an argument; this is its name)

from muster.model.job import Job, JobId
from muster.model.policy import Policy
from muster.model.reasons import Reason
from muster.model.room import Floats
from muster.model.snapshot import Snapshot
from muster.model.units import HOUR, MINUTE, show_seconds
from muster.schedule import schedule
from muster.schedule.fit import never
from muster.schedule.predict import estimate as run_time
from muster.server.outlook.arrivals import Arrivals, Coming
from muster.server.outlook.drain import Backlog, weigher
from muster.server.outlook.future import Played, RunTimes, play
from muster.server.outlook.lengths import Lengths, Limits
from muster.server.outlook.world import World, apart, find_waiting, with_job, world_around

BUDGET_SECONDS = 0.2
ANSWER_SECONDS = 0.14  # of the three tenths of a second that a person's question may take in all
PROBABILITY = 0.8
_FEWEST, _MOST = 3, 64  # draws
_GUESSES = 8  # for each draw that had to end early
_ENOUGH = 16  # draws that tell the bounds by themselves
_OF_DRAWS = 0.88  # the part of the draws within the bounds: the world varies more than what is drawn
_NORMAL = 1.555  # the bounds of that part, in a normal distribution

Clock = Callable[[], float]
ShowTime = Callable[[float], str]  # a time as people read it, in their time zone


class Estimate(msgspec.Struct, frozen=True):
    """When a job starts: between ``earliest`` and ``latest``, this probably."""

    earliest: float
    latest: float
    likely: float  # the median
    probability: float = PROBABILITY
    latest_by_limits: float | None = None  # if all take as long as they may; None if some may take for ever
    draws: int = 0
    follows: JobId | None = None  # the running job whose end most likely lets it start

    def text(self, show_time: ShowTime, when: str = "") -> str:
        """As a person reads it; ``when`` says what it follows."""
        first, last = show_time(self.earliest), show_time(self.latest)
        span = first if first == last else f"{first}–{last}"
        latest = self.latest_by_limits
        bound = "" if latest is None else f" Latest {show_time(latest)}, by time limits."
        return f"Likely starts {span} ({self.probability * 100:.0f} %){when}.{bound}"


def estimate(
    snap: Snapshot,
    policy: Policy,
    job_id: JobId,
    *,
    now: float,
    rng: Generator,
    clock: Clock,
    budget_seconds: float = BUDGET_SECONDS,
) -> Estimate | None:
    """When a waiting job starts; None if nobody can say: it never fits, is held, or depends on such a job."""
    snap = apart(snap)
    target = find_waiting(snap, job_id)
    if target is None or target.job.held or job_id in snap.doomed or never(snap.hardware, target.job.gang):
        return None
    world = world_around(snap, policy, target, now)
    if world is None:
        return None
    return _Oracle(snap, policy, world, now, rng).ask(clock, budget_seconds)


class Forecast(msgspec.Struct, frozen=True):
    """What would become of a job that came now."""

    reason: Reason | None = None  # why it can't start at once
    starts_at: float | None = None  # if it starts at once: now
    nodes: tuple[str, ...] = ()
    yields: tuple[JobId, ...] = ()  # who would have to leave for it
    estimate: Estimate | None = None

    @property
    def feasible(self) -> bool:
        return self.reason is None or not self.reason.infeasible

    def sentence(self) -> str:
        """The answer without clock times."""
        if self.starts_at is not None:
            return f"Starts now on {', '.join(self.nodes)}."
        if self.yields:
            return f"Starts as soon as {', '.join(self.yields)} will have left to make room."
        return "It waits its turn." if self.reason is None else said(self.reason)

    def text(self, show_time: ShowTime) -> str:
        """The answer as a person reads it."""
        when = "" if self.estimate is None else " " + self.estimate.text(show_time)
        return self.sentence() + when


def said(reason: Reason) -> str:
    """A reason as a sentence of its own."""
    sentence = reason.sentence()
    return sentence[:1].upper() + sentence[1:] + "." * (not sentence.endswith("?"))


def forecast_new(
    snap: Snapshot,
    policy: Policy,
    job: Job,
    *,
    now: float,
    rng: Generator,
    clock: Clock,
    budget_seconds: float = ANSWER_SECONDS,
) -> Forecast:
    """What if this job came now? Nothing changes; its id must be that of no other."""
    snap = with_job(snap, job)
    plan = schedule(snap, policy, now=now)
    for start in plan.starts:
        if start.job == job.id:
            return Forecast(starts_at=now, nodes=tuple(dict.fromkeys(s.node for s in start.seats)))
    waiting = find_waiting(snap, job.id)
    wait = None if waiting is None else plan.wait_of(waiting, snap.unmet)
    reason = None if wait is None else wait.reasons[0]
    if reason is not None and reason.infeasible:
        return Forecast(reason)
    return Forecast(
        reason,
        yields=tuple(e.job for e in plan.evicts if e.in_favour_of == job.id),
        estimate=estimate(snap, policy, job.id, now=now, rng=rng, clock=clock, budget_seconds=budget_seconds),
    )


class _Oracle:
    """Plays one world again and again."""

    def __init__(self, snap: Snapshot, policy: Policy, world: World, now: float, rng: Generator) -> None:
        self._snap, self._policy, self._world, self._now, self._rng = snap, policy, world, now, rng
        self._arrivals = Arrivals(snap, policy, now, rng)
        self._weigh = weigher(snap, world.target.job)
        self._backlog: Backlog | None = None

    def ask(self, clock: Clock, budget_seconds: float) -> Estimate | None:
        ends_at = clock() + budget_seconds
        at_most = budget_seconds / (_FEWEST + 1)
        by_limits = self._draw(Limits(), clock, clock() + at_most)
        latest = self._start(by_limits, lambda b: b.by_limits())
        lengths = Lengths(self._snap.history, self._rng)
        drawn: list[tuple[Played, list[float]]] = []
        while len(drawn) < _FEWEST or (len(drawn) < _MOST and clock() < ends_at):
            played = self._draw(lengths, clock, clock() + at_most, self._arrivals.draw())
            drawn.append((played, self._starts(played)))
        return _summed_up(drawn, self._snap, self._now, latest)

    def _starts(self, played: Played) -> list[float]:
        """When it starts, in several guesses if it was not played so far."""
        found = [
            self._start(played, lambda b: b.by_prediction(self._rng))
            for _ in range(_GUESSES if played.cut else 1)
        ]
        known = [math.inf if at is None else at for at in found]
        return known if played.cut else known * _GUESSES

    def _draw(self, times: RunTimes, clock: Clock, until: float, coming: Sequence[Coming] = ()) -> Played:
        return play(
            self._world,
            self._policy,
            times,
            now=self._now,
            weigh=self._weigh,
            go_on=lambda: clock() < until,
            coming=coming,
        )

    def _start(self, played: Played, work: Callable[[Backlog], float]) -> float | None:
        """When it starts: as played, or by the rate at which work drained as far as it was played."""
        if played.started_at is not None or (not played.cut and self._world.whole):
            return played.started_at
        if not played.work:
            return None
        if self._backlog is None:
            self._backlog = Backlog(self._snap, self._policy, self._world.target, self._now)
        seconds = work(self._backlog) * played.seconds / played.work
        mean = run_time(self._snap.history, self._world.target.lane, {}).mean
        seconds = max(seconds, self._backlog.array_seconds(mean), self._undecided(played))
        return self._now + seconds if math.isfinite(seconds) else None

    def _undecided(self, played: Played) -> float:
        """It did not start in all the time it has waited, nor as far as was looked: once in so long, then."""
        if not self._world.whole:
            return played.seconds
        waited = max(0.0, self._now - self._world.target.job.submitted_at)
        return played.seconds + (waited + played.seconds) * float(self._rng.standard_exponential())


def _summed_up(
    drawn: list[tuple[Played, list[float]]], snap: Snapshot, now: float, latest: float | None
) -> Estimate | None:
    starts = [at for _, guesses in drawn for at in guesses]
    if not all(map(math.isfinite, starts)):
        return None
    guessed = any(played.cut for played, _ in drawn)
    low, middle, high = _range(np.array(starts if guessed else starts[::_GUESSES]) - now)
    return Estimate(
        earliest=now + low,
        latest=now + high,
        likely=now + middle,
        latest_by_limits=None if latest is None else max(latest, now + high),
        draws=len(drawn),
        follows=_followed([played for played, _ in drawn], snap),
    )


def _followed(played: list[Played], snap: Snapshot) -> JobId | None:
    """Whose end lets it start, in most draws."""
    ends = Counter(job_id for one in played for job_id in one.follows if job_id in snap.running)
    most = ends.most_common(1)
    return most[0][0] if most and most[0][1] * 2 >= len(played) else None


def _range(waits: Floats) -> tuple[float, float, float]:
    """The bounds, and the middle. A few draws only hint at how far others may lie apart."""
    outside, count = (1 - _OF_DRAWS) / 2, len(waits)
    if count >= _ENOUGH:
        low, middle, high = np.quantile(waits, (outside, 0.5, 1 - outside), method="weibull").tolist()
        return low, middle, high
    logs = np.log1p(waits)
    middle, apart = float(np.median(logs)), float(logs.std(ddof=1))
    reach = _NORMAL * (1 + 0.85 / (count - 1)) * math.sqrt(1 + 1 / count) * apart  # about Student's t
    return math.expm1(max(0.0, middle - reach)), math.expm1(middle), math.expm1(middle + reach)


# --- How good past estimates were -------------------------------------------------------------------------


class Said(Protocol):
    """What was said of a start; None where nothing could be."""

    @property
    def earliest(self) -> float | None: ...
    @property
    def latest(self) -> float | None: ...


class Accuracy(msgspec.Struct, frozen=True):
    """Of so many jobs: how far they started from the middle of the range, and which part within it."""

    jobs: int = 0
    median_error_seconds: float | None = None
    within: float | None = None

    def sentence(self, period: str = "this week") -> str:
        if self.median_error_seconds is None:
            return f"No estimate of {period} could be checked yet."
        jobs = "1 job" if self.jobs == 1 else f"{self.jobs} jobs"
        off = _in_words(self.median_error_seconds)
        return f"Estimates {period} were off by {off} at the median ({jobs})."


def accuracy(pairs: Iterable[tuple[Said, float | None]]) -> Accuracy:
    """From estimates, each with when the job did start."""
    known = [
        (said.earliest, said.latest, at)
        for said, at in pairs
        if said.earliest is not None and said.latest is not None and at is not None
    ]
    if not known:
        return Accuracy()
    errors = [abs(at - (earliest + latest) / 2) for earliest, latest, at in known]
    within = sum(earliest <= at <= latest for earliest, latest, at in known)
    return Accuracy(len(known), median(errors), within / len(known))


def _in_words(seconds: float) -> str:
    """Minutes as minutes: ``9 minutes``."""
    if not MINUTE <= seconds < 2 * HOUR:
        return show_seconds(seconds)
    minutes = round(seconds / MINUTE)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
