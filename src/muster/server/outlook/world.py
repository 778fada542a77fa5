"""Other presents: a snapshot with one more job, with one that asks for something else, with a shorter queue.

A snapshot is only read here, and what is made of it has a memory of its own: the scheduler may go on with
the original meanwhile. ``world_around`` leaves of a queue what matters for one job: those ahead of it in
turn, and some behind it that may be backfilled; a bounded number of each.
"""

import itertools
from collections.abc import Iterable, Iterator

import msgspec

from muster.model.job import Job, JobId
from muster.model.policy import Policy
from muster.model.snapshot import Holder, LaneKey, Snapshot, Waiting
from muster.model.tenancy import ROOT
from muster.schedule.order import Lanes, Turns
from muster.schedule.quota import QuotaBook

_AHEAD = 96  # jobs looked at that come before it in turn
_BEHIND = 24  # and after it
_LATER = 24  # and that wait for a time
_NEEDED = 64  # that it depends on

# What is remembered of run times and of placing holds for any queue and any room.
_LASTING = ("estimate", "scorer")


def lasting_memory(snap: Snapshot) -> dict[object, object]:
    """What was remembered that holds in any present and future of the same nodes and the same past."""
    memo = dict(snap.memo)
    return {key: kept for key, kept in memo.items() if isinstance(key, tuple) and key[0] in _LASTING}


def apart(snap: Snapshot) -> Snapshot:
    """The same facts, with a memory of its own."""
    return msgspec.structs.replace(snap, memo=lasting_memory(snap))


def find_waiting(snap: Snapshot, job_id: JobId) -> Waiting | None:
    """A waiting job by its id."""
    found = snap.ineligible.get(job_id)
    if found is None:
        every = itertools.chain.from_iterable(snap.lanes.values())
        found = next((w for w in every if w.job.id == job_id), None)
    return found


def as_waiting(job: Job) -> Waiting:
    """A job that was just submitted."""
    return Waiting(job, LaneKey.of(job), job.gang.asked(), queued_at=job.submitted_at)


def with_job(snap: Snapshot, job: Job) -> Snapshot:
    """As if this job were waiting, too."""
    active = dict(snap.active)
    for holder in _holders(snap, job):
        active[holder] = active.get(holder, 0) + 1
    unmet = _unmet(snap, job)
    unmets = {**snap.unmet, job.id: unmet} if unmet else snap.unmet
    return entered(msgspec.structs.replace(apart(snap), active=active, unmet=unmets), as_waiting(job))


def with_change(snap: Snapshot, waiting: Waiting, job: Job) -> Snapshot:
    """As if a waiting job had asked for something else, under the same id."""
    changed = msgspec.structs.replace(waiting, job=job, lane=LaneKey.of(job), asked=job.gang.asked())
    lanes, ineligible, timed = dict(snap.lanes), dict(snap.ineligible), dict(snap.timed)
    timed.pop(job.id, None)
    if ineligible.pop(job.id, None) is None:
        rest = [w for w in lanes.pop(waiting.lane) if w.job.id != job.id]
        if rest:
            lanes[waiting.lane] = rest
    promised = tuple(changed if w.job.id == job.id else w for w in snap.promised)
    left = msgspec.structs.replace(
        apart(snap), lanes=lanes, ineligible=ineligible, timed=timed, promised=promised
    )
    return entered(left, changed)


def entered(snap: Snapshot, waiting: Waiting) -> Snapshot:
    """With one more in the queue."""
    if is_set_apart(snap, waiting.job):
        one = {waiting.job.id: waiting}
        timed = {**snap.timed, **one} if _waits_for_a_time(snap, waiting.job) else snap.timed
        return msgspec.structs.replace(snap, ineligible={**snap.ineligible, **one}, timed=timed)
    lanes = {**snap.lanes, waiting.lane: _by_age([*snap.lanes.get(waiting.lane, ()), waiting])}
    return msgspec.structs.replace(snap, lanes=lanes)


def _waits_for_a_time(snap: Snapshot, job: Job) -> bool:
    return _is_free(snap, job)


def _is_free(snap: Snapshot, job: Job) -> bool:
    """Whether it is held by nobody, depends on nobody, and is for Muster to start."""
    dependent = job.id in snap.unmet or job.id in snap.doomed
    return not (job.held or dependent or job.adopted is not None)


def is_set_apart(snap: Snapshot, job: Job) -> bool:
    """Whether it is in no lane, since it waits for more than its turn."""
    return job.held or job.id in snap.unmet or job.begin_at is not None or job.adopted is not None


def _unmet(snap: Snapshot, job: Job) -> tuple[JobId, ...]:
    """Which of the jobs and arrays it comes after have not ended."""
    if not job.after:
        return ()
    queued = (w.job for w in itertools.chain(snap.ineligible.values(), *snap.lanes.values()))
    every = itertools.chain(queued, (r.job for r in snap.running.values()))
    wanted = {d.job for d in job.after}
    there = {name for other in every for name in _names(other) if name in wanted}
    return tuple(d.job for d in job.after if d.job in there)


def _names(job: Job) -> tuple[JobId, ...]:
    """What others may depend on: the job, and the array it is of."""
    return (job.id,) if job.array is None else (job.id, job.array.array)


