"""Other people's jobs: what two passes over Slurm amount to, as facts, in a fold."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_situations import CARRIED, VERSIONS, WHOLE
from slurm_world import Watched, again

from muster.engines.slurm.answers import Exit, Gpus, SlurmAttempt, SlurmJob, SlurmNode, SlurmSeat, Tres
from muster.engines.slurm.errors import SlurmError
from muster.engines.slurm.jobs import read_jobs
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.others import NOT_KNOWN, PATIENCE_SECONDS, missing
from muster.engines.slurm.states import job_standing
from muster.model.events import (
    ArraySubmitted,
    Exited,
    Held,
    Outcome,
    Placed,
    Released,
    Resumed,
    Started,
    Submitted,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.state import State

LATE = 4e9  # after every time that was recorded
NODES = tuple(
    SlurmNode(f"n{i}", ("IDLE",), cpus=16, memory_bytes=64 << 30, gpus=(Gpus("a40", 4),)) for i in range(3)
)
WAITS = SlurmJob(
    12,
    ("PENDING",),
    name="train",
    user="ada",
    account="vision",
    reason="Priority",
    submitted_at=100.0,
    priority=1.0,
    time_limit_seconds=3600.0,
    asked=Tres(cpus=4, memory_bytes=8 << 30, nodes=1, gpus=2),
    restarts=0,
)
RUNS = again(
    WAITS,
    states=("RUNNING",),
    reason="None",
    start_at=150.0,
    nodes="n1",
    given=WAITS.asked,
    seats=(SlurmSeat("n1", 4, 8 << 30, (Gpus("a40", 2, (1, 2)),)),),
)
ENDED = again(RUNS, states=("COMPLETED",), end_at=400.0, exit=Exit())


def kinds(events: object) -> list[type]:
    return [type(event) for event in events]  # type: ignore[attr-defined]


def world(since: float = 0.0) -> Watched:
    return Watched(NODES, since)


# --- One job ---------------------------------------------------------------------------------------


def test_a_job_that_others_submitted_becomes_a_job_with_owner_team_and_what_it_asks_for() -> None:
    w = world()
    (submitted,) = w.look((WAITS,), 200.0)
    assert isinstance(submitted, Submitted)
    job = submitted.job
    assert (job.id, job.owner, job.team, job.name, job.adopted) == ("s12", "ada", "vision", "train", "slurm")
    assert (job.submitted_at, job.time_limit_seconds) == (100.0, 3600.0)
    assert (job.gang.asked().gpus_milli, job.gang.asked().cpus_milli) == (2000, 4000)


def test_one_that_waits_in_slurm_is_never_started_by_muster() -> None:
    w = world()
    w.look((WAITS,), 200.0)
    assert w.state("s12") is State.QUEUED
    assert "s12" in w.fold.ineligible
    assert not w.fold.lanes
    assert not w.fold.snapshot().timed


def test_why_it_waits_is_slurms_reason_in_words() -> None:
    w = world()
    w.look((WAITS,), 200.0)
    assert w.seen.why("s12", w.notices) == "others are before it; it starts by itself"


def test_the_year_that_slurm_gives_to_who_asks_for_no_time_is_no_limit() -> None:
    w = world()
    w.look((again(RUNS, time_limit_seconds=365 * 86400.0),), 200.0)
    assert w.fold.running["s12"].job.time_limit_seconds is None
    assert w.fold.running["s12"].latest_end == float("inf")


def test_numbers_of_muster_do_not_count_those_of_slurm() -> None:
    w = world()
    w.look((WAITS,), 200.0)
    assert w.fold.submissions == 0


def test_one_that_runs_holds_its_cpus_memory_and_true_gpus_since_it_started() -> None:
    w = world()
    assert kinds(w.look((RUNS,), 200.0)) == [Submitted, Placed, Started]
    running = w.fold.running["s12"]
    assert (running.placed_at, running.started_at) == (150.0, 150.0)
    assert running.seats[0].devices == (1, 2)
    assert w.fold.snapshot().room.gpu[1].tolist() == [1000, 0, 0, 1000]
    assert w.fold.snapshot().room.cpus.tolist() == [16000, 12000, 16000]


def test_gpus_that_slurm_does_not_name_are_those_that_nobody_else_has() -> None:
    w = world()
    unnamed = again(RUNS, id=13, seats=(SlurmSeat("n1", 4, 8 << 30, None),))
    w.look((unnamed, RUNS), 200.0)
    assert w.fold.running["s13"].seats[0].devices == (0, 3)


def test_what_does_not_change_is_told_once() -> None:
    w = world()
    w.look((RUNS, again(WAITS, id=13)), 200.0)
    assert w.look((RUNS, again(WAITS, id=13, priority=2.0)), 300.0) == []


def test_a_job_waits_runs_and_ends_with_its_true_times() -> None:
    w = world()
    w.look((WAITS,), 120.0)
    placed, started = w.look((RUNS,), 200.0)
    assert (placed.at, started.at) == (150.0, 150.0)
    (exited,) = w.look((ENDED,), 500.0)
    assert isinstance(exited, Exited)
    assert (exited.at, exited.outcome, exited.exit_code) == (400.0, Outcome.SUCCEEDED, 0)
    assert w.fold.snapshot().room.gpu.min() == 1000


def test_one_that_came_and_went_between_two_looks_lived_all_the_same() -> None:
    w = world(since=100.0)
    assert kinds(w.look((ENDED,), 500.0)) == [Submitted, Placed, Started, Exited]
    assert w.look((ENDED,), 600.0) == []


def test_what_had_ended_before_muster_looked_is_not_told() -> None:
    w = world(since=450.0)
    assert w.look((ENDED,), 500.0) == []


def test_one_that_was_cancelled_while_it_waited_is_withdrawn() -> None:
    w = world()
    w.look((WAITS,), 120.0)
    (event,) = w.look((again(WAITS, states=("CANCELLED",), end_at=130.0),), 200.0)
    assert isinstance(event, Withdrawn)
    assert (event.at, event.outcome, event.because) == (130.0, Outcome.STOPPED, "cancelled in Slurm")


@pytest.mark.parametrize(
    ("state", "ended", "outcome", "code", "signal"),
    [
        ("FAILED", Exit(3), Outcome.FAILED, 3, None),
        ("FAILED", Exit(0, 9), Outcome.FAILED, None, 9),
        ("OUT_OF_MEMORY", Exit(0, 125), Outcome.OUT_OF_MEMORY, None, None),
        ("TIMEOUT", Exit(0, 15), Outcome.TIMEOUT, None, None),
        ("NODE_FAIL", Exit(), Outcome.NODE_LOST, None, None),
        ("CANCELLED", Exit(0, 15), Outcome.STOPPED, None, None),
    ],
)
def test_every_end_has_its_outcome(
    state: str, ended: Exit, outcome: Outcome, code: int | None, signal: int | None
) -> None:
    w = world()
    w.look((RUNS,), 200.0)
    (event,) = w.look((again(ENDED, states=(state,), exit=ended),), 500.0)
    assert isinstance(event, Exited)
    assert (event.outcome, event.exit_code, event.signal) == (outcome, code, signal)


def test_held_and_released_in_slurm_is_held_and_released_here() -> None:
    w = world()
    held = again(WAITS, reason="JobHeldUser", priority=0.0)
    w.look((held,), 120.0)
    assert w.state("s12") is State.HELD
    assert kinds(w.look((WAITS,), 130.0)) == [Released]
    (event,) = w.look((held,), 140.0)
    assert isinstance(event, Held)
    assert event.because == "its owner holds it; release it with `scontrol release`"
    assert kinds(w.look((RUNS,), 200.0)) == [Released, Placed, Started]


def test_suspended_and_resumed_in_slurm_is_so_here() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    assert kinds(w.look((again(RUNS, states=("SUSPENDED",)),), 210.0)) == [Suspended]
    assert kinds(w.look((RUNS,), 220.0)) == [Resumed]


def test_one_that_is_cleaned_up_keeps_its_seats_until_that_is_done() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    assert w.look((again(ENDED, states=("COMPLETED", "COMPLETING")),), 410.0) == []
    assert w.state("s12") is State.RUNNING
    assert kinds(w.look((ENDED,), 420.0)) == [Exited]


def test_a_preempted_job_leaves_waits_and_runs_again_as_another_attempt() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    leaving = again(RUNS, states=("PENDING", "COMPLETING"), preempted_at=300.0, restarts=1)
    assert w.look((leaving,), 305.0) == []
    waits = again(WAITS, submitted_at=301.0, preempted_at=300.0, restarts=1)
    (vacated,) = w.look((waits,), 310.0)
    assert isinstance(vacated, Vacated)
    assert (vacated.at, vacated.because, vacated.lost_seconds) == (300.0, "preempted in Slurm", 150.0)
    w.look((again(RUNS, start_at=350.0, restarts=1),), 400.0)
    assert (w.fold.running["s12"].attempt, w.fold.running["s12"].placed_at) == (2, 350.0)


def test_a_requeue_that_nobody_saw_is_told_from_the_number_of_restarts() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    events = w.look((again(RUNS, submitted_at=301.0, start_at=350.0, restarts=1),), 400.0)
    assert kinds(events) == [Vacated, Placed, Started]
    assert [event.at for event in events] == [301.0, 350.0, 350.0]


def test_a_state_that_nobody_knows_changes_nothing_and_is_said_once() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    odd = again(RUNS, states=("TELEPORTED",))
    assert w.look((odd,), 300.0) == []
    assert w.state("s12") is State.RUNNING
    assert len([said for said in w.notices.take() if "TELEPORTED" in said]) == 1
    w.look((odd,), 310.0)
    assert w.notices.take() == []


def test_a_name_with_anything_in_it_is_one_line_of_a_table() -> None:
    w = world()
    (event,) = w.look((again(WAITS, name="a\nb\x1b[31m" + "x" * 300),), 200.0)
    assert isinstance(event, Submitted)
    assert event.job.name.isprintable()
    assert len(event.job.name) == 128


# --- Who is no longer listed -----------------------------------------------------------------------


def test_what_has_vanished_ends_as_accounting_says() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    assert missing(w.seen, ())
    said = SlurmAttempt(12, ("FAILED",), submitted_at=100.0, started_at=150.0, ended_at=380.0, exit=Exit(2))
    (event,) = w.look((), 900.0, (said,))
    assert isinstance(event, Exited)
    assert (event.at, event.outcome, event.exit_code) == (380.0, Outcome.FAILED, 2)
    assert not missing(w.seen, ())


def test_one_that_was_started_and_vanished_unseen_has_held_what_accounting_says() -> None:
    w = world()
    w.look((WAITS,), 120.0)
    said = SlurmAttempt(
        12, ("COMPLETED",), started_at=150.0, ended_at=380.0, nodes="n2", given=WAITS.asked, exit=Exit()
    )
    placed, started, exited = w.look((), 900.0, (said,))
    assert isinstance(placed, Placed)
    assert [event.at for event in (placed, started, exited)] == [150.0, 150.0, 380.0]
    assert (placed.seats[0].node, len(placed.seats[0].devices)) == ("n2", 2)


def test_what_accounting_does_not_know_either_has_ended_after_some_patience_and_says_so() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    assert w.look((), 300.0, None) == []
    (event,) = w.look((), 300.0 + PATIENCE_SECONDS, None)
    assert isinstance(event, Exited)
    assert (event.outcome, event.because) == (Outcome.STOPPED, NOT_KNOWN)


def test_one_that_is_listed_again_was_never_gone() -> None:
    w = world()
    w.look((RUNS,), 200.0)
    w.look((), 300.0, None)
    assert w.look((RUNS,), 310.0) == []
    assert w.look((), 300.0 + PATIENCE_SECONDS, None) == []


# --- Arrays and heterogeneous jobs -----------------------------------------------------------------

ARRAY = again(WAITS, id=20, array_id=20, array_tasks="1-4%2", reason="JobArrayTaskLimit")


def test_an_array_is_submitted_as_one_whatever_of_it_runs_already() -> None:
    w = world()
    first = again(RUNS, id=21, array_id=20, array_task=0)
    events = w.look((ARRAY, first), 200.0)
    assert isinstance(events[0], ArraySubmitted)
    assert (events[0].template.id, events[0].indices, events[0].most_at_once) == ("s20", (0, 1, 2, 3, 4), 2)
    assert w.state("s20_0") is State.RUNNING
    assert [w.state(f"s20_{i}") for i in range(1, 5)] == [State.QUEUED] * 4
    assert (
        w.seen.why("s20_3", w.notices)
        == "as many tasks of its array run as may at a time; it starts by itself"
    )


def test_a_task_leaves_the_record_of_those_that_wait_and_runs() -> None:
    w = world()
    w.look((ARRAY,), 120.0)
    rest = again(ARRAY, array_tasks="2-4%2")
    assert kinds(w.look((rest, again(RUNS, id=21, array_id=20, array_task=1)), 200.0)) == [Placed, Started]
    w.look((rest, again(ENDED, id=21, array_id=20, array_task=1)), 500.0)
    assert w.fold.arrays["s20"].left == 3


def test_an_array_that_is_cancelled_while_it_waits_ends_with_all_of_its_tasks() -> None:
    w = world()
    w.look((ARRAY,), 120.0)
    w.look((again(ARRAY, states=("CANCELLED",), end_at=130.0),), 200.0)
    assert w.fold.arrays["s20"].left == 0


def test_tasks_that_were_cancelled_before_anybody_looked_are_not_told_of() -> None:
    w = world()
    gone = again(ARRAY, states=("CANCELLED",), end_at=130.0)
    assert w.look((gone,), 200.0) == []
    runs = again(RUNS, id=21, array_id=20, array_task=0)
    for at in (210.0, 220.0):
        w.look((gone, runs), at)
    assert w.state("s20_0") is State.RUNNING
    assert w.fold.arrays["s20"].left == 1
    assert w.notices.take() == []


def test_a_heterogeneous_job_is_one_gang_of_unlike_parts() -> None:
    w = world()
    small = again(RUNS, id=31, het_id=30, het_offset=1, nodes="n2", seats=(SlurmSeat("n2", 8, 0, ()),))
    small = again(small, asked=Tres(cpus=8, nodes=1), given=Tres(cpus=8, nodes=1))
    large = again(RUNS, id=30, het_id=30, het_offset=0)
    w.look((small, large), 200.0)
    running = w.fold.running["s30"]
    assert {seat.node for seat in running.seats} == {"n1", "n2"}
    assert len(running.job.gang.parts) == 2
    w.look((again(small, states=("COMPLETED",), end_at=300.0), large), 310.0)
    assert w.state("s30") is State.RUNNING
    over = [again(one, states=("COMPLETED",), end_at=400.0, exit=Exit()) for one in (small, large)]
    w.look(tuple(over), 410.0)
    assert w.fold.records["s30"].outcome is Outcome.SUCCEEDED


# --- Real answers ----------------------------------------------------------------------------------


def _recorded(root: Path, version: str) -> tuple[tuple[SlurmNode, ...], list[tuple[SlurmJob, ...]]]:
    folder, notices = root / version, Notices()
    name = "idle.sinfo.json" if version.startswith("22") else "idle.scontrol-node.json"
    nodes = read_nodes((folder / name).read_bytes(), notices)
    queues = []
    for path in sorted(folder.glob("*.squeue.json")):
        try:
            queues.append(read_jobs(path.read_bytes(), notices))
        except SlurmError:  # an answer that is none
            continue
    return nodes, sorted(queues, key=_taken_at)


def _taken_at(queue: tuple[SlurmJob, ...]) -> float:
    """The last that had happened."""
    times = ((job.submitted_at, job.started_at, job.ended_at) for job in queue)
    return max((at for some in times for at in some if at is not None), default=0.0)


ROOTS = [CARRIED, *([Path(WHOLE) / "slurm"] if WHOLE else [])]


def _agrees(here: State, there: State | None) -> bool:
    """Where a job stands here, and in Slurm. What is being cleaned up is where it was."""
    return there in (None, State.STOPPING) or here is there


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
@pytest.mark.parametrize("version", VERSIONS)
def test_after_two_real_answers_in_the_order_of_time_states_agree_and_nothing_is_given_twice(
    root: Path, version: str
) -> None:
    nodes, queues = _recorded(root, version)
    assert len(queues) > 3
    notices = Notices()
    for first, second in itertools.combinations_with_replacement(queues, 2):
        w = Watched(nodes)
        w.look(first, LATE)
        w.look(second, LATE + 1)
        w.look(second, LATE + 1 + PATIENCE_SECONDS)  # what is gone by then, is
        assert w.is_within_what_there_is()
        for record in second:
            one = f"s{record.id}"
            if record.array_id is None and record.het_id is None and one in w.fold.records:
                there = job_standing(record, notices).state
                assert _agrees(w.state(one), there), (one, record.states)


@given(st.data())
def test_whatever_slurm_shows_from_look_to_look_the_fold_takes_it(data: st.DataObject) -> None:
    """Any states in any order, jobs that vanish and come back: no fact is one that can't be."""
    w = world()
    states = st.sampled_from(
        (
            *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "ODD"),
            *("PENDING COMPLETING", "COMPLETED COMPLETING", "RUNNING CONFIGURING", "PENDING SPECIAL_EXIT"),
        )
    )
    restarts = [0, 0, 0]
    for at in range(200, 200 + 100 * data.draw(st.integers(1, 6)), 100):
        jobs = []
        for number in range(3):
            if data.draw(st.booleans()):
                restarts[number] += data.draw(st.integers(0, 1))
                seats = (SlurmSeat(f"n{number}", 4, 1 << 30, data.draw(st.sampled_from([None, ()]))),)
                jobs.append(
                    again(
                        RUNS,
                        id=number + 1,
                        states=tuple(data.draw(states).split()),
                        nodes=f"n{number}",
                        seats=seats,
                        start_at=float(at - data.draw(st.integers(0, 150))),
                        end_at=float(at - data.draw(st.integers(0, 90))),
                        restarts=restarts[number],
                    )
                )
        w.look(tuple(jobs), float(at), data.draw(st.sampled_from([(), None])))
        assert w.is_within_what_there_is()
