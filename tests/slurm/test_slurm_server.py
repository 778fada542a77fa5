"""Muster as people run it, on a real Slurm: submit, see, stop; and whatever is killed meanwhile."""

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from slurm_bench import until
from slurm_cluster import ORDINARY, Cluster
from slurm_server import SlurmServer

MANY, KILLS = 200, 6


@pytest.fixture
def server(cluster: Cluster) -> Iterator[SlurmServer]:
    with SlurmServer(cluster) as server:
        yield server


def test_a_job_goes_through_slurm_and_is_seen_as_on_one_machine(server: SlurmServer) -> None:
    job = server.sh("echo out of $SLURMD_NODENAME; sleep 2; exit 3", name="train")
    with server.client() as client:
        ended = client.wait(job["id"], 60)
        assert (ended["state"], ended["outcome"], ended["exit_code"]) == ("ENDED", "FAILED", 3)
        assert ended["nodes"][0].startswith("node")
        assert b"".join(client.logs(job["id"])).startswith(b"out of node")


def test_arrays_and_dependencies_are_musters_own(server: SlurmServer) -> None:
    with server.client() as client:
        array = client.submit(["sh", "-c", "exit $((MUSTER_ARRAY_INDEX - 1))"], array="1-3")
        after = client.submit(["true"], after_any=[array["id"]])
        ended = client.wait(after["id"], 60)
        assert ended["outcome"] == "SUCCEEDED"
        members = Counter(client.job(f"{array['id']}_{index}")["outcome"] for index in (1, 2, 3))
        assert members == {"SUCCEEDED": 1, "FAILED": 2}


def test_who_is_killed_in_the_middle_of_many_submissions_loses_and_doubles_none(
    server: SlurmServer, cluster: Cluster
) -> None:
    luck = random.Random(7)
    ids: list[str] = []
    kills = sorted(luck.sample(range(5, MANY - 5), KILLS))
    for number in range(MANY):
        if kills and number == kills[0]:
            kills.pop(0)
            time.sleep(luck.uniform(0.0, 0.5))
            server.kill()
            server.start()
        ids.append(server.sh("true", name="many")["id"])
    with server.client() as client:
        until(lambda: not client.jobs(), "all to end", 300)
        outcomes = Counter(client.job(one)["outcome"] for one in ids)
    assert outcomes == {"SUCCEEDED": MANY}
    handed_over = _handed_over(cluster, server)
    assert set(handed_over.values()) == {1}
    assert {mark.partition(".")[0] for mark in handed_over} == set(ids)
    done = [mark.partition(".")[0] for mark in _handed_over(cluster, server, "COMPLETED")]
    assert sorted(done) == sorted(ids)


def _handed_over(cluster: Cluster, server: SlurmServer, states: str = "all") -> Counter[str]:
    """Attempts as Slurm has them, by mark."""
    mark = f"muster:{(server.home.path / 'slurm' / 'id').read_text()}:"
    until(lambda: not cluster.ask("squeue", "-h"), "Slurm's queue to be empty")
    names = cluster.ask("squeue", "-h", "-t", states, "-o", "%k").split()
    return Counter(name.removeprefix(mark) for name in names if name.startswith(mark))


def test_a_controller_that_is_away_slows_nothing_and_loses_nothing(
    server: SlurmServer, cluster: Cluster
) -> None:
    running = server.sh("sleep 18; exit 5")
    with server.client() as client:
        until(lambda: client.job(running["id"])["state"] == "RUNNING", "it to run")
        time.sleep(8)  # the controller writes down what it knows every five seconds
        cluster.kill_controller()
        try:
            begun = time.monotonic()
            waiting = [server.sh("exit 0") for _ in range(5)]
            assert client.job(running["id"])["state"] == "RUNNING"
            assert time.monotonic() - begun < 5
            time.sleep(3)
        finally:
            cluster.start_controller()
        assert client.wait(running["id"], 90)["exit_code"] == 5
        for job in waiting:
            assert client.wait(job["id"], 90)["outcome"] == "SUCCEEDED"
    assert set(_handed_over(cluster, server).values()) == {1}


def test_two_musters_at_once_keep_to_their_own(server: SlurmServer, cluster: Cluster) -> None:
    with SlurmServer(cluster, user=ORDINARY[0]) as other:
        ours = [server.sh(f"exit {code}") for code in (0, 1)]
        theirs = [other.sh_as_owner(f"exit {code}") for code in (2, 3)]
        for one, jobs, codes in ((server, ours, (0, 1)), (other, theirs, (2, 3))):
            with one.client() as client:
                assert [client.wait(job["id"], 60)["exit_code"] for job in jobs] == list(codes)


def test_an_ordinary_user_runs_stops_and_sees_their_own_jobs(cluster: Cluster) -> None:
    with SlurmServer(cluster, user=ORDINARY[0]) as server:
        job, long = server.sh_as_owner("id -un"), server.sh_as_owner("sleep 300")
        with server.client() as client:
            assert client.wait(job["id"], 60)["outcome"] == "SUCCEEDED"
            assert b"".join(client.logs(job["id"])).decode().strip() == ORDINARY[0]
            until(lambda: client.job(long["id"])["state"] == "RUNNING", "it to run")
            client.stop(long["id"])
            assert client.wait(long["id"], 60)["outcome"] == "STOPPED"


def test_in_place_muster_says_where(cluster: Cluster) -> None:
    with SlurmServer(cluster, mode="place") as server, server.client() as client:
        jobs = [server.sh("echo $CUDA_VISIBLE_DEVICES; sleep 3", gpus=2) for _ in range(4)]
        ended = [client.wait(job["id"], 60) for job in jobs]
        assert {job["outcome"] for job in ended} == {"SUCCEEDED"}
