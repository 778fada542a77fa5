"""Gangs of unlike parts: which components they are to Slurm, and what its records of those say together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from slurm_world import again

from muster.engines.slurm.answers import Exit, Gpus, SlurmAttempt, SlurmJob, SlurmSeat, Tres
from muster.engines.slurm.components import components_of, why_no_shape
from muster.engines.slurm.folding import folded_attempts, folded_jobs
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.seating import seats_of
from muster.engines.slurm.states import attempt_standing, job_standing
from muster.model.events import Outcome, Seat
from muster.model.job import Gang, Job, Part, Shape, Together
from muster.model.state import State

LARGE, SMALL = Shape(cpus_milli=2500), Shape(cpus_milli=1000, gpus=1)
GANG = Gang((Part(LARGE), Part(SMALL), Part(SMALL, 2), Part(LARGE)))
shapes = st.sampled_from((LARGE, SMALL, Shape(cpus_milli=8000)))
gangs = st.lists(st.builds(Part, shapes, st.integers(1, 3)), min_size=1, max_size=6).map(
    lambda parts: Gang(tuple(parts))
)


def job(gang: Gang) -> Job:
    return Job("a", gang, 0.0)


def record(number: int, offset: int, state: str = "RUNNING", **more: object) -> SlurmJob:
    base = SlurmJob(number, (state,), het_id=30, het_offset=offset, nodes=f"n{offset}", start_at=10.0)
    return again(base, **more)


def test_like_parts_that_follow_each_other_are_one_component() -> None:
    assert [(one.shape, one.count, one.cpus) for one in components_of(GANG)] == [
        (LARGE, 1, 3),
        (SMALL, 3, 1),
        (LARGE, 1, 3),
    ]


@given(gangs)
def test_components_keep_every_part_in_its_rank(gang: Gang) -> None:
    ranks = [part.shape for part in gang.parts for _ in range(part.count)]
    found = components_of(gang)
    assert [one.shape for one in found for _ in range(one.count)] == ranks
    assert all(one.shape != other.shape for one, other in pairwise(found))


@given(gangs, st.data())
def test_no_two_components_are_given_one_node(gang: Gang, data: st.DataObject) -> None:
    names = st.sampled_from(("n1", "n2", "n3", "n4"))
    seats = [Seat(data.draw(names), part.shape) for part in gang.parts for _ in range(part.count)]
    found = components_of(gang, seats)
    nodes = [{seat.node for seat in one.seats} for one in found]
    assert sum(map(len, nodes)) == len(set().union(*nodes))
    assert found[0].seats
    assert all(len(one.seats) in (0, one.count) for one in found)


def test_what_slurm_cant_do_is_said() -> None:
    def why(gang: Gang, nodes: int = 9, *, places: bool = False) -> str | None:
        return why_no_shape(job(gang), nodes, places=places)

    assert why(GANG) is None
    assert why(GANG, 0) is None  # nobody knows the nodes yet
    assert "there are 2 here" in (why(GANG, 2) or "")
    assert "one node" in (why(Gang(GANG.parts, Together.NODE), places=True) or "")
    assert "one rack" in (why(Gang(GANG.parts, Together.RACK)) or "")
    assert why(Gang(GANG.parts, Together.RACK), places=True) is None
    assert "128 at most" in (why(Gang((Part(LARGE), Part(SMALL)) * 65), 999) or "")
    assert "share of a GPU" in (why(Gang((Part(LARGE), Part(Shape(gpus=1, gpu_milli=500))))) or "")


def test_it_runs_when_all_run_and_each_part_has_its_seat() -> None:
    lead = record(30, 0, seats=(SlurmSeat("n0", 3, 0, ()),))
    workers = record(
        31,
        1,
        seats=(SlurmSeat("n1", 2, 0, (Gpus("", 2, (1, 3)),)), SlurmSeat("n2", 1, 0, (Gpus("", 1, (0,)),))),
    )
    (found,) = folded_jobs((workers, lead))
    assert (found.id, found.states) == (30, ("RUNNING",))
    gang = Gang((Part(LARGE), Part(SMALL, 3)))
    assert seats_of(job(gang), found, ()) == (
        Seat("n0", LARGE),
        Seat("n1", SMALL, (1,), 1000),
        Seat("n1", SMALL, (3,), 1000),
        Seat("n2", SMALL, (0,), 1000),
    )
    assert seats_of(job(GANG), found, ()) is None  # three components, of which two are told
    (half,) = folded_jobs((lead, again(workers, states=("PENDING",), nodes="")))
    assert not half.begun
    assert job_standing(half, Notices()).state is State.QUEUED


def test_it_is_over_when_all_are_as_the_one_that_explains_it() -> None:
    lead = record(30, 0, "FAILED", exit=Exit(7), end_at=50.0)
    (going,) = folded_jobs((lead, record(31, 1, "RUNNING")))
    assert job_standing(going, Notices()).state is State.RUNNING
    lost = record(31, 1, "NODE_FAIL", exit=Exit(), end_at=60.0)
    (over,) = folded_jobs((lead, lost))
    assert job_standing(over, Notices()).outcome is Outcome.NODE_LOST
    assert (over.exit, over.end_at) == (Exit(7), 60.0)


def test_accounting_tells_each_try_of_all_components_as_one() -> None:
    def tried(number: int, offset: int, state: str, submitted: float, **more: object) -> SlurmAttempt:
        return SlurmAttempt(
            number,
            (state,),
            het_id=30,
            het_offset=offset,
            submitted_at=submitted,
            **more,  # type: ignore[arg-type]
        )

    other = SlurmAttempt(9, ("COMPLETED",), given=Tres())
    found = folded_attempts(
        (
            tried(31, 1, "CANCELLED", 20.0, ended_at=40.0),
            tried(30, 0, "PREEMPTED", 10.0, exit=Exit(0, 15)),
            other,
            tried(31, 1, "PREEMPTED", 10.0),
            tried(30, 0, "FAILED", 20.0, exit=Exit(5), ended_at=30.0),
        )
    )
    assert [one.job for one in found] == [9, 30, 30]
    first, second = found[1:]
    assert attempt_standing(first, Notices()).vacated
    assert attempt_standing(second, Notices()).outcome is Outcome.FAILED
    assert (second.exit, second.ended_at) == (Exit(5), 40.0)
