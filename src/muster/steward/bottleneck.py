"""What bounds a job: of what would more make it faster, and of what would more be wasted? In words.

The theory is in ``scores``.
"""

from collections.abc import Sequence

import msgspec

from muster.model.resources import Resources
from muster.model.units import MILLI, show_bytes
from muster.model.usage import Rollup
from muster.steward.scores import Bound, BoundRules, Scores, judge

_NOTEWORTHY = 0.05  # of the time


class Verdict(msgspec.Struct, frozen=True):
    """What bounds a job."""

    bound: Bound
    because: str  # the evidence
    sure: float  # 0 to 1
    helps: str  # what would make it faster
    wasted: str  # more of which would not
    coverage: float  # of its time that was measured

    @property
    def how_sure(self) -> str:
        return "high" if self.sure >= 0.7 else "medium" if self.sure >= 0.4 else "low"

    def __str__(self) -> str:
        if self.bound is Bound.UNKNOWN:
            return f"What bounds it is not known: {self.because}."
        name = {Bound.INPUT: "the input of its GPUs", Bound.GPU: "its GPUs", Bound.DISK: "disks"}
        said = f"Bound by {name.get(self.bound, self.bound)} ({self.how_sure} certainty): {self.because}. "
        return said + f"It would be faster with {self.helps}; {self.wasted} would be wasted."


def bound(minutes: Sequence[Rollup], held: Resources, rules: BoundRules | None = None) -> Verdict:
    """What bounds an attempt that holds so much, by its minutes, the oldest first."""
    found = judge(minutes, held, rules or BoundRules())
    seen = _Seen([minute for minute in minutes if minute.measured_seconds > 0], held)
    because, helps, wasted = _SAID[found.bound](seen, found.scores)
    if found.bound is Bound.UNKNOWN and found.blind:
        because = "how busy its GPUs were was not measured"
    elif found.bound is Bound.UNKNOWN and found.coverage < 1:
        because = f"only {found.coverage:.0%} of its time was measured"
    return Verdict(found.bound, because, found.sure, helps, wasted, found.coverage)


class _Seen:
    """What was measured, for sentences."""

    def __init__(self, minutes: list[Rollup], held: Resources) -> None:
        self._minutes, self._held = minutes, held
        self._seconds = sum(minute.measured_seconds for minute in minutes)

    def mean(self, what: str) -> float | None:
        """Over the minutes in which it is known."""
        pairs = [(getattr(minute, what), minute.measured_seconds) for minute in self._minutes]
        known = [(stat.mean, seconds) for stat, seconds in pairs if stat is not None]
        total = sum(seconds for _, seconds in known)
        return sum(value * seconds for value, seconds in known) / total if total else None

    def part(self, what: str) -> str:
        return f"{min(1.0, self.mean(what) or 0.0):.0%} of the time"

    def rate(self, *what: str) -> str:
        total = sum(getattr(minute, one) or 0 for minute in self._minutes for one in what)
        return f"{show_bytes(round(total / self._seconds))} a second"

    def gpu(self) -> str:
        count = max((len(minute.gpu_busy) for minute in self._minutes), default=0)
        return "its GPU" if count <= 1 else f"the busiest of its {count} GPUs"

    def cpus(self) -> str:
        used, share = self.mean("cpus") or 0.0, self._held.cpus_milli / MILLI
        if not share:
            return f"{used:.2g} cpus"
        return f"{used:.2g} of the {share:g} cpus it holds" if share != 1 else f"{used:.2g} of its one cpu"


_Said = tuple[str, str, str]  # the evidence, what helps, what is wasted


def _cpu(seen: _Seen, scores: Scores) -> _Said:
    because = f"it uses {seen.cpus()}"
    if scores.thread > scores.cpu / 2:
        because += ", as many as its busy threads can"
        return because, "more threads of its own, or faster cpus", "more cpus, memory or GPUs"
    if (seen.mean("throttled") or 0.0) >= _NOTEWORTHY:
        because += f" and is held back by its cap {seen.part('throttled')}"
    elif (seen.mean("cpu_pressure") or 0.0) >= _NOTEWORTHY:
        because += f" and waits for its turn {seen.part('cpu_pressure')}"
    return because, "more cpus", "more memory or GPUs"


def _memory(seen: _Seen, _: Scores) -> _Said:
    if (seen.mean("memory_pressure") or 0.0) >= _NOTEWORTHY:
        because = f"it waits for memory {seen.part('memory_pressure')}"
    elif seen.rate("refaulted_bytes") != "0B a second":
        because = (
            f"it reads {seen.rate('refaulted_bytes')} that it has read before and that did not stay in memory"
        )
    else:
        because = f"its memory is at the limit, and it reads {seen.rate('read_bytes')} besides"
    return because, "more memory", "more cpus or GPUs"


def _gpu(seen: _Seen, scores: Scores) -> _Said:
    because = f"{seen.gpu()} is busy {scores.gpu or 0.0:.0%} of the time"
    return because, "more or faster GPUs", "more cpus or memory"


def _disk(seen: _Seen, _: Scores) -> _Said:
    moved = seen.rate("read_bytes", "written_bytes")
    if seen.mean("io_pressure") is None:
        because = f"it reads and writes {moved} while it uses {seen.cpus()}"
    else:
        because = f"it waits for disks {seen.part('io_pressure')} and reads and writes {moved}"
    return because, "a faster disk, or fewer and larger reads and writes", "more cpus or GPUs"


def _input(seen: _Seen, scores: Scores) -> _Said:
    busy = f"{seen.gpu()} is busy {scores.gpu or 0.0:.0%} of the time, in bursts"
    feeds = {"cpus": scores.cpu, "disks": scores.disk, "memory": scores.memory}
    match max(feeds, key=lambda name: feeds[name]):
        case "cpus":
            because, helps = (
                f"{busy}, while it uses {seen.cpus()}",
                "more cpus and workers that prepare its input",
            )
        case "disks":
            because = f"{busy}, while it reads {seen.rate('read_bytes')}"
            helps = "a faster disk, or input that was prepared beforehand"
        case _:
            because, helps = f"{busy}, while its memory is too small for its input", "more memory"
    return because, helps, "more or faster GPUs"


def _waiting(seen: _Seen, scores: Scores) -> _Said:
    because = f"nothing of it is busy: it uses {seen.cpus()}"
    if scores.gpu is not None:
        because += f", and {seen.gpu()} is busy {scores.gpu:.0%} of the time"
    return because, "what it waits for: a lock, the network, another job, a person", "more of anything here"


def _unknown(_: _Seen, __: Scores) -> _Said:
    return "too little of its time was measured", "a longer run, or a meter that works", "a guess"


_SAID = {
    Bound.CPU: _cpu,
    Bound.MEMORY: _memory,
    Bound.GPU: _gpu,
    Bound.DISK: _disk,
    Bound.INPUT: _input,
    Bound.WAITING: _waiting,
    Bound.UNKNOWN: _unknown,
}
