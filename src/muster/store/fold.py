"""State is the fold of the journal: facts go in one by one, a frozen Snapshot comes out when asked.

A snapshot is a loan: it shares the fold's containers, and the fold copies them before its next change
unless the borrower has said that it is done (``release``). So the single-threaded simulator never copies,
and a server may decide in another thread while facts keep coming.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import (
    Amended,
    ArraySubmitted,
    DeviceHealth,
    Event,
    Evicting,
    Exited,
    Found,
    Held,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Promised,
    Released,
    Reported,
    Resumed,
    Retried,
    Seated,
    Started,
    StoodDown,
    Stopping,
    Submitted,
    Suspended,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.history import HistoryBook
from muster.model.job import Job, JobId
from muster.model.lives import LivesBook
from muster.model.mix import MixCounter
from muster.model.policy import ROTATING, Policy
from muster.model.resources import Resources
from muster.model.review import of_work
from muster.model.room import held_by
from muster.model.snapshot import LaneKey, Running, Snapshot, Waiting
from muster.model.state import State, after
from muster.model.stewardship import BudgetFreed, BudgetReached, Defended, split
from muster.model.tenancy import Team, Tenancy
from muster.steward.held import Holding, holding_of
from muster.store.mailbox import POSTED, Mailboxes
from muster.store.queue import Queue
from muster.store.records import ArrayRecord, Record, begins_shifted, end_of
from muster.store.seats import copied_room
from muster.store.stewardship import HANDLED, Stewardship


class Fold(Queue):
    """All facts so far. Of jobs that have ended it remembers how, for the last ``remembers`` of them."""

    def __init__(
        self,
        policy: Policy,
        known_seconds: dict[JobId, float] | None = None,
        remembers: int | None = None,
    ) -> None:
        super().__init__(policy)
        self._remembers = remembers
        self._known_seconds = known_seconds or {}
        self.now = 0.0  # the time of the last fact
        self.wall_ahead_seconds = 0.0  # of the present: begin times are the wall's, all others are ours
        self.generation = 0
        self.submissions = 0  # jobs and arrays ever submitted: the next id
        self._teams: dict[str, Team] = {}
        self.ended: dict[tuple[str, Outcome], int] = {}  # jobs ever, by team and outcome
        self._ended_jobs: deque[JobId] = deque()
        self._history = HistoryBook()
        self._lives = LivesBook()
        self._mix = MixCounter()
        self.stewardship = Stewardship()
        self.mailboxes = Mailboxes()
        self._lent = False

    # --- Facts in -----------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take a fact in. An event that the table does not allow raises, and changes nothing."""
        handler = _HANDLERS[type(event)]
        if self._lent:
            self._unshare()
        if not isinstance(event, NodeSeen):
            self._refresh_inventory()
        handler(self, event)
        self.now = max(self.now, event.at)
        self.generation += 1

    def _submitted(self, event: Submitted) -> None:
        self._refuse_known(event.job.id)
        self.submissions += event.job.adopted is None  # who is adopted has a number of another kind
        self._enter(event.job, LaneKey.of(event.job), event.job.gang.asked(), event.at)

    def _array_submitted(self, event: ArraySubmitted) -> None:
        template = event.template
        self._refuse_known(template.id)
        if not event.indices:
            raise BadInput(f"array {template.id} has no members")
        lane, asked = LaneKey.of(template), template.gang.asked()  # the same for all: kept once
        size = len(event.indices)
        self.arrays[template.id] = ArrayRecord(template, size, size)
        self.submissions += template.adopted is None
        for job in event.members():
            self._enter(job, lane, asked, event.at)

    def _refuse_known(self, job_id: JobId) -> None:
        if job_id in self.records or job_id in self.arrays:
            raise BadInput(f"there is already a job {job_id}")

    def _enter(self, job: Job, lane: LaneKey, asked: Resources, now: float) -> None:
        job, because = self._unless_kept_back(job)
        waiting = Waiting(job, lane, asked, queued_at=now, held_because=because)
        self.records[job.id] = Record(State.HELD if job.held else State.QUEUED, waiting)
        for part in job.gang.parts:
            self._mix.saw(part.shape, part.count)
        self._watch_dependencies(job)
        self._queue(waiting)
        self._count(job, 1)
        self.stewardship.entered(job)
        if self._policy.order in ROTATING:
            self._lives.arrived(job)

    def _held_back(self, event: Held | Released) -> None:
        record = self._moved(event.job, event)
        assert record.waiting is not None
        self._unqueue(record.waiting)
        job = msgspec.structs.replace(record.waiting.job, held=isinstance(event, Held))
        because = event.because if isinstance(event, Held) else ""
        record.waiting = msgspec.structs.replace(record.waiting, job=job, held_because=because)
        self._queue(record.waiting)

    def _amended(self, event: Amended) -> None:
        """Of an array, all members that live have the new charter."""
        if event.effort is not None:
            self.stewardship.open_effort(event.effort)
        array = self.arrays.get(event.job)
        if array is None:
            self._amend(self._moved(event.job, event), event)
            return
        array.template = _amended(array.template, event)
        start = f"{event.job}_"
        for job_id, record in self.records.items():
            if record.outcome is None and job_id.startswith(start):
                self._amend(record, event)

    def _amend(self, record: Record, event: Amended) -> None:
        replace, running = msgspec.structs.replace, record.running
        if record.waiting is not None:
            self.stewardship.joins(record.waiting.job, event)
            job = _amended(record.waiting.job, event)
            waiting = replace(record.waiting, job=job, lane=LaneKey.of(job))
            self._stays_in_line(record, waiting)
            return
        assert running is not None
        self.stewardship.joins(running.job, event)
        job, ends = _amended(running.job, event), running.latest_end
        if event.time_limit_seconds is not None:
            ends = running.placed_at + event.time_limit_seconds
        self._goes_on_as(record, replace(running, job=job, latest_end=ends))

    def _goes_on_as(self, record: Record, running: Running) -> None:
        record.running = running
        if running.behind is None:
            self._running[running.job.id] = running

    def _defended(self, event: Defended) -> None:
        """A job, or an array with all of its members, goes on under the charter that goes with it."""
        kind, name = split(event.subject)
        if kind == "job":
            self._defended_job(name, event)
        self.stewardship.apply(event)

    def _defended_job(self, job_id: JobId, event: Defended) -> None:
        record = self.records.get(job_id)
        found = [record] if record else [r for j, r in self.records.items() if j.startswith(f"{job_id}_")]
        entry = next((entry for r in found if (entry := r.waiting or r.running)), None)
        if entry is None:
            raise IllegalTransition(f"job {job_id} has ended, or is not known; it can't be defended")
        self._amended(Amended(event.at, job_id, event.charter, event.by, event.because))
        if entry.job.effort is None:
            work = of_work(entry.job.owner, entry.job.name, event.charter.purpose)
            self.stewardship.defended_as(work, event)

    def _withdrawn(self, event: Withdrawn) -> None:
        record = self._moved(event.job, event)
        assert record.waiting is not None
        self._unqueue(record.waiting)
        job = record.waiting.job
        self._ended(job, record, event.outcome)
        self.stewardship.ended(job, event.outcome, event, event.verdict)
        if not event.taken_back:
            self._count_end(job, event.outcome)
        elif self._ended_jobs:
            self._forget(self._ended_jobs.pop())

    def _promised_room(self, event: Promised) -> None:
        self._moved(event.job, event)
        favoured, nodes = self._promised.get(event.job, (False, ()))
        self._promised[event.job] = (favoured or event.made_room, event.nodes or nodes)

    def _placed(self, event: Placed) -> None:
        self._check_nodes(event)
        if event.behind is not None:
            self._check_line(event.behind)
        record = self._moved(event.job, event)
        waiting = record.waiting
        assert waiting is not None
        self._unqueue(waiting)
        running = Running(
            job=waiting.job,
            attempt=event.attempt,
            seats=event.seats,
            held=held_by(event.seats) if event.seats else waiting.asked,
            placed_at=event.at,
            expected_end=end_of(event.at, event.expected_seconds),
            latest_end=end_of(event.at, event.at_most_seconds),
            started_at=None,
            state=record.state,
            attained_seconds=waiting.attained_seconds,
            done_seconds=waiting.done_seconds,
            behind=event.behind,
            holds_since=event.at if event.behind is None and event.seats else None,
        )
        record.waiting, record.running = None, running
        if event.behind is None:
            self._running[event.job] = running
            self._seat(running, 1, event.at)
        else:
            self._lined_up[event.behind] = event.job

    def _check_nodes(self, event: Placed | Seated) -> None:
        for seat in event.seats:
            if seat.node not in self._nodes:
                raise BadInput(f"there is no node {seat.node}")

    def _seated(self, event: Seated) -> None:
        """All that was reckoned from its placement is reckoned from now, and from where it sits."""
        self._check_nodes(event)
        record = self._moved(event.job, event)
        before = record.running
        assert before is not None
        self._seat(before, -1, event.at)
        later = event.at - before.placed_at
        running = msgspec.structs.replace(
            before,
            seats=event.seats,
            held=held_by(event.seats),
            placed_at=event.at,
            holds_since=event.at,
            expected_end=before.expected_end + later,
            latest_end=before.latest_end + later,
        )
        self._seat(running, 1, event.at)
        self._goes_on_as(record, running)

    def _changed(self, event: Started | Suspended | Resumed | Evicting | Stopping) -> None:
        record = self._moved(event.job, event)
        running = record.running
        assert running is not None
        changes: dict[str, Any] = {"state": record.state}
        if running.holds_since is None and isinstance(event, Started | Suspended | Resumed):
            changes["holds_since"] = event.at
        if isinstance(event, Started):
            changes["started_at"] = event.at
        elif isinstance(event, Suspended | Resumed):
            changes["because"] = (isinstance(event, Suspended) and event.because) or None
        elif isinstance(event, Evicting):
            changes |= {"because": event.because, "in_favour_of": event.in_favour_of, "evicted": True}
            changes["hold"] = event.hold
            self._leaves_for(event.in_favour_of, event.job)
        elif isinstance(event, Stopping):
            changes |= {"because": event.because, "evicted": False, "verdict": event.verdict}
        self._goes_on_as(record, msgspec.structs.replace(running, **changes))

    def _unseat(self, record: Record, now: float) -> Running:
        running = super()._unseat(record, now)
        if running.holds_since is not None:
            job = running.job
            self.stewardship.spending.left(
                self._whole(job),
                job,
                self._tenancy.path(job.team),
                self.holding(running),
                running.holds_since,
                now,
            )
        return running

    def holding(self, running: Running) -> Holding:
        """What it holds, with the models of its GPUs."""
        return holding_of(running.held, running.seats, self._model_of)

    def _model_of(self, node: str, device: int) -> str:
        devices = self._nodes[node].devices
        return devices[device].model if device < len(devices) else ""  # a node may come back with fewer

    def _whole(self, job: Job) -> JobId:
        """The job, or the array that it is a member of; a trace has members without one."""
        return job.array.array if job.array is not None and job.array.array in self.arrays else job.id

    def exhausted(self, job: Job) -> BudgetReached | None:
        """The budget that keeps a job from starting; None: none does."""
        spending = self.stewardship.spending
        return spending.exhausted(job, self._tenancy.path(job.team)) if spending.reached else None

    def kept_back(self, job: Job) -> str | None:
        """Why nobody may let a job start: a budget is spent, or its effort is paused; None: it may."""
        return self.why_spent(job) or self.stewardship.paused_for(job)

    def why_spent(self, job: Job) -> str | None:
        """What a job says whose budget is spent; None: it is not."""
        spent = self.exhausted(job)
        return None if spent is None else spent.because

    def _unless_kept_back(self, job: Job, because: str = "") -> tuple[Job, str]:
        """Whatever comes to the queue while it is kept back is held, and says so.

        What waits in another's queue can't be kept back there.
        """
        why = None if job.held or job.adopted is not None else self.kept_back(job)
        return (job, because) if why is None else (msgspec.structs.replace(job, held=True), why)

    def _exited(self, event: Exited) -> None:
        record = self._moved(event.job, event)
        running = self._unseat(record, event.at)
        job = running.job
        if event.outcome is Outcome.SUCCEEDED:
            served = running.attained(event.at)
            self._history.ended(job, served)
            if self._policy.order in ROTATING:
                self._lives.ended(job, served)
        self._ended(job, record, event.outcome)
        self.stewardship.ended(job, event.outcome, event, event.verdict)
        self._count_end(job, event.outcome)

    def _vacated(self, event: Vacated) -> None:
        record = self._moved(event.job, event)
        running = self._unseat(record, event.at)
        saved = max(0.0, running.done_seconds + running.elapsed(event.at) - event.lost_seconds)
        job = running.job
        if running.hold:
            job = msgspec.structs.replace(job, held=True)
        self._queue_again(record, running, job, event.at, saved)
        if running.because == "compact":
            # It was moved for another's sake: it goes right after it.
            self._promised[running.job.id] = (False, ())

    def _retried(self, event: Retried) -> None:
        record = self._moved(event.job, event)
        running = self._unseat(record, event.at)
        job = running.job
        retries = job.retries if event.because else job.retries - 1
        gang = job.gang if event.gang is None else event.gang
        job = msgspec.structs.replace(job, retries=retries, begin_at=event.begin_at, gang=gang)
        self._queue_again(record, running, job, event.at, running.done_seconds, event.because or None)

    def _stood_down(self, event: StoodDown) -> None:
        record = self._moved(event.job, event)
        job = self._unseat(record, event.at).job
        before = event.attempt - 1
        lane, asked = LaneKey.of(job), job.gang.asked()
        job, because = self._unless_kept_back(job)
        if job.held:
            record.state = State.HELD
        record.waiting = Waiting(
            job, lane, asked, attempt=before, queued_at=job.submitted_at, held_because=because
        )
        self._queue(record.waiting)

    def _queue_again(
        self, record: Record, running: Running, job: Job, now: float, done: float, mended: str | None = None
    ) -> None:
        job, because = self._unless_kept_back(job, (running.because or "") if running.hold else "")
        if job.held:
            record.state = State.HELD
        record.waiting = Waiting(
            job,
            LaneKey.of(job),
            job.gang.asked(),
            attempt=running.attempt,
            queued_at=now,
            attained_seconds=running.attained_seconds + running.elapsed(now),
            done_seconds=done,
            vacated_at=now,
            mended=mended,
            held_because=because,
        )
        self._queue(record.waiting)

    def _reported(self, event: Reported) -> None:
        self._moved(event.job, event)

    def _found(self, event: Found) -> None:
        self._moved(event.job, event)
        self.findings[event.job] = (*self.findings.get(event.job, ()), event)

    def _said(self, event: Event) -> None:
        self.stewardship.apply(event)

    def _posted(self, event: Event) -> None:
        self.mailboxes.apply(event)

    def _budget_freed(self, event: BudgetFreed) -> None:
        """Who is still leaving for it only goes back to the queue."""
        self.stewardship.apply(event)
        for running in [*self._running.values(), *self.lined_up]:
            if running.hold and running.because == event.because:
                self._goes_on_as(self.records[running.job.id], msgspec.structs.replace(running, hold=False))

    def _team_set(self, event: TeamSet) -> None:
        teams = {**self._teams, event.team.name: event.team}
        self._tenancy = Tenancy(teams.values())
        self._teams = teams
        self._regroup(event.at)

    # --- Ends ---------------------------------------------------------------------------------------

    def _ended(self, job: Job, record: Record, outcome: Outcome) -> None:
        self._count(job, -1)
        self._lives.forget(job.id)
        record.waiting = record.running = None
        record.outcome = outcome
        self._unmet.pop(job.id, None)
        self._doomed.pop(job.id, None)
        self._tell_dependents(job.id, outcome)
        if job.array is not None:
            self._member_ended(job.array.array, outcome)
        whole = self._whole(job)
        if whole == job.id or self.outcome_of(whole) is not None:
            self.stewardship.spending.is_over(whole)
        self._ended_jobs.append(job.id)
        while self._remembers is not None and len(self._ended_jobs) > self._remembers:
            self._forget(self._ended_jobs.popleft())

    def _count_end(self, job: Job, outcome: Outcome) -> None:
        self.ended[job.team, outcome] = self.ended.get((job.team, outcome), 0) + 1

    def _forget(self, job_id: JobId) -> None:
        """It ended long ago. An array is forgotten with the first of its members, once all have ended."""
        self.records.pop(job_id, None)
        array, _, index = job_id.rpartition("_")
        if index and array in self.arrays and not self.arrays[array].left:
            del self.arrays[array]

    def _moved(self, job_id: JobId, event: Event) -> Record:
        """The record, in its next state."""
        record = self.records.get(job_id)
        if record is None:
            raise BadInput(f"there is no job {job_id}")
        attempt = getattr(event, "attempt", None)
        current = record.running.attempt if record.running else None
        if current is not None and attempt is not None and attempt != current:
            raise IllegalTransition(
                f"job {job_id} is at attempt {current}; an event speaks of attempt {attempt}"
            )
        record.state = after(record.state, event)
        return record

    # --- Views out ----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All facts, frozen. Say ``release`` when done with it, to save a copy."""
        if self._lent:
            self._unshare()
        self._refresh_inventory()
        self._lent = True
        ahead = self.wall_ahead_seconds
        return Snapshot(
            generation=self.generation,
            hardware=self._hardware,
            room=self._room,
            tenancy=self._tenancy,
            lanes=self._lanes,
            ineligible=begins_shifted(self._ineligible, -ahead),
            timed=begins_shifted(self._timed, -ahead),
            unmet=self._unmet,
            doomed=self._doomed,
            running=self._running,
            held=self._held,
            accounts=self._accounts,
            active=self._active,
            array_running=self._arrays,
            tally=self._tally,
            evicting=self._evicting,
            promised=tuple(w for j in self._promised if (w := self.records[j].waiting)),
            promised_on={j: nodes for j, (_, nodes) in self._promised.items() if nodes},
            favoured=frozenset(j for j, (made_room, _) in self._promised.items() if made_room),
            history=self._history.view(),
            lives=self._lives.view(),
            mix=self._mix.view(),
            known_seconds=self._known_seconds,
            memo=self._memo,
        )

    def release(self) -> None:
        """The last snapshot is no longer used."""
        self._lent = False

    def _unshare(self) -> None:
        self._lent = False
        self._room = copied_room(self._room)
        self._lanes = {key: list(jobs) for key, jobs in self._lanes.items()}
        self._ineligible = dict(self._ineligible)
        self._timed = dict(self._timed)
        self._unmet = dict(self._unmet)
        self._doomed = dict(self._doomed)
        self._running = dict(self._running)
        self._held = dict(self._held)
        self._accounts = dict(self._accounts)
        self._active = dict(self._active)
        self._arrays = dict(self._arrays)
        self._evicting = dict(self._evicting)
        self._history = self._history.copy()
        self._lives = self._lives.copy()

    # --- Looks without a snapshot: valid until the next fact -----------------------------------------

    def changes_hands(self, event: Event) -> bool:
        """Whether it only lets the next in line have the seats: nobody else can do anything with it."""
        if not isinstance(event, Exited) or event.job not in self._lined_up:
            return False
        array, _, _ = event.job.rpartition("_")
        return event.job not in self._dependents and array not in self._dependents

    @property
    def teams(self) -> Mapping[str, Team]:
        return self._teams

    @property
    def tenancy(self) -> Tenancy:
        return self._tenancy

    def live_of(self, owner: str) -> int:
        """How many jobs of this owner wait or run."""
        return sum(count for (_, who), count in self._active.items() if who == owner)


