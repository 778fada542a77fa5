"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 if unknown.

These logs count processors and tell nothing of nodes, so the machine is one node, ``pool``, and a
job one part of it. Memory is not carried: it would bind nothing in one pool.

Usable is what tells a run time (0 counts) and asks for a processor; jobs that don't are passed over
and counted. Lines of status 2, 3 and 4 are stretches of a job whose summary line was read already.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from muster.model.job import Gang, Job, single
from muster.model.node import Node
from muster.model.units import MILLI, TIB
from muster.traces.lines import (
    MOST_CPUS,
    MOST_SECONDS,
    Cells,
    File,
    broken,
    load,
    number,
    trace,
    whole,
)
from muster.traces.trace import Trace, TraceJob

_FIELDS = 18
_STATUS = 10
_STRETCHES = frozenset("234")
_UNKNOWN = frozenset(("-1", "-1.0", "-1.00"))
_NONE = _UNKNOWN | {"0"}
_SIZE = re.compile(r";\s*(MaxProcs|MaxNodes):\s*(\d{1,9})\b")


def read(path: str) -> Trace:
    """A ``.swf`` or ``.swf.gz`` log."""
    return parse(load(path))


def parse(file: File) -> Trace:
    return trace(file, _rows(file), _job, _pool(file))


def recognises(file: File) -> bool:
    first = file.first_line.strip()
    named_so = file.path.lower().removesuffix(".gz").endswith(".swf")
    return named_so or first.startswith(";") or (first[0].isdigit() and len(first.split()) == _FIELDS)


def _rows(file: File) -> Iterator[tuple[int, Cells]]:
    for line, text in enumerate(file.lines, 1):
        fields = tuple(text.split())
        if not fields or fields[0].startswith(";"):
            continue
        if len(fields) != _FIELDS:
            raise broken(file, line, f"expected {_FIELDS} fields, found {len(fields)}")
        if fields[_STATUS] not in _STRETCHES:
            yield line, fields


def _job(_line: int, fields: Cells) -> TraceJob | None:
    job_id, submit, _, run, allocated, _, _, requested, limit, *rest = fields
    user, group, executable = rest[2:5]
    procs = allocated if requested in _NONE else requested
    if run in _UNKNOWN or procs in _NONE:
        return None
    job = Job(
        id=job_id,
        gang=_gang(whole(procs, "processors", MOST_CPUS)),
        submitted_at=number(submit, "submit time", MOST_SECONDS),
        name=_tag("x", executable),
        owner=_tag("u", user),
        team=_tag("g", group),
        time_limit_seconds=_limit_seconds(limit),
    )
    return TraceJob(job, number(run, "run time", MOST_SECONDS))


@lru_cache(maxsize=4096)  # equal jobs share one gang: less memory, and equality at a glance
def _gang(procs: int) -> Gang:
    return single(cpus_milli=procs * MILLI)


def _tag(letter: str, number: str) -> str:
    return "" if number in _UNKNOWN else letter + number


def _limit_seconds(text: str) -> float | None:
    """The requested time; some logs write 0 for none."""
    return None if text in _NONE else number(text, "requested time", MOST_SECONDS)


def _pool(file: File) -> tuple[Node, ...]:
    """The machine as the header tells it: its processors, or where they are unknown its nodes."""
    comments = (line for line in file.lines if line.startswith(";"))
    sizes = {match[1]: int(match[2]) for line in comments if (match := _SIZE.match(line))}
    procs = sizes.get("MaxProcs") or sizes.get("MaxNodes")
    return (Node("pool", procs * MILLI, 1024 * TIB),) if procs else ()
