"""What the conformance suite stands on: a bench that an engine's author writes, and a watch.

The bench is a fresh engine, and an engine-neutral way to make it know jobs of a given length. All
that a check does goes through a ``Watch``, which writes the facts down and holds them to the laws
that are true at any time; so a check that is about something else still notices that time went
back, or that an attempt ended twice.

Nothing depends on how fast the engine is: lengths are told in beats of the bench's choice, and what
must happen may take fifty of them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from muster.engines.base import Engine
from muster.model.errors import MusterError
from muster.model.events import (
    Event,
    Evicting,
    Exited,
    NodeHealth,
    Outcome,
    Placed,
    Promised,
    Seat,
    Started,
    StoodDown,
    Vacated,
)
from muster.model.job import Checkpoint, Gang, Job, JobId, Part, Shape
from muster.model.node import Health, Node
from muster.model.plan import Action, Evict, Recall, Start, Stop

_PATIENCE_BEATS = 50.0  # what must happen happens within
_FOREVER_BEATS = 1000.0  # the length of a job that is not waited for
_MOST_ANSWERS = 10_000  # of ``observe``, while one fact is waited for
_SMALL = Shape(cpus_milli=100)
_OF_ATTEMPTS = (Started, Exited, Vacated)

Fact = TypeVar("Fact", bound=Event)


class Bench(Protocol):
    """A fresh engine, with at least one node that is up and has a cpu to spare."""

    @property
    def engine(self) -> Engine: ...

    @property
    def beat_seconds(self) -> float:
        """The unit of time of the checks: much longer than it takes to start or end a job."""
        ...

    def submit(self, job: Job, *, runs_seconds: float, exit_code: int = 0, stubborn: bool = False) -> None:
        """Make the engine know the job. A check does so before it starts any.

        The job works for ``runs_seconds`` and exits with ``exit_code``; it saves its work as its
        ``checkpoint`` says. One that is stubborn pays no heed when it is asked to leave.
        """
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


@runtime_checkable
class LosesNodes(Protocol):
    """What a bench may also be able to do: cut a node off, and bring it back."""

    def lose(self, node: str) -> None: ...

    def restore(self, node: str) -> None: ...


class ProtocolBroken(AssertionError):
    """The engine does not keep the protocol. Names the check, and what was seen."""


def expect(true: bool, otherwise: str) -> None:
    """An assertion that is there in optimised Python, too."""
    if not true:
        raise ProtocolBroken(otherwise)


class Watch:
    """A bench whose engine's facts are written down and held to the laws that are always true."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.engine = bench, bench.engine
        self.facts: list[Event] = []
        self.beat = bench.beat_seconds
        self._slack = 0.0 if bench.engine.capabilities.virtual_time else self.beat
        self._latest = bench.engine.now()
        self._told_at: dict[tuple[JobId, int], float] = {}  # attempts that were to start
        self._over: set[tuple[JobId, int]] = set()

    # --- Acting -----------------------------------------------------------------------------------

    def job(
        self,
        name: str,
        beats: float = _FOREVER_BEATS,
        *,
        shape: Shape = _SMALL,
        parts: int = 1,
        checkpoint: Checkpoint | None = None,
        exit_code: int = 0,
        stubborn: bool = False,
    ) -> Job:
        """Submit a job that works for so many beats."""
        job = Job(name, Gang((Part(shape, parts),)), self.now(), checkpoint=checkpoint)
        lasts = beats * self.beat
        self.bench.submit(job, runs_seconds=lasts, exit_code=exit_code, stubborn=stubborn)
        return job

    def start(
        self, job: Job, attempt: int = 1, *, on: Sequence[Node] = (), behind: Job | None = None
    ) -> None:
        """Start the job, its parts in turn on these nodes, or on all that are up."""
        self._told_at.setdefault((job.id, attempt), self.now())
        ahead = None if behind is None else (behind.id, 1)
        self.engine.act(Start(job.id, attempt, seats(job, on or self.up()), behind=ahead))

    def recall(self, job: Job) -> None:
        self.engine.act(Recall(job.id, 1))

    def begin(self, job: Job, attempt: int = 1, *, on: Sequence[Node] = ()) -> None:
        """Start the job and wait until it has."""
        self.start(job, attempt, on=on)
        self.started(job, attempt)

    def evict(self, job: Job, attempt: int = 1) -> None:
        self.engine.act(Evict(job.id, attempt, "check"))

    def stop(self, job: Job, attempt: int = 1) -> None:
        self.engine.act(Stop(job.id, attempt, "check"))

    def refuses(self, action: Action) -> bool:
        try:
            self.engine.act(action)
        except MusterError:
            return True
        return False

    def lose(self, node: Node) -> None:
        assert isinstance(self.bench, LosesNodes)
        self._turns(node.name, Health.DOWN, self.bench.lose)

    def restore(self, node: Node) -> None:
        assert isinstance(self.bench, LosesNodes)
        self._turns(node.name, Health.UP, self.bench.restore)

    def _turns(self, node: str, health: Health, turn: Callable[[str], None]) -> None:
        """Wait until it is observed, and see that the inventory says the same."""
        before = len(self.facts)
        turn(node)
        self.find(NodeHealth, node, lambda f: (f.node, f.health) == (node, health), since=before)
        now = next(n.health for n in self.engine.nodes() if n.name == node)
        expect(now is health, f"{node} was observed to be {health}; the inventory says {now}")

    # --- Observing --------------------------------------------------------------------------------

    def now(self) -> float:
        now = self.engine.now()
        expect(now >= self._latest, f"time went back from {self._latest:g} s to {now:g} s")
        self._latest = now
        return now

    def up(self) -> list[Node]:
        """The nodes that are up."""
        return [n for n in self.engine.nodes() if n.health is Health.UP]

    def look(self, until: float | None = None) -> None:
        """Observe once."""
        before = self.now()
        facts = self.engine.observe(until)
        now = self.now()
        if until is not None:
            self._hold_to_the_bound(until, before, now, waits=not facts)
        for fact in facts:
            self._hold_to_the_laws(fact, now)
            self.facts.append(fact)

    def wait(self, beats: float) -> None:
        """Let time pass, whatever happens."""
        until = self.now() + beats * self.beat
        while self.now() < until:
            self.look(until)

    def find(self, kind: type[Fact], what: str, wanted: Callable[[Fact], bool], *, since: int = 0) -> Fact:
        """The first fact of this kind that is wanted, seen already or waited for."""
        deadline = self.now() + _PATIENCE_BEATS * self.beat
        for _ in range(_MOST_ANSWERS):
            for fact in self.facts[since:]:
                if isinstance(fact, kind) and wanted(fact):
                    return fact
            if self.now() >= deadline:
                break
            self.look(deadline)
        missing = f"{kind.__name__} of {what}"
        raise ProtocolBroken(f"{missing} was not observed; what was: {self.facts}")

    def started(self, job: Job, attempt: int = 1) -> Started:
        key = (job.id, attempt)
        return self.find(Started, f"{key}", lambda fact: (fact.job, fact.attempt) == key)

    def vacated(self, job: Job, attempt: int = 1) -> Vacated:
        key = (job.id, attempt)
        return self.find(Vacated, f"{key}", lambda fact: (fact.job, fact.attempt) == key)

    def stood_down(self, job: Job) -> StoodDown:
        return self.find(StoodDown, f"{job.id}", lambda fact: fact.job == job.id)

    def exited(self, job: Job, attempt: int = 1, *, outcome: Outcome = Outcome.SUCCEEDED) -> Exited:
        key = (job.id, attempt)
        fact = self.find(Exited, f"{key}", lambda fact: (fact.job, fact.attempt) == key)
        expect(fact.outcome is outcome, f"the outcome was to be {outcome}: {fact}")
        return fact

    def expect_story(self, job: Job, *kinds: type[Event]) -> None:
        """Just this was observed of the job, even after a while in which more could have come."""
        self.wait(3)
        story = [f for f in self.facts if isinstance(f, _OF_ATTEMPTS) and f.job == job.id]
        expected = ", ".join(k.__name__ for k in kinds) or "nothing"
        expect([type(f) for f in story] == [*kinds], f"expected {expected}; observed {story}")

    # --- The laws ---------------------------------------------------------------------------------

    def _hold_to_the_bound(self, until: float, before: float, now: float, *, waits: bool) -> None:
        late = now > max(before, until) + self._slack
        expect(not late, f"observe was to return by {until:g} s, and did at {now:g} s")
        early = waits and now < until
        expect(not early, f"observe gave up at {now:g} s, and was to wait until {until:g} s")

    def _hold_to_the_laws(self, fact: Event, now: float) -> None:
        expect(fact.at <= now, f"at {now:g} s a fact of the future was observed: {fact}")
        if self.facts:
            expect(fact.at >= self.facts[-1].at, f"out of order: {self.facts[-1]}, then {fact}")
        expect(not isinstance(fact, Placed | Promised | Evicting), f"it decided: {fact}")
        if isinstance(fact, _OF_ATTEMPTS):
            self._hold_to_the_laws_of_attempts(fact)

    def _hold_to_the_laws_of_attempts(self, fact: Started | Exited | Vacated) -> None:
        attempt = (fact.job, fact.attempt)
        expect(attempt in self._told_at, f"nobody started this attempt: {fact}")
        expect(attempt not in self._over, f"the attempt was over already: {fact}")
        if not isinstance(fact, Started):
            self._over.add(attempt)
        if isinstance(fact, Vacated):
            lasted = fact.at - self._told_at[attempt]
            honest = 0 <= fact.lost_seconds <= lasted + self._slack
            expect(honest, f"no attempt of {lasted:g} s loses that much: {fact}")


def seats(job: Job, nodes: Sequence[Node]) -> tuple[Seat, ...]:
    """A seat for each part, on the nodes in turn; of GPUs the first."""
    (part,) = job.gang.parts
    devices, milli = ((0,), part.shape.gpu_milli) if part.shape.gpus else ((), 0)
    places = [nodes[i % len(nodes)] for i in range(part.count)]
    return tuple(Seat(node.name, part.shape, devices, milli) for node in places)
