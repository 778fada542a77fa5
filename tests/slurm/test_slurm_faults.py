"""What Slurm and the machine do to jobs, and what is told of it: preemption, lost nodes, lost answers."""

import os
import stat
import time
from pathlib import Path

import msgspec
import pytest
from slurm_bench import SlurmLab, until
from slurm_cluster import Cluster

from muster.engines.slurm.settings import SlurmSettings
from muster.model.events import Outcome, Vacated
from muster.model.job import Shape
from muster.model.plan import Stop

WHOLE = Shape(cpus_milli=8000)
GOVERN = SlurmSettings(mode="govern")


def number(lab: SlurmLab, job_id: str, attempt: int = 1) -> int:
    key = (job_id, attempt)
    until(lambda: key in lab.engine.numbers([key]), f"{key} to be handed over")
    return lab.engine.numbers([key])[key][0]


def marked(lab: SlurmLab) -> list[str]:
    """What Slurm has of this home, ended or not."""
    comments = lab.cluster.ask("squeue", "-h", "-t", "all", "-o", "%k").split()
    home = (lab.home.path / "slurm" / "id").read_text()
    return sorted(one.rpartition(":")[2] for one in comments if f":{home}:" in one)


def test_who_is_preempted_by_qos_waits_again_and_goes_on_in_its_next_attempt(cluster: Cluster) -> None:
    lab = SlurmLab(cluster, msgspec.structs.replace(GOVERN, qos="low"))
    try:
        job = lab.job("a", "sleep 4", shape=WHOLE)
        lab.start(job, "node1")
        lab.started(job)
        time.sleep(1.1)  # Slurm counts whole seconds
        urgent = cluster.ask(
            *("sbatch", "--parsable", "--qos=high", "-w", "node1", "-c", "8", "--output=/dev/null"),
            *("--wrap", "sleep 3"),
        )
        vacated = lab.vacated(job)
        assert vacated.because == "preempted by Slurm (its QOS is low)"
        assert 0 < vacated.lost_seconds <= vacated.at - lab.started(job).at
        lab.engine.settle([("a", 1)])
        lab.start(job, "node1", attempt=2)
        assert lab.exited(job, 2).outcome is Outcome.SUCCEEDED
        assert int(urgent) not in lab.engine.numbers([("a", 2)]).get(("a", 2), ())
    finally:
        lab.close()


def test_what_an_operator_requeues_is_vacated_and_not_run_twice(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 60")
    lab.start(job)
    lab.started(job)
    slurm_id = number(lab, "a")
    lab.cluster.ask("scontrol", "update", f"JobId={slurm_id}", "Requeue=1")
    lab.cluster.ask("scontrol", "requeue", f"{slurm_id}")
    assert lab.vacated(job).because == "requeued by Slurm"
    until(lambda: not lab.cluster.ask("squeue", "-h"), "what waits under the number to be cancelled")


def test_what_somebody_cancels_in_slurm_was_stopped(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 60")
    lab.start(job)
    lab.started(job)
    lab.cluster.ask("scancel", f"{number(lab, 'a')}")
    assert lab.exited(job).outcome is Outcome.STOPPED


def test_a_slurmd_that_is_killed_is_noticed_and_its_job_can_go_elsewhere(lab: SlurmLab) -> None:
    job = lab.job("a", "sleep 60")
    lab.start(job, "node2")
    lab.started(job)
    lab.cluster.kill_node("node2")  # and nobody tells the controller
    assert lab.vacated(job).because == "node lost"
    lab.start(job, "node1", attempt=2)
    lab.started(job, 2)
    lab.cluster.start_node("node2")


def test_an_engine_that_is_made_anew_finds_what_runs_and_what_has_ended(lab: SlurmLab) -> None:
    long, short, stopped = lab.job("a", "sleep 60"), lab.job("b", "sleep 3; exit 7"), lab.job("c", "sleep 60")
    for job in (long, short, stopped):
        lab.start(job)
        lab.started(job)
    lab.engine.act(Stop("c", 1, "asked"))
    lab.engine.close()
    until(lambda: lab.cluster.ask("squeue", "-h", "-o", "%k").count("\n") <= 2, "b to end")
    lab.facts, lab.engine = [], lab.make()
    assert lab.engine.running() == {("a", 1), ("b", 1), ("c", 1)}
    lab.start(long)  # as the server does for what was starting: twice does no harm
    assert lab.exited(short).exit_code == 7
    assert lab.exited(stopped).outcome is Outcome.STOPPED
    lab.started(long)
    assert marked(lab) == ["a.1", "b.1", "c.1"]


def test_an_answer_that_is_lost_is_looked_up_and_nothing_is_handed_over_twice(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put_first(tmp_path, monkeypatch, 'out=$(/usr/bin/sbatch "$@"); sleep 4; echo "$out"')
    lab = SlurmLab(cluster, GOVERN, limit_seconds=2.0)
    try:
        jobs = [lab.job(name, "sleep 1") for name in "abc"]
        for job in jobs:
            lab.start(job)
        for job in jobs:
            assert lab.exited(job).outcome is Outcome.SUCCEEDED
        assert marked(lab) == ["a.1", "b.1", "c.1"]
    finally:
        lab.close()


def test_what_was_never_taken_is_tried_again_until_it_is(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = tmp_path / "failed"
    away = f'[ -e {failed} ] || {{ touch {failed}; echo "Unable to contact slurm controller" >&2; exit 1; }}'
    _put_first(tmp_path, monkeypatch, f'{away}\nexec /usr/bin/sbatch "$@"')
    lab = SlurmLab(cluster, GOVERN)
    try:
        job = lab.job("a", "true")
        lab.start(job)
        assert lab.exited(job).outcome is Outcome.SUCCEEDED
        assert failed.exists()
        assert marked(lab) == ["a.1"]
    finally:
        lab.close()


def test_a_second_job_under_one_mark_is_cancelled_and_has_done_nothing(lab: SlurmLab) -> None:
    job = lab.job("a", "echo once; sleep 5")
    lab.start(job)
    lab.started(job)
    comment = lab.cluster.ask("squeue", "-h", "-j", f"{number(lab, 'a')}", "-o", "%k").strip()
    lab.cluster.ask("sbatch", f"--comment={comment}", "--hold", "--output=/dev/null", "--wrap", "sleep 60")
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    until(lambda: not lab.cluster.ask("squeue", "-h"), "the second to be cancelled")
    assert lab.log(job) == "once\n"
    assert not [fact for fact in lab.facts if isinstance(fact, Vacated)]


def test_a_mark_that_somebody_else_writes_is_not_ours(lab: SlurmLab) -> None:
    home = (lab.home.path / "slurm" / "id").read_text()
    forged = ("--uid=games", f"--comment=muster:{home}:a.1", "--output=/dev/null", "--wrap", "sleep 30")
    lab.cluster.ask("sbatch", *forged)
    job = lab.job("a", "exit 9")
    lab.start(job)
    assert lab.exited(job).exit_code == 9


def _put_first(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An sbatch of our own before Slurm's."""
    path = folder / "sbatch"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
