"""What Slurm runs under a number that had ended, on a real cluster: it is seen, and can be stopped."""

import os
from collections.abc import Iterator

import pytest
from slurm_cluster import Cluster
from test_adoption import sbatch, server, wait_for

from tests.servers import Server

_AGAIN = "[ $SLURM_RESTART_COUNT ] && sleep 600; sleep 3"


@pytest.fixture
def governing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SLURM_CONF", cluster.conf)
    with server() as made:
        yield made


def test_a_job_that_is_requeued_after_its_end_is_seen_and_can_be_stopped(
    cluster: Cluster, governing: Server
) -> None:
    number = sbatch(cluster, "--requeue", "--gres=gpu:1", script=_AGAIN)
    wait_for(governing, f"s{number}", "SUCCEEDED")
    cluster.ask("scontrol", "requeue", number)
    wait_for(governing, f"s{number}-2", "RUNNING")
    assert f"s{number}-2" in governing.muster("ps").stdout
    governing.kill()
    governing.start()
    wait_for(governing, f"s{number}-2", "RUNNING")
    with governing.client() as client:
        assert sum(node["held"]["gpus"] for node in client.nodes()) == 1
    done = governing.muster("stop", f"s{number}-2")
    assert done.returncode == os.EX_OK, done.stderr
    wait_for(governing, f"s{number}-2", "STOPPED")
    assert number not in cluster.ask("squeue", "-h", "-o", "%i")


def test_a_task_of_an_array_that_is_requeued_after_its_end_is_seen(
    cluster: Cluster, governing: Server
) -> None:
    number = sbatch(cluster, "--requeue", "--array=1-2", script=_AGAIN)
    for task in (1, 2):
        wait_for(governing, f"s{number}_{task}", "SUCCEEDED")
    cluster.ask("scontrol", "requeue", f"{number}_2")
    wait_for(governing, f"s{number}-2_2", "RUNNING")
    with governing.client() as client:
        assert client.job(f"s{number}-2")["counts"] == {"RUNNING": 1}