def _holders(snap: Snapshot, job: Job) -> list[Holder]:
    teams = (team for team in snap.tenancy.path(job.team) if team != ROOT)
    return [(job.team, job.owner), *((team, None) for team in teams)]


def _by_age(jobs: Iterable[Waiting]) -> list[Waiting]:
    return sorted(jobs, key=lambda w: (w.job.submitted_at, w.job.id))


# --- What matters -----------------------------------------------------------------------------------------


class World(msgspec.Struct, frozen=True):
    """A snapshot of which only what matters for one job is left."""

    snap: Snapshot
    target: Waiting
    whole: bool  # whether all who come before it are there; if not, it is not there itself

    def waiting(self) -> Iterator[Waiting]:
        return itertools.chain(self.snap.ineligible.values(), *self.snap.lanes.values())


def world_around(snap: Snapshot, policy: Policy, target: Waiting, now: float) -> World | None:
    """What matters for the job; None if it depends on more than can be looked at."""
    needed = _needed(snap, target)
    if needed is None:
        return None
    order = in_turn(snap, policy, eligible(snap, now), now)
    ahead, reached = [], False
    for waiting in itertools.islice(order, _AHEAD):
        reached = waiting.job.id == target.job.id
        if reached:
            break
        ahead.append(waiting)
    behind = list(itertools.islice(order, _BEHIND))
    whole = reached or not behind or target.job.id in snap.ineligible
    others = (*ahead, *behind, *needed, *itertools.islice(_later(snap, now), _LATER))
    chosen = {w.job.id: w for w in (*others, target) if whole or w.job.id != target.job.id}
    return World(_reduced(apart(snap), chosen.values()), target, whole)


def in_turn(snap: Snapshot, policy: Policy, lanes: Lanes, now: float) -> Iterator[Waiting]:
    """Waiting jobs in the order in which they would be offered room, if each got it."""
    yield from snap.promised
    turns = Turns(snap, policy, QuotaBook(snap), now, lanes)
    while turns.next_tier():
        while (waiting := turns.next()) is not None:
            yield waiting
            turns.placed(waiting)


def eligible(snap: Snapshot, now: float) -> Lanes:
    """The lanes, with those whose time has come."""
    due: dict[LaneKey, list[Waiting]] = {}
    for waiting in snap.ineligible.values():
        if _comes_by_itself(snap, waiting) and (waiting.job.begin_at or 0.0) <= now:
            due.setdefault(waiting.lane, []).append(waiting)
    return {**snap.lanes, **{k: _by_age([*snap.lanes.get(k, ()), *jobs]) for k, jobs in due.items()}}


def _later(snap: Snapshot, now: float) -> Iterator[Waiting]:
    """Those whose time has not come yet."""
    every = (w for w in snap.ineligible.values() if _comes_by_itself(snap, w))
    return (w for w in every if (w.job.begin_at or 0.0) > now)


def _comes_by_itself(snap: Snapshot, waiting: Waiting) -> bool:
    """Whether it waits for nobody and nothing but the clock."""
    return _is_free(snap, waiting.job)


def _needed(snap: Snapshot, target: Waiting) -> list[Waiting] | None:
    """Waiting jobs that it depends on, directly or not; None if these are too many."""
    found: dict[JobId, Waiting] = {}
    wanted = set(snap.unmet.get(target.job.id, ()))
    while wanted:
        every = itertools.chain(snap.ineligible.values(), *snap.lanes.values())
        new = [w for w in every if w.job.id not in found and wanted.intersection(_names(w.job))]
        if len(found) + len(new) > _NEEDED:
            return None
        found |= {w.job.id: w for w in new}
        wanted = {name for w in new for name in snap.unmet.get(w.job.id, ())}
    return list(found.values())


def _members(snap: Snapshot, waiting: Iterable[Waiting], names: tuple[JobId, ...]) -> tuple[JobId, ...]:
    """Jobs and arrays by the ids of those of them that have not ended."""
    jobs = itertools.chain((w.job for w in waiting), (r.job for r in snap.running.values()))
    return tuple(job.id for job in jobs if not set(names).isdisjoint(_names(job)))


def _reduced(snap: Snapshot, chosen: Iterable[Waiting]) -> Snapshot:
    """Only these wait."""
    jobs = {w.job.id: w for w in chosen}
    lanes: dict[LaneKey, list[Waiting]] = {}
    ineligible: dict[JobId, Waiting] = {}
    for job_id, waiting in jobs.items():
        if is_set_apart(snap, waiting.job):
            ineligible[job_id] = waiting
        else:
            lanes.setdefault(waiting.lane, []).append(waiting)
    return msgspec.structs.replace(
        snap,
        lanes={key: _by_age(lane) for key, lane in lanes.items()},
        ineligible=ineligible,
        timed={j: w for j, w in ineligible.items() if _waits_for_a_time(snap, w.job)},
        unmet={j: _members(snap, jobs.values(), snap.unmet[j]) for j in jobs if j in snap.unmet},
        doomed={},
        promised=tuple(jobs[w.job.id] for w in snap.promised if w.job.id in jobs),
    )
