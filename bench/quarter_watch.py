"""What the steward sees of a run that may be idle or stuck: minutes by its meters and signs of progress,
made up from the truth and shown to the real rules (``steward.find``, ``steward.respond``).

A run at work uses its GPUs and cpus all the time but for gaps shorter than any window; so only runs in
one of their long pauses are looked at: of all others the rules, by their own word, find nothing. One
device stands for all.
"""

import msgspec

from bench.quarter_lives import REPORT_SECONDS
from bench.quarter_run import Track
from bench.quarter_steward import Stewarding
from muster.model.job import JobId
from muster.model.resources import Resources
from muster.model.units import GIB, HOUR, MILLI, MINUTE
from muster.model.usage import Rollup, Stat
from muster.steward.find import find
from muster.steward.respond import Handled, Step, StopIt, Warn, respond
from muster.steward.rules import Rules
from muster.steward.watch import Sign, Watched

_SLACK_SECONDS = HOUR / 2  # that is shown beyond what the rules ask for
_WORKS, _RESTS = Stat(0.9, 0.9, 0.9), Stat(0.0, 0.0, 0.0)
_ON_CPUS = Stat(4.0, 4.0, 4.0)
_STEADY = Stat(float(GIB), float(GIB), float(GIB))


class Watch:
    """The steward's eyes on what is idle or stuck."""

    def __init__(self, steward: Stewarding, rules: Rules) -> None:
        self._steward, self._rules = steward, rules
        self._handled: dict[tuple[JobId, int], tuple[Handled, ...]] = {}

    def look(self, now: float) -> None:
        for track in self._steward.going():
            for step in self._steps(track, now):
                self._follow(track, step, now)

    def _steps(self, track: Track, now: float) -> tuple[Step, ...]:
        """What is to be done about a run."""
        key, may_be_found = (track.job.id, track.attempt), _may_be_found(track, now)
        known = self._handled.get(key, ())
        if not known and not may_be_found:
            return ()
        found = find(watched(track, self._rules, now), self._rules, now) if may_be_found else ()
        answer = respond(found, known, self._rules, now)
        self._handled[key] = answer.handled
        return answer.steps

    def _follow(self, track: Track, step: Step, now: float) -> None:
        if isinstance(step, Warn):
            self._steward.ask(track, now, lambda at: self._give_up(track, at))
        elif isinstance(step, StopIt):
            self._steward.end(track, now, None, "idle")

    def _give_up(self, track: Track, now: float) -> None:
        """Its owner was warned, and ends what they no longer need."""
        if self._steward.is_going(track) and not self._steward.is_useful(track, now):
            self._steward.end(track, now, None, "idle")


def _may_be_found(track: Track, now: float) -> bool:
    life, done = track.work.life, track.done_seconds(now)
    is_on_cpus = life.on_cpus is not None and life.on_cpus[0] <= done < life.on_cpus[1]
    return is_on_cpus or life.idle_at(done) is not None or (life.hangs and done >= life.useful_seconds)


def watched(track: Track, rules: Rules, now: float) -> Watched:
    """A run as its meters show it."""
    assert track.placed_at is not None
    since = max(track.placed_at, now - _back_seconds(track, rules))
    first, ahead = int(since // MINUTE) + 1, track.done_seconds(now) - now
    minutes = tuple(_minute(track, n * MINUTE, ahead + n * MINUTE) for n in range(first, int(now // MINUTE)))
    return Watched(
        job=track.job,
        attempt=track.attempt,
        started_at=track.placed_at,
        held=Resources(8 * MILLI, 64 * GIB, MILLI),
        devices=(0,),
        gpu_metric="nvml-utilization",
        minutes=minutes,
        signs=_signs(track, now),
    )


def _back_seconds(track: Track, rules: Rules) -> float:
    """As far as a window looks; of who hangs and is busy also the hour that makes a habit."""
    if track.work.life.hangs and not track.work.life.idle:
        return rules.stuck_unsure_seconds + rules.habit_seconds + HOUR
    return rules.idle_seconds + _SLACK_SECONDS


def _minute(track: Track, start: float, done: float) -> Rollup:
    life = track.work.life
    idle = life.idle_at(done) is not None
    on_cpus = life.on_cpus is not None and life.on_cpus[0] <= done < life.on_cpus[1]
    return Rollup(
        job=track.job.id,
        attempt=track.attempt,
        start=start,
        held_seconds=MINUTE,
        measured_seconds=MINUTE,
        cpus=_RESTS if idle else _ON_CPUS,
        memory_bytes=_STEADY,
        read_bytes=0,
        written_bytes=0,
        gpu_busy=(_RESTS if idle or on_cpus else _WORKS,),
    )


def _signs(track: Track, now: float) -> tuple[Sign, ...]:
    """Trainings report; one that hangs has stopped doing so."""
    assert track.placed_at is not None
    life, begun = track.work.life, track.placed_at
    if life.curve is None:
        return ()
    done = track.done_seconds(now)
    last = min(done, life.useful_seconds) if life.hangs else done
    ago = done - last // REPORT_SECONDS * REPORT_SECONDS
    sign = Sign("report", begun)
    count = int((now - ago - begun) // REPORT_SECONDS)
    if count < 1:
        return (sign,)
    first = now - ago - (count - 1) * REPORT_SECONDS
    told = {"count": count, "first_at": first, "last_at": now - ago, "longest_seconds": REPORT_SECONDS}
    return (msgspec.structs.replace(sign, **told),)
