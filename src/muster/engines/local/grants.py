"""What holds a job to what it asked for, honestly: enforced, and by what; or advisory.

Enforced is what a job can't get around. A watchdog that looks once a second is not that, nor is a variable
that a program may read or not.
"""

from collections.abc import Iterator, Mapping

from muster.engines.base import Grant
from muster.model.job import Job, Shape
from muster.model.run import Run
from muster.model.units import MILLI

DEFAULT_PIDS = 4096

ENFORCED, ADVISORY = "enforced", "advisory"
_WATCHDOG, _KEEPER, _NOTHING = "watchdog", "keeper", "nothing"


def grants_of(job: Job, means: Mapping[str, str]) -> tuple[Grant, ...]:
    """Of a job. ``means``: controller → by what it is enforced, as the keeper tells."""
    run = job.run or Run()
    shape = job.gang.parts[0].shape
    return (*_of_shape(shape, run, means), *_of_run(job, run, means))


def grants_here(means: Mapping[str, str]) -> tuple[Grant, ...]:
    """Of the machine: how each thing would be granted. The amounts say nothing."""
    shape = Shape(cpus_milli=MILLI, memory_bytes=1, gpus=1, disk_bytes=1)
    return tuple(_of_shape(shape, Run(), means))


def _of_shape(shape: Shape, run: Run, means: Mapping[str, str]) -> Iterator[Grant]:
    if shape.cpus_milli:
        what = "cpu cap" if run.cpu_cap else "cpu share"
        yield _by_group(what, shape.cpus_milli / MILLI, means.get("cpu"), _NOTHING)
    if shape.memory_bytes:
        yield _by_group("memory", shape.memory_bytes, means.get("memory"), _WATCHDOG)
    if shape.gpus and not shape.shares_gpu:
        yield _by_group("gpus", shape.gpus, means.get("devices"), "CUDA_VISIBLE_DEVICES")
    elif shape.gpus:
        yield Grant("gpus", shape.gpu_milli / MILLI, ADVISORY, "CUDA_VISIBLE_DEVICES")
    if shape.disk_bytes:
        yield Grant("disk", shape.disk_bytes, ADVISORY, _WATCHDOG)


def _of_run(job: Job, run: Run, means: Mapping[str, str]) -> Iterator[Grant]:
    instead = _NOTHING if run.pids is None else _WATCHDOG
    yield _by_group("pids", run.pids or DEFAULT_PIDS, means.get("pids"), instead)
    if job.time_limit_seconds is not None:
        yield Grant("time", job.time_limit_seconds, ENFORCED, _KEEPER)
    yield Grant("log", run.log_bytes, ENFORCED, _KEEPER)


def _by_group(what: str, amount: float, by: str | None, instead: str) -> Grant:
    return Grant(what, amount, ADVISORY, instead) if by is None else Grant(what, amount, ENFORCED, by)
