"""Logs of the simulated jobs: what such programs print, and now and then a line of JSON that is a report."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

from muster.demo.curves import values_at
from muster.demo.habits import luck
from muster.demo.work import Kind
from muster.engines.local.logs import log_name
from muster.model.job import JobId

_NOTES = (
    "dataloader: 12 workers, 0 restarts",
    "checkpoint written in 18.2 s",
    "gradient norm {a:.3f}, learning rate {b:.1e}",
    "{c} samples/s, data wait {d:.1f} %",
    "cache: {c} shards, {d:.1f} % from disk",
    "allocator: {d:.1f} GiB peak, no fragmentation to speak of",
)
_FAILED = (
    "Traceback (most recent call last):",
    '  File "train.py", line 214, in <module>',
    "    main(parse_args())",
    '  File "train.py", line 167, in main',
    "    batch = next(batches)",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/part-00417.tar'",
)


def path_of(logs: Path, job: JobId, attempt: int, parts: int) -> Path:
    return logs / log_name(job, attempt, 0, parts)


def first_lines(kind: Kind, job: JobId, done: float, count: int = 24) -> Iterator[str]:
    """What it has printed so far, the beginning and the way up to now."""
    yield f"$ {kind.command}"
    yield f"muster: job {job}, simulated; nothing of this was computed"
    for number in range(count):
        yield plain_line(kind, job, done * (number + 1) / count)


def last_lines(kind: Kind, job: JobId, *, failed: bool) -> Iterator[str]:
    yield from first_lines(kind, job, 1.0, 12)
    yield from _FAILED if failed else ("done; results are in ./out",)


def plain_line(kind: Kind, job: JobId, done: float) -> str:
    """Something that no machine understands."""
    chance = luck(f"{job} says {done:.5f}")
    step = round(done * 40_000)
    if kind.curve is not None and chance < 0.6:
        said = ", ".join(f"{name} {value:.4f}" for name, value in values_at(kind, job, done).items())
        return f"step {step:>6}  {said}"
    note = _NOTES[int(chance * 1000) % len(_NOTES)]
    return note.format(a=0.2 + chance, b=3e-4 * (1 - done / 2), c=200 + round(800 * chance), d=9 * chance)


def report_line(kind: Kind, job: JobId, done: float) -> str:
    """A report, as Muster reads it out of a log."""
    values = {name: value for name, value in values_at(kind, job, done).items() if math.isfinite(value)}
    return json.dumps({"step": round(done * 40_000), **values})
