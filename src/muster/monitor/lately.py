"""What an attempt uses lately: means in which the past fades, for whoever looks now.

A sample counts less the longer it is ago: after two minutes, for a third of what it did. So a moment does not
decide, nor does the morning. A figure of which less than half of that time was measured is not known.
"""

import math

from muster.model.resources import Resources
from muster.model.units import MILLI
from muster.model.usage import Sample

_FADES_SECONDS = 120.0
_LEAST_COVERED = 0.5


class Lately:
    """The last minutes of one attempt."""

    __slots__ = ("_cpus", "_gpus")

    def __init__(self) -> None:
        self._cpus = _Fading()
        self._gpus: tuple[_Fading, ...] = ()

    def add(self, sample: Sample) -> None:
        if len(self._gpus) != len(sample.gpu_busy):
            self._gpus = tuple(_Fading() for _ in sample.gpu_busy)
        self._cpus.add(sample.cpus, sample.seconds)
        gauged = sample.seconds if sample.gauge_seconds is None else sample.gauge_seconds
        for gpu, busy in zip(self._gpus, sample.gpu_busy, strict=True):
            gpu.add(None, max(0.0, sample.seconds - gauged))
            gpu.add(busy, gauged)

    @property
    def cpus(self) -> float | None:
        return self._cpus.mean

    @property
    def gpu_busy(self) -> list[float | None]:
        return [gpu.mean for gpu in self._gpus]

    def share_of(self, held: Resources) -> tuple[float | None, float]:
        """How much of its GPUs it uses, or of its cpus if it has none; and how far that is measured."""
        if held.gpus_milli:
            known = [busy for busy in self.gpu_busy if busy is not None]
            covered = sum(gpu.coverage for gpu in self._gpus) / len(self._gpus) if self._gpus else 0.0
            return (sum(known) / len(known) if known else None), covered
        cpus = self.cpus
        share = None if cpus is None or not held.cpus_milli else cpus * MILLI / held.cpus_milli
        return share, self._cpus.coverage


class _Fading:
    """A mean over time, and how much of the time is in it."""

    __slots__ = ("_known", "_time", "_total")

    def __init__(self) -> None:
        self._total = self._known = self._time = 0.0

    def add(self, value: float | None, seconds: float) -> None:
        kept = math.exp(-seconds / _FADES_SECONDS)
        self._total, self._known, self._time = self._total * kept, self._known * kept, self._time * kept
        self._time += 1 - kept
        if value is not None:
            self._known += 1 - kept
            self._total += (1 - kept) * value

    @property
    def coverage(self) -> float:
        return self._known / self._time if self._time else 0.0

    @property
    def mean(self) -> float | None:
        return self._total / self._known if self._known and self.coverage >= _LEAST_COVERED else None
