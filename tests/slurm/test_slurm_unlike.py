"""Gangs of unlike parts on a real Slurm: heterogeneous jobs, that are one attempt."""

import pytest
from msgspec.structs import replace
from slurm_bench import SlurmLab, until
from slurm_cluster import Cluster

from muster.engines.slurm.settings import SlurmSettings
from muster.model.events import Exited, Outcome, Resumed, Seat, Seated, Started, Suspended
from muster.model.job import Gang, Job, Part, Shape, Together
from muster.model.plan import Evict, Limit, Resume, Start, Stop, Suspend
from muster.model.run import Run
from muster.model.units import MIB

DRIVER = Shape(cpus_milli=2000, memory_bytes=200 * MIB)
WORKER = Shape(cpus_milli=1000, memory_bytes=100 * MIB, gpus=1)
UNLIKE = Gang((Part(DRIVER), Part(WORKER, 2)))


def unlike(lab: SlurmLab, name: str, script: str, gang: Gang = UNLIKE, **more: object) -> Job:
    job = lab.jobs[name] = replace(lab.job(name, script, **more), gang=gang)
    return job


def listed(lab: SlurmLab, *more: str) -> list[str]:
    """Numbers in Slurm's queue."""
    return lab.cluster.ask("squeue", "-h", "-o", "%A", *more).split()


def test_unlike_parts_have_their_ranks_sizes_and_devices(lab: SlurmLab) -> None:
    said = (
        "echo $RANK/$WORLD_SIZE $NODE_RANK.$LOCAL_RANK on $SLURMD_NODENAME sees ${CUDA_VISIBLE_DEVICES-none}"
    )
    job = unlike(lab, "a", f"{said}; echo $MUSTER_JOB_ID.$MUSTER_ATTEMPT $MASTER_ADDR:$MASTER_PORT; sleep 2")
    lab.start(job)
    seats = lab.wait(Seated, job).seats
    assert [seat.shape for seat in seats] == [DRIVER, WORKER, WORKER]
    assert [len(seat.devices) for seat in seats] == [0, 1, 1]
    assert seats[1].node == seats[2].node != seats[0].node
    assert seats[1].devices != seats[2].devices
    assert len(lab.engine.numbers([("a", 1)])["a", 1]) == 2
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    texts = [lab.log(job, part=f".{rank}").splitlines() for rank in range(3)]
    assert [text[0] for text in texts] == [
        f"0/3 0.0 on {seats[0].node} sees none",
        f"1/3 1.0 on {seats[1].node} sees 0",
        f"2/3 1.1 on {seats[2].node} sees 0",
    ]
    assert len({text[1] for text in texts}) == 1
    assert texts[0][1].startswith("a.1 ")


@pytest.mark.parametrize("gang", [UNLIKE, Gang((Part(DRIVER, 2),))])
def test_a_program_may_be_given_a_colon(lab: SlurmLab, gang: Gang) -> None:
    run = Run(argv=("sh", "-c", 'echo "$@"', "name", "a b", ":", "it's"), cwd="/")
    job = unlike(lab, "a", "", gang, run=run)
    lab.start(job)
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    assert {lab.log(job, part=f".{rank}") for rank in range(gang.size)} == {"a b : it's\n"}


@pytest.mark.parametrize("rank", [0, 2])
def test_a_part_that_fails_ends_all_with_its_own_code(lab: SlurmLab, rank: int) -> None:
    job = unlike(lab, "a", f"test $RANK = {rank} && exit 7; sleep 100")
    lab.start(job)
    exited = lab.exited(job)
    assert (exited.outcome, exited.exit_code, exited.signal) == (Outcome.FAILED, 7, None)
    until(lambda: not listed(lab), "all components to be gone")


