"""What is special to the simulated engine: its time, its checkpoints, its outages, its script."""

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_bench import NODES

from muster.engines.sim import Outage, SimEngine
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
from muster.model.job import Checkpoint, Job, Shape, single
from muster.model.node import Health
from muster.model.plan import Evict, Start, Stop

DAY = 86_400.0


class Sim(SimEngine):
    """A simulator with one job, ``j``, submitted at once, and shorthands to act on it."""

    def __init__(
        self,
        run_seconds: float = 100.0,
        checkpoint: Checkpoint | None = None,
        limit_seconds: float | None = None,
        **more: object,
    ) -> None:
        super().__init__(NODES, {"j": run_seconds, "k": 10.0}, **more)  # type: ignore[arg-type]
        gang = single(cpus_milli=1000)
        job = Job("j", gang, 0.0, checkpoint=checkpoint, time_limit_seconds=limit_seconds)
        self.will(Submitted(0.0, job))
        self.observe(0.0)

    def start(self, attempt: int = 1, *nodes: str) -> None:
        shape = Shape(cpus_milli=1000)
        self.act(Start("j", attempt, tuple(Seat(node, shape) for node in nodes or ("n1",))))

    def evict(self, attempt: int = 1) -> None:
        self.act(Evict("j", attempt, "priority"))

    def stop(self, attempt: int = 1) -> None:
        self.act(Stop("j", attempt, "by a person"))

    def evicted_at(self, at: float, attempt: int = 1) -> list[Event]:
        """Run an attempt until then, evict it, and see what comes of it."""
        self.start(attempt)
        self.run_to(at)
        self.evict(attempt)
        return self.all()

    def run_to(self, at: float) -> list[Event]:
        """Everything up to then."""
        facts: list[Event] = []
        while self.now() < at:
            facts += self.observe(at)
        return facts

    def all(self) -> list[Event]:
        """Everything until nothing is left to wait for."""
        facts: list[Event] = []
        while seen := self.observe():
            facts += seen
        return facts


# --- Time -----------------------------------------------------------------------------------------


def test_time_jumps_to_what_happens_next_without_ticks() -> None:
    sim = Sim(run_seconds=1000 * DAY)
    sim.start()
    assert sim.observe() == [Started(0.0, "j", 1)]
    assert sim.observe() == [Exited(1000 * DAY, "j", 1, Outcome.SUCCEEDED, 0)]
    assert sim.now() == 1000 * DAY


def test_a_bound_is_reached_exactly_and_what_happens_at_it_is_seen() -> None:
    sim = Sim(run_seconds=10)
    sim.start()
    sim.observe()
    assert sim.observe(until=9.5) == []
    assert sim.now() == 9.5
    assert sim.observe(until=10) == [Exited(10.0, "j", 1, Outcome.SUCCEEDED, 0)]


def test_what_an_eviction_made_void_moves_no_clock() -> None:
    sim = Sim(run_seconds=1000 * DAY)
    assert sim.evicted_at(5) == [Vacated(5.0, "j", 1, "priority", 5.0)]
    assert sim.now() == 5


@pytest.mark.parametrize("at", [-1.0, 4.999])
def test_nothing_can_be_scripted_for_the_past(at: float) -> None:
    sim = SimEngine(NODES, {"j": 1.0}, start_at=5.0)
    assert sim.now() == 5
    with pytest.raises(BadInput, match="nothing can be scripted"):
        sim.will(Submitted(at, Job("j", single(), at)))
    with pytest.raises(BadInput, match="nothing can be scripted"):
        SimEngine(NODES, {}, outages=[Outage("n1", at, 10.0)], start_at=5.0)


def test_at_one_instant_jobs_leave_then_nodes_change_then_jobs_arrive() -> None:
    sim = Sim(run_seconds=10, outages=[Outage("n2", 10.0, 5.0)])
    later = Job("k", single(), 10.0)
    sim.will(Submitted(10.0, later))
    sim.start()
    sim.observe()
    assert sim.observe() == [
        Exited(10.0, "j", 1, Outcome.SUCCEEDED, 0),
        NodeHealth(10.0, "n2", Health.DOWN),
        Submitted(10.0, later),
    ]


