"""``sacct -D`` → attempts: a requeued job has one record for each try.

22.05's JSON says success of every script that exited, so there it is asked in text, without names;
since then in JSON. Text leaves out 128 of a code above 127 (137 is told as 9), so what squeue says of a
job that has just ended comes before it. And 22.05 has no record of a job that was requeued and waits.
"""

from collections.abc import Iterable
from typing import Any

from muster.engines.slurm.answers import SlurmAttempt, Tres
from muster.engines.slurm.jobs import minutes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.texts import amounts, clock, instant, table, whole
from muster.engines.slurm.values import Reader, exit_of_text, null_of_text
from muster.engines.slurm.wire import WireAttempt, decode_attempts
from muster.model.units import MIB, MINUTE

COLUMNS = (
    *("JobID", "JobIDRaw", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode"),
    *("Reason", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "TimelimitRaw", "NodeList"),
    *("ReqTRES", "AllocTRES", "Suspended"),
)
"""What is asked for in text: nothing that a user can write."""
_NO_NODES = "None assigned"


def by_job(attempts: Iterable[SlurmAttempt]) -> dict[int, tuple[SlurmAttempt, ...]]:
    """The tries of each job in their order."""
    found: dict[int, list[SlurmAttempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.job, []).append(attempt)
    return {job: tuple(sorted(tries, key=_order)) for job, tries in found.items()}


def _order(attempt: SlurmAttempt) -> tuple[float, int]:
    """A requeue resets the time of submission."""
    return attempt.submitted_at or 0.0, attempt.restarts or 0


# --- JSON ------------------------------------------------------------------------------------------


def read_attempts(answer: bytes, notices: Notices, *, stderr: str = "") -> tuple[SlurmAttempt, ...]:
    found = decode_attempts(answer, notices, stderr=stderr)
    reader = Reader(notices, "sacct")
    return tuple(_attempt(record, reader) for record in found)


def _attempt(record: WireAttempt, read: Reader) -> SlurmAttempt:
    times, array, het = _object(record.time), _object(record.array), _object(record.het)
    state, comment, tres = _object(record.state), _object(record.comment), _object(record.tres)
    array_id, het_id = read.some(array.get("job_id")), read.some(het.get("job_id"))
    nodes = read.text(record.nodes)
    return SlurmAttempt(
        job=record.job_id,
        states=read.words(state.get("current")),
        restarts=read.whole(record.restart_cnt),
        array_id=array_id,
        array_task=read.whole(array.get("task_id")) if array_id else None,
        array_tasks=read.text(array.get("task")),
        het_id=het_id,
        het_offset=read.whole(het.get("job_offset")) if het_id else None,
        name=read.text(record.name),
        user=read.text(record.user),
        account=read.text(record.account),
        partition=read.text(record.partition),
        qos=read.text(record.qos),
        reason=read.text(state.get("reason")),
        submitted_at=read.instant(times.get("submission")),
        eligible_at=read.instant(times.get("eligible")),
        started_at=read.instant(times.get("start")),
        ended_at=read.instant(times.get("end")),
        elapsed_seconds=read.number(times.get("elapsed")),
        suspended_seconds=read.number(times.get("suspended")),
        time_limit_seconds=minutes(times.get("limit"), read),
        nodes="" if nodes == _NO_NODES else nodes,
        asked=_tres(tres.get("requested"), read),
        given=_tres(tres.get("allocated"), read),
        exit=read.exit(record.exit_code),
        derived_exit=read.exit(record.derived_exit_code),
        killed_by=read.text(record.kill_request_user),
        comment=read.text(comment.get("job")),
        admin_comment=read.text(comment.get("administrator")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tres(value: object, read: Reader) -> Tres | None:
    """A list of counts; memory in mebibytes. Negative ones are not said."""
    if not isinstance(value, list) or not value:
        return None
    found: dict[str, int] = {}
    for one in value:
        entry = _object(one)
        kind, name, count = read.text(entry.get("type")), entry.get("name"), read.whole(entry.get("count"))
        if kind and count is not None:
            found[f"{kind}/{name}" if name else kind] = count * MIB if kind == "mem" else count
    types = tuple((key[9:], count) for key, count in found.items() if key.startswith("gres/gpu:"))
    return Tres(
        cpus=found.get("cpu"),
        memory_bytes=found.get("mem"),
        nodes=found.get("node"),
        gpus=found.get("gres/gpu", sum(count for _, count in types)),
        gpu_types=types,
        amounts=tuple(found.items()),
    )


# --- Text ------------------------------------------------------------------------------------------


def read_attempts_text(text: str) -> tuple[SlurmAttempt, ...]:
    """Any columns of ``sacct -P`` with JobID and State among them. Steps are passed over."""
    rows = table(text, "sacct", "JobID", "State")
    return tuple(_of_row(row) for row in rows if "." not in row["JobID"])


def _of_row(row: dict[str, str]) -> SlurmAttempt:
    get = row.get
    array, task, tasks, het, offset = _parts(row["JobID"])
    state, _, by = row["State"].partition(" by ")
    limit = get("TimelimitRaw", "")
    limit_minutes = whole(limit)
    return SlurmAttempt(
        job=whole(get("JobIDRaw", "")) or het or array or 0,
        states=(state,),
        restarts=whole(get("Restarts", "")),
        array_id=array if task is not None or tasks else None,
        array_task=task,
        array_tasks=tasks,
        het_id=het if offset is not None else None,
        het_offset=offset,
        user=get("User", ""),
        account=get("Account", ""),
        partition=get("Partition", ""),
        qos=get("QOS", ""),
        reason=get("Reason", ""),
        submitted_at=instant(get("Submit", "")),
        eligible_at=instant(get("Eligible", "")),
        started_at=instant(get("Start", "")),
        ended_at=instant(get("End", "")),
        elapsed_seconds=whole(get("ElapsedRaw", "")),
        suspended_seconds=clock(get("Suspended", "")),
        time_limit_seconds=clock(limit) if limit_minutes is None else limit_minutes * MINUTE,
        nodes=null_of_text(get("NodeList", "")),
        asked=amounts(get("ReqTRES", "")),
        given=amounts(get("AllocTRES", "")),
        exit=_exit(get("ExitCode", "")),
        derived_exit=_exit(get("DerivedExitCode", "")),
        killed_by=by,
    )


def _exit(text: str) -> Any:
    try:
        return exit_of_text(text)
    except ValueError:
        return None


def _parts(text: str) -> tuple[int | None, int | None, str, int | None, int | None]:
    """``6_1``, ``6_[2-4%2]``, ``7+1`` or ``12`` → array, task, waiting tasks, het job, offset."""
    array, underscore, task = text.partition("_")
    if underscore:
        return whole(array), whole(task), task[1:-1] if task.startswith("[") else "", None, None
    het, plus, offset = text.partition("+")
    return (None, None, "", whole(het), whole(offset)) if plus else (whole(text), None, "", None, None)