def test_a_stop_asks_every_part_and_ends_all(lab: SlurmLab) -> None:
    job = unlike(lab, "a", "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    lab.start(job)
    lab.started(job)
    until(lambda: all("ready" in lab.log(job, part=f".{rank}") for rank in range(3)), "the parts")
    lab.engine.act(Stop("a", 1, "asked"))
    assert lab.exited(job).outcome is Outcome.STOPPED
    assert all("asked" in lab.log(job, part=f".{rank}") for rank in range(3))
    until(lambda: not listed(lab), "all components to be gone")


def test_an_eviction_ends_all_and_the_next_attempt_starts_anew(lab: SlurmLab) -> None:
    job = unlike(lab, "a", "test $MUSTER_ATTEMPT = 2 || sleep 100")
    lab.start(job)
    lab.started(job)
    lab.engine.act(Evict("a", 1, "priority"))
    assert lab.vacated(job).because == "priority"
    lab.engine.settle([("a", 1)])
    lab.start(job, attempt=2)
    assert lab.exited(job, 2).outcome is Outcome.SUCCEEDED


def test_suspending_resuming_and_another_limit_act_on_all(lab: SlurmLab) -> None:
    job = unlike(lab, "a", "sleep 8", time_limit_seconds=60.0)
    lab.start(job)
    lab.started(job)
    lab.jobs["a"] = replace(job, time_limit_seconds=600.0)
    lab.engine.act(Limit("a", 1, 600.0))
    until(lambda: lab.cluster.ask("squeue", "-h", "-o", "%l").split() == ["10:00"] * 2, "the limit")
    lab.engine.act(Suspend("a", 1))
    lab.wait(Suspended, job)
    assert set(lab.cluster.ask("squeue", "-h", "-o", "%T").split()) == {"SUSPENDED"}
    lab.engine.act(Resume("a", 1))
    lab.wait(Resumed, job)
    assert lab.exited(job).outcome is Outcome.SUCCEEDED


def test_a_lost_node_of_one_component_vacates_the_whole(lab: SlurmLab) -> None:
    job = unlike(lab, "a", "sleep 100")
    lab.start(job)
    lost = lab.wait(Seated, job).seats[2].node
    lab.started(job)
    lab.cluster.lose_node(lost)
    assert lab.vacated(job).because == "node lost"
    lab.cluster.start_node(lost)


def test_a_component_that_somebody_cancels_ends_the_whole(lab: SlurmLab) -> None:
    job = unlike(lab, "a", "sleep 100")
    lab.start(job)
    lab.started(job)
    lab.cluster.ask("scancel", str(max(lab.engine.numbers([("a", 1)])["a", 1])))
    assert lab.exited(job).outcome is not Outcome.SUCCEEDED
    until(lambda: not listed(lab), "all components to be gone")


def test_a_server_that_is_killed_in_between_finds_it_once(lab: SlurmLab) -> None:
    running = unlike(lab, "a", "sleep 100")
    ended = unlike(lab, "b", "sleep 3; test $RANK != 1 || exit 9; sleep 100")
    for job in (running, ended):
        lab.start(job)
        lab.started(job)
    numbers = lab.engine.numbers([("a", 1)])["a", 1]
    lab.engine.close()
    (lab.home.path / "slurm" / "records").unlink()  # killed before it had written down the numbers
    until(lambda: len(listed(lab)) == 2, "b to end")
    lab.facts, lab.engine = [], lab.make()
    for job in (running, ended):
        lab.start(job)  # as a server does that does not know how far it had come
    assert lab.exited(ended).exit_code == 9
    lab.started(running)
    assert lab.engine.numbers([("a", 1)])["a", 1] == numbers
    assert sorted(map(int, listed(lab))) == sorted(numbers)
    told = [type(fact) for fact in lab.facts if not isinstance(fact, Seated) and fact.job == "b"]  # type: ignore[attr-defined]
    assert told == [Started, Exited]


def test_in_place_each_component_gets_its_nodes(cluster: Cluster) -> None:
    lab = SlurmLab(cluster, SlurmSettings(mode="place", soon_seconds=20.0))
    try:
        apart, together = (unlike(lab, name, "sleep 3") for name in "ab")
        seats = (Seat("node4", DRIVER), Seat("node3", WORKER, (0,), 1000), Seat("node2", WORKER, (3,), 1000))
        lab.engine.act(Start("a", 1, seats))
        assert lab.seats(apart) == ["node4", "node2", "node3"]
        shared = (Seat("node1", DRIVER), *(Seat("node1", WORKER, (n,), 1000) for n in range(2)))
        lab.engine.act(Start("b", 1, shared))
        assert lab.seats(together)[0] == "node1"
        assert lab.exited(together).outcome is Outcome.SUCCEEDED
    finally:
        lab.close()


def test_what_slurm_cant_promise_of_unlike_parts_is_refused_with_a_sentence(lab: SlurmLab) -> None:
    near = unlike(lab, "a", "true", Gang(UNLIKE.parts, Together.NODE))
    assert "on one node" in (lab.engine.cant_run(near) or "")
    many = unlike(lab, "b", "true", Gang(tuple(Part(Shape(cpus_milli=1000 * n)) for n in range(1, 6))))
    assert "of which there are 4" in (lab.engine.cant_run(many) or "")
    assert lab.engine.cant_run(unlike(lab, "c", "true")) is None
