"""Jobs through the engine on a real Slurm: how they run, what they find around them, and how they end."""

import signal
from pathlib import Path

from slurm_bench import SlurmLab, until
from slurm_cluster import Cluster

from muster.engines.slurm.settings import SlurmSettings
from muster.model.events import Outcome, Resumed, Seated, Suspended
from muster.model.job import ArrayPlace, Shape
from muster.model.plan import Evict, Limit, Resume, Stop, Suspend
from muster.model.run import Notice, Run
from muster.model.units import MIB


def test_a_job_runs_writes_its_log_and_tells_its_exit_code(lab: SlurmLab) -> None:
    job = lab.job("7", "echo $GREETING from $MUSTER_JOB_ID, attempt $MUSTER_ATTEMPT; exit 3")
    lab.start(job)
    exited = lab.exited(job)
    assert (exited.outcome, exited.exit_code, exited.signal) == (Outcome.FAILED, 3, None)
    assert lab.log(job) == "hello from 7, attempt 1\n"


def test_a_script_with_arguments_runs_in_its_folder_with_its_umask(lab: SlurmLab, tmp_path: Path) -> None:
    script = '#!/bin/bash\n#SBATCH --gres=gpu:99\necho "$1 $PWD $(umask)"\n'
    run = Run(argv=("a b",), script=script, cwd=str(tmp_path), umask=0o027, output="out-%j.txt")
    job = lab.job("7", "", run=run)
    lab.start(job)
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    assert lab.log(job) == f"a b {tmp_path} 0027\n"
    assert (tmp_path / "out-7.txt").read_text() == lab.log(job)


def test_a_job_that_dies_of_a_signal_says_which(lab: SlurmLab) -> None:
    job = lab.job("a", "kill -9 $$")
    lab.start(job)
    exited = lab.exited(job)
    assert (exited.outcome, exited.exit_code, exited.signal) == (Outcome.FAILED, None, signal.SIGKILL)


def test_a_command_that_is_not_there_is_127_as_on_one_machine(lab: SlurmLab) -> None:
    job = lab.job("a", "", run=Run(argv=("/no/such/thing",)))
    lab.start(job)
    assert lab.exited(job).exit_code == 127


def test_who_asks_for_gpus_sees_them_and_it_is_told_which(lab: SlurmLab) -> None:
    job = lab.job("a", "echo $CUDA_VISIBLE_DEVICES; sleep 3", shape=Shape(cpus_milli=1000, gpus=2))
    lab.start(job)
    (seat,) = lab.wait(Seated, job).seats
    assert seat.node in ("node1", "node2", "node3")
    assert len(set(seat.devices)) == 2
    lab.exited(job)
    assert lab.log(job).strip().count(",") == 1


def test_a_gang_over_two_nodes_has_its_ranks(lab: SlurmLab) -> None:
    said = "echo $RANK/$WORLD_SIZE on $SLURMD_NODENAME as $NODE_RANK.$LOCAL_RANK, $MASTER_ADDR:$MASTER_PORT"
    job = lab.job("a", said, parts=2)
    lab.start(job, "node1", "node2")
    assert lab.seats(job) == ["node1", "node2"]
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    logs = [lab.log(job, part=f".{rank}") for rank in range(2)]
    assert [text.split(",")[0] for text in logs] == ["0/2 on node1 as 0.0", "1/2 on node2 as 1.0"]
    assert len({text.split(",")[1] for text in logs}) == 1


def test_a_gang_whose_part_fails_fails_as_a_whole_with_its_code(lab: SlurmLab) -> None:
    job = lab.job("a", "test $RANK = 1 && exit 4; sleep 100", parts=2)
    lab.start(job)
    exited = lab.exited(job)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, 4)


def test_members_of_an_array_know_their_place(lab: SlurmLab) -> None:
    members = [
        lab.job(f"9_{i}", "echo $MUSTER_ARRAY_ID:$SLURM_ARRAY_TASK_ID", array=ArrayPlace("9", i))
        for i in (1, 2)
    ]
    for job in members:
        lab.start(job)
    for job in members:
        lab.exited(job)
    assert [lab.log(job) for job in members] == ["9:1\n", "9:2\n"]


