"""The traces of the Muri study, drawn from Microsoft's Philly logs: training jobs on 8 × 8 GPUs.

A job's length is told in iterations of its model. The study's simulator counts 1.5 % on top of the
measured time of an iteration, so the same is done here, or its figures could not be met.
"""

from muster.model.job import Job
from muster.model.node import Device, Node
from muster.model.units import GIB, MILLI
from muster.traces.gangs import GPUS_PER_NODE, whole_gpus
from muster.traces.lines import (
    MOST_GPUS,
    MOST_SECONDS,
    Cells,
    File,
    cells,
    load,
    named,
    number,
    trace,
    whole,
    within,
)
from muster.traces.trace import Trace, TraceJob

COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time")
OVERHEAD = 1.015
_MS = 1000
_NODES = 8


def read(path: str, gpus_per_node: int = GPUS_PER_NODE) -> Trace:
    return parse(load(path), gpus_per_node)


def parse(file: File, gpus_per_node: int = GPUS_PER_NODE) -> Trace:
    def make(_line: int, row: Cells) -> TraceJob:
        name, gpus, submit_ms, iterations, model, iteration_ms = row
        job = Job(
            id=named(name, "job_id"),
            gang=whole_gpus(whole(gpus, "num_gpu", MOST_GPUS), gpus_per_node),
            submitted_at=number(submit_ms, "submit_time", MOST_SECONDS * _MS) / _MS,
            name=model,
        )
        return TraceJob(job, _run_seconds(iterations, iteration_ms))

    return trace(file, cells(file, COLUMNS), make, _nodes(gpus_per_node))


def _run_seconds(iterations: str, iteration_ms: str) -> float:
    count = number(iterations, "iterations", MOST_SECONDS)
    each_ms = number(iteration_ms, "iteration_time", MOST_SECONDS)
    return within(count * each_ms * OVERHEAD / _MS, "run seconds", MOST_SECONDS)


def _nodes(gpus: int) -> tuple[Node, ...]:
    """The study's cluster. No job asks for cpus or memory, so these only have to be there."""
    return tuple(
        Node(f"node{n}", 64 * MILLI, 256 * GIB, devices=(Device(),) * gpus) for n in range(1, _NODES + 1)
    )