# --- Checkpoints ----------------------------------------------------------------------------------


def test_a_job_without_checkpoints_leaves_at_once_and_loses_everything() -> None:
    sim = Sim(run_seconds=100)
    assert sim.evicted_at(30) == [Vacated(30.0, "j", 1, "priority", 30.0)]
    sim.start(2)
    assert sim.all()[-1] == Exited(130.0, "j", 2, Outcome.SUCCEEDED, 0)


def test_saving_and_restoring_are_charged_exactly() -> None:
    sim = Sim(run_seconds=100, checkpoint=Checkpoint(save_seconds=4, restore_seconds=7))
    assert sim.evicted_at(30) == [Vacated(30.0 + 4, "j", 1, "priority", 4.0)]
    sim.start(2)
    assert sim.all()[-1] == Exited(34.0 + 7 + 70, "j", 2, Outcome.SUCCEEDED, 0)


def test_an_eviction_during_the_restore_loses_no_more_than_that_time() -> None:
    sim = Sim(run_seconds=100, checkpoint=Checkpoint(save_seconds=4, restore_seconds=7))
    sim.evicted_at(30)
    assert sim.evicted_at(39, attempt=2) == [Vacated(43.0, "j", 2, "priority", 9.0)]
    sim.start(3)
    assert sim.all()[-1] == Exited(43.0 + 7 + 70, "j", 3, Outcome.SUCCEEDED, 0)


def test_a_job_that_saves_every_so_often_loses_what_it_did_since() -> None:
    sim = Sim(checkpoint=Checkpoint(every_seconds=20, save_seconds=4, on_signal=False))
    assert sim.evicted_at(50) == [Vacated(50.0, "j", 1, "priority", 10.0)]
    sim.start(2)
    assert sim.all()[-1] == Exited(50.0 + 60, "j", 2, Outcome.SUCCEEDED, 0)


def test_a_job_that_never_saves_by_itself_and_heeds_no_warning_loses_everything() -> None:
    sim = Sim(checkpoint=Checkpoint(on_signal=False))
    assert sim.evicted_at(50) == [Vacated(50.0, "j", 1, "priority", 50.0)]


# --- Outages --------------------------------------------------------------------------------------


def test_an_outage_takes_the_jobs_of_its_node_and_is_over_in_time() -> None:
    sim = Sim(outages=[Outage("n1", 30.0, 5.0)])
    sim.start()
    assert sim.all() == [
        Started(0.0, "j", 1),
        Vacated(30.0, "j", 1, "node lost", 30.0),
        NodeHealth(30.0, "n1", Health.DOWN),
        NodeHealth(35.0, "n1", Health.UP),
    ]


def test_an_outage_of_one_node_takes_the_whole_gang_and_spares_other_nodes() -> None:
    sim = Sim(outages=[Outage("n2", 30.0, 5.0)])
    sim.start(1, "n1", "n2")
    assert Vacated(30.0, "j", 1, "node lost", 30.0) in sim.all()
    spared = Sim(outages=[Outage("n2", 30.0, 5.0)])
    spared.start(1, "n1")
    assert Exited(100.0, "j", 1, Outcome.SUCCEEDED, 0) in spared.all()


def test_an_outage_leaves_the_last_periodic_checkpoint() -> None:
    checkpoint = Checkpoint(every_seconds=20, save_seconds=4)
    sim = Sim(checkpoint=checkpoint, outages=[Outage("n1", 50.0, 5.0)])
    sim.start()
    assert Vacated(50.0, "j", 1, "node lost", 10.0) in sim.all()


def test_a_node_that_is_lost_while_a_job_saves_takes_the_unsaved_work() -> None:
    checkpoint = Checkpoint(every_seconds=20, save_seconds=15)
    sim = Sim(checkpoint=checkpoint, outages=[Outage("n1", 65.0, 5.0)])
    facts = sim.evicted_at(55)  # it works no more, and would have saved by 70
    assert facts[0] == Vacated(65.0, "j", 1, "node lost", 65.0 - 40)
    sim.start(2)
    assert sim.all()[-1] == Exited(70.0 + 60, "j", 2, Outcome.SUCCEEDED, 0)