def _amended(job: Job, event: Amended) -> Job:
    limit, effort = event.time_limit_seconds, event.effort or job.effort
    if limit is None:
        return msgspec.structs.replace(job, charter=event.charter, effort=effort)
    finite = None if math.isinf(limit) else limit
    return msgspec.structs.replace(job, charter=event.charter, effort=effort, time_limit_seconds=finite)


_HANDLERS: dict[type[Event], Callable[[Fold, Any], None]] = {
    Submitted: Fold._submitted,
    ArraySubmitted: Fold._array_submitted,
    Held: Fold._held_back,
    Released: Fold._held_back,
    Withdrawn: Fold._withdrawn,
    Promised: Fold._promised_room,
    Placed: Fold._placed,
    Seated: Fold._seated,
    StoodDown: Fold._stood_down,
    Started: Fold._changed,
    Suspended: Fold._changed,
    Resumed: Fold._changed,
    Evicting: Fold._changed,
    Stopping: Fold._changed,
    Exited: Fold._exited,
    Vacated: Fold._vacated,
    Retried: Fold._retried,
    Reported: Fold._reported,
    Amended: Fold._amended,
    Found: Fold._found,
    NodeSeen: Fold._node_seen,
    NodeHealth: Fold._node_health,
    DeviceHealth: Fold._device_health,
    TeamSet: Fold._team_set,
    **dict.fromkeys(HANDLED, Fold._said),
    **dict.fromkeys(POSTED, Fold._posted),
    BudgetFreed: Fold._budget_freed,
    Defended: Fold._defended,
}
