"""What work is worth, which no log tells: when its result stops changing, whether anybody wants it, how it
uses its GPUs, and what it reports of itself. Assumptions, each a constant with its reason.

A run's own time counts from its first start, without waits and without what was done twice. *Useful*
ends at the moment after which the result does not change: the aim was reached, the curve stands still
for good or is no number, the session was left, the program hangs. A run that crashes out of the blue was
useful to the end: nobody could have known.
"""

import enum
import math
from collections.abc import Iterator

import msgspec
import numpy as np

from bench.quarter_people import CLOSES, after_working, is_open
from bench.quarter_sums import Ending
from muster.model.units import DAY, HOUR, MINUTE

SHORT_SECONDS = 15 * MINUTE  # shorter runs are tries: they report nothing, and end before anybody looks

# What the longer runs are, by how they end. Training is most of a GPU cluster's time; people close sessions
# by hand, so these are among the cancelled, and nobody computes by hand on more than a node.
TRAINING = {Ending.COMPLETED: 0.6, Ending.CANCELLED: 0.6, Ending.FAILED: 0.7}
SESSION = {Ending.COMPLETED: 0.0, Ending.CANCELLED: 0.3, Ending.FAILED: 0.0}
SESSION_GPUS = 4

# Trainings that complete: most reach what they were for; half of these at the end of their schedule, the
# others some time in its second half, and go on.
REACHES_AIM = 0.7
REACHES_EARLY = 0.5
# Trainings that are cancelled: for a reason of their own (a bug, a change of mind) that no curve shows;
# because they were hopeless; because they were good enough. The last two as late as their owner looked.
CANCELLED_OTHERWISE, CANCELLED_LOST = 0.3, 0.45
LOOKS_SECONDS = 12 * HOUR  # on average until an owner sees that it is over: twice a working day, not at night
LATEST_LOOK = 0.8  # part of a run that its owner overlooked at most
# Failures that announce themselves: a loss that is no number, a program that hangs, its GPUs idle or busy.
DIVERGES, HANGS, HANGS_IDLE = 0.2, 0.15, 0.5
HABIT = 0.1  # of the batches that complete: run again since they always were, and nobody reads the result
CPU_PHASE = 0.1  # of the batches: a long phase in which only the cpus work
PAUSES = 0.15  # of the trainings that reach their aim: the curve stands still for a while on the way
LEFT_SESSIONS = 0.5  # sessions that are left for good some time before they are closed
LONG_LUNCH = 0.3  # of the days of a session: two hours in the middle without a touch

SAVES = 0.6  # part of the trainings and batches that keep checkpoints

START, NOISE = 0.1, 0.004  # where curves begin, and the spread of one report around its curve
REPORT_SECONDS = 15 * MINUTE


class Nature(msgspec.Struct, frozen=True):
    """Of these assumptions, those that are varied."""

    looks_seconds: float = LOOKS_SECONDS
    sessions: float = SESSION[Ending.CANCELLED]
    saves: float = SAVES


USUAL = Nature()


class Kind(enum.StrEnum):
    SHORT = "short"
    TRAINING = "training"
    BATCH = "batch"
    SESSION = "session"


class Curve(msgspec.Struct, frozen=True, gc=False):
    """A score that climbs towards ``top``; of a training that loses, to a standstill below its aim."""

    top: float
    climb_seconds: float
    aim: float
    pause: tuple[float, float] = (math.inf, 0.0)  # when it stands still for a while, and for how long
    ends_at: float = math.inf  # when it stands still for good
    nan_at: float = math.inf

    def at(self, seconds: float) -> float:
        if seconds >= self.nan_at:
            return math.nan
        seconds = min(seconds, self.ends_at)
        begin, lasts = self.pause
        seconds -= min(max(0.0, seconds - begin), lasts)
        return self.top - (self.top - START) * math.exp(-seconds / self.climb_seconds)


