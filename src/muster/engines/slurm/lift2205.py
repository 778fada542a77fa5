"""From 22.05's shape to 24.11's.

- A state is one word, and a flag hides the state that it belongs to. It stays alone in its list.
- An exit code is a raw wait status.
- No time limit and an unknown one are both null; what has none ends after 2106.
- What a job holds on its nodes is told by cores, and paths of output are as they were asked for.
- A node's flags stand apart from its state, in another case.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from muster.engines.slurm.wire import WireJob, WireNode

_LAST_INSTANT = 0xFFFFFFFF
_NOTHING = b"null"
_PATTERN = re.compile(r"%([0-9]{0,2})([a-zA-Z%])")


def lift_job(job: WireJob) -> None:
    if isinstance(job.job_state, str):
        job.job_state = [job.job_state]
    job.exit_code = _exit(bytes(job.exit_code))
    job.derived_exit_code = _exit(bytes(job.derived_exit_code))
    if job.time_limit is None and isinstance(job.end_time, int) and job.end_time > _LAST_INSTANT:
        job.time_limit = {"set": False, "infinite": True, "number": 0}
    job.standard_output = _expanded(job)


def lift_resources(job: WireJob) -> None:
    if job.job_resources != _NOTHING:
        job.job_resources = _resources(job)


def lift_node(node: WireNode) -> None:
    if isinstance(node.state, str):
        flags = node.state_flags if isinstance(node.state_flags, list) else []
        node.state = [node.state.upper(), *flags]
    node.free_mem = node.free_mem if node.free_mem is not None else node.free_memory
    node.version = node.version or node.slurmd_version


@lru_cache(maxsize=1024)
def _exit(said: bytes) -> msgspec.Raw:
    """A wait status: the code in the second byte, the signal below the core-dump bit of the first."""
    if not said.isdigit():
        return msgspec.Raw(said)
    return msgspec.Raw(b'{"return_code":%d,"signal":{"id":%d}}' % (int(said) >> 8 & 0xFF, int(said) & 0x7F))


def _expanded(job: WireJob) -> Any:
    """The path with its patterns filled in; empty if there are others, as it is not known then."""
    path = job.standard_output
    if not isinstance(path, str) or "%" not in path:
        return path
    try:
        return _PATTERN.sub(lambda found: _FILLS[found[2]](job).rjust(int(found[1] or 0), "0"), path)
    except KeyError:
        return ""


_FILLS: dict[str, Callable[[WireJob], str]] = {
    "j": lambda job: str(job.job_id),
    "A": lambda job: str(job.array_job_id or job.job_id),
    "a": lambda job: "" if job.array_task_id is None else str(job.array_task_id),
    "x": lambda job: str(job.name),
    "u": lambda job: str(job.user_name),
    "%": lambda _: "%",
}


class _Node(msgspec.Struct, gc=False):
    nodename: str
    sockets: dict[str, Any] = {}
    memory_allocated: int | None = None


class _Resources(msgspec.Struct, gc=False):
    allocated_nodes: list[_Node] = []


_DECODER = msgspec.json.Decoder(_Resources)


def _resources(job: WireJob) -> msgspec.Raw:
    """In 24.11's shape. Threads of a core are shared out alike: the job's cpus for each of its cores.

    The cores are counted: ``allocated_cores`` says 1 of a job that has eight.
    """
    try:
        held = _DECODER.decode(job.job_resources)
    except msgspec.DecodeError:
        return job.job_resources
    cpus, cores = _cpus(job), [_cores(node) for node in held.allocated_nodes]
    threads, rest = divmod(cpus, sum(cores)) if cpus and sum(cores) else (0, 1)
    nodes = [
        {
            "name": node.nodename,
            "cpus": {"count": None if rest else count * threads},
            "memory": {"allocated": node.memory_allocated},
        }
        for node, count in zip(held.allocated_nodes, cores, strict=True)
    ]
    return msgspec.Raw(msgspec.json.encode({"nodes": {"allocation": nodes}}))


def _cpus(job: WireJob) -> int:
    given = job.tres_alloc_str if isinstance(job.tres_alloc_str, str) else ""
    count = given.partition("cpu=")[2].partition(",")[0]
    return int(count) if count.isdigit() else 0


def _cores(node: _Node) -> int:
    states: Counter[Any] = Counter()
    for socket in node.sockets.values():
        cores = socket.get("cores") if isinstance(socket, dict) else None
        states.update(map(str, cores.values()) if isinstance(cores, dict) else ())
    return sum(count for state, count in states.items() if state.startswith("allocated"))
