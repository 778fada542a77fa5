"""How each fact of a situation shows in what was read, and the words that mean the same in all prose."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from slurm_situations import Situation

from muster.engines.slurm import errors, reasons, states
from muster.engines.slurm.answers import Exit, Gpus, SlurmAttempt, SlurmJob, SlurmNode, Tres
from muster.model.state import State

# --- How each fact shows in what was read -----------------------------------------------------------

Shown = Callable[[SlurmJob, Any, Situation], str | None]


def _plain(show: Callable[[SlurmJob], object]) -> Shown:
    def check(job: SlurmJob, value: Any, _of: Situation) -> str | None:
        shown = show(job)
        return (
            None if str("" if shown is None else shown) == str(value) else f"read {shown!r}, it was {value!r}"
        )

    return check


def _at(show: Callable[[SlurmJob], float | None]) -> Shown:
    def check(job: SlurmJob, value: Any, _of: Situation) -> str | None:
        shown = show(job)
        return None if shown == instant(value) else f"read {shown!r}, it was {value} ({instant(value)})"

    return check


def _tres(show: Callable[[SlurmJob], Tres | None]) -> Shown:
    def check(job: SlurmJob, value: Any, _of: Situation) -> str | None:
        shown = show(job)
        told = {} if shown is None else dict(shown.amounts)
        return None if told == _amounts(value) else f"read {told}, it was {value}"

    return check


def _limit(job: SlurmJob, value: str, _of: Situation) -> str | None:
    true = float("inf") if value == "UNLIMITED" else _clock(value)
    return None if job.time_limit_seconds == true else f"read {job.time_limit_seconds}, it was {value}"


def _reason(job: SlurmJob, value: str, _of: Situation) -> str | None:
    """In text the detail stands in the reason's place, with underscores."""
    shown = (job.detail or job.reason).replace(" ", "_")
    return None if shown == value else f"read {shown!r}, it was {value!r}"


def _seats(job: SlurmJob, value: list[dict[str, str]], _of: Situation) -> str | None:
    """Node by node: how many cpus, which GPUs. Nodes that hold the same are told together."""
    seats = {seat.node: seat for seat in job.seats}
    for told in value:
        for node in _unfolded(told["nodes"]):
            seat = seats.pop(node, None)
            if seat is None:
                return f"no seat on {node}"
            if seat.cpus != len(_numbers(told["cpus"])):
                return f"{seat.cpus} cpus on {node}, they were {told['cpus']}"
            shown = None if seat.gpus is None else ",".join(map(_gres, seat.gpus))
            gone = shown is None and not told["gres"]  # over: the GPUs that it had are told no more
            if not gone and shown != told["gres"]:
                return f"{shown} on {node}, it was {told['gres']!r}"
    return f"seats on {list(seats)}" if seats else None


def _gres(gpus: Gpus) -> str:
    runs: list[list[int]] = []
    for index in gpus.indices or ():
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    shown = ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
    return f"gpu:{gpus.type}:{gpus.count}(IDX:{shown})"


def code_of(value: Exit | None) -> str:
    return "" if value is None else f"{value.code}:{value.signal}"


