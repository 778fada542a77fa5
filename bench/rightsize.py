"""Is what Muster advises enough, and how much less is it? A replay over generated histories.

Several kinds of work, each by many owners. Before each run it is asked what to ask for, knowing the runs so
far; until that is known, what the owner asks is held. A run that needs more memory than it holds fails, and
is run again with more, as the steward mends it; all that the failed run held counts as unused. Beside it
stands what would have been held as the owners ask: between 1.2 and 4 times what all but one of a thousand
runs need, rounded up to what people write; for work that grows, the same of what it needs in the end.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bench.figures import Figure
from muster.model.events import Outcome
from muster.model.job import Gang, Job, single
from muster.model.units import GIB, HOUR, TIB
from muster.steward.cause import Cause, Evidence, Kind
from muster.steward.humane import bytes_up, seconds_up
from muster.steward.mend import MendRules, mend
from muster.steward.past import PastUse, Request
from muster.steward.rightsize import Advised, SizeRules, advise

Floats = NDArray[np.float64]
Draw = Callable[[Generator, int], Floats]  # what runs need, relative to the size of the work
_RUNS = (20, 300)  # of one piece of work
_ASKED, _ASKED_MODESTLY = (1.2, 4.0), (1.0, 2.0)  # times what work needs
_MEND = MendRules(tries=100, most_memory_bytes=8 * TIB)


def measure(seeds: int = 40) -> Iterator[Figure]:
    """Each kind of work by as many owners as there are seeds; all of them; and all if they asked for less."""
    every: list[_Tally] = []
    modest: list[_Tally] = []
    for number, (kind, draw) in enumerate(KINDS.items()):
        tallies = [_replayed(draw, _ASKED, np.random.default_rng((s, number))) for s in range(seeds)]
        every += tallies
        modest += [_replayed(draw, _ASKED_MODESTLY, np.random.default_rng((s, number))) for s in range(seeds)]
        yield _figure(kind, tallies)
    yield _figure("all", every)
    yield _figure("all, 1–2×", modest)


# --- Kinds of work ------------------------------------------------------------------------------------


def _steady(rng: Generator, count: int) -> Floats:
    return np.exp(0.03 * rng.standard_normal(count))


def _noisy(rng: Generator, count: int) -> Floats:
    return np.exp(0.25 * rng.standard_normal(count))


def _broad(rng: Generator, count: int) -> Floats:
    return np.exp(0.6 * rng.standard_normal(count))


def _heavy(rng: Generator, count: int) -> Floats:
    """Pareto's, of the third degree: one of a thousand is ten times the smallest."""
    return 1 + rng.pareto(3.0, count)


def _growing(rng: Generator, count: int) -> Floats:
    """With its data, by up to a hundredth from run to run."""
    grows = math.log1p(rng.uniform(0.002, 0.01))
    return np.exp(grows * np.arange(count) + 0.05 * rng.standard_normal(count))


def _stepping(rng: Generator, count: int) -> Floats:
    """A fifth more, every sixty runs or so."""
    steps = np.cumsum(rng.random(count) < 1 / 60)
    return np.exp(math.log(1.2) * steps + 0.03 * rng.standard_normal(count))


def _two_sizes(rng: Generator, count: int) -> Floats:
    """One of seven is four times as large."""
    return np.where(rng.random(count) < 0.15, 4.0, 1.0) * np.exp(0.05 * rng.standard_normal(count))


def _seldom_large(rng: Generator, count: int) -> Floats:
    """One of fifty is three times as large."""
    return np.where(rng.random(count) < 0.02, 3.0, 1.0) * np.exp(0.05 * rng.standard_normal(count))


KINDS: dict[str, Draw] = {
    "steady": _steady,
    "noisy": _noisy,
    "broad": _broad,
    "heavy-tailed": _heavy,
    "growing": _growing,
    "stepping": _stepping,
    "two sizes": _two_sizes,
    "seldom large": _seldom_large,
}


# --- The replay ---------------------------------------------------------------------------------------


class _Tally(NamedTuple):
    runs: int
    failed: int
    late: int  # would have been cut off by the time advised
    unused: float  # byte-seconds, as advised
    unused_asked: float  # as the owner asks


def _replayed(draw: Draw, asks: tuple[float, float], rng: Generator) -> _Tally:
    count = int(rng.integers(*_RUNS))
    size = GIB * math.exp(rng.uniform(math.log(0.5), math.log(64)))
    needs = size * draw(rng, count)
    usual = max(float(needs.max()), size * float(np.quantile(draw(rng, 20_000), 0.999)))
    if draw in (_growing, _stepping):
        usual = float(needs.max())
    asked = bytes_up(usual * rng.uniform(*asks))
    lengths = HOUR * np.exp(0.3 * rng.standard_normal(count))
    work = _Work(asked, seconds_up(3 * HOUR))
    for need, seconds in zip(needs, lengths, strict=True):
        work.run(math.ceil(need), float(seconds))
    unused_asked = float(((asked - needs) * lengths).sum())
    return _Tally(count, work.failed, work.late, work.unused, unused_asked)


class _Work:
    """One owner's work, run after run."""

    def __init__(self, asked: int, limit_seconds: float) -> None:
        self._gang = single(cpus_milli=1000, memory_bytes=asked)
        self._request = Request("ana", "train-", "c", self._gang, limit_seconds)
        self._history: list[PastUse] = []
        self._rules = SizeRules()
        self.failed = self.late = 0
        self.unused = 0.0

    def run(self, need: int, seconds: float) -> None:
        advice = advise(self._history, self._request, self._rules)
        if advice.time is not None and seconds > advice.time.value:
            self.late += 1
        gang, tried = self._with(advice.memory), 0
        while (held := gang.parts[0].shape.memory_bytes) < need:
            self._note(gang, Outcome.OUT_OF_MEMORY, held, seconds)
            self.unused += held * seconds
            gang, tried = _mended(gang, held, tried), tried + 1
        self.failed += tried > 0
        self._note(gang, Outcome.SUCCEEDED, need, seconds)
        self.unused += (held - need) * seconds

    def _with(self, memory: Advised | None) -> Gang:
        return self._gang if memory is None else single(cpus_milli=1000, memory_bytes=round(memory.value))

    def _note(self, gang: Gang, outcome: Outcome, peak: int, seconds: float) -> None:
        request = msgspec.structs.replace(self._request, gang=gang)
        at = float(len(self._history))
        use = PastUse(
            job="7", request=request, ended_at=at, outcome=outcome, seconds=seconds, memory_peak_bytes=peak
        )
        self._history.append(use)


def _mended(gang: Gang, held: int, tried: int) -> Gang:
    cause = Cause(Kind.HOST_OUT_OF_MEMORY, Evidence("counter"), "", held, held)
    again = mend(cause, Job("7", gang, 0.0), _MEND, tried)
    assert again is not None
    return again.gang


def _figure(kind: str, tallies: list[_Tally]) -> Figure:
    runs, failed, late, unused, unused_asked = (sum(values) for values in zip(*tallies, strict=True))
    beside = {
        "unused_as_asked_gib_hours": unused_asked / GIB / HOUR,
        "unused_as_advised_gib_hours": unused / GIB / HOUR,
        "cut_percent": 100 * (1 - unused / unused_asked),
        "too_short_percent": 100 * late / runs,
        "runs": runs,
    }
    return Figure("right-sizing", kind, "advised", 100 * failed / runs, "% of runs failed", beside=beside)
