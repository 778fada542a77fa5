"""The loop: what is recorded, in what order, and when it decides."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

from muster.engines.base import Capabilities
from muster.engines.sim import Outage, SimEngine
from muster.model.events import (
    Event,
    Evicting,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Promised,
    Started,
    Submitted,
    Vacated,
    Withdrawn,
)
from muster.model.job import After, Dependency, Gang, Job, Priority, single
from muster.model.node import Device, Node
from muster.model.plan import Action, Evict, Start
from muster.model.policy import Policy, preset
from muster.server.loop import Loop
from muster.store.fold import Fold

NODE = Node("n1", 64_000, 1 << 40, devices=(Device(),) * 8)
NEVER = 1e9

Entry = TypeVar("Entry")


def gpus(count: int) -> Gang:
    return single(gpus=count)


class Recorded:
    """An engine, with every action that it is told entered into a log."""

    def __init__(self, engine: SimEngine, log: list[object]) -> None:
        self._engine, self._log = engine, log

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    def now(self) -> float:
        return self._engine.now()

    def nodes(self) -> Sequence[Node]:
        return self._engine.nodes()

    def observe(self, until: float | None = None) -> Sequence[Event]:
        return self._engine.observe(until)

    def act(self, action: Action) -> None:
        self._log.append(action)
        self._engine.act(action)


class Run:
    """A loop over one node of eight GPUs. ``log`` has the facts and the actions, in order."""

    def __init__(
        self,
        jobs: Iterable[tuple[Job, float]],
        policy: Policy | None = None,
        script: Iterable[Event] = (),
        **more: object,
    ) -> None:
        jobs = list(jobs)
        self.log: list[object] = []
        policy = policy or preset("fair")
        engine = SimEngine([NODE], {j.id: seconds for j, seconds in jobs}, **more)  # type: ignore[arg-type]
        for event in [*(Submitted(j.submitted_at, j) for j, _ in jobs), *script]:
            engine.will(event)
        self.loop = Loop(Recorded(engine, self.log), policy, Fold(policy), self.log.append)

    def to_the_end(self) -> "Run":
        while self.loop.step():
            pass
        return self

    def of(self, kind: type[Entry]) -> list[Entry]:
        return [entry for entry in self.log if isinstance(entry, kind)]

    def kinds(self) -> list[str]:
        return [type(entry).__name__ for entry in self.log]


def test_the_inventory_is_recorded_first() -> None:
    run = Run([])
    assert run.log == [NodeSeen(0.0, NODE)]


def test_what_was_observed_is_recorded_before_what_is_decided_on_it() -> None:
    run = Run([(Job("a", gpus(1), 5.0), 10.0), (Job("b", gpus(1), 5.0), 10.0)])
    run.loop.step()
    assert run.kinds()[:3] == ["NodeSeen", "Submitted", "Submitted"]
    assert run.kinds()[3:] == ["Placed", "Start", "Placed", "Start"]


def test_each_decision_is_recorded_just_before_the_engine_is_told() -> None:
    jobs = [(Job(f"j{i}", gpus(1 + i % 8), i * 3.0), 20.0) for i in range(30)]
    log = Run(jobs).to_the_end().log
    told = [i for i, entry in enumerate(log) if isinstance(entry, Start)]
    assert len(told) == 30
    for i in told:
        start, placed = log[i], log[i - 1]
        assert isinstance(start, Start)
        assert isinstance(placed, Placed)
        assert (placed.job, placed.attempt, placed.seats) == (start.job, start.attempt, start.seats)


def test_an_engine_is_not_told_what_could_not_be_recorded() -> None:
    told: list[object] = []

    def full_disk(fact: Event) -> None:
        if isinstance(fact, Placed):
            raise OSError("no space left")

    engine = SimEngine([NODE], {"a": 1.0})
    engine.will(Submitted(0.0, Job("a", gpus(1), 0.0)))
    policy = preset("fair")
    loop = Loop(Recorded(engine, told), policy, Fold(policy), full_disk)
    with pytest.raises(OSError, match="no space left"):
        loop.step()
    assert told == []


def test_facts_are_recorded_in_time_order() -> None:
    jobs = [(Job(f"j{i}", gpus(1 + i % 8), i * 3.0), 20.0) for i in range(30)]
    run = Run(jobs, outages=[Outage("n1", 40.0, 10.0)]).to_the_end()
    times = [fact.at for fact in run.of(Event)]
    assert times == sorted(times)


def test_who_yields_is_told_before_who_starts_and_the_favoured_starts_when_it_has_left() -> None:
    low = Job("low", gpus(8), 0.0, priority=Priority.LOW)
    high, small = Job("high", gpus(8), 1000.0), Job("small", single(cpus_milli=1000), 1000.0)
    run = Run([(low, NEVER), (high, 10.0), (small, 10.0)])
    run.loop.step()
    run.loop.step()
    del run.log[:]
    run.loop.step()
    assert run.kinds() == [
        "Submitted",
        "Submitted",
        "Evicting",
        "Evict",
        "Placed",
        "Start",
        "Promised",
    ]
    assert run.of(Evict) == [Evict("low", 1, "priority", "high")]
    assert run.of(Evicting) == [Evicting(1000.0, "low", 1, "priority", "high")]
    run.loop.step()
    assert run.of(Vacated) == [Vacated(1000.0, "low", 1, "priority", 1000.0)]
    assert [s.job for s in run.of(Start)] == ["small", "high"]


def test_it_wakes_when_the_plan_says_so() -> None:
    run = Run([(Job("early", gpus(1), 0.0, begin_at=50.0), 10.0)])
    run.loop.step()
    assert run.loop.plan.wake_at == 50
    assert run.of(Start) == []
    assert run.loop.step()
    assert run.loop.engine.now() == 50
    assert [placed.at for placed in run.of(Placed)] == [50.0]


def test_what_happens_before_the_time_to_wake_is_answered_first() -> None:
    jobs = [(Job("early", gpus(1), 0.0, begin_at=50.0), 10.0), (Job("now", gpus(1), 20.0), 10.0)]
    placed = Run(jobs).to_the_end().of(Placed)
    assert [(p.job, p.at) for p in placed] == [("now", 20.0), ("early", 50.0)]


def test_a_fact_that_changes_nothing_is_recorded_and_costs_no_cycle() -> None:
    run = Run([(Job("a", gpus(1), 0.0), 10.0)])
    run.loop.step()
    cycles = run.loop.cycles
    run.loop.step()
    assert run.log[-1] == Started(0.0, "a", 1)
    assert run.loop.cycles == cycles
    run.loop.step()
    assert run.log[-1] == Exited(10.0, "a", 1, Outcome.SUCCEEDED, 0)
    assert run.loop.cycles == cycles + 1


def test_what_happens_at_one_instant_is_answered_in_one_cycle() -> None:
    run = Run([(Job(f"j{i}", gpus(1), 0.0), 10.0) for i in range(8)])
    run.loop.step()
    assert run.loop.cycles == 1
    assert len(run.of(Start)) == 8


def test_a_promise_is_recorded_once_however_often_it_is_renewed() -> None:
    first = (Job("first", gpus(5), 0.0, time_limit_seconds=100.0), 100.0)
    big = (Job("big", gpus(8), 1.0, time_limit_seconds=10.0), 10.0)
    others = [(Job(f"s{i}", gpus(1), 2.0 + i, time_limit_seconds=20.0), 20.0) for i in range(9)]
    run = Run([first, big, *others], preset("easy")).to_the_end()
    assert run.of(Promised) == [Promised(1.0, "big", nodes=("n1",))]
    assert run.loop.cycles >= 20
    assert [p.at for p in run.of(Placed) if p.job == "big"] == [100.0]


def test_a_job_whose_dependency_failed_is_withdrawn_and_the_engine_hears_nothing_of_it() -> None:
    first = Job("first", gpus(1), 0.0)
    second = Job("second", gpus(1), 0.0, after=(Dependency("first", After.NOT_OK),))
    run = Run([(first, 10.0), (second, 10.0)]).to_the_end()
    assert run.of(Withdrawn) == [Withdrawn(10.0, "second", Outcome.DEPENDENCY_FAILED)]
    assert [a.job for a in run.of(Action)] == ["first"]


def test_a_job_that_is_withdrawn_while_it_runs_makes_room_for_the_next() -> None:
    jobs = [(Job("a", gpus(8), 0.0), NEVER), (Job("b", gpus(8), 1.0), 10.0)]
    run = Run(jobs, script=[Withdrawn(5.0, "a")]).to_the_end()
    assert [(p.job, p.at) for p in run.of(Placed)] == [("a", 0.0), ("b", 5.0)]


def test_a_job_on_a_lost_node_starts_again_when_the_node_is_back() -> None:
    run = Run([(Job("a", gpus(8), 0.0), 100.0)], outages=[Outage("n1", 30.0, 20.0)]).to_the_end()
    assert [(s.job, s.attempt) for s in run.of(Start)] == [("a", 1), ("a", 2)]
    assert run.log[-1] == Exited(150.0, "a", 2, Outcome.SUCCEEDED, 0)
    assert len(run.of(NodeHealth)) == 2


def test_it_is_done_when_nothing_is_left_to_wait_for() -> None:
    run = Run([(Job("a", gpus(1), 0.0), 10.0), (Job("too big", gpus(9), 0.0), 10.0)])
    steps = 0
    while run.loop.step():
        steps += 1
    assert steps == 3
    assert not run.loop.step()
    assert run.loop.fold.waiting_count == 1
