"""Other people's jobs in Slurm: from what was told of them, and what is there now, to facts.

``facts`` is a function of two passes. What it tells is what happened as far as Slurm shows it: a job that
has been requeued meanwhile was vacated, one that came and went between two passes lived, with its true
times. It never guesses: a state that is not known changes nothing, and how a job ended that has vanished is
asked of accounting (``missing`` says whether there is one); after some patience it has ended, and how is
not known.
"""

from collections.abc import Iterable, Mapping

import msgspec

from muster.engines.slurm import hostlist
from muster.engines.slurm.adopted import (
    Devices,
    Unit,
    array_of,
    id_of,
    job_of,
    most_at_once,
    waiting_tasks,
)
from muster.engines.slurm.answers import ENDS, SlurmAttempt, SlurmJob, SlurmSeat, Tres
from muster.engines.slurm.bulk import uncollected
from muster.engines.slurm.moves import CANCELLED, PREEMPTED, SEATED, Mark, Moves, Picture, Reading, Told
from muster.engines.slurm.naming import called_again, first_called, new_names
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.reasons import why
from muster.engines.slurm.states import Standing, attempt_standing, job_standing
from muster.model.errors import BadInput
from muster.model.events import ArraySubmitted, Event, Outcome, Submitted
from muster.model.job import Job, JobId
from muster.model.state import State
from muster.model.units import MINUTE

PATIENCE_SECONDS = 2 * MINUTE  # with what has vanished: accounting may lag behind
NOT_KNOWN = "Slurm no longer knows it, and how it ended is not known"
_APART_SECONDS = 1.0  # Slurm tells whole seconds, and by how much its clock is ahead is found anew each time
_TELLING = (State.RUNNING, State.STOPPING, State.SUSPENDED, State.STARTING, State.QUEUED, State.HELD)


class Seen(msgspec.Struct, frozen=True):
    """All that was told, and the records of those that wait: they say why."""

    since: float = 0.0  # what ended before is not told of
    jobs: Mapping[JobId, Told] = {}
    arrays: frozenset[JobId] = frozenset()
    waiting: Mapping[JobId, SlurmJob] = {}  # tasks of an array that wait share one, under the array's id
    again: Mapping[JobId, JobId] = {}  # what is called otherwise, as its number was used before

    def id_of(self, record: SlurmJob | SlurmAttempt) -> JobId:
        one = id_of(record)
        return self.again.get(one, one)

    def why(self, job_id: JobId, notices: Notices) -> str | None:
        """Slurm's reason that a job waits, in words; None: it has not been seen."""
        record = self.waiting.get(job_id) or self.waiting.get(job_id.partition("_")[0])
        return None if record is None else str(why(record, notices))


@uncollected()
def facts(before: Seen, now: Picture, reading: Reading) -> tuple[list[Event], Seen]:
    """What has happened since, in the order of its times; and what is known then."""
    telling = _Telling(before, now, reading)
    telling.tell()
    telling.events.sort(key=lambda event: event.at)  # stable: what happened to one job stays in order
    return telling.events, telling.seen()


def missing(before: Seen, jobs: Iterable[SlurmJob]) -> bool:
    """Whether somebody who was there, and had not ended, is no longer listed: accounting may know."""
    listed: set[JobId] = set()
    for record in jobs:
        listed.update(_ids(record))
    listed.update(before.again[one] for one in listed.intersection(before.again))
    return any(told.state is not State.ENDED and one not in listed for one, told in before.jobs.items())


def _ids(record: SlurmJob) -> list[JobId]:
    if record.array_id is not None and record.array_task is None:
        return [f"{array_of(record)}_{task}" for task in waiting_tasks(record)]
    return [id_of(record)]


def _mark(unit: Unit) -> Mark:
    return tuple(
        (one.states, one.restarts, one.reason, one.detail, one.priority == 0, one.nodes)
        for one in unit.records
    )