FACTS: dict[str, Shown] = {
    "JobId": _plain(lambda j: j.id),
    "UserId": _plain(lambda j: f"{j.user}({j.uid})"),
    "Account": _plain(lambda j: j.account),
    "QOS": _plain(lambda j: j.qos),
    "Partition": _plain(lambda j: j.partition),
    "JobState": _plain(lambda j: states.word(j.states)),
    "Reason": _reason,
    "ExitCode": _plain(lambda j: code_of(j.exit)),
    "DerivedExitCode": _plain(lambda j: code_of(j.derived_exit)),
    "Restarts": _plain(lambda j: j.restarts),
    "NodeList": _plain(lambda j: j.nodes),
    "ReqNodeList": _plain(lambda j: j.required_nodes),
    "BatchHost": _plain(lambda j: j.batch_host),
    "NumNodes": lambda j, v, _: (
        None if j.node_count == int(v.split("-")[0]) else f"{j.node_count} nodes, not {v}"
    ),
    "SubmitTime": _at(lambda j: j.submitted_at),
    "EligibleTime": _at(lambda j: j.eligible_at),
    "StartTime": _at(lambda j: j.start_at),
    "EndTime": _at(lambda j: j.end_at),
    "SuspendTime": _at(lambda j: j.suspended_at),
    "PreemptTime": _at(lambda j: j.preempted_at),
    "TimeLimit": _limit,
    "WCKey": _plain(lambda j: j.wckey),
    "TRES": _tres(lambda j: j.given or j.asked),
    "ReqTRES": _tres(lambda j: j.asked),
    "AllocTRES": _tres(lambda j: j.given),
    "gres": _seats,
    "ArrayJobId": _plain(lambda j: j.array_id),
    "ArrayTaskId": _plain(lambda j: j.array_tasks or j.array_task),
    "HetJobId": _plain(lambda j: j.het_id),
    "HetJobOffset": _plain(lambda j: j.het_offset),
    "Dependency": _plain(lambda j: j.dependency),
    "Comment": lambda j, v, _: (
        None if j.comment.splitlines()[0] == v.splitlines()[0] else f"{j.comment!r}, not {v!r}"
    ),
    "AdminComment": _plain(lambda j: j.admin_comment),
    "Extra": _plain(lambda j: j.extra),
}

MEANINGS = {
    "PENDING": (State.QUEUED, State.HELD),
    "SPECIAL_EXIT": (State.HELD,),
    "RUNNING": (State.RUNNING,),
    "SUSPENDED": (State.SUSPENDED,),
    "COMPLETING": (State.STOPPING,),
    **dict.fromkeys(
        ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
        (State.ENDED,),
    ),
}
HELD = re.compile(r"JobHeld|held|requeuehold|priority (set to )?0")
COMMANDS = frozenset(("squeue", "sinfo", "sacct", "sstat", "scontrol", "sbatch", "scancel"))

ATTEMPTS: dict[str, Callable[[SlurmAttempt], object]] = {
    "JobIDRaw": lambda a: str(a.job),
    "User": lambda a: a.user,
    "Account": lambda a: a.account,
    "Partition": lambda a: a.partition,
    "QOS": lambda a: a.qos,
    "State": lambda a: states.word(a.states),
    "Submit": lambda a: a.submitted_at,
    "Start": lambda a: a.started_at,
    "End": lambda a: a.ended_at,
    "NodeList": lambda a: a.nodes,
    "ReqTRES": lambda a: {} if a.asked is None else dict(a.asked.amounts),
    "AllocTRES": lambda a: {} if a.given is None else dict(a.given.amounts),
}


def column_of(row: dict[str, str], column: str) -> object:
    text = row[column]
    if column in ("Submit", "Start", "End"):
        return instant(text)
    if column.endswith("TRES"):
        return _amounts(text)
    if column == "State":
        return text.split(" by ")[0]
    return "" if text == "None assigned" else text


NODES: dict[str, tuple[Callable[[SlurmNode], object], Callable[[str], object]]] = {
    "State": (lambda n: set(n.states), lambda v: set(v.split("+"))),
    "CPUTot": (lambda n: n.cpus, int),
    "CPUAlloc": (lambda n: n.taken_cpus, int),
    "RealMemory": (lambda n: n.memory_bytes, lambda v: int(v) << 20),
    "AllocMem": (lambda n: n.taken_memory_bytes, lambda v: int(v) << 20),
    "AvailableFeatures": (lambda n: None if n.features is None else ",".join(n.features), str),
    "Partitions": (lambda n: ",".join(n.partitions), lambda v: v.strip()),
    "Gres": (
        lambda n: None if n.gpus is None else ",".join(f"gpu:{g.type}:{g.count}" for g in n.gpus),
        lambda v: "" if v == "(null)" else v,
    ),
    "GresUsed": (
        lambda n: None if n.taken_gpus is None else ",".join(map(_gres, n.taken_gpus)),
        lambda v: "" if re.search(r":0(\(|$)", v) or v in ("", "(null)") else v,
    ),
    "Reason": (lambda n: n.reason or None, lambda v: v.partition(" [")[0]),
}


