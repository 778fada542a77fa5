"""What Slurm tells in text: ``sacct -P`` tables, ``scontrol -o`` lines, ``sbatch`` and ``sstat``.

Text has no way to carry a name with a newline or a pipe in it, and whoever names a job could write a
line of their own. So text is asked for only where Slurm itself, or its administrator, writes every
column.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from muster.engines.slurm.answers import SlurmPartition, SlurmReservation, SlurmUse, Tres
from muster.engines.slurm.errors import BadAnswer
from muster.engines.slurm.tres import read_amount, read_tres
from muster.engines.slurm.values import instant_of_text, null_of_text, seconds_of_text, words_of_text
from muster.model.errors import BadInput
from muster.model.usage import AtEnd

_NOTHING = frozenset(("No partitions in the system", "No reservations in the system"))
_SUBMITTED = re.compile(r"(?:Submitted batch job )?([0-9]{1,10})(?:;[\w.-]+)?\s*", re.ASCII)
_WOULD_START = re.compile(r"to start at ([0-9T:.-]+)")
_KILL_WAIT = re.compile(r"^KillWait\s*=\s*([0-9]{1,6})\b", re.MULTILINE)
_PAIR = re.compile(r"(?:^| )([A-Za-z][A-Za-z0-9_:]*)=")


def table(text: str, command: str, *needed: str) -> Iterator[dict[str, str]]:
    """The rows of a table with pipes between and a header above. One that breaks off is no answer."""
    if not text.endswith("\n"):
        raise BadAnswer(command, "it breaks off")
    header, *lines = text[:-1].split("\n")
    columns = header.split("|")
    if missing := [name for name in needed if name not in columns]:
        raise BadAnswer(command, f"it has no column {missing[0]}")
    for number, line in enumerate(lines, 2):
        cells = line.split("|")
        if len(cells) != len(columns):
            raise BadAnswer(command, f"line {number} has {len(cells)} columns, not {len(columns)}")
        yield dict(zip(columns, cells, strict=True))


def _records(text: str, command: str) -> Iterator[dict[str, str]]:
    """``Key=value Key=value`` lines. A value may hold ``=`` and spaces; a key begins after a space."""
    if text and not text.endswith("\n"):
        raise BadAnswer(command, "it breaks off")
    for line in text.split("\n"):
        if line.strip() and line.strip() not in _NOTHING:
            found = list(_PAIR.finditer(line))
            ends = [*(match.start() for match in found), len(line)][1:]
            yield {match[1]: line[match.end() : end].strip() for match, end in zip(found, ends, strict=True)}


def read_named(text: str) -> tuple[tuple[int, str, str], ...]:
    """``sacct -P`` of numbers, users and names."""
    rows = table(text, "sacct", "JobIDRaw", "User", "JobName")
    return tuple((number, row["User"], row["JobName"]) for row in rows if (number := whole(row["JobIDRaw"])))


def read_kill_wait(text: str) -> float:
    """``KillWait                = 30 sec`` of ``scontrol show config``."""
    match = _KILL_WAIT.search(text)
    if match is None:
        raise BadAnswer("scontrol show config", "it does not say KillWait")
    return float(match[1])


def read_partitions(text: str) -> tuple[SlurmPartition, ...]:
    """``scontrol -o show partition``: the one form that says in every version which is the default."""
    command = "scontrol show partition"
    return tuple(_partition(record) for record in _read(_records(text, command), command, "PartitionName"))


def read_reservations(text: str) -> tuple[SlurmReservation, ...]:
    """``scontrol -o show reservation``."""
    command = "scontrol show reservation"
    return tuple(
        _reservation(record) for record in _read(_records(text, command), command, "ReservationName")
    )


def _read(records: Iterator[dict[str, str]], command: str, name: str) -> Iterator[dict[str, str]]:
    for record in records:
        if name not in record:
            raise BadAnswer(command, f"a line has no {name}")
        yield record


def _partition(record: dict[str, str]) -> SlurmPartition:
    get = record.get
    return SlurmPartition(
        name=record["PartitionName"],
        state=get("State", ""),
        default={"YES": True, "NO": False}.get(get("Default", "")),
        nodes=null_of_text(get("Nodes", "")),
        node_count=whole(get("TotalNodes", "")),
        cpus=whole(get("TotalCPUs", "")),
        most_seconds=clock(get("MaxTime", "")),
        default_seconds=clock(get("DefaultTime", "")),
        most_nodes=float("inf") if get("MaxNodes") == "UNLIMITED" else whole(get("MaxNodes", "")),
        least_nodes=whole(get("MinNodes", "")),
        tier=whole(get("PriorityTier", "")),
        preempt_mode=get("PreemptMode", ""),
        accounts=get("AllowAccounts", ""),
        total=amounts(get("TRES", "")),
    )


def _reservation(record: dict[str, str]) -> SlurmReservation:
    get = record.get
    return SlurmReservation(
        name=record["ReservationName"],
        state=get("State", ""),
        nodes=null_of_text(get("Nodes", "")),
        start_at=instant(get("StartTime", "")),
        end_at=instant(get("EndTime", "")),
        users=words_of_text(get("Users", "")),
        accounts=words_of_text(get("Accounts", "")),
        flags=words_of_text(get("Flags", "")),
    )


# --- Single values, unknown where they can't be read ----------------------------------------------


def whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def clock(text: str) -> float | None:
    try:
        return seconds_of_text(text)
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def instant(text: str) -> float | None:
    try:
        return instant_of_text(text)
    except ValueError:
        return None


def amounts(text: str) -> Tres | None:
    try:
        return read_tres(text)
    except BadInput:
        return None


# --- sbatch and sstat -------------------------------------------------------------------------------


def read_submitted(text: str) -> int:
    """The job's id, of ``sbatch`` with or without ``--parsable``."""
    match = _SUBMITTED.fullmatch(text)
    if match is None or not int(match[1]):
        raise BadAnswer("sbatch", f"{text[:60]!r} names no job")
    return int(match[1])