class _Telling(Moves):
    """One comparison. Nothing of it outlives the facts."""

    def __init__(self, before: Seen, now: Picture, reading: Reading) -> None:
        self._units: dict[JobId, Unit] = {}
        super().__init__(now, reading, Devices(now.gpus, self._units))
        self._before = before
        self._jobs: dict[JobId, Told] = {}
        self._waiting: dict[JobId, SlurmJob] = {}
        self._arrays = set(before.arrays)
        self._queues: list[SlurmJob] = []  # records that stand for many tasks
        self._again = dict(before.again)
        self._new: set[JobId] = set()  # of which nothing was told, whoever had their number

    def tell(self) -> None:
        self._sort_records()
        self._name_again()
        self._submit_arrays()
        for unit in self._units.values():
            self._tell_of(unit)
        for record in self._queues:
            self._tell_of_queue(record)
        self._tell_of_missing()

    def seen(self) -> Seen:
        living = {one.partition("_")[0] for one in self._jobs if "_" in one}
        arrays, again = frozenset(self._arrays & living), called_again(self._jobs)
        return Seen(self._before.since, self._jobs, arrays, self._waiting, again)

    # --- Records ------------------------------------------------------------------------------------

    def _sort_records(self) -> None:
        is_own = self._reading.is_own
        known = set(map(first_called, self._before.arrays))
        hets: dict[int, list[SlurmJob]] = {}
        for record in self._now.jobs:
            if is_own(record):
                continue
            if record.array_id is not None and record.array_task is None:
                if ENDS.isdisjoint(record.states) or array_of(record) in known:
                    self._queues.append(record)  # others were cancelled before anybody looked
            elif record.het_id is not None:
                hets.setdefault(record.het_id, []).append(record)
            else:
                one = self._before.id_of(record)
                self._units[one] = Unit(one, (record,))
        for records in hets.values():
            records.sort(key=lambda record: record.het_offset or 0)
            one = self._before.id_of(records[0])
            self._units[one] = Unit(one, tuple(records))

    def _name_again(self) -> None:
        """Who comes under a number that has been used before is another job, under another name."""
        come: dict[JobId, Told | None] = {
            unit.id: told for unit in self._units.values() if self._comes(unit, told := self._told(unit.id))
        }
        for record in self._queues:
            if ENDS.isdisjoint(record.states):
                told_of = {one: self._told(one) for one in self._ids(record)}
                come.update((o, t) for o, t in told_of.items() if t is None or t.state is State.ENDED)
        new = {one.partition("_")[0] for one, told in come.items() if told is None}
        used = set(self._reading.used(new)) | self._before.arrays if new else set()
        again = [one for one, told in come.items() if told is not None or one.partition("_")[0] in used]
        if again := [one for one in again if come[one] is not None or not self._is_told(one)]:
            self._call_again(again)

    def _is_told(self, one: JobId) -> bool:
        """Whether it is over, and its name taken: by itself, before a restart, whatever clocks say."""
        unit = self._units.get(one)
        if unit is None or any(ENDS.isdisjoint(record.states) for record in unit.records):
            return False
        self._jobs[one] = Told(State.ENDED, mark=_mark(self._units.pop(one)))
        return True

    def _comes(self, unit: Unit, told: Told | None) -> bool:
        """Whether it is new; or it has ended, as was told, and is back, or was back in between."""
        if told is None:
            return self._is_of_interest(unit)
        if told.state is not State.ENDED or told.mark == _mark(unit):
            return False
        state = self._standing(unit).state
        if state is State.ENDED:
            return unit.lead.begun and self.ours(unit.lead.started_at, 0.0) - _APART_SECONDS > told.at > 0
        return state is not None and not any("COMPLETING" in record.states for record in unit.records)

    def _call_again(self, ids: Iterable[JobId]) -> None:
        told_of = {one for one, told in self._before.jobs.items() if told.at or told.state is not State.ENDED}
        was = {first_called(one): one for one in ids}
        names = new_names(was, self._reading.used, told_of | self._before.arrays)
        for first, name in names.items():
            unit = self._units.pop(was[first], None)
            if unit is not None:
                self._units[name] = Unit(name, unit.records)
        self._again.update(names)
        self._new.update(names.values())

    def _told(self, one: JobId) -> Told | None:
        """What was told of it, now or before."""
        return self._jobs.get(one) or (None if one in self._new else self._before.jobs.get(one))

    def _ids(self, record: SlurmJob) -> list[JobId]:
        return [self._again.get(one, one) for one in _ids(record)]

    def _standing(self, unit: Unit) -> Standing:
        """Of several components, that of the one that says most: one that runs holds the rest."""
        notices = self._reading.notices
        if len(unit.records) == 1:
            return job_standing(unit.lead, notices)
        found = [job_standing(record, notices) for record in unit.records]
        for state in _TELLING:
            for standing in found:
                if standing.state is state:
                    return standing
        failed = (one for one in found if one.outcome is not Outcome.SUCCEEDED)
        return next(failed, found[0])

    # --- Arrays -------------------------------------------------------------------------------------

    def _submit_arrays(self) -> None:
        """An array is submitted as one, with all of its tasks that are new to us."""
        tasks: dict[JobId, set[int]] = {}
        records: dict[JobId, SlurmJob] = {}
        for record in self._queues:
            for one in self._ids(record):
                array, _, task = one.partition("_")
                tasks.setdefault(array, set()).add(int(task))
                records[array] = record
        for unit in self._units.values():
            lead = unit.lead
            if lead.array_id is not None and lead.array_task is not None and self._is_of_interest(unit):
                array = unit.id.partition("_")[0]
                tasks.setdefault(array, set()).add(lead.array_task)
                records.setdefault(array, lead)
        for array, indices in tasks.items():
            if array not in self._arrays and indices:
                self._submit_array(array, records[array], tuple(sorted(indices)))

    def _submit_array(self, array: JobId, record: SlurmJob, indices: tuple[int, ...]) -> None:
        whole = msgspec.structs.replace(record, array_id=None, array_task=None, array_tasks="")
        template = self._job(Unit(array, (whole,)), held=False)
        event = ArraySubmitted(template.submitted_at, template, indices, most_at_once(record))
        self.events.append(event)
        self._arrays.add(array)
        for index in indices:
            self._jobs[f"{array}_{index}"] = Told(State.QUEUED)

    def _tell_of_queue(self, record: SlurmJob) -> None:
        standing = job_standing(record, self._reading.notices)
        mark = _mark(Unit(array_of(record), (record,)))
        for one in self._ids(record):
            self._waiting[one.partition("_")[0]] = record
            told = self._told(one)
            if told is None:  # cancelled before anybody looked
                continue
            if told.mark == mark or standing.state is None:
                self._jobs[one] = _listed(told)
            else:
                self._jobs[one] = self.moved(Unit(one, (record,)), standing, told, mark)

    # --- One job ------------------------------------------------------------------------------------

    def _is_of_interest(self, unit: Unit) -> bool:
        """Whether it has not ended, or so lately that nobody has told of it yet."""
        if any(ENDS.isdisjoint(record.states) for record in unit.records):
            return True
        ended_at = max((record.ended_at or 0.0 for record in unit.records), default=0.0)
        return ended_at - self._now.ahead_seconds > self._before.since and unit.lead.begun

    def _tell_of(self, unit: Unit) -> None:
        one, mark = unit.id, _mark(unit)
        told = self._told(one)
        if told is not None and told.mark == mark:
            self._jobs[one] = _listed(told)
            if told.state in (State.QUEUED, State.HELD):
                self._waiting[one] = unit.lead
            return
        standing = self._standing(unit)
        if standing.state is None:  # unknown: nothing follows from it
            if told is not None:
                self._jobs[one] = _listed(told)
            return
        if told is None:
            if not self._is_of_interest(unit):
                self._jobs[one] = Told(State.ENDED, mark=mark)
                return
            told = self._submitted(unit, standing)
        self._jobs[one] = now = self.moved(unit, standing, told, mark)
        if now.state in (State.QUEUED, State.HELD):
            self._waiting[one] = unit.lead

    def _submitted(self, unit: Unit, standing: Standing) -> Told:
        held = standing.state is State.HELD
        job = self._job(unit, held=held)
        self.events.append(Submitted(job.submitted_at, job))
        return Told(State.HELD if held else State.QUEUED)

    def _job(self, unit: Unit, *, held: bool) -> Job:
        lead = unit.lead
        at = self.ours(lead.submitted_at, self._now.at)
        if lead.started_at is not None:
            at = min(at, self.ours(lead.started_at, at))
        team = self._reading.team_of(lead.user, lead.account)
        return job_of(unit, team=team, submitted_at=at, held=held)

    # --- Who is no longer listed ---------------------------------------------------------------------

    def _tell_of_missing(self) -> None:
        gone = {
            one: told
            for one, told in self._before.jobs.items()
            if one not in self._jobs and told.state is not State.ENDED
        }
        if not gone:
            return
        tries: dict[JobId, SlurmAttempt] = {}
        for attempt in self._now.attempts or ():
            one = self._before.id_of(attempt)
            if one not in tries or _order(tries[one]) <= _order(attempt):
                tries[one] = attempt
        for one, told in gone.items():
            self._jobs[one] = self._looked_up(one, told, tries.get(one))

    def _looked_up(self, one: JobId, told: Told, last: SlurmAttempt | None) -> Told:
        """By its last try. While accounting lags behind, or can't be asked, it is where it was."""
        standing = None if last is None else attempt_standing(last, self._reading.notices)
        if last is not None and standing is not None and standing.outcome and not standing.vacated:
            return self._ended_as(one, told, last, standing.outcome)
        since = self._now.at if told.missing_since is None else told.missing_since
        if self._now.at - since >= PATIENCE_SECONDS:
            return self.over(one, told, Outcome.STOPPED, None, self._now.at, NOT_KNOWN)
        return msgspec.structs.replace(told, missing_since=since)

    def _ended_as(self, one: JobId, told: Told, last: SlurmAttempt, outcome: Outcome) -> Told:
        """One that was started unseen has held something; where, accounting's words don't tell exactly."""
        at = self.ours(last.ended_at, self._now.at)
        if told.state not in SEATED and last.started_at is not None and last.nodes:
            told = self._placed_unseen(one, told, last)
        because = PREEMPTED if "PREEMPTED" in last.states else CANCELLED
        return self.over(one, told, outcome, last.exit, at, because)

    def _placed_unseen(self, one: JobId, told: Told, last: SlurmAttempt) -> Told:
        record = SlurmJob(
            last.job,
            ("RUNNING",),
            start_at=last.started_at,
            nodes=last.nodes,
            given=last.given,
            seats=_spread(last),
            restarts=last.restarts,
            time_limit_seconds=last.time_limit_seconds,
        )
        unit = Unit(one, (record,))
        return self.as_it_runs(unit, State.RUNNING, self.placed(unit, told))


def _spread(last: SlurmAttempt) -> tuple[SlurmSeat, ...]:
    """Evenly over its nodes, as accounting has only sums."""
    try:
        names = hostlist.unfolded(last.nodes)
    except BadInput:
        return ()
    given = last.given or Tres()
    cpus, memory = (given.cpus or 0) // len(names), (given.memory_bytes or 0) // len(names)
    return tuple(SlurmSeat(name, cpus, memory) for name in names)


def _order(attempt: SlurmAttempt) -> tuple[float, int]:
    return attempt.submitted_at or 0.0, attempt.restarts or 0


def _listed(told: Told) -> Told:
    """Whoever is listed is not missing any more."""
    return told if told.missing_since is None else msgspec.structs.replace(told, missing_since=None)
