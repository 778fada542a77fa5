"""The components of a heterogeneous job as one: what its records say together.

It runs when all do, and is over when all are. Of different ends the one that explains the others counts: a
lost node before the cancelling that follows from it. The script is the leader's, and so is the exit code.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec.structs import replace

from muster.engines.slurm.answers import ENDS, Exit, SlurmAttempt, SlurmJob

_NOTHING = Exit()
_TELLING = (  # of ends, what says most
    *("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "TIMEOUT", "DEADLINE", "FAILED"),
    *("CANCELLED", "COMPLETED"),
)
Record = TypeVar("Record", SlurmJob, SlurmAttempt)


def folded_jobs(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """All jobs; of a heterogeneous one a single record, under the leader's number."""
    found, groups = [], dict[int, list[SlurmJob]]()
    for job in jobs:
        if job.het_id is None:
            found.append(job)
        else:
            groups.setdefault(job.het_id, []).append(job)
    return [*found, *(_job(some) for some in groups.values())]


def folded_attempts(attempts: Iterable[SlurmAttempt]) -> list[SlurmAttempt]:
    """The same of accounting, where components are requeued together: each try by itself."""
    found, groups = [], dict[int, dict[int, list[SlurmAttempt]]]()
    for one in attempts:
        if one.het_id is None:
            found.append(one)
        else:
            groups.setdefault(one.het_id, {}).setdefault(one.job, []).append(one)
    for components in groups.values():
        tries = [sorted(some, key=_order) for some in components.values()]
        found += (_attempt([one for one in some if one is not None]) for some in zip_longest(*tries))
    return found


def _order(attempt: SlurmAttempt) -> tuple[float, int]:
    return attempt.submitted_at or 0.0, attempt.restarts or 0


def _job(records: Sequence[SlurmJob]) -> SlurmJob:
    records = sorted(records, key=lambda one: one.het_offset or 0)
    lead, telling = records[0], _telling(records)
    return replace(
        lead,
        id=lead.het_id or lead.id,
        states=telling.states,
        reason=telling.reason,
        detail=telling.detail,
        nodes=lead.nodes if all(one.nodes for one in records) else "",
        start_at=_latest(one.start_at for one in records),
        end_at=_latest(one.end_at for one in records),
        restarts=max((one.restarts or 0 for one in records), default=0),
        seats=tuple(seat for one in records for seat in one.seats),
        exit=_exit(records),
        components=tuple(records),
    )


def _attempt(records: Sequence[SlurmAttempt]) -> SlurmAttempt:
    records = sorted(records, key=lambda one: one.het_offset or 0)
    lead = records[0]
    return replace(
        lead,
        job=lead.het_id or lead.job,
        states=_telling(records).states,
        started_at=_latest(one.started_at for one in records),
        ended_at=_latest(one.ended_at for one in records),
        exit=_exit(records),
    )


def _telling(records: Sequence[Record]) -> Record:
    """Who has not ended says where the whole stands; of several that wait or run, the first."""
    going = [one for one in records if ENDS.isdisjoint(one.states) or "COMPLETING" in one.states]
    waiting = [one for one in going if "PENDING" in one.states]
    return (waiting or going or sorted(records, key=_rank))[0]


def _rank(record: SlurmJob | SlurmAttempt) -> int:
    return next((place for place, word in enumerate(_TELLING) if word in record.states), len(_TELLING))


def _exit(records: Sequence[Record]) -> Exit | None:
    return next((one.exit for one in records if one.exit not in (None, _NOTHING)), records[0].exit)


def _latest(times: Iterable[float | None]) -> float | None:
    return max((at for at in times if at is not None), default=None)