def node_words(node: SlurmNode) -> Iterator[str]:
    yield from node.states
    if "DRAIN" in node.states:
        yield "DRAINED" if "IDLE" in node.states or "DOWN" in node.states else "DRAINING"
    yield node.name


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_LIMITS = ("AssocGrpGRES", "QOSMaxGRESPerUser")
_REASONS = [one for one in reasons.SENTENCES if one.isalpha() and one != "None"]
_NODE_STATES = _any((*states.NODE_STATES, *states.NODE_FLAGS, "DRAINED", "DRAINING"))
JOB_WORDS = re.compile(rf"\b({_any((*states.STATES, *states.FLAGS))})\b")
REASON_WORDS = re.compile(rf"\b({_any((*_REASONS, *_LIMITS))})\b")
NODE_CLAIMS = re.compile(rf"(node\d)(?:(?!node\d|;|\.).)*?\b({_NODE_STATES})\b")

FACTS_OF_ATTEMPTS: dict[str, Callable[[SlurmAttempt], object]] = {
    "JobState": lambda a: states.word(a.states),
    "Account": lambda a: a.account,
    "Partition": lambda a: a.partition,
    "QOS": lambda a: a.qos,
    "NodeList": lambda a: a.nodes,
}

KINDS = {
    "munge": errors.NotAuthenticated,
    "slurmctld is down": errors.ControllerDown,
    "slurmdbd is down": errors.AccountingDown,
    "permission denied": errors.Denied,
    "Invalid user id": errors.Denied,
    "Invalid job id": errors.UnknownJob,
}


def kind_of(stderr: str, prose: str) -> str:
    for words, kind in KINDS.items():
        if words in prose or words in stderr:
            return kind.__name__
    return errors.Refused.__name__


def unasked(file: dict[str, Any]) -> str:
    """JSON of a certain parser, or of what has none: trials of Slurm, not questions of ours."""
    return (
        "--json"
        if "--json=" in file["cmd"] or "unrecognized option '--json'" in (file.get("stderr") or "")
        else ""
    )


def ending(job: SlurmJob) -> bool:
    """COMPLETING, where the state that it ended in is told beside."""
    return len(job.states) > 1 and not {"PENDING", "RUNNING"} & set(job.states)


def remark(default: bool | None, most_seconds: float | None) -> str:
    if default:
        return "(default)"
    return f"({most_seconds / 60:.0f} min)" if most_seconds and most_seconds < 3600 else ""


def by_time(attempts: Iterable[SlurmAttempt]) -> list[SlurmAttempt]:
    return sorted(attempts, key=lambda a: (str(a.job), a.submitted_at or 0))


# --- Reading the truth, apart from what is tried ------------------------------------------------------


def instant(text: str) -> float | None:
    if text in ("Unknown", "None", "", "N/A"):
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _clock(text: str) -> float:
    hours, minutes, seconds = map(int, text.split(":"))
    return float(hours * 3600 + minutes * 60 + seconds)


def _amounts(text: str) -> dict[str, int]:
    pairs = (pair.split("=") for pair in text.split(",") if pair and pair != "(null)")
    return {key: int(value[:-1]) << 20 if value.endswith("M") else int(value) for key, value in pairs}


def _unfolded(text: str) -> list[str]:
    match = re.fullmatch(r"(\w+)\[(.*)\]", text)
    return [text] if match is None else [match[1] + str(number) for number in _numbers(match[2])]


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def says_errors(answer: bytes) -> bool:
    return bool(json.loads(answer).get("errors"))
