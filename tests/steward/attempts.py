"""An attempt in a few words: what it holds, what it did minute by minute, and what is found of it now.

idle = attempt(gpus=1).does(30, gpu=0.9, cpu=1.5).does(70, cpu=0.01)
assert [f.kind for f in idle.found()] == ["idle"]
"""

from typing import Any

from msgspec.structs import replace

from muster.model.charter import Charter, Progress
from muster.model.job import Checkpoint, Job, single
from muster.model.resources import Resources
from muster.model.units import GIB, MIB, MILLI, MINUTE
from muster.model.usage import Rollup, Sample, Stat
from muster.steward.find import find
from muster.steward.findings import Finding
from muster.steward.rules import Rules
from muster.steward.watch import Sign, Watched

START = 1_700_000_040.0  # a whole minute
KINDS: tuple[Progress, ...] = ("report", "log", "checkpoint")


def steady(value: float | None) -> Stat | None:
    return None if value is None else Stat(value, value, value)


def minute(
    start: float,
    *,
    gpu: tuple[float | None, ...] = (),
    cpu: float | None = 0.0,
    io: int | None = 0,
    grows: int | None = 0,
    gpu_memory: tuple[int | None, ...] = (),
    measured: float = 1.0,
) -> Rollup:
    """What was used in a minute, evenly."""
    return Rollup(
        job="7",
        attempt=1,
        start=start,
        held_seconds=MINUTE,
        measured_seconds=measured * MINUTE,
        cpus=steady(cpu),
        read_bytes=io,
        written_bytes=None if io is None else 0,
        memory_bytes=None if grows is None else Stat(GIB, GIB + grows / 2, GIB + grows),
        gpu_busy=tuple(map(steady, gpu)),
        gpu_memory_bytes=tuple(map(steady, gpu_memory)),
    )


class Attempt:
    """One that runs; ``does`` tells what it did next."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.now = watched.started_at

    def does(
        self,
        minutes: int,
        *,
        gpu: float | tuple[float | None, ...] | None = 0.0,
        gpu_memory: int = 0,
        lost: bool = False,
        signs: dict[Progress, int] | None = None,
        **use: Any,
    ) -> "Attempt":
        """``signs`` come every so many minutes; ``lost`` are minutes of which nothing is known."""
        count = len(self.watched.devices)
        busy = gpu if isinstance(gpu, tuple) else (gpu,) * count
        starts = [self.now + MINUTE * n for n in range(minutes)]
        rows = [minute(at, gpu=busy, gpu_memory=(gpu_memory,) * count, **use) for at in starts]
        for kind, every in (signs or {}).items():
            for n in range(every, minutes + 1, every):
                self._gives(kind, self.now + MINUTE * n)
        self.watched = replace(self.watched, minutes=self.watched.minutes + (() if lost else tuple(rows)))
        self.now += MINUTE * minutes
        return self

    def takes(self, *gpu_memory_bytes: int | None) -> "Attempt":
        """GPU memory, by the newest sample."""
        newest = Sample(job="7", attempt=1, at=self.now, seconds=5.0, gpu_memory_bytes=gpu_memory_bytes)
        self.watched = replace(self.watched, newest=newest)
        return self

    def but(self, **changes: Any) -> "Attempt":
        self.watched = replace(self.watched, **changes)
        return self

    def found(self, **rules: Any) -> tuple[Finding, ...]:
        return find(self.watched, Rules(**rules), self.now + 5.0)

    def kinds(self, **rules: Any) -> list[str]:
        return [finding.kind for finding in self.found(**rules)]

    def _gives(self, kind: Progress, at: float) -> None:
        signs = tuple(s.again(at) if s.kind == kind else s for s in self.watched.signs)
        self.watched = replace(self.watched, signs=signs)


def attempt(
    *,
    gpus: int = 0,
    cpus: float = 8,
    progress: tuple[Progress, ...] = (),
    checkpoint: Checkpoint | None = None,
    granted: int | None = None,
    looked_for: tuple[Progress, ...] = KINDS,
) -> Attempt:
    """Its devices are 4, 5, …: a number is not a place."""
    job = Job("7", single(gpus=gpus), START, charter=Charter(progress=progress), checkpoint=checkpoint)
    return Attempt(
        Watched(
            job=job,
            attempt=1,
            started_at=START,
            held=Resources(round(cpus * MILLI), 64 * GIB, gpus * MILLI),
            devices=tuple(range(4, 4 + gpus)),
            gpu_granted_bytes=(granted,) * gpus,
            gpu_metric="nvml-utilization",
            signs=tuple(Sign(kind, START) for kind in looked_for),
        )
    )


SOME_IO = 50 * MIB
