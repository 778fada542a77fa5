"""Numbers of Slurm's that are used again: requeued after the end, or counted anew. What runs is seen."""

from slurm_world import Watched, again
from test_slurm_others import NODES, RUNS, WAITS

from muster.engines.slurm.adopted import own_id
from muster.engines.slurm.answers import Exit, SlurmAttempt
from muster.engines.slurm.naming import called_again
from muster.engines.slurm.others import Seen, missing
from muster.model.events import Outcome, Submitted
from muster.model.state import State

ENDED = again(RUNS, states=("COMPLETED",), end_at=300.0, exit=Exit())


def test_who_is_requeued_after_its_end_is_seen_as_another() -> None:
    w = Watched(NODES)
    w.look((RUNS,), 200.0)
    w.look((ENDED,), 310.0)
    w.look((again(WAITS, restarts=1, submitted_at=320.0),), 330.0)
    assert (w.state("s12"), w.state("s12-2")) == (State.ENDED, State.QUEUED)
    w.look((again(RUNS, restarts=1, submitted_at=320.0, start_at=340.0),), 350.0)
    assert w.fold.running["s12-2"].seats[0].node == "n1"
    w.look((again(ENDED, restarts=1, submitted_at=320.0, start_at=340.0, end_at=400.0),), 410.0)
    w.look((again(RUNS, restarts=2, submitted_at=420.0, start_at=430.0),), 440.0)
    assert [w.state(one) for one in ("s12", "s12-2", "s12-3")] == [State.ENDED, State.ENDED, State.RUNNING]
    assert w.seen.id_of(RUNS) == "s12-3"


def test_a_second_run_between_two_looks_is_not_overlooked() -> None:
    w = Watched(NODES)
    w.look((RUNS,), 200.0)
    w.look((ENDED,), 310.0)
    w.look((again(ENDED, restarts=1, start_at=340.0, end_at=400.0),), 410.0)
    assert w.state("s12-2") is State.ENDED
    assert w.look((again(ENDED, restarts=1, start_at=340.0, end_at=400.0),), 420.0) == []


def test_clocks_that_waver_make_no_second_run_of_who_ended_as_it_began() -> None:
    w = Watched(NODES)
    failed = again(RUNS, states=("FAILED",), start_at=300.0, end_at=300.0, exit=Exit(1))
    w.look((failed,), 310.0, ahead_seconds=0.0001)
    assert w.state("s12") is State.ENDED
    assert w.look((again(failed, reason="NonZeroExitCode"),), 311.0) == []


def test_a_number_that_another_cluster_counts_again_is_another_job() -> None:
    w = Watched(NODES)
    w.look((RUNS,), 200.0)
    w.look((ENDED,), 310.0)
    w.look((), 320.0)
    (submitted,) = [e for e in w.look((again(WAITS, user="ben", name="new"),), 900.0) if type(e) is Submitted]
    assert (submitted.job.id, submitted.job.owner) == ("s12-2", "ben")
    assert w.seen.why("s12-2", w.notices) is not None


def test_after_a_restart_who_was_called_again_is_known_by_that_name() -> None:
    w = Watched(NODES)
    w.look((RUNS,), 200.0)
    w.look((ENDED,), 310.0)
    w.look((again(RUNS, restarts=1, start_at=340.0),), 350.0)
    w.seen = Seen(350.0, {"s12-2": w.seen.jobs["s12-2"]}, again=called_again(["s12-2"]))
    assert w.look((again(RUNS, restarts=1, start_at=340.0),), 360.0) == []
    gone = SlurmAttempt(12, ("FAILED",), submitted_at=320.0, started_at=340.0, ended_at=380.0, exit=Exit(3))
    assert missing(w.seen, ())
    assert not missing(w.seen, (RUNS,))
    w.look((), 390.0, (gone,))
    assert w.fold.records["s12-2"].outcome is Outcome.FAILED


def test_who_had_ended_before_a_restart_is_not_another_for_a_clock_that_was_set() -> None:
    w = Watched(NODES)
    w.look((RUNS,), 200.0)
    w.look((ENDED,), 310.0)
    w.seen = Seen(since=ENDED.end_at - 5.0)
    assert w.look((ENDED,), 320.0) == []
    w.look((again(RUNS, restarts=1, start_at=340.0),), 350.0)
    assert w.state("s12-2") is State.RUNNING


def test_tasks_of_an_array_that_come_back_are_an_array_again() -> None:
    w = Watched(NODES)
    task = again(RUNS, id=21, array_id=20, array_task=0)
    queue = again(WAITS, id=20, array_id=20, array_tasks="1-2")
    w.look((task, queue), 200.0)
    over = again(task, states=("COMPLETED",), end_at=300.0)
    w.look((over, queue), 310.0)
    w.look((again(task, restarts=1, start_at=340.0), queue), 350.0)
    assert (w.state("s20_0"), w.state("s20-2_0"), w.state("s20_1")) == (
        State.ENDED,
        State.RUNNING,
        State.QUEUED,
    )
    later = again(task, id=24, array_task=1, start_at=360.0, nodes="n2")
    w.look((again(task, restarts=1, start_at=340.0), later, again(queue, array_tasks="2")), 370.0)
    assert w.state("s20_1") is State.RUNNING
    assert w.fold.arrays["s20-2"].left == 1


def test_an_array_number_that_is_used_again_is_another_array() -> None:
    w = Watched(NODES)
    queue = again(WAITS, id=20, array_id=20, array_tasks="0-2")
    w.look((queue,), 200.0)
    w.look((again(queue, states=("CANCELLED",), end_at=220.0),), 230.0)
    w.look((), 240.0)
    w.look((again(queue, user="ben", submitted_at=500.0),), 510.0)
    assert {w.state(f"s20-2_{task}") for task in range(3)} == {State.QUEUED}
    assert w.seen.why("s20-2_1", w.notices) is not None
    w.look((again(queue, user="ben", states=("CANCELLED",), end_at=520.0),), 530.0)
    assert {w.state(f"s20-2_{task}") for task in range(3)} == {State.ENDED}


def test_slurms_commands_are_given_the_number_alone() -> None:
    assert [own_id(one) for one in ("s12", "s12-2", "s6_3", "s6-2_3")] == ["12", "12", "6_3", "6_3"]
