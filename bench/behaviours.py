"""Scripted behaviours: what a job does, and what is true of it.

A behaviour is a YAML file in ``tests/behaviours``; ``README.md`` there says what may stand in it. Here it is
read; ``bench.played`` plays it out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from muster.model.charter import Charter, Progress
from muster.model.errors import BadInput, MusterError
from muster.model.job import Checkpoint, Job, single
from muster.model.units import MILLI, parse_bytes, parse_seconds

FOLDER = Path(__file__).parent.parent / "tests" / "behaviours"
STEP_SECONDS = 5  # from one sample to the next
KINDS: tuple[Progress, ...] = ("report", "log", "checkpoint")

Label = Literal["busy", "idle", "stuck", "greedy"]
Meter = Literal["gpu", "cpu", "io", "memory"]


class Holds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpus: int = 0
    cpus: float = 1.0
    memory: str = "8G"
    gpu_memory: str | None = None  # granted of each GPU; None: they are whole


class Truth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"label": "is"}):
    """What a person who knows the job says of it. Outside of since and until it is busy."""

    label: Label
    since: str | None = None  # after its start
    until: str | None = None
    gpus: tuple[int, ...] = ()  # of a busy job: those that nobody uses
    missed: str | None = None  # why no rule of ours can know
    wronged: str | None = None  # of a busy job: why it is found to be something else all the same

    def holds_at(self, seconds: float) -> bool:
        """Whether the label, or what is said of its GPUs, is true at this time after the start."""
        begin = 0.0 if self.since is None else parse_seconds(self.since)
        return begin <= seconds and (self.until is None or seconds < parse_seconds(self.until))


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"lasts": "for"}):
    """Some time in which the job does one thing; or several things that repeat."""

    lasts: str | None = None
    repeat: int = 1
    of: tuple["Segment", ...] = ()
    gpu: float | tuple[float, ...] = 0.0  # percent busy, of each
    gpu_memory: str | tuple[str, ...] = "0"
    cpu: float = 0.0  # cpus busy
    read: str = "0"  # a minute
    written: str = "0"
    grows: str = "0"  # the host memory that it takes, in a minute
    log: str | None = None  # every so often
    report: str | None = None
    checkpoint: str | None = None
    jitter: float = 0.1  # part of each figure
    unknown: tuple[Meter, ...] = ()
    frozen: tuple[Meter, ...] = ()
    measured: float = 1.0  # part of the samples that arrive
    lost: bool = False  # none does, and nothing is rolled up
    suspended: bool = False

    def leaves(self) -> Iterator["Segment"]:
        if self.lasts is not None:
            yield self
        for _ in range(self.repeat):
            for segment in self.of:
                yield from segment.leaves()

    @property
    def steps(self) -> int:
        return round(parse_seconds(self.lasts or "0s") / STEP_SECONDS)


class Behaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    holds: Holds
    use: tuple[Segment, ...]
    truth: Truth
    progress: tuple[Progress, ...] = ()  # that the charter names
    checkpoint_every: str | None = None  # that the job says of itself
    watched: tuple[Progress, ...] = KINDS  # signs that are looked for
    name: str = ""

    @property
    def leaves(self) -> list[Segment]:
        return [leaf for segment in self.use for leaf in segment.leaves()]

    def job(self) -> Job:
        every = self.checkpoint_every
        return Job(
            id=self.name,
            gang=single(cpus_milli=round(self.holds.cpus * MILLI), gpus=self.holds.gpus),
            submitted_at=0.0,
            name=self.name,
            charter=Charter(progress=self.progress),
            checkpoint=None if every is None else Checkpoint(parse_seconds(every)),
        )


def load(folder: Path = FOLDER) -> list[Behaviour]:
    """All of the set, by name."""
    return [read(path) for path in sorted(folder.glob("*.yaml"))]


def read(path: Path) -> Behaviour:
    try:
        behaviour = msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Behaviour)
        _check(behaviour)
    except (yaml.YAMLError, msgspec.ValidationError, MusterError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"{path.name} is no behaviour: {reason}; README.md beside it says how") from None
    return msgspec.structs.replace(behaviour, name=path.stem)


def _check(behaviour: Behaviour) -> None:
    """What types can't say."""
    truth, gpus = behaviour.truth, behaviour.holds.gpus
    if not sum(leaf.steps for leaf in behaviour.leaves):
        raise BadInput("it lasts no time")
    if truth.label != "busy" and truth.since is None:
        raise BadInput(f"it is {truth.label}, and does not say since when")
    if any(gpu >= gpus for gpu in truth.gpus):
        raise BadInput(f"it speaks of GPU {max(truth.gpus)} and holds {gpus}")
    for leaf in behaviour.leaves:
        for each in (leaf.gpu, leaf.gpu_memory):
            if isinstance(each, tuple) and len(each) != gpus:
                raise BadInput(f"it says what {len(each)} GPUs do and holds {gpus}")
        for size in (leaf.read, leaf.written, leaf.grows, *_sizes(leaf)):
            parse_bytes(size)


def _sizes(leaf: Segment) -> tuple[str, ...]:
    return leaf.gpu_memory if isinstance(leaf.gpu_memory, tuple) else (leaf.gpu_memory,)
