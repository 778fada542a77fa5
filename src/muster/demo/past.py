"""A week in virtual time: the real loop and scheduler, and what people and the steward did meanwhile.

What people do is scripted as *moments*. Whatever happens is folded in and written down as it would be by a
server: the last view of each job, and an entry in the ledger for each attempt.
"""

import heapq
from collections.abc import Callable, Iterator
from math import inf

from msgspec.structs import replace

from muster.demo.curves import values_at
from muster.demo.habits import luck
from muster.demo.work import Kind, job_of
from muster.engines.sim import Life, SimEngine
from muster.home import Home
from muster.model.charter import Verdict
from muster.model.events import (
    ArraySubmitted,
    Event,
    Exited,
    Outcome,
    Placed,
    Started,
    Stopping,
    Submitted,
    Withdrawn,
)
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.plan import Stop
from muster.model.policy import Policy
from muster.monitor.ledger import Ledger
from muster.server.looking import ended_row
from muster.server.loop import CHANGES, Loop
from muster.server.stewardship.verdicts import exits_in, has_exits
from muster.server.views import Views
from muster.steward.exits.replay import Report, first_met
from muster.store.fold import Fold
from muster.store.rows import EndedJob

REPORTS = 48  # of each job that reports, over all its work
_BROKEN_OFF = 0.5  # how far those come that fail

Moment = Callable[["Past"], None]


class Past(Loop):
    """What has happened, and everything that came of it."""

    def __init__(self, nodes: tuple[Node, ...], policy: Policy, begins_at: float, home: Home) -> None:
        self.lives: dict[JobId, float] = {}
        self.exits: dict[JobId, tuple[Outcome, int | None]] = {}
        self.kinds: dict[JobId, Kind] = {}
        self.jobs: dict[JobId, Job] = {}
        self.named: dict[str, JobId] = {}  # the latest of each name
        self.events: list[Event] = []
        self.ended: list[EndedJob] = []
        self.ledger = Ledger()
        self.keys: list[tuple[JobId, int]] = []  # of all attempts, in order
        self._moments: list[tuple[float, int, Moment]] = []
        self._met: dict[JobId, tuple[float, Verdict, str]] = {}
        fold = Fold(policy)
        self._views = Views(fold, home)
        engine = SimEngine(nodes, self.lives, exits=self.exits, start_at=begins_at)
        super().__init__(engine, policy, fold, self.events.append)
        self.sim = engine

    @property
    def now(self) -> float:
        return self.sim.now()

    # --- The script -----------------------------------------------------------------------------------

    def at(self, when: float, do: Moment) -> None:
        heapq.heappush(self._moments, (when, len(self._moments) + len(self.events), do))

    def note(self, event: Event) -> None:
        """Something that people or the steward did."""
        self._fact(event)

    def submit(self, kind: Kind, owner: str, life: Life, **more: object) -> JobId:
        """Queue a job or an array of this kind, under the next id."""
        job_id = str(self.fold.submissions + 1)
        job = replace(job_of(kind, job_id, owner, self.now), **more)
        self.kinds[job_id], self.named[kind.name] = kind, job_id
        if kind.members:
            event = ArraySubmitted(self.now, job, tuple(range(1, kind.members + 1)), kind.at_once)
            for member in event.members():
                self._learn(member, _varied(life, member.id))
            self._fact(event)
        else:
            self._learn(job, life)
            self._fact(Submitted(self.now, job))
        return job_id

    def _learn(self, job: Job, life: Life) -> None:
        self.jobs[job.id], self.lives[job.id] = job, life.seconds
        if life.outcome is not Outcome.SUCCEEDED:
            self.exits[job.id] = (life.outcome, life.exit_code)
        self.sim.learn(job)

    def stop(self, job_id: JobId, verdict: Verdict | None, because: str) -> None:
        """The verdict and its stop are one event."""
        record = self.fold.records[job_id]
        if record.running is not None:
            attempt = record.running.attempt
            self._fact(Stopping(self.now, job_id, attempt, because, verdict))
            self.sim.act(Stop(job_id, attempt, because))
        elif record.waiting is not None:
            self._fact(Withdrawn(self.now, job_id, because=because, verdict=verdict))

    # --- Time -----------------------------------------------------------------------------------------

    def run(self, until: float) -> None:
        while self.now < until or (self._moments and self._moments[0][0] <= until):
            self._step_to(until)

    def _step_to(self, until: float) -> None:
        wake_at = self.plan.wake_at or inf
        first = self._moments[0][0] if self._moments else inf
        facts = self.sim.observe(min(until, wake_at, first))
        for fact in facts:
            self._fact(fact)
        before = len(self.events)
        for do in self._moments_due():
            do(self)
        new = [*facts, *self.events[before:]]
        if self.now >= wake_at or any(isinstance(event, CHANGES) for event in new):
            self.decide()

    def _moments_due(self) -> list[Moment]:
        due: list[Moment] = []
        while self._moments and self._moments[0][0] <= self.now:
            due.append(heapq.heappop(self._moments)[2])
        return due

    # --- Facts ----------------------------------------------------------------------------------------

    def _fact(self, fact: Event) -> None:
        if isinstance(fact, Exited):
            fact = self._judged(fact)
        if isinstance(fact, Exited | Withdrawn):
            view = self._views.ended(self.fold.records[fact.job], fact)
            self.ended.append(ended_row(view))
        super()._fact(fact)
        job = self.jobs[fact.job] if isinstance(fact, Placed) else None
        self.ledger.apply(fact, job)
        if isinstance(fact, Placed):
            self.keys.append((fact.job, fact.attempt))
        elif isinstance(fact, Started):
            self._watch(fact)

    def _judged(self, fact: Exited) -> Exited:
        running = self.fold.records[fact.job].running
        if running is None or running.verdict is None:
            return fact
        return replace(fact, verdict=running.verdict, because=running.because or "")

    def _watch(self, fact: Started) -> None:
        """By what it will report, the steward will end it then."""
        job, kind = self.jobs[fact.job], self.kind_of(fact.job)
        if kind.curve is None or not has_exits(job.charter):
            return
        if job.id not in self._met:
            reports = [Report(ran, values) for ran, values in self.reports_of(job.id)]
            met = first_met(exits_in(job.charter), reports, self.lives[job.id])
            ends = (inf, Verdict.LOST, "")
            self._met[job.id] = ends if met is None else (met[0], Verdict(met[1].verdict), met[1].sentence)
        after, verdict, because = self._met[job.id]
        if after < inf:
            self.at(fact.at + after, lambda past: past._end(fact, verdict, because))

    def _end(self, started: Started, verdict: Verdict, because: str) -> None:
        running = self.fold.running.get(started.job)
        if running is not None and running.attempt == started.attempt:
            self.stop(started.job, verdict, because)

    # --- For others -----------------------------------------------------------------------------------

    def kind_of(self, job_id: JobId) -> Kind:
        return self.kinds[job_id.partition("_")[0]]

    def reports_of(self, job_id: JobId) -> Iterator[tuple[float, dict[str, float]]]:
        """All that it will ever report: how long it had run, and what it said."""
        kind, seconds = self.kind_of(job_id), self.lives[job_id]
        comes_to = _BROKEN_OFF if job_id in self.exits else 1.0
        for number in range(1, REPORTS + 1):
            part = number / REPORTS
            yield part * seconds, values_at(kind, job_id, part * comes_to)


def _varied(life: Life, key: str) -> Life:
    """Members of an array are alike, and not the same."""
    return replace(life, seconds=life.seconds * (0.7 + 0.6 * luck(f"member {key}")))
