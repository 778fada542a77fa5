"""Who waits, in which lane, and for whom: the part of the fold that is about the queue."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from muster.model.events import Outcome
from muster.model.job import Job, JobId
from muster.model.policy import Policy
from muster.model.snapshot import LaneKey, Waiting
from muster.store.records import ArrayRecord, Record, by_age, meets
from muster.store.seats import Seats


class Queue(Seats):
    """Lanes of those that may start, and those that are set apart: held, dependent, or not before a time."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._lanes: dict[LaneKey, list[Waiting]] = {}
        self._ineligible: dict[JobId, Waiting] = {}
        self.apart: dict[tuple[str, bool], int] = {}  # how many these are, by team and whether they are held
        self._timed: dict[JobId, Waiting] = {}  # of these, who wait for nothing but a time
        self._unmet: dict[JobId, tuple[JobId, ...]] = {}
        self._dependents: dict[JobId, list[JobId]] = {}
        self._doomed: dict[JobId, Outcome] = {}
        self.arrays: dict[str, ArrayRecord] = {}
        # Whether others had to leave for it, and where it was promised room.
        self._promised: dict[JobId, tuple[bool, tuple[str, ...]]] = {}

    def _queue(self, waiting: Waiting) -> None:
        job = waiting.job
        if job.held or job.id in self._unmet or job.id in self._doomed or job.begin_at is not None:
            self._set_apart(waiting)
            return
        if job.adopted is not None:  # it waits in another's queue, and is started by that
            self._set_apart(waiting)
            return
        lane = self._lanes.setdefault(waiting.lane, [])
        if lane and by_age(lane[-1]) > by_age(waiting):
            insort(lane, waiting, key=by_age)
        else:
            lane.append(waiting)

    def _set_apart(self, waiting: Waiting) -> None:
        job = waiting.job
        self._ineligible[job.id] = waiting
        self._count_apart(job, 1)
        if job.held or job.adopted is not None:
            return
        if job.id not in self._unmet and job.id not in self._doomed:
            self._timed[job.id] = waiting

    def _count_apart(self, job: Job, change: int) -> None:
        count = self.apart.pop((job.team, job.held), 0) + change
        if count:
            self.apart[job.team, job.held] = count

    def _unqueue(self, waiting: Waiting) -> None:
        job_id = waiting.job.id
        self._promised.pop(job_id, None)
        self._timed.pop(job_id, None)
        if self._ineligible.pop(job_id, None) is not None:
            self._count_apart(waiting.job, -1)
            return
        lane = self._lanes[waiting.lane]
        if lane[-1] is waiting:  # whoever takes all of them out begins at the end
            lane.pop()
        else:
            del lane[bisect_left(lane, by_age(waiting), key=by_age)]
        if not lane:
            del self._lanes[waiting.lane]

    def _watch_dependencies(self, job: Job) -> None:
        unmet = []
        for dependency in job.after:
            outcome = self.outcome_of(dependency.job)
            if outcome is None:
                unmet.append(dependency.job)
                self._dependents.setdefault(dependency.job, []).append(job.id)
            elif not meets(dependency, outcome):
                self._doomed[job.id] = Outcome.DEPENDENCY_FAILED
        if unmet:
            self._unmet[job.id] = tuple(unmet)

    def outcome_of(self, job_id: JobId) -> Outcome | None:
        """How a job or an array has ended; None if it has not, or is not known."""
        record = self.records.get(job_id) or self.arrays.get(job_id)
        return None if record is None else record.outcome

    def _stays_in_line(self, record: Record, waiting: Waiting) -> None:
        """Another value where the one before waits: it keeps its place, and what it was promised."""
        job_id, before = waiting.job.id, record.waiting
        assert before is not None
        record.waiting = waiting
        if waiting.lane != before.lane and job_id not in self._ineligible:
            promised = self._promised.get(job_id)
            self._unqueue(before)
            self._queue(waiting)
            if promised is not None:
                self._promised[job_id] = promised
            return
        if job_id in self._ineligible:
            self._ineligible[job_id] = waiting
            if job_id in self._timed:
                self._timed[job_id] = waiting
            return
        lane = self._lanes[before.lane]
        lane[bisect_left(lane, by_age(before), key=by_age)] = waiting

    # --- Dependencies ----------------------------------------------------------------------------------

    def _member_ended(self, array: str, outcome: Outcome) -> None:
        """An array ends with its last member; well, if all did."""
        record = self.arrays.get(array)
        if record is None:  # of a trace, where nobody depends on the whole
            return
        record.left -= 1
        record.failed += outcome is not Outcome.SUCCEEDED
        if record.outcome is not None:
            self._tell_dependents(array, record.outcome)

    def _tell_dependents(self, ended: JobId, outcome: Outcome) -> None:
        for dependent in self._dependents.pop(ended, ()):
            self._dependency_ended(dependent, ended, outcome)

    def _dependency_ended(self, dependent: JobId, ended: JobId, outcome: Outcome) -> None:
        record = self.records.get(dependent)
        waiting = None if record is None else record.waiting
        if waiting is None:
            return
        self._unqueue(waiting)
        left = tuple(j for j in self._unmet.pop(dependent, ()) if j != ended)
        if left:
            self._unmet[dependent] = left
        if not all(meets(d, outcome) for d in waiting.job.after if d.job == ended):
            self._doomed[dependent] = Outcome.DEPENDENCY_FAILED
        self._queue(waiting)

    # --- Looks without a snapshot: valid until the next fact -----------------------------------------

    @property
    def lanes(self) -> Mapping[LaneKey, Sequence[Waiting]]:
        return self._lanes

    @property
    def ineligible(self) -> Mapping[JobId, Waiting]:
        return self._ineligible

    @property
    def unmet(self) -> Mapping[JobId, tuple[JobId, ...]]:
        return self._unmet

    def promised_nodes(self, job_id: JobId) -> tuple[str, ...]:
        """Where it was promised room; nothing if it was not, or nobody knows where."""
        return self._promised.get(job_id, (False, ()))[1]

    @property
    def has_promised(self) -> bool:
        """Whether anybody was promised room."""
        return bool(self._promised)

    @property
    def waiting_count(self) -> int:
        return sum(map(len, self._lanes.values())) + len(self._ineligible) + len(self._lined_up)