def read_would_start(stderr: str) -> float | None:
    """When a job would start, of ``sbatch --test-only``, which answers on stderr."""
    match = _WOULD_START.search(stderr)
    return None if match is None else instant(match[1])


def read_use(text: str) -> tuple[SlurmUse, ...]:
    """``sstat -a -P``."""
    return tuple(_use(row) for row in table(text, "sstat", "JobID") if row["JobID"])


def _use(row: dict[str, str]) -> SlurmUse:
    job, _, step = row["JobID"].partition(".")
    total = dict(pair.partition("=")[::2] for pair in row.get("TRESUsageInTot", "").split(","))
    return SlurmUse(
        job=job,
        step=step,
        tasks=whole(row.get("NTasks", "")),
        cpu_seconds=clock(total.get("cpu", "")),
        memory_bytes=_amount(total.get("mem", "")),
        most_memory_bytes=_amount(row.get("MaxRSS", "")),
        disk_read_bytes=_amount(total.get("fs/disk", "")),
    )


SPENT = ("JobIDRaw", "End", "TotalCPU", "MaxRSS")


def read_spent(text: str) -> dict[int, AtEnd]:
    """``sacct -P``, of jobs that are over. The job's line has the time of all steps, theirs what they had."""
    spent: dict[int, float] = {}
    largest: dict[int, int] = {}
    for row in table(text, "sacct", *SPENT):
        number, dot, _ = row["JobIDRaw"].partition(".")
        job, seconds = whole(number), clock(row["TotalCPU"])
        if job is None:
            continue
        if dot:
            largest[job] = max(largest.get(job, 0), _amount(row["MaxRSS"]) or 0)
        elif seconds is not None and instant(row["End"]) is not None:
            spent[job] = seconds
    return {job: AtEnd(seconds, largest.get(job, 0)) for job, seconds in spent.items()}


def _amount(text: str) -> int | None:
    try:
        return read_amount(text)
    except BadInput:
        return None