def test_overlapping_outages_of_a_node_are_one() -> None:
    outages = [Outage("n1", 20.0, 5.0), Outage("n1", 10.0, 12.0), Outage("n2", 11.0, 1.0)]
    assert [(f.at, f.node, f.health) for f in Sim(outages=outages).all()] == [  # type: ignore[attr-defined]
        (10.0, "n1", Health.DOWN),
        (11.0, "n2", Health.DOWN),
        (12.0, "n2", Health.UP),
        (25.0, "n1", Health.UP),
    ]


def test_a_job_that_ends_as_its_node_is_lost_has_ended() -> None:
    sim = Sim(run_seconds=30, outages=[Outage("n1", 30.0, 5.0)])
    sim.start()
    assert Exited(30.0, "j", 1, Outcome.SUCCEEDED, 0) in sim.all()


def test_a_start_on_a_lost_node_does_not_run() -> None:
    sim = Sim(outages=[Outage("n2", 0.0, 5.0)])
    sim.start(1, "n1", "n2")
    assert sim.observe() == [Vacated(0.0, "j", 1, "node lost", 0.0)]


def test_outages_and_seats_on_unknown_nodes_are_refused() -> None:
    with pytest.raises(BadInput, match="no node nowhere"):
        SimEngine(NODES, {}, outages=[Outage("nowhere", 1.0, 1.0)])
    sim = Sim()
    with pytest.raises(BadInput, match="no node nowhere"):
        sim.start(1, "nowhere")
    sim.start(1)
    assert sim.observe() == [Started(0.0, "j", 1)]


# --- Limits ---------------------------------------------------------------------------------------


def test_a_limit_ends_a_job_only_where_limits_are_enforced() -> None:
    enforced = Sim(run_seconds=100, limit_seconds=60, enforce_limits=True)
    enforced.start()
    assert enforced.all()[-1] == Exited(60.0, "j", 1, Outcome.TIMEOUT)
    lenient = Sim(run_seconds=100, limit_seconds=60)
    lenient.start()
    assert lenient.all()[-1] == Exited(100.0, "j", 1, Outcome.SUCCEEDED, 0)


def test_a_job_that_takes_just_its_limit_succeeds() -> None:
    sim = Sim(run_seconds=60, limit_seconds=60, enforce_limits=True)
    sim.start()
    assert sim.all()[-1] == Exited(60.0, "j", 1, Outcome.SUCCEEDED, 0)


def test_the_limit_counts_for_each_attempt_and_the_restore_with_it() -> None:
    checkpoint = Checkpoint(restore_seconds=10)
    sim = Sim(100, checkpoint, limit_seconds=60, enforce_limits=True)
    sim.evicted_at(45)
    sim.start(2)
    assert sim.all()[-1] == Exited(45.0 + 60, "j", 2, Outcome.TIMEOUT)


# --- The script -----------------------------------------------------------------------------------


def test_a_waiting_job_that_is_withdrawn_can_no_longer_be_started() -> None:
    sim = Sim()
    sim.will(Withdrawn(5.0, "j"))
    assert sim.observe() == [Withdrawn(5.0, "j")]
    sim.start()
    assert sim.all() == []


def test_a_running_job_that_is_withdrawn_is_stopped() -> None:
    sim = Sim()
    sim.will(Withdrawn(5.0, "j"))
    sim.start()
    assert sim.all() == [Started(0.0, "j", 1), Exited(5.0, "j", 1, Outcome.STOPPED, None, 15)]


def test_withdrawing_a_job_that_has_ended_says_nothing() -> None:
    sim = Sim(run_seconds=5)
    sim.will(Withdrawn(5.0, "j"))
    sim.will(Withdrawn(6.0, "j"))
    sim.start()
    assert sim.all() == [Started(0.0, "j", 1), Exited(5.0, "j", 1, Outcome.SUCCEEDED, 0)]


def test_withdrawing_an_evicted_job_finds_it_waiting() -> None:
    sim = Sim()
    sim.will(Withdrawn(5.0, "j"))
    assert sim.evicted_at(1) == [Vacated(1.0, "j", 1, "priority", 1.0), Withdrawn(5.0, "j")]


