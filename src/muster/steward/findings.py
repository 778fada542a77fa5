"""Findings: what the steward has noticed of an attempt, with evidence that can say itself.

A piece of evidence names its metric, the time it speaks of, and the threshold; so whoever reads the sentence
can check it, and say where the rule is wrong.
"""

from typing import Literal

import msgspec

from muster.model.job import JobId
from muster.model.resources import Resources
from muster.model.units import show_bytes, show_milli, show_seconds

Kind = Literal["idle", "stuck", "gpu-memory"]


class Evidence(msgspec.Struct, frozen=True, tag=True):
    """A part of why."""

    def sentence(self) -> str:
        raise NotImplementedError


class Unused(Evidence, frozen=True):
    """Something that was held and not used. Minutes with use in them are few, or it would be no evidence."""

    minutes: int  # looked at
    with_use: int  # of these: at or above the threshold, or not measured

    def during(self) -> str:
        quiet = self.minutes - self.with_use
        return f"for {quiet} min" if not self.with_use else f"in {quiet} of {self.minutes} min"


class GpuUnused(Unused, frozen=True):
    device: int
    of: int  # devices that the attempt holds
    metric: str | None  # None: the meter does not say what it calls "busy"
    most: float  # 0 to 1, the mean of the busiest minute without use
    threshold: float

    def sentence(self) -> str:
        which = f"GPU {self.device}" + f" (one of {self.of})" * (self.of > 1)
        how = f"{self.metric or 'metric not known'}, threshold {show_part(self.threshold)}"
        return f"{which}: at most {show_part(self.most)} busy ({how}) {self.during()} while holding it"


class CpuUnused(Unused, frozen=True):
    most: float  # cpus, the mean of the busiest minute without use
    held_milli: int
    threshold: float

    def sentence(self) -> str:
        held = show_milli(self.held_milli)
        return f"cpu at most {self.most:.2g} of {held} (threshold {self.threshold:.2g}) {self.during()}"


class IoUnused(Unused, frozen=True):
    most_bytes: int  # in a minute without use
    threshold_bytes: int

    def sentence(self) -> str:
        most, threshold = show_bytes(self.most_bytes), show_bytes(self.threshold_bytes)
        return f"disks at most {most} a minute (threshold {threshold}) {self.during()}"


class Steady(Unused, frozen=True):
    """An amount that hardly changed."""

    what: str
    most_bytes: int  # more or less, in a minute without use
    threshold_bytes: int

    def sentence(self) -> str:
        most, threshold = show_bytes(self.most_bytes), show_bytes(self.threshold_bytes)
        return f"{self.what} changes by at most {most} a minute (threshold {threshold}) {self.during()}"


class NoProgress(Evidence, frozen=True):
    kinds: tuple[str, ...]
    seconds: float  # since the last sign, or since it was first looked for
    window_seconds: float
    longest_seconds: float  # that it took before from one sign to the next; 0: there were no two
    named: bool  # by the charter

    def sentence(self) -> str:
        silence = f"no {' or '.join(self.kinds)} for {show_seconds(self.seconds)}"
        why = "its charter names it" if self.named else "its habit so far"
        before = f"before at most {show_seconds(self.longest_seconds)} apart"
        said = [
            why,
            *([before] if self.longest_seconds else []),
            f"window {show_seconds(self.window_seconds)}",
        ]
        return f"{silence} ({'; '.join(said)})"


class GpuMemoryOver(Evidence, frozen=True):
    device: int
    taken_bytes: int
    granted_bytes: int
    limit_bytes: int  # the grant, and what is let pass

    def sentence(self) -> str:
        taken, granted = show_bytes(self.taken_bytes), show_bytes(self.granted_bytes)
        passes = f"up to {show_bytes(self.limit_bytes)} is let pass"
        return f"GPU {self.device}: takes {taken} of its memory, was granted {granted} ({passes})"


class Subject(msgspec.Struct, frozen=True):
    """What a finding is about. Two of the same subject are the same finding at two times."""

    kind: Kind
    job: JobId
    attempt: int
    devices: tuple[int, ...]
    whole: bool


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something noticed of an attempt: since when, and why we think so."""

    kind: Kind
    job: JobId
    attempt: int
    since: float
    seconds: float  # how long it has lasted, when it was looked at
    evidence: tuple[Evidence, ...]
    held: Resources = Resources()  # by the attempt, meanwhile
    devices: tuple[int, ...] = ()  # that it concerns
    whole: bool = True  # about all of the attempt; else of these devices only, and the rest works
    sure: bool = True  # else a habit is all we know, and nobody is stopped for leaving one

    @property
    def subject(self) -> Subject:
        return Subject(self.kind, self.job, self.attempt, self.devices, self.whole)

    def sentence(self) -> str:
        """All of it, in one."""
        return f"{self._head()}: {'; '.join(e.sentence() for e in self.evidence)}"

    def _head(self) -> str:
        lasted = show_seconds(self.seconds)
        if self.kind == "gpu-memory":
            return "more GPU memory than granted"
        if self.kind == "stuck":
            return f"no progress for {lasted}, holding {self.held}"
        if self.whole:
            return f"idle for {lasted}, holding {self.held}"
        return f"a GPU unused for {lasted}"


def show_part(part: float) -> str:
    """0.013 → ``1.3 %``."""
    return f"{100 * part:.1f}".removesuffix(".0") + " %"
