"""Charters, quotas and budgets over Slurm's jobs, ours and those of others, through a real server."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from slurm_bench import until
from slurm_cluster import ORDINARY, Cluster
from slurm_server import SlurmServer

from muster.client import Client, Refused
from visitor import Visitor

TEAMS = """
[team.vision]
quota = {gpus = 2}
borrow = false
[team.language]
quota = {gpus = 2}
borrow = false
"""
REPORTS = """
import itertools, json, time
for step in itertools.count():
    print(json.dumps({"acc": 0.3, "step": step}), flush=True)
    time.sleep(0.2)
"""
SAVES = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print("saved", flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


@pytest.fixture
def server(cluster: Cluster) -> Iterator[SlurmServer]:
    with SlurmServer(cluster) as server:
        yield server


@pytest.fixture
def client(server: SlurmServer) -> Iterator[Client]:
    with server.client() as client:
        yield client


def sbatch(cluster: Cluster, *options: str, user: str = "root") -> str:
    """What somebody submits without Muster; its id there."""
    words = ["runuser", "-u", user, "--", "sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp"]
    done = subprocess.run(
        [*words, *options],
        input="#!/bin/sh\nexec sleep 600\n",
        env=cluster.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def is_in(client: Client, job: str, *states: str) -> None:
    def state() -> str:
        found = [view for view in client.jobs(all=True) if view["id"] == job]
        return str(found[0]["outcome"] or found[0]["state"]) if found else "not seen"

    until(lambda: state() in states, f"{job} to be {states}")


def queue(cluster: Cluster) -> list[str]:
    return cluster.ask("squeue", "-h", "-t", "PENDING,RUNNING", "-o", "%i").split()


# --- Quotas ----------------------------------------------------------------------------------------


def test_what_is_over_its_teams_quota_is_held_here_and_released_when_there_is_room(cluster: Cluster) -> None:
    with SlurmServer(cluster, more=TEAMS) as server, server.client() as client:
        first = server.sh("sleep 5", gpus=2, team="vision")["id"]
        second = server.sh("sleep 600", gpus=2, team="vision")["id"]
        other = server.sh("sleep 600", gpus=2, team="language")["id"]
        is_in(client, first, "RUNNING")
        is_in(client, other, "RUNNING")
        waiting = client.job(second)
        assert (waiting["state"], "quota" in waiting["reason"]) == ("QUEUED", True), waiting["reason"]
        assert len(queue(cluster)) == 2
        is_in(client, first, "SUCCEEDED")
        is_in(client, second, "RUNNING")


# --- Jobs of others beside ours ---------------------------------------------------------------------


def test_ours_are_seen_once_and_those_of_others_beside_them(
    cluster: Cluster, server: SlurmServer, client: Client
) -> None:
    theirs = sbatch(cluster, "--gres=gpu:1", user=ORDINARY[0])
    ours = server.sh("sleep 600", gpus=1)["id"]
    is_in(client, f"s{theirs}", "RUNNING")
    is_in(client, ours, "RUNNING")
    assert sorted(view["id"] for view in client.jobs()) == sorted((ours, f"s{theirs}"))
    assert sum(node["held"]["gpus"] for node in client.nodes()) == 2
    client.stop(ours)
    is_in(client, ours, "STOPPED")
    server.kill()
    server.start()
    with server.client() as again:
        is_in(again, f"s{theirs}", "RUNNING")
        is_in(again, ours, "STOPPED")
        assert [view["id"] for view in again.jobs()] == [f"s{theirs}"]


def test_what_was_handed_over_and_waits_says_slurms_reason(
    cluster: Cluster, server: SlurmServer, client: Client
) -> None:
    for _ in range(3):
        sbatch(cluster, "--gres=gpu:4", "--exclusive", "--mem=0", "-p", "gpu")
    until(lambda: cluster.ask("squeue", "-h", "-t", "RUNNING").count("\n") == 3, "the GPUs to be taken")
    job = server.sh("true", gpus=4)["id"]
    until(lambda: "waits in Slurm" in (client.job(job)["reason"] or ""), "Slurm to say why")
    said = server.muster("why", job).stdout
    assert said.startswith("Waits in Slurm: "), said
    assert "it starts by itself" in said
    page = Visitor(server).get("/queue").words
    assert "1 job is in the queue: 1 waits in the cluster's queue." in page
    assert "it starts by itself" in page
    assert "3 run, 1 wait" in server.muster("top", "--once").stdout
    assert (client.health()["running"], client.health()["waiting"]) == (3, 1)


def test_in_place_what_others_hold_is_taken(cluster: Cluster) -> None:
    taken = [sbatch(cluster, "--gres=gpu:4", "-p", "gpu") for _ in range(3)]
    with SlurmServer(cluster, mode="place") as server, server.client() as client:
        for job in taken:
            is_in(client, f"s{job}", "RUNNING")
        job = server.sh("true", gpus=1)["id"]
        until(lambda: client.job(job)["reason"] != "was submitted just now", "a reason")
        assert client.job(job)["state"] == "QUEUED"
        assert sorted(queue(cluster)) == sorted(taken)
        cluster.ask("scancel", taken[0])
        is_in(client, job, "SUCCEEDED")


def test_an_ordinary_user_sees_everybodys_jobs_and_reaches_their_own(cluster: Cluster) -> None:
    mine, other = sbatch(cluster, user=ORDINARY[0]), sbatch(cluster, user=ORDINARY[1])
    with SlurmServer(cluster, user=ORDINARY[0]) as server, server.client() as client:
        is_in(client, f"s{mine}", "RUNNING")
        is_in(client, f"s{other}", "RUNNING")
        refused = server.as_owner("stop", f"s{other}")
        assert "who is no operator there" in refused.stderr
        assert refused.stderr.count("\n") == 1
        refused = server.as_owner("node", "drain", "node1", "--because", "fan")
        assert "who is no operator of Slurm, so it can't drain nodes" in refused.stderr
        done = server.as_owner("stop", f"s{mine}")
        assert done.returncode == 0, done.stderr
        is_in(client, f"s{mine}", "STOPPED")
    assert queue(cluster) == [other]


def test_two_musters_of_two_users_see_each_other_as_others(cluster: Cluster, server: SlurmServer) -> None:
    with SlurmServer(cluster, user=ORDINARY[0]) as other, server.client() as mine, other.client() as theirs:
        ours, job = server.sh("sleep 600")["id"], other.sh_as_owner("sleep 600")["id"]
        is_in(mine, ours, "RUNNING")
        is_in(theirs, job, "RUNNING")
        for client in (mine, theirs):
            until(lambda client=client: len(client.jobs()) == 2, "both to be seen")  # type: ignore[misc]
            assert sorted(view["adopted"] or "" for view in client.jobs()) == ["", "slurm"]
        (seen,) = [view for view in mine.jobs() if view["adopted"]]
        assert seen["owner"] == ORDINARY[0]
        mine.stop(seen["id"], because="it is the operator's right")
        is_in(theirs, job, "STOPPED")


def test_who_only_observes_from_now_on_leaves_ours_alone_and_follows_them(
    cluster: Cluster, server: SlurmServer, client: Client
) -> None:
    job = server.sh("sleep 600")["id"]
    is_in(client, job, "RUNNING")
    server.terminate()
    server.options = ("--observe",)
    server.start()
    with server.client() as observing:
        with pytest.raises(Refused, match="only observes"):
            observing.stop(job)
        assert len(queue(cluster)) == 1
        assert [view["id"] for view in observing.jobs()] == [job]
        cluster.ask("scancel", *queue(cluster))
        is_in(observing, job, "STOPPED")


def test_what_slurm_measures_is_used(cluster: Cluster, server: SlurmServer, client: Client) -> None:
    theirs = sbatch(cluster, user=ORDINARY[0])
    ours = server.sh("while :; do :; done")["id"]
    for job in (ours, f"s{theirs}"):
        is_in(client, job, "RUNNING")
        until(lambda job=job: client.job(job)["used"], f"{job} to be measured")  # type: ignore[misc]
    until(lambda: client.job(ours)["used"]["cpus"] > 0.2, "its cpu time to be seen")


def test_who_was_too_short_to_be_measured_is_known_from_accounting(
    cluster: Cluster, server: SlurmServer, client: Client
) -> None:
    burns = "exec python3 -c 'import time\nwhile time.process_time() < 1: pass'"
    ours = server.sh(burns)["id"]
    theirs = f"s{sbatch(cluster, '--wrap', burns)}"
    for job in (ours, theirs):
        is_in(client, job, "SUCCEEDED")
        used = client.use(by="job", since="1h")
        (row,) = [row for row in used["rows"] if row["group"] == job]
        assert 0.9 < row["cpu_used_seconds"] < 1.6, row


def test_what_slurm_has_no_word_for_is_refused_when_it_is_submitted(client: Client) -> None:
    with pytest.raises(Refused, match="asks for a share of a GPU, and Slurm gives only whole ones"):
        client.submit(["true"], gpus=0.5)


def test_what_is_submitted_before_the_first_answer_of_a_controller_waits_for_it(cluster: Cluster) -> None:
    cluster.kill_controller()
    try:
        with SlurmServer(cluster) as server, server.client() as client:
            job = server.sh("exit 4")["id"]
            cluster.start_controller()
            assert client.wait(job, 90)["exit_code"] == 4
    finally:
        if "down" in cluster.ask_anyway("scontrol", "ping").lower():
            cluster.start_controller()


# --- Ends that Muster decides ------------------------------------------------------------------------


def test_a_failure_exit_cancels_in_slurm(cluster: Cluster, client: Client) -> None:
    command = [sys.executable, "-c", textwrap.dedent(REPORTS)]
    job = client.submit(command, purpose="Does it learn?", failure=["acc < 0.5 after 2s"])["id"]
    ended = client.wait(job, 60)
    assert (ended["outcome"], ended["verdict"]) == ("STOPPED", "lost")
    until(lambda: not queue(cluster), "Slurm to have ended it")


def test_a_budget_that_is_spent_has_the_job_save_and_leave_until_it_is_extended(
    cluster: Cluster, client: Client
) -> None:
    job = client.submit(
        [sys.executable, "-c", SAVES],
        purpose="Does it save?",
        budget=f"{3 / 3600:.9f} CPUh",
        cpus=1,
        checkpoint_every="1h",
        warn="USR1@3s",
        grace="3s",
    )["id"]
    is_in(client, job, "HELD")
    assert "is spent" in client.job(job)["reason"]
    assert b"".join(client.logs(job)).startswith(b"ready\nsaved\n")
    until(lambda: not queue(cluster), "it to have left Slurm")
    client.extend(job, budget="1 CPUh", because="the loss still falls")
    is_in(client, job, "RUNNING")
    assert client.job(job)["attempt"] == 2