def test_out_of_memory_is_told_as_that(lab: SlurmLab) -> None:
    hungry = "python3 -c 'x = bytearray(300 << 20); import time; time.sleep(20)'"
    job = lab.job("a", hungry, shape=Shape(cpus_milli=1000, memory_bytes=64 * MIB))
    lab.start(job)
    assert lab.exited(job).outcome is Outcome.OUT_OF_MEMORY


def test_who_reaches_the_time_limit_ends_in_time(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 100", time_limit_seconds=3.0)
    lab.start(job)
    began = lab.started(job).at
    exited = lab.exited(job)
    assert exited.outcome is Outcome.TIMEOUT
    assert exited.at - began < 20


def test_another_limit_counts_from_the_start(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 5", time_limit_seconds=3.0)
    lab.start(job)
    lab.jobs["a"] = lab.job("a", "sleep 5", time_limit_seconds=120.0)
    lab.engine.act(Limit("a", 1, 120.0))
    assert lab.exited(job).outcome is Outcome.SUCCEEDED


def test_a_warning_comes_before_an_eviction_and_saves_work(lab: SlurmLab) -> None:
    saves = (
        "import signal, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: (print('saved', flush=True), exit(0)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    run = Run(argv=("python3", "-c", saves), grace_seconds=5.0, notice=Notice(signal.SIGUSR1, 10.0))
    job = lab.job("a", "", run=run)
    lab.start(job)
    lab.started(job)
    until(lambda: "ready" in lab.log(job), "the program")
    lab.engine.act(Evict("a", 1, "priority"))
    assert lab.vacated(job).because == "priority"
    assert "saved" in lab.log(job)


def test_who_is_stopped_while_it_waits_in_slurm_never_starts(lab: SlurmLab) -> None:
    first, second = (
        lab.job(name, "sleep 100", shape=Shape(cpus_milli=16_000, memory_bytes=20_000 * MIB)) for name in "ab"
    )
    lab.start(first)
    lab.started(first)
    lab.start(second)
    until(lambda: "not free" in (lab.engine.waits_because("b") or ""), "b to wait for room in Slurm")
    lab.engine.act(Stop("b", 1, "asked"))
    assert lab.exited(second).outcome is Outcome.STOPPED
    assert not [fact for fact in lab.facts if isinstance(fact, Seated) and fact.job == "b"]


def test_a_job_is_suspended_and_resumed(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 6")
    lab.start(job)
    lab.started(job)
    lab.engine.act(Suspend("a", 1))
    lab.wait(Suspended, job)
    lab.engine.act(Resume("a", 1))
    lab.wait(Resumed, job)
    assert lab.exited(job).outcome is Outcome.SUCCEEDED


def test_what_slurm_does_not_take_fails_with_a_sentence_in_its_log(cluster: Cluster) -> None:
    lab = SlurmLab(cluster, SlurmSettings(partition="nowhere"))
    try:
        job = lab.job("a", "true")
        lab.start(job)
        assert lab.exited(job).outcome is Outcome.FAILED
        assert "partition" in lab.log(job)
    finally:
        lab.close()


def test_who_cant_start_where_it_was_placed_is_taken_back(cluster: Cluster) -> None:
    lab = SlurmLab(cluster, SlurmSettings(mode="place", soon_seconds=3.0))
    try:
        whole = Shape(cpus_milli=8000)
        first, second = lab.job("a", "sleep 60", shape=whole), lab.job("b", "sleep 1", shape=whole)
        lab.start(first, "node1")
        lab.started(first)
        lab.start(second, "node1")
        vacated = lab.vacated(second)
        assert vacated.because.startswith("Slurm has not started it there")
        assert vacated.lost_seconds == 0
        lab.start(second, "node2", attempt=2)
        assert lab.exited(second, 2).outcome is Outcome.SUCCEEDED
        assert lab.seats(second, 2) == ["node2"]
    finally:
        lab.close()
