"""What is expected of one job of a case. Each check says what was found instead."""

from typing import TYPE_CHECKING

from asks import Span, seconds_of
from muster.model.events import Outcome, Seat
from muster.model.job import JobId
from muster.model.plan import Promise, Wait
from muster.model.reasons import Reason
from muster.model.state import State

if TYPE_CHECKING:
    from case import Case


class Expected:
    """Of one job, as the case was decided."""

    def __init__(self, case: "Case", job_id: JobId) -> None:
        self._case, self._id = case, job_id
        self._record = case.fold.records[job_id]

    def starts_on(self, *nodes: str) -> Seat:
        """Its parts sit on just these nodes. Returns the first seat."""
        self.starts()
        seats = self._case.starts[self._id].seats
        found = {s.node for s in seats}
        assert found == set(nodes), f"{self._id} starts on {sorted(found)}"
        return seats[0]

    def starts(self) -> None:
        assert self._id in self._case.starts, f"{self._id} does not start: {self._why()}"
        assert self._record.running is not None, f"{self._id} started, and did not stay"

    def starts_before(self, other: JobId) -> None:
        """It gets room first, if the other does at all."""
        self.starts()
        order = list(self._case.starts)
        ahead = other not in order or order.index(self._id) < order.index(other)
        assert ahead, f"{other} starts before {self._id}"

    def waits(self, because: type[Reason] | None = None) -> Reason:
        """It waits, and this is the deciding reason, which can say itself."""
        wait = self._wait()
        reason = wait.reasons[0]
        assert not wait.infeasible, f"{self._id} can never run: {reason}"
        assert because is None or isinstance(reason, because), f"{self._id} waits because {reason}"
        assert reason.sentence()
        return reason

    def never_runs(self, because: type[Reason]) -> Reason:
        wait = self._wait()
        assert wait.infeasible, f"{self._id} only waits: {wait.reasons[0]}"
        assert isinstance(wait.reasons[0], because), f"{self._id} can't run because {wait.reasons[0]}"
        assert "can never run" in wait.reasons[0].sentence()
        return wait.reasons[0]

    def is_withdrawn(self, outcome: Outcome = Outcome.DEPENDENCY_FAILED) -> None:
        assert self._case.withdrawn.get(self._id) is outcome, f"{self._id} is {self._record.state}"

    def is_preempted(self, because: str) -> None:
        causes = self._case.evictions.get(self._id, [])
        assert because in causes, f"{self._id} was made to leave because of {causes or 'nothing'}"

    def stays(self) -> None:
        """It ran, and goes on where it is."""
        assert self._id not in self._case.evictions, f"{self._id} had to leave"
        assert self._record.running is not None, f"{self._id} is {self._record.state}"

    def is_promised(self, within: Span | None = None, *, firm: bool | None = None) -> Promise:
        """Room is kept for it."""
        promise = self._case.promises.get(self._id)
        assert promise is not None, f"no room is kept for {self._id}"
        assert firm is None or promise.firm is firm, f"firm is {promise.firm}"
        if within is not None:
            assert self._id in self._case.promised_at, "when it starts was not worked out"
            in_seconds = self._case.promised_at[self._id] - self._case.now
            assert in_seconds <= seconds_of(within), f"{self._id} is promised room in {in_seconds} s"
        return promise

    def is_promised_nothing(self) -> None:
        assert self._id not in self._case.promises, f"{self._case.promises[self._id]}"

    def _wait(self) -> Wait:
        waiting = self._record.waiting
        assert waiting is not None, f"{self._id} is {self._record.state}"
        wait = self._case.plan.wait_of(waiting, self._case.fold.unmet)
        assert wait is not None, f"{self._id} waits without a reason"
        return wait

    def _why(self) -> object:
        if self._record.state in (State.QUEUED, State.HELD):
            return self._wait().reasons[0]
        return self._record.state
