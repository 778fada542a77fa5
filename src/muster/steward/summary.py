"""How well a job used what it held: the end of ``muster show``, as values and as lines."""

from collections.abc import Sequence

import msgspec

from muster.model.resources import Resources
from muster.model.units import MILLI, show_bytes, show_count, show_seconds
from muster.model.usage import Rollup, Usage
from muster.steward.bottleneck import Verdict, bound
from muster.steward.rightsize import Advice


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Parts are of what was held while it was measured. What is not known is None."""

    held_seconds: float
    coverage: float  # of that, the part that was measured
    cpu_part: float | None  # used of held
    cpus_held: float
    memory_peak_bytes: int | None
    memory_asked_bytes: int  # 0: none
    gpu_part: float | None  # busy, by the metric below
    gpus_held: float
    gpu_metric: str | None
    verdict: Verdict
    flags: str  # the request to use next time; empty if this one is right, or too little is known
    basis: tuple[str, ...]  # what that rests on, in sentences
    measured_by: str = ""  # where that is not the same for all: "by agents on 2 of 2 nodes"

    @property
    def memory_part(self) -> float | None:
        if self.memory_peak_bytes is None or not self.memory_asked_bytes:
            return None
        return self.memory_peak_bytes / self.memory_asked_bytes

    def lines(self) -> list[tuple[str, str]]:
        """What each is called, and what it says."""
        by = f", {self.measured_by}" if self.measured_by else ""
        told = [("measured", f"{self.coverage:.0%} of {show_seconds(self.held_seconds)}{by}")]
        if self.cpu_part is not None:
            told.append(("cpu", f"{self.cpu_part:.0%} of {show_count(self.cpus_held, 'cpu')}"))
        if self.memory_peak_bytes is not None:
            told.append(("memory", self._memory()))
        if self.gpus_held:
            told.append(("GPU", self._gpu()))
        told.append(("bound by", str(self.verdict)))
        if self.flags:
            told.append(("next time", self.flags))
            told += [("", sentence) for sentence in self.basis]
        return told

    def _memory(self) -> str:
        peak = show_bytes(self.memory_peak_bytes or 0)
        if self.memory_part is None:
            return f"{peak} at most"
        return f"{peak} at most, {self.memory_part:.0%} of {show_bytes(self.memory_asked_bytes)} asked"

    def _gpu(self) -> str:
        if self.gpu_part is None:
            verb = "was" if self.gpus_held == 1 else "were"
            return f"not known how busy {show_count(self.gpus_held, 'GPU')} {verb}"
        by = f" (by {self.gpu_metric})" if self.gpu_metric else ""
        return f"{self.gpu_part:.0%} busy, of {self.gpus_held:g}{by}"


def summarise(
    usage: Usage,
    minutes: Sequence[Rollup],
    held: Resources,
    advice: Advice | None = None,
    *,
    memory_peak_bytes: int | None = None,
    gpu_metric: str | None = None,
    measured_by: str = "",
) -> Summary:
    """Of one attempt: its totals, its minutes, what it holds, and what its history advises."""
    measured, used = usage.measured, usage.used
    if memory_peak_bytes is None:
        memory_peak_bytes = _peak(minutes)
    return Summary(
        held_seconds=usage.held_seconds,
        coverage=_part(usage.measured_seconds, usage.held_seconds) or 0.0,
        cpu_part=_part(used.cpus_milli, measured.cpus_milli),
        cpus_held=held.cpus_milli / MILLI,
        memory_peak_bytes=memory_peak_bytes,
        memory_asked_bytes=held.memory_bytes,
        gpu_part=_part(used.gpus_milli, measured.gpus_milli),
        gpus_held=held.gpus_milli / MILLI,
        gpu_metric=gpu_metric,
        verdict=bound(minutes, held),
        flags=advice.flags if advice is not None else "",
        basis=tuple(advice.lines()) if advice is not None else (),
        measured_by=measured_by,
    )


def _part(amount: float, of: float) -> float | None:
    return amount / of if of > 0 else None


def _peak(minutes: Sequence[Rollup]) -> int | None:
    return max((round(m.memory_bytes.most) for m in minutes if m.memory_bytes is not None), default=None)
