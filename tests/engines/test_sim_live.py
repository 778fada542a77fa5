"""The simulated engine in our time: it keeps the protocol, and says when there is something to see."""

import select
import threading
import time
from collections.abc import Iterator

import pytest
from sim_bench import NODES

from muster.engines.base import Engine
from muster.engines.check import CHECKS, Check
from muster.engines.sim import Life, LiveEngine, SimEngine
from muster.model.errors import BadInput
from muster.model.events import Event, Exited, NodeHealth, Outcome, Seat, Started, Submitted, Vacated
from muster.model.job import Checkpoint, Job, JobId, Shape, single
from muster.model.node import Health
from muster.model.plan import Evict, Limit, Resume, Start, Stop, Suspend

BEAT = 0.07  # the clock is the real one: a busy machine may be late by less than that
SEATS = (Seat("n1", Shape(cpus_milli=1000)),)


class LiveBench:
    """A bench of the live simulator: it finds jobs where a server would."""

    beat_seconds = BEAT

    def __init__(self) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.lives: dict[JobId, Life] = {}
        self.live = LiveEngine(NODES, self.jobs.__getitem__, lambda job, _: self.lives[job.id])

    @property
    def engine(self) -> Engine:
        return self.live

    def submit(self, job: Job, *, runs_seconds: float, exit_code: int = 0, stubborn: bool = False) -> None:
        self.jobs[job.id] = job
        outcome = Outcome.FAILED if exit_code else Outcome.SUCCEEDED
        self.lives[job.id] = Life(runs_seconds, outcome, exit_code)

    def lose(self, node: str) -> None:
        self.live.turn(node, Health.DOWN)

    def restore(self, node: str) -> None:
        self.live.turn(node, Health.UP)

    def close(self) -> None:
        self.live.close()


@pytest.fixture
def bench() -> Iterator[LiveBench]:
    bench = LiveBench()
    yield bench
    bench.close()


def started(bench: LiveBench, seconds: float, **more: object) -> LiveEngine:
    """With one job, ``j``, that runs."""
    job = Job("j", single(cpus_milli=1000), 0.0, **more)  # type: ignore[arg-type]
    bench.submit(job, runs_seconds=seconds)
    bench.live.act(Start("j", 1, SEATS))
    assert [type(fact) for fact in bench.live.observe()] == [Started]
    return bench.live


def facts_by(engine: LiveEngine, seconds: float) -> list[Event]:
    until = engine.now() + seconds
    facts: list[Event] = []
    while engine.now() < until:
        facts += engine.observe(until)
    return facts


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_live_simulator_keeps_the_protocol(bench: LiveBench, check: Check) -> None:
    if (why_not := check.why_not(bench)) is not None:
        pytest.skip(why_not)
    check(bench)


def test_only_virtual_time_and_lines_are_not_for_it(bench: LiveBench) -> None:
    not_tried = [check.name for check in CHECKS if check.why_not(bench) is not None]
    needs = {need for check in CHECKS if check.name in not_tried for need in check.needs}
    assert needs == {"virtual_time", "lines_up"}


def test_the_descriptor_is_readable_when_something_has_happened_and_not_before(bench: LiveBench) -> None:
    engine = started(bench, 0.2)
    assert select.select([engine.fileno()], [], [], 0)[0] == []
    assert select.select([engine.fileno()], [], [], 5.0)[0] == [engine.fileno()]
    assert [type(fact) for fact in engine.observe(0.0)] == [Exited]
    assert select.select([engine.fileno()], [], [], 0)[0] == []


def test_who_observes_without_a_bound_is_woken_by_an_order_from_elsewhere(bench: LiveBench) -> None:
    engine = started(bench, 1000.0)
    threading.Timer(0.05, lambda: engine.act(Stop("j", 1, "enough"))).start()
    [ended] = engine.observe()
    assert isinstance(ended, Exited)
    assert ended.outcome is Outcome.STOPPED


def test_a_job_that_stands_still_does_nothing_and_then_does_the_rest(bench: LiveBench) -> None:
    engine = started(bench, 0.2)
    engine.act(Suspend("j", 1))
    assert [one.is_still for one in engine.seated()] == [True]
    assert facts_by(engine, 0.4) == []
    engine.act(Resume("j", 1))
    resumed_at = engine.now()
    [ended] = engine.observe()
    assert isinstance(ended, Exited)
    assert ended.at - resumed_at > 0.1


def test_who_is_evicted_while_it_stands_still_has_saved_what_it_did_before(bench: LiveBench) -> None:
    engine = started(bench, 100.0, checkpoint=Checkpoint())
    time.sleep(0.1)
    engine.act(Suspend("j", 1))
    time.sleep(0.1)
    engine.act(Evict("j", 1, "room"))
    [left] = engine.observe()
    assert isinstance(left, Vacated)
    assert left.lost_seconds == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(("limits", "outcome"), [((0.1,), Outcome.TIMEOUT), ((0.1, None), Outcome.SUCCEEDED)])
def test_another_limit_counts_from_then_on(
    bench: LiveBench, limits: tuple[float | None, ...], outcome: Outcome
) -> None:
    engine = started(bench, 0.3)
    for limit in limits:
        engine.act(Limit("j", 1, limit))
    [ended] = engine.observe()
    assert isinstance(ended, Exited)
    assert ended.outcome is outcome


def test_a_job_that_is_settled_can_be_tried_again(bench: LiveBench) -> None:
    engine = started(bench, 0.01)
    assert isinstance(engine.observe()[0], Exited)
    engine.settle([("j", 1)])
    engine.act(Start("j", 2, SEATS))
    ended = facts_by(engine, 0.2)[-1]
    assert ended == Exited(ended.at, "j", 2, Outcome.SUCCEEDED, 0)


def test_it_goes_on_with_what_was_begun_in_virtual_time_at_its_own_speed() -> None:
    begun = time.time() - 1000.0
    past = SimEngine(NODES, {"j": 1020.0}, start_at=begun)
    past.will(Submitted(begun, Job("j", single(cpus_milli=1000), begun)))
    past.observe(begun)
    past.act(Start("j", 1, SEATS))
    past.observe(begun + 1000.0)
    engine = LiveEngine(NODES, {}.__getitem__, lambda *_: Life(1.0), past=past, speed=100.0)
    try:
        assert engine.running() == {("j", 1)}
        [ended] = engine.observe()
        assert isinstance(ended, Exited)
        assert ended.at - begun == pytest.approx(1000.2, abs=0.1)
    finally:
        engine.close()


def test_each_part_of_an_attempt_is_somewhere(bench: LiveBench) -> None:
    engine = started(bench, 10.0)
    assert engine.locate([("j", 1), ("j", 2), ("k", 1)]).keys() == {("j", 1)}
    assert engine.locate([("j", 1)]) == engine.locate([("j", 1)])


def test_a_node_that_is_turned_off_is_told_of(bench: LiveBench) -> None:
    bench.live.turn("n2", Health.DOWN, "power supply")
    [fact] = bench.live.observe(bench.live.now() + 1.0)
    assert fact == NodeHealth(fact.at, "n2", Health.DOWN, "power supply")


def test_nothing_gets_done_at_no_speed() -> None:
    with pytest.raises(BadInput, match="above zero"):
        LiveEngine(NODES, {}.__getitem__, lambda *_: Life(1.0), speed=0.0)