class Life(msgspec.Struct, frozen=True, gc=False):
    """The truth about one run, in seconds of its own time."""

    kind: Kind
    useful_seconds: float  # the result does not change after
    expected_seconds: float  # how long its owner thought it would take
    wanted: bool = True
    curve: Curve | None = None
    idle: tuple[tuple[float, float], ...] = ()  # from, to: nothing of it is used
    on_cpus: tuple[float, float] | None = None  # from, to: its GPUs are not used, and its cpus are
    hangs: bool = False  # after it was useful: no report, no progress

    def unused_seconds(self, begin: float, end: float) -> float:
        """In which its GPUs show no use, but for gaps too short to be found."""
        spans = (*self.idle, *(() if self.on_cpus is None else (self.on_cpus,)))
        return sum(_overlap(begin, end, *span) for span in spans)

    def worthless_seconds(self, begin: float, end: float) -> float:
        """In which holding GPUs was of no use to anybody."""
        until = self.useful_seconds if self.wanted else 0.0
        after = max(0.0, end - max(begin, until))
        return after + sum(_overlap(begin, min(end, max(begin, until)), *span) for span in self.idle)

    def is_useful_after(self, seconds: float) -> bool:
        return self.wanted and seconds < self.useful_seconds

    def idle_at(self, seconds: float) -> tuple[float, float] | None:
        for span in self.idle:
            if span[0] <= seconds < span[1]:
                return span
        return None


def _overlap(begin: float, end: float, other_begin: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(begin, other_begin))


def life_of(
    ending: Ending, run: float, gpus: int, at: float, nature: Nature, luck: np.random.Generator
) -> Life:
    """Its luck, of a job that ends so after ``run`` seconds and was submitted ``at`` a time."""
    expected = _expected(ending, run, luck)
    if run < SHORT_SECONDS:
        return Life(Kind.SHORT, run, expected)
    draw = luck.random()
    if draw < TRAINING[ending]:
        return _training(ending, run, expected, nature, luck)
    sessions = nature.sessions if ending is Ending.CANCELLED else SESSION[ending]
    if draw < TRAINING[ending] + sessions and gpus <= SESSION_GPUS:
        return _session(run, expected, at, luck)
    return _batch(ending, run, expected, luck)


def _expected(ending: Ending, run: float, luck: np.random.Generator) -> float:
    """People misjudge; and what was cancelled or failed was meant to run on."""
    planned = run if ending is Ending.COMPLETED else run * luck.uniform(1.0, 3.0)
    return float(planned * math.exp(luck.normal(0.0, 0.5)))


# --- Trainings ---------------------------------------------------------------------------------------------


def _training(ending: Ending, run: float, expected: float, nature: Nature, luck: np.random.Generator) -> Life:
    if ending is Ending.COMPLETED:
        return _completed(run, expected, luck)
    if ending is Ending.FAILED:
        return _failed(run, expected, luck)
    return _cancelled(run, expected, nature.looks_seconds, luck)


def _completed(run: float, expected: float, luck: np.random.Generator) -> Life:
    if luck.random() >= REACHES_AIM:
        return _losing(run, run * luck.uniform(0.3, 0.9), expected, luck)
    useful = run * luck.uniform(0.5, 1.0) if luck.random() < REACHES_EARLY else run
    return _winning(run, useful, expected, luck)


def _cancelled(run: float, expected: float, looks_seconds: float, luck: np.random.Generator) -> Life:
    why = luck.random()
    if why < CANCELLED_OTHERWISE:
        return _winning(run, run, expected, luck, reaches=False)
    useful = run - min(luck.exponential(looks_seconds), LATEST_LOOK * run)
    lost = why < CANCELLED_OTHERWISE + CANCELLED_LOST
    return (_losing if lost else _winning)(run, useful, expected, luck)


def _failed(run: float, expected: float, luck: np.random.Generator) -> Life:
    why, useful = luck.random(), run * luck.uniform(0.2, 0.9)
    if why < DIVERGES:
        curve = msgspec.structs.replace(_curve(run, run, luck, reaches=False), nan_at=useful)
        return Life(Kind.TRAINING, useful, expected, curve=curve)
    life = _winning(run, run, expected, luck, reaches=False)
    if why < DIVERGES + HANGS and run > HOUR:
        return _hanging(life, run, useful, luck)
    return life


