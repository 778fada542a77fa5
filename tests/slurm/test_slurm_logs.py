"""Logs on a real Slurm stay within their bounds, and nothing else changes by it."""

import pytest
from msgspec.structs import replace
from slurm_bench import SlurmLab, until

from muster.engines.local.logs import full_notice
from muster.model.events import Outcome
from muster.model.job import Job
from muster.model.plan import Stop

MOST = 200_000
FLOODS = "i=0; while [ $i -lt {lines} ]; do echo line $i of a program that says too much; i=$((i + 1)); done"


def bounded(lab: SlurmLab, script: str, parts: int = 1) -> Job:
    job = lab.job("a", script, parts=parts)
    assert job.run is not None
    job = lab.jobs["a"] = replace(job, run=replace(job.run, log_bytes=MOST))
    return job


def test_a_log_is_cut_back_says_so_and_the_exit_code_stays(lab: SlurmLab) -> None:
    job = bounded(lab, f"{FLOODS.format(lines=20_000)}; exit 5")
    lab.start(job)
    assert lab.exited(job).exit_code == 5
    text = lab.log(job)
    assert text.startswith("line 0 of")
    assert text.endswith(full_notice(MOST))
    assert len(text) == MOST + len(full_notice(MOST))


def test_it_is_cut_while_the_job_runs_and_nobody_follows_it(lab: SlurmLab) -> None:
    job = bounded(lab, f"{FLOODS.format(lines=20_000)}; sleep 100")
    lab.start(job)
    lab.started(job)
    lab.engine.close()
    until(lambda: full_notice(MOST) in lab.log(job), "the log to be cut")
    assert len(lab.log(job)) < 2 * MOST
    lab.engine = lab.make()


def test_the_logs_of_all_parts_of_a_gang_are_bounded(lab: SlurmLab) -> None:
    job = bounded(lab, f"{FLOODS.format(lines=20_000)}; sleep 4", parts=2)
    lab.start(job, "node1", "node2")
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    for rank in range(2):
        assert full_notice(MOST) in lab.log(job, part=f".{rank}")
        assert len(lab.log(job, part=f".{rank}")) < 2 * MOST


@pytest.mark.parametrize("parts", [1, 2])
def test_the_last_lines_of_who_is_killed_are_there(lab: SlurmLab, parts: int) -> None:
    job = bounded(lab, "trap 'echo last words' TERM; echo ready; while :; do sleep 0.2; done", parts)
    lab.start(job)
    lab.started(job)
    suffixes = [""] if parts == 1 else [".0", ".1"]
    until(lambda: all("ready" in lab.log(job, part=each) for each in suffixes), "the program")
    lab.engine.act(Stop("a", 1, "asked"))
    assert lab.exited(job).outcome is Outcome.STOPPED
    assert all("last words" in lab.log(job, part=each) for each in suffixes)
