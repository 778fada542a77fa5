"""What slurmrestd answers → values. Jobs, nodes and attempts are as commands tell them, and read by their
readers; here is the rest, which commands tell in text.

A refusal is in ``errors``, with HTTP 500 or 400; but 22.05 writes there, too, that a job it took is held, and
that a question has found nothing. 22.05 calls every script that exited a success in accounting; so how one
ended is not said by such a record.
"""

import math
from typing import Any

import msgspec

from muster.engines.slurm import attempts as accounting
from muster.engines.slurm.answers import SlurmAttempt, SlurmPartition, SlurmReservation
from muster.engines.slurm.errors import (
    BadAnswer,
    ControllerDown,
    Refused,
    SlurmError,
    Unreachable,
    advice,
    fault,
)
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.texts import amounts
from muster.engines.slurm.values import Reader
from muster.model.units import MINUTE

_WHO = "slurmrestd"
_LETTERS = 300
_NOTHING_FOUND = 9003
_UNSAID = "Unspecified error"  # of a failure that is nobody's refusal
_FAILED = 500


def read_refusal(status: int, body: bytes) -> SlurmError:
    """The error that an answer amounts to."""
    words = "; ".join(_words(body))[:_LETTERS]
    if not words:
        said = body[:_LETTERS].decode(errors="replace").strip() or "nothing more"
        return Unreachable(
            f"slurmrestd answers HTTP {status} and says {said!r}: see its log; it is asked again"
        )
    found = fault(_WHO, status, "", words)
    if type(found) is not Refused:
        return found
    if _UNSAID in words and status >= _FAILED:
        return ControllerDown(f"Slurm fails slurmrestd without saying why ({words}): see `scontrol ping`")
    return Refused(f"Slurm refuses by slurmrestd: {words}; {advice(words.lower())}")


def found_nothing(body: bytes) -> bool:
    """Whether it says that there is none such, and nothing else."""
    errors = _errors(body)
    return bool(errors) and all(
        _NOTHING_FOUND in (one.get("error_number"), one.get("error_code"))
        or "nothing found" in f"{one.get('error')} {one.get('description')}".lower()
        for one in errors
    )


def read_submitted(body: bytes) -> int | None:
    """The job's id; None: it was not taken. That it was can come with words about it."""
    number = _object(body).get("job_id")
    return number if isinstance(number, int) and number > 0 else None


def read_level(body: bytes) -> tuple[str, ...]:
    """The levels of the first user listed: a word in 22.05, a list since."""
    users = _object(body).get("users")
    first = users[0] if isinstance(users, list) and users else None
    level = first.get("administrator_level") if isinstance(first, dict) else None
    return tuple(map(str, level)) if isinstance(level, list) else (str(level),)


def read_partitions(body: bytes, notices: Notices) -> tuple[SlurmPartition, ...]:
    read = Reader(notices, "slurmrestd partitions")
    return tuple(
        _partition_2205(one, read) if isinstance(one.get("nodes"), str) else _partition(one, read)
        for one in _records(body, "partitions")
    )


def read_reservations(body: bytes, notices: Notices) -> tuple[SlurmReservation, ...]:
    """Whether one is active is not said."""
    read = Reader(notices, "slurmrestd reservations")
    return tuple(
        SlurmReservation(
            name=str(one.get("name")),
            nodes=read.text(one.get("node_list")),
            start_at=read.instant(one.get("start_time")),
            end_at=read.instant(one.get("end_time")),
            users=read.words(one.get("users")),
            accounts=read.words(one.get("accounts")),
            flags=read.words(one.get("flags")),
        )
        for one in _records(body, "reservations")
    )


def read_attempts(body: bytes, notices: Notices, *, exits_are_told: bool) -> tuple[SlurmAttempt, ...]:
    if found_nothing(body):
        return ()
    found = accounting.read_attempts(body, notices)
    if exits_are_told:
        return found
    return tuple(msgspec.structs.replace(one, exit=None, derived_exit=None) for one in found)


# --- Partitions ------------------------------------------------------------------------------------


def _partition_2205(one: dict[str, Any], read: Reader) -> SlurmPartition:
    """-1 stands for no limit."""
    return SlurmPartition(
        name=str(one.get("name")),
        state=read.text(one.get("state")),
        default="default" in read.words(one.get("flags")),
        nodes=read.text(one.get("nodes")),
        node_count=read.whole(one.get("total_nodes")),
        cpus=read.whole(one.get("total_cpus")),
        most_seconds=_seconds(_limit(one.get("max_time_limit"), read)),
        default_seconds=_seconds(_limit(one.get("default_time_limit"), read)),
        most_nodes=_limit(one.get("maximum_nodes_per_job"), read),
        least_nodes=read.whole(one.get("min nodes per job")),
        tier=read.whole(one.get("priority_tier")),
        accounts=read.text(one.get("allowed_accounts")) or "ALL",
        total=amounts(read.text(one.get("tres"))),
    )


def _partition(one: dict[str, Any], read: Reader) -> SlurmPartition:
    """24.11 does not say which is the default."""
    most, flags = _at(one, "maximums"), one.get("flags")
    return SlurmPartition(
        name=str(one.get("name")),
        state=next(iter(read.words(_at(one, "partition").get("state"))), ""),
        default=None if flags is None else "DEFAULT" in read.words(flags),
        nodes=read.text(_at(one, "nodes").get("configured")),
        node_count=read.whole(_at(one, "nodes").get("total")),
        cpus=read.whole(_at(one, "cpus").get("total")),
        most_seconds=_seconds(read.number(most.get("time"))),
        default_seconds=_seconds(read.number(_at(one, "defaults").get("time"))),
        most_nodes=read.number(most.get("nodes")),
        least_nodes=read.whole(_at(one, "minimums").get("nodes")),
        tier=read.whole(_at(one, "priority").get("tier")),
        accounts=read.text(_at(one, "accounts").get("allowed")) or "ALL",
        total=amounts(read.text(_at(one, "tres").get("configured"))),
    )


def _limit(value: object, read: Reader) -> float | None:
    return math.inf if value == -1 else read.number(value)


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * MINUTE


# --- Any answer ------------------------------------------------------------------------------------


def _at(one: dict[str, Any], key: str) -> dict[str, Any]:
    found = one.get(key)
    return found if isinstance(found, dict) else {}


def _records(body: bytes, key: str) -> list[dict[str, Any]]:
    whole = _object(body)
    if _errors(body) and not found_nothing(body):
        raise read_refusal(200, body)
    found = whole.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) and one.get("name") for one in found):
        raise BadAnswer(_WHO, f"it has no list of {key}")
    return found


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise BadAnswer(_WHO, f"it breaks off or is no JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise BadAnswer(_WHO, "it is of another shape")
    return found


def _errors(body: bytes) -> list[dict[str, Any]]:
    try:
        errors = _object(body).get("errors")
    except BadAnswer:
        return []
    return [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []


def _words(body: bytes) -> list[str]:
    """The most telling of each error, without repeating it."""
    found: dict[str, None] = {}
    for one in _errors(body):
        for key in ("description", "error"):
            if isinstance(one.get(key), str) and one[key]:
                found[one[key]] = None
    return list(found)