def _hanging(life: Life, run: float, useful: float, luck: np.random.Generator) -> Life:
    idle = ((useful, run),) if luck.random() < HANGS_IDLE else ()
    return msgspec.structs.replace(life, useful_seconds=useful, hangs=True, idle=idle)


def _winning(
    run: float, useful: float, expected: float, luck: np.random.Generator, reaches: bool = True
) -> Life:
    return Life(Kind.TRAINING, useful, expected, curve=_curve(run, useful, luck, reaches))


def _curve(run: float, useful: float, luck: np.random.Generator, reaches: bool) -> Curve:
    """Passes its aim at the end of ``useful``; one that does not get there passes it some time later."""
    climb, top = run / luck.uniform(2.0, 6.0), luck.uniform(0.6, 0.95)
    pause = (math.inf, 0.0)
    if luck.random() < PAUSES:
        pause = (useful * luck.uniform(0.2, 0.7), useful * luck.uniform(0.05, 0.25))
    curve = Curve(top, climb, 1.0, pause)
    aim = curve.at(useful if reaches else useful * luck.uniform(1.2, 3.0))
    return msgspec.structs.replace(curve, aim=aim)


def _losing(_run: float, useful: float, expected: float, luck: np.random.Generator) -> Life:
    """Climbs, and stops short of its aim."""
    curve = Curve(luck.uniform(0.4, 0.85), useful / luck.uniform(1.5, 5.0), 1.0, ends_at=useful)
    aim = curve.at(useful) * luck.uniform(1.05, 1.5)
    return Life(Kind.TRAINING, useful, expected, curve=msgspec.structs.replace(curve, aim=aim))


# --- Others ------------------------------------------------------------------------------------------------


def _batch(ending: Ending, run: float, expected: float, luck: np.random.Generator) -> Life:
    life = Life(Kind.BATCH, run, expected)
    if ending is Ending.FAILED and luck.random() < HANGS and run > HOUR:
        return _hanging(life, run, run * luck.uniform(0.2, 0.9), luck)
    if ending is Ending.COMPLETED and luck.random() < HABIT:
        return msgspec.structs.replace(life, wanted=False, useful_seconds=0.0)
    if luck.random() < CPU_PHASE:
        begin = run * luck.uniform(0.0, 0.6)
        return msgspec.structs.replace(life, on_cpus=(begin, begin + run * luck.uniform(0.1, 0.4)))
    return life


def _session(run: float, expected: float, at: float, luck: np.random.Generator) -> Life:
    """Used while its owner works, idle at night and at weekends, and, if it was left, from then on."""
    useful = run * luck.uniform(0.3, 1.0) if luck.random() < LEFT_SESSIONS else run
    idle = [span for span in _absences(at, run, luck) if span[0] < useful]
    if useful < run:
        idle = [*(span for span in idle if span[1] < useful), (useful, run)]
    # nobody comes back to what is closed before they do
    back = [(begin, end) for begin, end in idle if end < run]
    left = min((begin for begin, end in idle if end >= run), default=useful)
    gone = ((left, run),) if left < run else ()
    return Life(Kind.SESSION, min(useful, left), expected, idle=(*back, *gone))


def _absences(at: float, run: float, luck: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Lunches and evenings, in seconds of the run."""
    now = at if is_open(at) else at + 2 * HOUR  # who begins late works for two hours
    while now < at + run:
        midday = now - now % DAY + 12.5 * HOUR
        if is_open(now) and now < midday and luck.random() < LONG_LUNCH:
            yield midday - at, min(run, midday + 2 * HOUR - at)
        leaves = max(now, now - now % DAY + CLOSES + luck.uniform(-1.0, 2.0) * HOUR)
        now = after_working(leaves + HOUR, luck.uniform(0.0, 1.5) * HOUR)
        yield leaves - at, min(run, now - at)
