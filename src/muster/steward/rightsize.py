"""What to ask for next time, by what the same work has used so far.

Asking for too little costs a run; asking for too much costs everybody a little. So what is advised for
memory and time is the most that was needed lately, and beyond it a margin that makes a failure rare. The
theory is that of records. Whatever the distribution, the next run is the highest of n + 1 with a chance of
1 / (n + 1). By how much it is higher is learned from the highest few: how they spread, as logarithms, is how
far the next record goes beyond the last (an exponential tail of logarithms, which holds for heavy tails and
errs on the safe side for light ones). The margin is the one with which both together happen no more often
than ``chance``; and at least ``margin``, since what is steady today may grow tomorrow. A run that was stopped
at its limit needed more than that, so it counts for more.

A request that has held so far is not raised for a tail that was never seen: only what was needed can do that.
Runs that failed by themselves may have ended before they needed much. What they took counts as needed, but
they are none of the n.

For cpus there is nothing to fail: they are advised so that most runs are not slowed.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from muster.model.events import Outcome
from muster.model.job import Shape
from muster.model.units import MILLI, WEEK, show_bytes, show_milli, show_seconds
from muster.steward.humane import bytes_up, cpus_up, flags, seconds_up
from muster.steward.past import PastUse, Request, likeness, quantile, same_work


class SizeRules(msgspec.Struct, frozen=True):
    """How careful to be."""

    least_runs: int = 5  # with fewer nothing is said
    most_runs: int = 200  # the last ones of the same work
    recent_seconds: float = 13 * WEEK  # what is older does not count
    chance: float = 0.004  # of a run for which what is advised would not do
    margin: float = 0.15  # at least, over the most that was needed
    time_margin: float = 0.25  # the same for time, which depends on neighbours as well
    tail_runs: int = 6  # the highest few, by which the next record is guessed
    censored_factor: float = 1.5  # who was stopped at its limit is taken to have needed this times more
    cpu_part: float = 0.95  # of the runs, that have enough cpus
    held_back: float = 0.2  # of the time by its own cap: such a run would have used more cpus
    far: float = 1.5  # what is asked over what is advised: from here on it is far from the truth


class Advised(msgspec.Struct, frozen=True):
    """An amount to ask for, and what it rests on. Bytes, seconds, or thousandths of cpus."""

    value: float
    asked: float  # 0: nothing
    needed: float  # the most of the runs; of cpus, what most of the runs used
    margin: float  # over that, as a part of it
    runs: int

    @property
    def differs(self) -> bool:
        return self.value != self.asked


class Advice(msgspec.Struct, frozen=True):
    """What to ask for next time. None: too few runs, or not measured."""

    cpus: Advised | None = None
    memory: Advised | None = None
    gpu_memory: Advised | None = None
    time: Advised | None = None

    @property
    def flags(self) -> str:
        """What differs from what was asked, ready to paste."""
        return flags(
            cpus_milli=_value(self.cpus),
            memory_bytes=_value(self.memory),
            gpu_memory_bytes=_value(self.gpu_memory),
            seconds=self.time.value if self.time is not None and self.time.differs else None,
        )

    def lines(self) -> list[str]:
        """Each in a sentence."""
        told = (
            ("memory", self.memory, lambda v: show_bytes(round(v))),
            ("cpus", self.cpus, lambda v: show_milli(round(v))),
            ("GPU memory", self.gpu_memory, lambda v: show_bytes(round(v))),
            ("time", self.time, show_seconds),
        )
        return [_sentence(what, found, show) for what, found, show in told if found is not None]


def _value(found: Advised | None) -> int | None:
    return round(found.value) if found is not None and found.differs else None


def _sentence(what: str, found: Advised, show: Callable[[float], str]) -> str:
    asked = f"{show(found.asked)} asked" if found.asked else "none asked"
    enough = "used by most" if what == "cpus" else "the most needed"
    said = f"{what}: {show(found.value)} ({asked}): {show(found.needed)} was {enough} in {found.runs} runs"
    return said + f", and {found.margin:.0%} of margin"


def advise(
    history: Sequence[PastUse], request: Request, rules: SizeRules | None = None, *, now: float | None = None
) -> Advice:
    """What to ask for, by the history, the oldest first. ``now`` lets what is too old go."""
    rules = rules or SizeRules()
    since = -math.inf if now is None else now - rules.recent_seconds
    recent = [use for use in history if use.ended_at >= since]
    alike = same_work(recent, request, least=rules.least_runs, most=rules.most_runs)
    shapes = [part.shape for part in request.gang.parts]
    asked = Shape(
        cpus_milli=max(shape.cpus_milli for shape in shapes),
        memory_bytes=max(shape.memory_bytes for shape in shapes),
        gpu_memory_bytes=max(shape.gpu_memory_bytes for shape in shapes),
    )
    return Advice(
        _cpus(alike, request, asked.cpus_milli, rules),
        _memory(alike, asked.memory_bytes, rules),
        _gpu_memory(alike, asked.gpu_memory_bytes, rules),
        _time(alike, request.limit_seconds, rules),
    )


# --- What was needed ---------------------------------------------------------------------------------

_CUT_SHORT = (Outcome.FAILED, Outcome.NODE_LOST)


def _memory(runs: Sequence[PastUse], asked: int, rules: SizeRules) -> Advised | None:
    needs = [(_memory_needed(use, rules), use.outcome not in _CUT_SHORT) for use in runs]
    return _beyond(needs, asked, bytes_up, rules.margin, rules)


def _memory_needed(use: PastUse, rules: SizeRules) -> float:
    peak = use.memory_peak_bytes or 0
    if use.outcome is not Outcome.OUT_OF_MEMORY:
        return peak
    had = max(part.shape.memory_bytes for part in use.request.gang.parts)
    return max(had, peak) * rules.censored_factor


def _gpu_memory(runs: Sequence[PastUse], asked: int, rules: SizeRules) -> Advised | None:
    """Only of use to who asks for an amount; a whole GPU is one whatever is used of it."""
    needs = [(use.gpu_memory_peak_bytes or 0, use.outcome not in _CUT_SHORT) for use in runs]
    return _beyond(needs, asked, bytes_up, rules.margin, rules) if asked else None


def _time(runs: Sequence[PastUse], limit: float | None, rules: SizeRules) -> Advised | None:
    """Only who came to its end tells how long the work takes."""
    done = [(use.seconds, True) for use in runs if use.outcome is Outcome.SUCCEEDED]
    cut = [(use.seconds * rules.censored_factor, True) for use in runs if use.outcome is Outcome.TIMEOUT]
    asked = limit if limit is not None and math.isfinite(limit) else 0.0
    return _beyond(done + cut, asked, seconds_up, rules.time_margin, rules)


def _beyond(
    needs: Sequence[tuple[float, bool]],
    asked: float,
    up: Callable[[float], float],
    margin: float,
    rules: SizeRules,
) -> Advised | None:
    """The most that was needed, and a margin by what may come. Each need with whether its run was whole."""
    whole = [need for need, is_whole in needs if is_whole and need > 0]
    if len(whole) < rules.least_runs:
        return None
    most = max(need for need, _ in needs)
    floor = most * (1 + margin)
    wanted = up(max(floor, most * math.exp(_next_record(whole, rules))))
    value = min(wanted, asked) if asked >= floor else up(floor) if asked else wanted
    return Advised(value, asked, most, value / most - 1, len(whole))


def _next_record(needs: Sequence[float], rules: SizeRules) -> float:
    """By how much, as a logarithm, the next run may go beyond all so far, but for the chance taken."""
    highest = sorted(needs)[-(rules.tail_runs + 1) :]
    spread = sum(math.log(need / highest[0]) for need in highest[1:]) / max(1, len(highest) - 1)
    return spread * max(0.0, -math.log((len(needs) + 1) * rules.chance))


def _cpus(runs: Sequence[PastUse], request: Request, asked: int, rules: SizeRules) -> Advised | None:
    uses = [
        (used, likeness(use.request, request))
        for use in runs
        if (used := _cpus_needed(use, rules)) is not None
    ]
    found = quantile(uses, rules.cpu_part)
    if len(uses) < rules.least_runs or not found:
        return None
    value = cpus_up(found)
    return Advised(value, asked, found * MILLI, value / (found * MILLI) - 1, len(uses))


def _cpus_needed(use: PastUse, rules: SizeRules) -> float | None:
    if use.cpus is None or (use.throttled or 0.0) < rules.held_back:
        return use.cpus
    had = max(part.shape.cpus_milli for part in use.request.gang.parts) / MILLI
    return max(use.cpus, had) * rules.censored_factor
