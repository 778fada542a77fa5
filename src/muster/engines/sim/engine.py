"""An engine in virtual time: jobs run as long as they are told to, and time jumps to what happens next.

It is event-driven: a heap of future facts, no ticks. What people will do (submissions, withdrawals) is
scripted with ``will``; what jobs do follows from their run times, checkpoints and the outages of nodes:

- a job that keeps checkpoints and is warned saves first, which takes time, and loses nothing else;
- one that saves every so often loses what it did since; one that keeps none loses everything;
- coming back costs the time to restore.
"""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from muster.engines.base import Capabilities
from muster.model.errors import BadInput
from muster.model.events import (
    Event,
    Exited,
    NodeHealth,
    Outcome,
    Seat,
    Started,
    Submitted,
    Vacated,
)
from muster.model.job import Job, JobId
from muster.model.node import Health, Node
from muster.model.plan import Action, Evict, Start, Stop


class Outage(msgspec.Struct, frozen=True):
    """A node that is lost for a while."""

    node: str
    at: float
    lasts_seconds: float


class _Attempt(msgspec.Struct):
    """One try at running a job."""

    number: int
    placed_at: float
    seats: tuple[Seat, ...]
    restore_seconds: float
    leaving: bool = False
    over: bool = False

    def worked(self, now: float) -> float:
        """Seconds of its own work in this attempt."""
        return max(0.0, now - self.placed_at - self.restore_seconds)


class _Task(msgspec.Struct):
    """A job as the engine knows it."""

    job: Job
    run_seconds: float
    saved_seconds: float = 0.0
    attempt: _Attempt | None = None


# At one instant, who leaves comes before who arrives; then in the order in which it was scheduled.
_LEAVING, _NODE, _ARRIVING = 0, 1, 2


