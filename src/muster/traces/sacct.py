"""Slurm's own history, so that any site can replay what it had: ``sacct -P`` with a header.

    sacct -aP -X -S 2026-01-01 --format=JobID,JobName,User,Account,Submit,ElapsedRaw,TimelimitRaw,\
NNodes,ReqCPUS,ReqMem,ReqTRES,State

Columns are found by name, in any order; JobID, Submit and ElapsedRaw (or Elapsed) must be there.
What was asked for counts before what was given (ReqTRES before AllocTRES), spread evenly over the
job's nodes. A job still running counts with what it has run. Slurm's priority is the outcome of
its own formula at the time, and partitions mean that site's nodes: neither is carried over.
"""

from collections.abc import Iterator
from functools import lru_cache

from muster.model.errors import BadInput
from muster.model.job import Gang, Job
from muster.model.units import MINUTE, parse_bytes, parse_seconds
from muster.traces.gangs import spread
from muster.traces.lines import (
    MOST_BYTES,
    MOST_CPUS,
    MOST_GPUS,
    MOST_SECONDS,
    Cells,
    File,
    cells,
    from_first,
    instant,
    load,
    named,
    number,
    trace,
    whole,
    within,
)
from muster.traces.trace import Trace, TraceJob

REQUIRED = ("JobID", "Submit")
_OPTIONAL = (
    *("JobName", "User", "Account", "State", "ElapsedRaw", "Elapsed", "TimelimitRaw", "Timelimit"),
    *("NNodes", "ReqCPUS", "NCPUS", "ReqMem", "ReqTRES", "AllocTRES"),
)
_COLUMNS = (*REQUIRED, *_OPTIONAL)
_NO_LIMIT = frozenset(("", "UNLIMITED", "Partition_Limit", "INVALID"))
_NEVER_RAN = ("CANCELLED", "PENDING")
_MOST_NODES = 1_000_000


def read(path: str) -> Trace:
    return parse(load(path))


def parse(file: File) -> Trace:
    return from_first(trace(file, _jobs(file), _job))


def _jobs(file: File) -> Iterator[tuple[int, Cells]]:
    """The rows but for steps (``12.batch``), which are parts of a job that has its own row."""
    for line, row in cells(file, REQUIRED, _OPTIONAL, "|"):
        if "." not in row[0]:
            yield line, row


def _job(_line: int, row: Cells) -> TraceJob | None:
    cell = dict(zip(_COLUMNS, row, strict=True))
    run_seconds = _run_seconds(cell["ElapsedRaw"], cell["Elapsed"])
    if run_seconds == 0 and cell["State"].startswith(_NEVER_RAN):
        return None
    job = Job(
        id=named(cell["JobID"], "JobID"),
        gang=_gang(
            cell["NNodes"],
            cell["ReqCPUS"] or cell["NCPUS"],
            cell["ReqMem"],
            cell["ReqTRES"] or cell["AllocTRES"],
        ),
        submitted_at=instant(cell["Submit"], "Submit"),
        name=cell["JobName"],
        owner=cell["User"],
        team=cell["Account"],
        time_limit_seconds=_limit_seconds(cell["TimelimitRaw"], cell["Timelimit"]),
    )
    return TraceJob(job, run_seconds)


def _run_seconds(raw: str, clock: str) -> float:
    if not raw and not clock:
        raise BadInput("expected a run time in ElapsedRaw or Elapsed; ask sacct for one of them")
    return number(raw, "ElapsedRaw", MOST_SECONDS) if raw else parse_seconds(clock)


def _limit_seconds(raw_minutes: str, clock: str) -> float | None:
    if raw_minutes not in _NO_LIMIT:
        return number(raw_minutes, "TimelimitRaw", MOST_SECONDS / MINUTE) * MINUTE
    return None if clock in _NO_LIMIT else parse_seconds(clock)


@lru_cache(maxsize=4096)  # equal jobs share one gang: less memory, and equality at a glance
def _gang(nodes_text: str, cpus_text: str, memory_text: str, tres_text: str) -> Gang:
    """A job that tells no cpus or nodes asks for one, as Slurm has it."""
    tres = dict(pair.partition("=")[::2] for pair in tres_text.split(","))
    nodes = max(1, whole(nodes_text or tres.get("node", "1"), "NNodes", _MOST_NODES))
    cpus = whole(cpus_text or tres.get("cpu", "1"), "ReqCPUS", MOST_CPUS)
    gpus, models = _gpus(tres)
    memory_bytes = _memory_bytes(memory_text or tres.get("mem", "0"), nodes, cpus)
    return spread(nodes, cpus=cpus, memory_bytes=memory_bytes, gpus=gpus, gpu_models=models)


def _gpus(tres: dict[str, str]) -> tuple[int, tuple[str, ...]]:
    """How many, and of which models: ``gres/gpu:a100=4`` may stand beside the total, or alone."""
    typed = {
        key.removeprefix("gres/gpu:"): whole(count, key, MOST_GPUS)
        for key, count in tres.items()
        if key.startswith("gres/gpu:")
    }
    total = tres.get("gres/gpu")
    return whole(total, "gres/gpu", MOST_GPUS) if total else sum(typed.values()), tuple(typed)


def _memory_bytes(text: str, nodes: int, cpus: int) -> int:
    """``16Gn`` is for each node, ``4Gc`` for each cpu (Slurm before 21.08), ``64G`` for the job."""
    times = {"c": cpus, "n": nodes}.get(text[-1:], 1)
    amount = text.rstrip("cn")
    in_megabytes = amount[-1:].isdigit()
    asked = parse_bytes(amount + "M" if in_megabytes else amount) * times
    return int(within(asked, "ReqMem in bytes", MOST_BYTES))
