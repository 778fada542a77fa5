"""Alibaba's openb trace of a GPU-sharing cluster (2023): a list of pods, with one of nodes beside.

A pod is a job of one part. It asks whole GPUs, or a share of one in thousandths (``gpu_milli``).
``gpu_spec`` names the models it accepts, separated by ``|``. The derived lists (multigpu*) tell no
times: their pods arrive a second apart, in the order of the file, and run for an hour.
"""

from pathlib import Path

from muster.model.errors import BadInput
from muster.model.job import Gang, Job, Part, Shape
from muster.model.node import Device, Node
from muster.model.units import HOUR, MIB, MILLI
from muster.traces.lines import (
    MOST_BYTES,
    MOST_CPUS,
    MOST_GPUS,
    MOST_SECONDS,
    Cells,
    File,
    cells,
    collect,
    load,
    named,
    number,
    trace,
    whole,
    within,
)
from muster.traces.trace import Trace, TraceJob

POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
POD_OPTIONAL = ("gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
NODE_FILES = ("openb_node_list_gpu_node.csv", "openb_node_list_all_node.csv")
_FIRST_ROW = 2  # the line after the header
_MOST_NODE_GPUS = 1024


def read(path: str) -> Trace:
    """The pods of ``path``, and the nodes of the list that lies beside it, if one does."""
    return parse(load(path))


def parse(file: File) -> Trace:
    beside = (Path(file.path).parent / name for name in NODE_FILES)
    node_list = next((path for path in beside if path.is_file()), None)
    nodes = read_nodes(str(node_list)) if node_list else ()
    return trace(file, cells(file, POD_COLUMNS, POD_OPTIONAL), _pod, nodes)


def read_pods(path: str) -> tuple[TraceJob, ...]:
    file = load(path)
    return trace(file, cells(file, POD_COLUMNS, POD_OPTIONAL), _pod).jobs


def read_nodes(path: str) -> tuple[Node, ...]:
    file = load(path)
    nodes = collect(file, cells(file, NODE_COLUMNS), _node, "node", lambda node: node.name)
    if not nodes:
        raise BadInput(f"{path} lists no node; expected at least one")
    return tuple(nodes)


def _node(_line: int, row: Cells) -> Node:
    name, cpu_milli, memory_mib, gpus, model = row
    return Node(
        name=named(name, "node name"),
        cpus_milli=_cpus_milli(cpu_milli),
        memory_bytes=_memory_bytes(memory_mib),
        devices=(Device(model or Device().model),) * whole(gpus, "gpu", _MOST_NODE_GPUS),
    )


def _pod(line: int, row: Cells) -> TraceJob:
    name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, *times = row
    gpus = whole(num_gpu, "num_gpu", MOST_GPUS)
    shape = Shape(
        cpus_milli=_cpus_milli(cpu_milli),
        memory_bytes=_memory_bytes(memory_mib),
        gpus=gpus,
        gpu_milli=_share_milli(gpus, gpu_milli),
        gpu_models=tuple(gpu_spec.split("|")) if gpus and gpu_spec else (),
    )
    submitted_at, run_seconds = _times(line, *times)
    job = Job(
        id=named(name, "pod name"),
        gang=Gang((Part(shape),)),
        submitted_at=submitted_at,
        owner=qos,
        team=qos,
    )
    return TraceJob(job, run_seconds)


def _cpus_milli(text: str) -> int:
    return whole(text, "cpu_milli", MOST_CPUS * MILLI)


def _memory_bytes(text: str) -> int:
    return whole(text, "memory_mib", MOST_BYTES // MIB) * MIB


def _share_milli(gpus: int, text: str) -> int:
    """What is asked of each GPU. Only of one GPU can a part be asked."""
    milli = whole(text, "gpu_milli", MILLI)
    if gpus == 0:
        return MILLI
    least = MILLI if gpus > 1 else 1
    if milli < least:
        raise BadInput(f"expected gpu_milli from {least} to 1000 for {gpus} GPUs, found {text!r}")
    return milli


def _times(line: int, created: str, deleted: str, scheduled: str) -> tuple[float, float]:
    """When it was submitted and how long it ran, from when it was scheduled if it ever was."""
    if not created and not deleted:
        return float(line - _FIRST_ROW), HOUR
    submitted_at = number(created, "creation_time", MOST_SECONDS)
    started_at = number(scheduled, "scheduled_time", MOST_SECONDS) if scheduled else submitted_at
    ended_at = number(deleted, "deletion_time", MOST_SECONDS)
    run_seconds = ended_at - started_at
    return submitted_at, within(run_seconds, "seconds from start to deletion_time", MOST_SECONDS)
