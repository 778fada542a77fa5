"""What an id speaks of: a job, an array, or some members of one (``12_[1-3,7]``).

Members that are named together are looked at and acted on as one, as their array is. One that does not exist
is an error before anything is done.
"""

import re

import msgspec

from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.job import JobId
from muster.server.answers import ArrayView, JobView
from muster.server.errors import NotFound
from muster.server.service import Service
from muster.store.records import Record

_SPAN = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_WHOLE = r"(?:[0-9]{1,15}|s[0-9]{1,15}(?:-[0-9]{1,9})?)"  # s12-2: the second that Slurm calls 12
_ID = re.compile(rf"{_WHOLE}(?:_(?:[0-9]{{1,9}}|\[{_SPAN}(?:,{_SPAN})*\]))?")
_MOST_MEMBERS = 100_000  # that an id may speak of


def ids_in(job_id: str) -> list[JobId]:
    """The ids that one speaks of: ``12_[1-3,7]`` of four members, any other of itself."""
    if not _ID.fullmatch(job_id):
        raise BadInput(f"{job_id[:40]!r} is not a job's id; ids look like 12, 12_3, 12_[1-3] or s12")
    if not job_id.endswith("]"):
        return [job_id]
    array, _, inside = job_id[:-1].partition("_[")
    ids: dict[JobId, None] = {}  # whoever is named twice is meant once
    for part in inside.split(","):
        first, _, last = part.partition("-")
        span = range(int(first), int(last or first) + 1)
        if not 0 < len(span) <= _MOST_MEMBERS - len(ids):
            raise BadInput(f"{part} in {job_id[:40]!r} is not a list of members; write it like 12_[1-3,7]")
        ids.update((f"{array}_{i}", None) for i in span)
    return list(ids)


def living(service: Service, job_id: str) -> list[Record]:
    """The records that an id speaks of, of jobs that have not ended. Whoever does not exist raises."""
    ids = ids_in(job_id)
    records = [record for one in ids for record in service.members_of(one)]
    if len(records) < len(ids):
        view(service, job_id)
    return records


def view(service: Service, job_id: str) -> JobView:
    """A job, an array, or some members of one, living or ended."""
    ids = ids_in(job_id)
    if job_id.endswith("]"):
        return _as_one(service, job_id, ids)
    found = service.look_up(job_id)
    if found is not None:
        return found
    past = _past(service, job_id)
    if not past:
        raise _absent(job_id)
    return _as_one(service, job_id, past)


def each(service: Service, job_id: str) -> list[JobId]:
    """The jobs that an id speaks of, each by itself, in the order of their numbers."""
    if view(service, job_id).counts is None:
        return [job_id]
    if job_id.endswith("]"):
        return sorted(ids_in(job_id), key=_index)
    start = f"{job_id}_"
    found = {one for one in service.fold.records if one.startswith(start)}
    return sorted(found.union(_past(service, job_id)), key=_index)


def attempt_of(service: Service, one: JobId) -> int:
    """The latest of a job that exists; 0: it has not started yet."""
    record = service.fold.records.get(one)
    if record is not None and record.running is not None:
        return record.running.attempt - (record.running.behind is not None)  # one in line has yet to start
    if record is not None and record.waiting is not None:
        return record.waiting.attempt
    return view(service, one).attempt


def is_over(service: Service, one: JobId) -> bool:
    """Of a job that exists: one that is forgotten has ended."""
    record = service.fold.records.get(one)
    return record is None or record.outcome is not None


def _past(service: Service, array: JobId) -> list[JobId]:
    """The members of an array that have ended; of the last, the store may not know yet."""
    found = {row.id for row in service.journal.jobs_ended(_MOST_MEMBERS, array_id=array)}
    found.update(one.id for one in service.recent.values() if one.array is not None and one.array.id == array)
    return sorted(found, key=_index)


def _as_one(service: Service, job_id: str, ids: list[JobId]) -> JobView:
    outcomes = _outcomes(service, ids)
    over = [outcome for outcome in outcomes.values() if outcome is not None]
    failed = sum(outcome is not Outcome.SUCCEEDED for outcome in over)
    records = [service.fold.records[one] for one, outcome in outcomes.items() if outcome is None]
    found = service.views.as_one(records, len(over), failed, lambda: view(service, ids[0]))
    numbers = [_index(one) for one in ids]
    place = ArrayView(ids[0].partition("_")[0], min(numbers), max(numbers), len(ids))
    return msgspec.structs.replace(found, id=job_id, array=place)


def _outcomes(service: Service, ids: list[JobId]) -> dict[JobId, Outcome | None]:
    """How members of one array have ended; None: not yet. The store is asked once, for the whole array."""
    past: dict[JobId, Outcome] | None = None
    found: dict[JobId, Outcome | None] = {}
    for one in ids:
        record = service.fold.records.get(one)
        if record is not None:
            found[one] = record.outcome
            continue
        if past is None:
            rows = service.journal.jobs_ended(_MOST_MEMBERS, array_id=one.partition("_")[0])
            past = {row.id: Outcome(row.outcome) for row in rows}
            past |= {view.id: view.outcome for view in service.recent.values() if view.outcome is not None}
        if one not in past:
            raise _absent(one)
        found[one] = past[one]
    return found


def _index(member: JobId) -> int:
    return int(member.partition("_")[2])


def _absent(job_id: JobId) -> NotFound:
    return NotFound(f"there is no job {job_id}; muster ps -a lists all")