def test_withdrawing_a_job_that_nobody_submitted_is_refused() -> None:
    sim = Sim()
    sim.will(Withdrawn(5.0, "nobody"))
    with pytest.raises(BadInput, match="no job nobody"):
        sim.observe()


# --- Two things at once ---------------------------------------------------------------------------


def test_an_eviction_at_the_very_instant_of_the_end_comes_too_late() -> None:
    sim = Sim(run_seconds=10)
    sim.start()
    sim.observe()
    assert sim.observe() == [Exited(10.0, "j", 1, Outcome.SUCCEEDED, 0)]
    sim.evict()
    assert sim.all() == []


def test_a_stop_overrules_an_eviction_of_the_same_instant_and_the_other_way_round() -> None:
    for first, second in ((Sim.evict, Sim.stop), (Sim.stop, Sim.evict)):
        sim = Sim()
        sim.start()
        sim.observe(until=0)
        first(sim)
        second(sim)
        assert sim.all() == [Exited(0.0, "j", 1, Outcome.STOPPED, None, 15)]


def test_a_job_that_is_evicted_before_it_was_seen_to_start_loses_nothing() -> None:
    sim = Sim()
    sim.start()
    sim.evict()
    assert sim.all() == [Started(0.0, "j", 1), Vacated(0.0, "j", 1, "priority", 0.0)]


def test_a_job_that_would_have_ended_while_it_saves_leaves_all_the_same() -> None:
    sim = Sim(run_seconds=10, checkpoint=Checkpoint(save_seconds=5))
    assert sim.evicted_at(8) == [Vacated(13.0, "j", 1, "priority", 5.0)]
    sim.start(2)
    assert sim.all()[-1] == Exited(15.0, "j", 2, Outcome.SUCCEEDED, 0)


# --- Work is conserved ----------------------------------------------------------------------------

Turns = list[tuple[float, float]]  # how long it runs before it is evicted, and then waits


def checkpoints(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Checkpoint | None]:
    return st.none() | st.builds(
        Checkpoint,
        every_seconds=seconds,
        save_seconds=seconds,
        restore_seconds=seconds,
        on_signal=st.booleans(),
    )


def story(sim: Sim, turns: Turns) -> Iterator[tuple[float, Exited | Vacated]]:
    """When each attempt was placed, and how it ended. The last is left alone."""
    for attempt, (runs, waits) in enumerate([*turns, (math.inf, 0.0)], 1):
        placed_at = sim.now()
        sim.start(attempt)
        facts: list[Event] = []
        if runs < math.inf:
            facts += sim.run_to(placed_at + runs)
            sim.evict(attempt)
        facts += sim.all()
        (ended,) = [f for f in facts if isinstance(f, Exited | Vacated)]
        yield placed_at, ended
        if isinstance(ended, Exited):
            return
        sim.run_to(sim.now() + waits)


# Eighths of a second, which floats can tell exactly.
exact = st.integers(0, 400).map(lambda eighths: eighths / 8)


@settings(derandomize=True, deadline=None)
@given(exact, checkpoints(exact), st.lists(st.tuples(exact, exact), max_size=8))
def test_what_was_kept_lost_and_done_at_last_adds_up_exactly(
    run_seconds: float, checkpoint: Checkpoint | None, turns: Turns
) -> None:
    kept = 0.0
    for placed_at, ended in story(Sim(run_seconds, checkpoint), turns):
        lasted = ended.at - placed_at
        if isinstance(ended, Vacated):
            assert 0 <= ended.lost_seconds <= lasted
            kept += lasted - ended.lost_seconds
        else:
            restoring = checkpoint.restore_seconds if checkpoint and kept else 0.0
            assert lasted == restoring + run_seconds - kept
    assert isinstance(ended, Exited)


anything = st.floats(0, 50)


@settings(derandomize=True, deadline=None)
@given(anything, checkpoints(anything), st.lists(st.tuples(anything, anything), max_size=8))
def test_no_rounding_makes_a_job_end_before_it_starts(
    run_seconds: float, checkpoint: Checkpoint | None, turns: Turns
) -> None:
    assert all(at <= ended.at for at, ended in story(Sim(run_seconds, checkpoint), turns))