class SimEngine:
    """Runs jobs in virtual time."""

    capabilities = Capabilities(virtual_time=True)

    def __init__(
        self,
        nodes: Iterable[Node],
        run_seconds: Mapping[JobId, float],
        *,
        outages: Iterable[Outage] = (),
        enforce_limits: bool = False,
        start_at: float = 0.0,
    ) -> None:
        self._nodes = {n.name: n for n in nodes}
        self._run_seconds = run_seconds
        self._enforce_limits = enforce_limits
        self._now = start_at
        self._serial = 0
        self._heap: list[tuple[float, int, int, Event, _Attempt | None]] = []
        self._tasks: dict[JobId, _Task] = {}
        for outage in outages:
            self._plan_outage(outage)

    # --- The protocol -------------------------------------------------------------------------------

    def now(self) -> float:
        return self._now

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes.values())

    def observe(self, until: float | None = None) -> Sequence[Event]:
        """Jump to the next instant at which something happens."""
        facts: list[Event] = []
        while not facts:
            if not self._heap or (until is not None and self._heap[0][0] > until):
                if until is not None:
                    self._now = max(self._now, until)
                return facts
            self._now = at = self._heap[0][0]
            while self._heap and self._heap[0][0] == at:
                facts.extend(self._happens(heapq.heappop(self._heap)))
        return facts

    def act(self, action: Action) -> None:
        task = self._tasks.get(action.job)
        if task is None:
            raise BadInput(f"the engine knows no job {action.job}")
        if isinstance(action, Start):
            self._start(task, action)
        elif task.attempt is not None and task.attempt.number == action.attempt:
            if isinstance(action, Evict):
                self._evict(task, task.attempt, action.because)
            elif isinstance(action, Stop):
                self._exit(task, task.attempt, Outcome.STOPPED)

    # --- The script ---------------------------------------------------------------------------------

    def will(self, event: Event) -> None:
        """Something that people will do, at the time the event says."""
        self._push(event.at, _ARRIVING, event, None)

    # --- What happens -------------------------------------------------------------------------------

    def _happens(self, entry: tuple[float, int, int, Event, _Attempt | None]) -> Iterable[Event]:
        _, _, _, event, attempt = entry
        if attempt is not None:
            if attempt.over or (attempt.leaving and isinstance(event, Exited)):
                return
            attempt.over = not isinstance(event, Started)
        if isinstance(event, Submitted):
            self._tasks[event.job.id] = _Task(event.job, self._run_seconds[event.job.id])
        elif isinstance(event, Vacated):
            self._tasks[event.job].attempt = None
        elif isinstance(event, NodeHealth):
            yield from self._node_changes(event)
        yield event

    def _start(self, task: _Task, action: Start) -> None:
        if task.attempt is not None and action.attempt <= task.attempt.number:
            return
        kept = task.job.checkpoint
        again = kept is not None and task.saved_seconds > 0
        attempt = _Attempt(
            number=action.attempt,
            placed_at=self._now,
            seats=action.seats,
            restore_seconds=kept.restore_seconds if kept is not None and again else 0.0,
        )
        task.attempt = attempt
        self._push(self._now, _LEAVING, Started(self._now, task.job.id, action.attempt), attempt)
        lasts = attempt.restore_seconds + task.run_seconds - task.saved_seconds
        limit = task.job.time_limit_seconds
        outcome = Outcome.SUCCEEDED
        if self._enforce_limits and limit is not None and lasts > limit:
            lasts, outcome = limit, Outcome.TIMEOUT
        ends_at = self._now + lasts
        code = 0 if outcome is Outcome.SUCCEEDED else None
        ended = Exited(ends_at, task.job.id, action.attempt, outcome, code)
        self._push(ends_at, _LEAVING, ended, attempt)

    def _evict(self, task: _Task, attempt: _Attempt, because: str) -> None:
        """Leaving takes as long as saving does."""
        if attempt.leaving:
            return
        attempt.leaving = True
        kept = task.job.checkpoint
        saving = kept.save_seconds if kept is not None and kept.on_signal else 0.0
        self._leaves(task, attempt, because, after_seconds=saving, warned=True)

    def _leaves(
        self, task: _Task, attempt: _Attempt, because: str, *, after_seconds: float, warned: bool
    ) -> None:
        worked = attempt.worked(self._now)
        saved = _saved(task.job, worked, warned=warned)
        task.saved_seconds += saved
        at = self._now + after_seconds
        lost = at - attempt.placed_at - saved
        self._push(at, _LEAVING, Vacated(at, task.job.id, attempt.number, because, lost), attempt)

    def _exit(self, task: _Task, attempt: _Attempt, outcome: Outcome) -> None:
        attempt.leaving = False
        ended = Exited(self._now, task.job.id, attempt.number, outcome, None, 15)
        self._push(self._now, _LEAVING, ended, attempt)

    def _plan_outage(self, outage: Outage) -> None:
        if outage.node not in self._nodes:
            raise BadInput(f"there is no node {outage.node}")
        down = NodeHealth(outage.at, outage.node, Health.DOWN)
        up = NodeHealth(outage.at + outage.lasts_seconds, outage.node, Health.UP)
        self._push(down.at, _NODE, down, None)
        self._push(up.at, _NODE, up, None)

    def _node_changes(self, event: NodeHealth) -> Iterable[Event]:
        """A lost node takes its attempts with it; nobody was warned."""
        node = self._nodes[event.node]
        self._nodes[event.node] = msgspec.structs.replace(node, health=event.health)
        if event.health is not Health.DOWN:
            return
        for task in self._tasks.values():
            attempt = task.attempt
            if attempt is None or attempt.over or event.node not in {s.node for s in attempt.seats}:
                continue
            attempt.over = True
            task.attempt = None
            saved = 0.0 if attempt.leaving else _saved(task.job, attempt.worked(self._now), warned=False)
            task.saved_seconds += saved
            lost = self._now - attempt.placed_at - saved
            yield Vacated(self._now, task.job.id, attempt.number, "node lost", lost)

    def _push(self, at: float, kind: int, event: Event, attempt: _Attempt | None) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at, kind, self._serial, event, attempt))


def _saved(job: Job, worked_seconds: float, *, warned: bool) -> float:
    """How much of the work done since the start of the attempt survives it."""
    kept = job.checkpoint
    if kept is None:
        return 0.0
    if warned and kept.on_signal:
        return worked_seconds
    if not kept.every_seconds:
        return 0.0
    return math.floor(worked_seconds / kept.every_seconds) * kept.every_seconds
