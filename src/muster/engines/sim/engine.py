"""An engine in virtual time: jobs run as long as they are told to, and time jumps ahead.

It is event-driven: a heap of future facts, no ticks. What people will do (submissions, withdrawals)
is scripted with ``will``; what jobs do follows from their run times, checkpoints and the outages of
nodes:

- a job that keeps checkpoints and is warned saves first, which takes time, and loses nothing else;
- one that saves every so often loses what it did since; one that keeps none loses everything;
- coming back costs the time to restore.

What will end an attempt may change while it runs: it is told to leave, or stopped, or its node is
lost. So an attempt names the one event that ends it as things are; any other that is still in the
heap is stale.
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
    Withdrawn,
)
from muster.model.job import Job, JobId
from muster.model.node import Health, Node
from muster.model.plan import Action, Evict, Start, Stop


class Outage(msgspec.Struct, frozen=True):
    """A node that is lost for a while."""

    node: str
    at: float
    lasts_seconds: float

    @property
    def ends_at(self) -> float:
        return self.at + self.lasts_seconds


class _Attempt(msgspec.Struct):
    """One try at running a job."""

    number: int
    placed_at: float
    seats: tuple[Seat, ...]
    restore_seconds: float
    told_at: float | None = None  # when it was told to leave or to stop: it works no more
    keeps_seconds: float = 0.0  # of its work, once it has left
    ending: Event | None = None  # what will end it, as things are; None once it has

    def worked(self, now: float) -> float:
        """Seconds of its own work in this attempt."""
        until = now if self.told_at is None else self.told_at
        return max(0.0, until - self.placed_at - self.restore_seconds)

    def awaits(self, event: Event) -> bool:
        """Whether the event still happens."""
        return self.ending is not None and (event is self.ending or isinstance(event, Started))


class _Task(msgspec.Struct):
    """A job as the engine knows it."""

    job: Job
    run_seconds: float
    saved_seconds: float = 0.0
    attempts: int = 0  # the number of the last one
    attempt: _Attempt | None = None  # that runs
    ended: bool = False


# At one instant, who leaves comes before who arrives; then in the order in which it was scheduled.
_LEAVING, _NODE, _ARRIVING = 0, 1, 2

_NODE_LOST = "node lost"


class SimEngine:
    """Runs jobs in virtual time."""

    capabilities = Capabilities(virtual_time=True)

    def __init__(
        self,
        nodes: Iterable[Node],
        run_seconds: Mapping[JobId, float],
        *,
        outages: Iterable[Outage] = (),
        exits: Mapping[JobId, tuple[Outcome, int | None]] | None = None,
        enforce_limits: bool = False,
        start_at: float = 0.0,
    ) -> None:
        """``exits``: how those end, and with which code, that do not succeed."""
        self._nodes = {n.name: n for n in nodes}
        self._run_seconds = run_seconds
        self._exits = {} if exits is None else exits
        self._enforce_limits = enforce_limits
        self._now = start_at
        self._serial = 0
        self._heap: list[tuple[float, int, int, Event, _Attempt | None]] = []
        self._tasks: dict[JobId, _Task] = {}
        for outage in _merged(outages):
            self._plan_outage(outage)

    # --- The protocol -----------------------------------------------------------------------------

    def now(self) -> float:
        return self._now

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes.values())

    def observe(self, until: float | None = None) -> Sequence[Event]:
        """Jump to the next instant at which something happens."""
        facts: list[Event] = []
        while not facts:
            at = self._next_at()
            if at is None or (until is not None and at > until):
                if until is not None:
                    self._now = max(self._now, until)
                return facts
            self._now = at
            while self._next_at() == at:
                _, _, _, event, attempt = heapq.heappop(self._heap)
                facts.extend(self._happens(event, attempt))
        return facts

    def act(self, action: Action) -> None:
        task = self._task(action.job)
        attempt = task.attempt
        if isinstance(action, Start):
            if attempt is None and not task.ended and action.attempt > task.attempts:
                self._start(task, action)
        elif attempt is not None and attempt.number == action.attempt:
            if isinstance(action, Evict):
                self._evict(task, attempt, action.because)
            elif isinstance(action, Stop):
                self._stop(task, attempt)

    # --- The script -------------------------------------------------------------------------------

    def will(self, event: Event) -> None:
        """Something that people will do, at the time the event says."""
        self._script(event, _ARRIVING)

    def learn(self, job: Job) -> None:
        """A job that was submitted elsewhere, such as a member of an array."""
        self._tasks[job.id] = _Task(job, self._run_seconds[job.id])

    def _plan_outage(self, outage: Outage) -> None:
        self._node(outage.node)
        self._script(NodeHealth(outage.at, outage.node, Health.DOWN), _NODE)
        self._script(NodeHealth(outage.ends_at, outage.node, Health.UP), _NODE)

    def _script(self, event: Event, kind: int) -> None:
        if event.at < self._now:
            raise BadInput(f"nothing can be scripted for {event.at:g} s: it is {self._now:g} s already")
        self._push(event, kind, None)

    # --- What happens -----------------------------------------------------------------------------

    def _next_at(self) -> float | None:
        """When something happens next. What is stale on the way there is forgotten."""
        while self._heap:
            at, _, _, event, attempt = self._heap[0]
            if attempt is None or attempt.awaits(event):
                return at
            heapq.heappop(self._heap)
        return None

    def _happens(self, event: Event, attempt: _Attempt | None) -> Iterable[Event]:
        if isinstance(event, Submitted):
            self.learn(event.job)
        elif isinstance(event, Withdrawn):
            return self._withdraw(event)
        elif isinstance(event, NodeHealth):
            return [*self._node_changes(event), event]
        elif attempt is not None and isinstance(event, Exited | Vacated):
            self._over(event, attempt)
        return (event,)

    def _start(self, task: _Task, action: Start) -> None:
        health = {self._node(seat.node).health for seat in action.seats}
        kept = task.job.checkpoint
        restore = kept.restore_seconds if kept is not None and task.saved_seconds > 0 else 0.0
        attempt = _Attempt(action.attempt, self._now, action.seats, restore)
        task.attempt, task.attempts = attempt, action.attempt
        if Health.DOWN in health:
            self._ends(attempt, _vacated(task, attempt, self._now, _NODE_LOST))
            return
        self._push(Started(self._now, task.job.id, action.attempt), _LEAVING, attempt)
        self._ends(attempt, self._exit_of(task, attempt))

    def _exit_of(self, task: _Task, attempt: _Attempt) -> Exited:
        """How the attempt ends if it is left alone."""
        lasts = attempt.restore_seconds + max(0.0, task.run_seconds - task.saved_seconds)
        limit = task.job.time_limit_seconds
        number, job_id = attempt.number, task.job.id
        if self._enforce_limits and limit is not None and lasts > limit:
            return Exited(self._now + limit, job_id, number, Outcome.TIMEOUT)
        outcome, code = self._exits.get(job_id, (Outcome.SUCCEEDED, 0))
        return Exited(self._now + lasts, job_id, number, outcome, code)

    def _evict(self, task: _Task, attempt: _Attempt, because: str) -> None:
        """Leaving takes as long as saving does."""
        if attempt.told_at is not None:
            return
        attempt.told_at = self._now
        kept = task.job.checkpoint
        saving = kept.save_seconds if kept is not None and kept.on_signal else 0.0
        attempt.keeps_seconds = _saved(task.job, attempt.worked(self._now), warned=True)
        self._ends(attempt, _vacated(task, attempt, self._now + saving, because))

    def _stop(self, task: _Task, attempt: _Attempt) -> None:
        attempt.told_at = self._now
        ended = Exited(self._now, task.job.id, attempt.number, Outcome.STOPPED, None, 15)
        self._ends(attempt, ended)

    def _withdraw(self, event: Withdrawn) -> Iterable[Event]:
        """Who withdraws a job that runs stops it; one that has ended stays as it is."""
        task = self._task(event.job)
        if task.attempt is not None:
            self._stop(task, task.attempt)
        elif not task.ended:
            task.ended = True
            return (event,)
        return ()

    def _node_changes(self, event: NodeHealth) -> Iterable[Event]:
        """A lost node takes its attempts with it; nobody was warned."""
        node = self._node(event.node)
        self._nodes[event.node] = msgspec.structs.replace(node, health=event.health)
        if event.health is not Health.DOWN:
            return
        for task in self._tasks.values():
            attempt = task.attempt
            if attempt is None or event.node not in {s.node for s in attempt.seats}:
                continue
            # Whoever was just saving has not done so.
            attempt.keeps_seconds = _saved(task.job, attempt.worked(self._now), warned=False)
            vacated = _vacated(task, attempt, self._now, _NODE_LOST)
            self._over(vacated, attempt)
            yield vacated

    def _over(self, event: Exited | Vacated, attempt: _Attempt) -> None:
        task = self._tasks[event.job]
        task.attempt = attempt.ending = None
        task.ended = isinstance(event, Exited)
        task.saved_seconds += attempt.keeps_seconds

    # --- Small things -----------------------------------------------------------------------------

    def _task(self, job_id: JobId) -> _Task:
        task = self._tasks.get(job_id)
        if task is None:
            raise BadInput(f"the engine knows no job {job_id}")
        return task

    def _node(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise BadInput(f"there is no node {name}")
        return node

    def _ends(self, attempt: _Attempt, event: Event) -> None:
        """From now on this is what ends the attempt."""
        attempt.ending = event
        self._push(event, _LEAVING, attempt)

    def _push(self, event: Event, kind: int, attempt: _Attempt | None) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (event.at, kind, self._serial, event, attempt))


def _vacated(task: _Task, attempt: _Attempt, at: float, because: str) -> Vacated:
    lost = at - attempt.placed_at - attempt.keeps_seconds
    return Vacated(at, task.job.id, attempt.number, because, lost)


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


def _merged(outages: Iterable[Outage]) -> list[Outage]:
    """Outages of one node that overlap are one: it is not back before the last of them is over."""
    merged: list[Outage] = []
    for outage in sorted(outages, key=lambda o: (o.node, o.at)):
        last = merged[-1] if merged else None
        if last is not None and last.node == outage.node and outage.at <= last.ends_at:
            lasts_seconds = max(last.ends_at, outage.ends_at) - last.at
            merged[-1] = Outage(last.node, last.at, lasts_seconds)
        else:
            merged.append(outage)
    return merged
