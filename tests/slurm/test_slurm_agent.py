"""Agents on the nodes of a real cluster: what they measure, and what happens when they, or the server, go."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import ORDINARY, Cluster
from slurm_server import SlurmServer

from tests.servers import View, until

sys.path.append(str(Path(__file__).parents[1] / "monitor"))
from meter_lab import build, compiler

_METERED = '[monitor]\nperiod = "1s"\n'
_MIB = 1 << 20
_BURN = """
import resource, sys, time
held = b"x" * ({mib} << 20)
while time.process_time() < {seconds}: pass
own = resource.getrusage(resource.RUSAGE_SELF)
open("{told}." + sys.argv[1] + ".new", "w").write(str(own.ru_utime + own.ru_stime))
import os; os.rename("{told}." + sys.argv[1] + ".new", "{told}." + sys.argv[1])
time.sleep(600)
"""
_GPUS = """gpu 0 minor 3
gpu 0 busy 3
gpu 0 uuid GPU-d
gpu 1 minor 2
gpu 1 busy 2
gpu 1 uuid GPU-c
gpu 2 minor 1
gpu 2 busy 20
gpu 2 uuid GPU-b
gpu 3 minor 0
gpu 3 busy 90
gpu 3 uuid GPU-a
"""


class Agent:
    """``muster agent`` on a node, as a process that can be killed."""

    def __init__(
        self, cluster: Cluster, url: str, token: str, *words: str, user: str = "", **environment: str
    ) -> None:
        become = ["setpriv", f"--reuid={user}", "--clear-groups", "--"] if user else []
        self._process = subprocess.Popen(
            cluster.inside(*become, sys.executable, "-m", "muster", "agent", *words),
            env={**os.environ, "MUSTER_URL": url, "MUSTER_TOKEN": token, **environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        """The agent itself, that nsenter has started."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        while self._process.poll() is None:
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.02)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def end(self) -> tuple[int, str]:
        """When it has ended by itself: its exit code, and what it said."""
        _, said = self._process.communicate(timeout=90)
        return self._process.returncode, said

    @property
    def lives(self) -> bool:
        return self._process.poll() is None


class Site:
    """A server on the cluster that agents can reach, of root's or another's; and those that were started."""

    def __init__(self, cluster: Cluster, user: str = "") -> None:
        self.cluster, self._user = cluster, user
        self.server = SlurmServer(cluster, user=user, more=_METERED)
        self.server.options = ("--http", "127.0.0.1:0")
        self.server.start()
        self.url = self.server.url
        with self.server.client() as client:
            self.token = client.token("node[1-4]", "agent")
        self.agents: list[Agent] = []

    def agent(self, *words: str, **environment: str) -> Agent:
        """Once it is heard, if it is that of a node."""
        agent = Agent(self.cluster, self.url, self.token, *words, user=self._user, **environment)
        self.agents.append(agent)
        if "--job" not in words:
            until(lambda: self.speaks(words[-1]), "the agent to be heard")
        return agent

    def speaks(self, node: str) -> bool:
        with self.server.client() as client:
            (agent,) = (view["agent"] for view in client.nodes() if view["name"] == node)
        return agent is not None and bool(agent["is_fresh"])

    def sbatch(self, *options: str, script: str) -> str:
        """A job of somebody's; its id here."""
        become = ["runuser", "-u", self._user, "--"] if self._user else []
        done = subprocess.run(
            [*become, "sbatch", "--parsable", "--output=/dev/null", f"--chdir={self.server.work}", *options],
            input=f"#!/bin/sh\n{script}\n",
            env={**self.cluster.environment(), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            capture_output=True,
            text=True,
            check=True,
        )
        return f"s{done.stdout.strip()}"

    def burning(self, seconds: float, mib: int = 50) -> str:
        """The command of a process that uses so much cpu time, tells how much it was, and stays."""
        script = self.server.work / f"burn{seconds}.py"
        told = self.server.work / "burnt"
        script.write_text(_BURN.format(seconds=seconds, mib=mib, told=told))
        return f"{sys.executable} {script}"

    def burnt(self, *ranks: str) -> float | None:
        """What they have used in all, as the kernel told them; None: not all are done."""
        files = [self.server.work / f"burnt.{rank}" for rank in ranks]
        return sum(float(file.read_text()) for file in files) if all(f.exists() for f in files) else None

    def job(self, job: str) -> View:
        with self.server.client() as client:
            return client.job(job)

    def by(self, job: str) -> str | None:
        measured = self.job(job)["measured"]
        return None if measured is None else measured["by"]

    def busy(self, job: str) -> float | None:
        """Its one GPU."""
        used = self.job(job)["used"]
        return None if used is None else used["gpu_busy"][0]

    def used(self, job: str) -> View:
        with self.server.client() as client:
            return next(row for row in client.use(by="job")["rows"] if row["group"] == job)

    def close(self) -> None:
        for agent in self.agents:
            agent.kill()
        self.server.close()


@pytest.fixture
def site(cluster: Cluster) -> Iterator[Site]:
    made = Site(cluster)
    yield made
    made.close()


@pytest.fixture
def own_site(cluster: Cluster) -> Iterator[Site]:
    """Of somebody without any rights but their own."""
    made = Site(cluster, ORDINARY[0])
    yield made
    made.close()


def runs(site: Site, job: str) -> None:
    with site.server.client() as client:
        until(lambda: any(v["id"] == job and v["state"] == "RUNNING" for v in client.jobs()), f"{job} to run")


def measured_by(site: Site, job: str, by: str) -> None:
    runs(site, job)
    until(lambda: site.by(job) == by, lambda: f"{job} to be measured by {by}, it is {site.by(job)}", 60)


def burns_by(site: Site, job: str, by: str) -> None:
    """More cpu time, as these measure it."""
    measured_by(site, job, by)
    before = site.used(job)["cpu_used_seconds"] or 0.0
    until(lambda: (site.used(job)["cpu_used_seconds"] or 0.0) > before + 1.0, "it to use more")


def test_what_a_job_burns_and_holds_is_measured_by_the_agent_of_its_node(site: Site) -> None:
    site.agent("--node", "node1")
    job = site.sbatch("-w", "node1", "--mem=600", script=f"exec {site.burning(6, 300)} 0")
    measured_by(site, job, "agent")
    until(lambda: site.burnt("0"), "it to have burnt", 60)
    truth = site.burnt("0") or 0.0
    until(lambda: (site.used(job)["cpu_used_seconds"] or 0) > 0.97 * truth, "what was burnt to be known")
    assert site.used(job)["cpu_used_seconds"] == pytest.approx(truth, rel=0.05)
    view = site.job(job)
    assert 300 * _MIB < view["used"]["memory_bytes"] < 330 * _MIB
    assert view["measured"]["text"] == "by the agent on its node"
    assert dict(view["efficiency"])["measured"].endswith(", by the agent on its node")
    lines = site.server.muster("node").stdout.splitlines()
    assert "AGENT" in lines[0]
    assert [" ago" in line for line in lines[1:5]] == [True, False, False, False]
    assert "measured: 1 by agents" in site.server.muster("use").stdout


def test_a_gang_over_two_nodes_is_summed(site: Site) -> None:
    for node in ("node1", "node2"):
        site.agent("--node", node)
    burn = f"srun --mem=0 sh -c 'exec {site.burning(4)} $SLURM_PROCID'"
    job = site.sbatch("-w", "node[1-2]", "-N2", "-n2", script=burn)
    measured_by(site, job, "agent")
    until(lambda: site.burnt("0", "1"), "both to have burnt", 60)
    truth = site.burnt("0", "1") or 0.0
    until(lambda: (site.used(job)["cpu_used_seconds"] or 0) > 0.97 * truth, "what was burnt to be known")
    assert site.used(job)["cpu_used_seconds"] == pytest.approx(truth, rel=0.08)
    assert site.job(job)["used"]["memory_bytes"] > 100 * _MIB
    assert site.job(job)["measured"]["text"] == "by agents on 2 of 2 nodes"


def test_how_busy_gpus_are_goes_to_the_job_that_holds_them_by_the_kernels_numbers(
    site: Site, tmp_path: Path
) -> None:
    if compiler() is None:
        pytest.skip("there is no C compiler to build the library that stands in for NVIDIA's")
    state = tmp_path / "gpus"
    state.write_text(_GPUS)
    site.agent("--node", "node1", LD_LIBRARY_PATH=str(build(tmp_path / "nvml")), FAKE_NVML=str(state))
    jobs = [site.sbatch("-w", "node1", "--gres=gpu:a40:1", script="sleep 600") for _ in range(2)]
    for job in jobs:
        measured_by(site, job, "agent")
    until(lambda: all(site.busy(job) is not None for job in jobs), "GPUs to be known")
    busy = {site.job(job)["devices"][0]: site.busy(job) for job in jobs}
    assert busy == {0: pytest.approx(0.9), 1: pytest.approx(0.2)}
    with site.server.client() as client:
        node = client.nodes()[0]
    assert [device["busy"] for device in node["devices"]] == [0.9, 0.2, 0.02, 0.03]


def test_when_the_agent_is_killed_slurm_measures_and_nothing_jumps(site: Site) -> None:
    agent = site.agent("--node", "node1")
    job = site.sbatch("-w", "node1", script=f"exec {site.burning(10_000)} 0")
    burns_by(site, job, "agent")
    agent.kill()
    burns_by(site, job, "slurm")
    assert site.job(job)["measured"]["text"] == "by Slurm's own accounting: cpu and memory"
    site.agent("--node", "node1")
    burns_by(site, job, "agent")
    row = site.used(job)
    assert 0 < row["cpu_used_seconds"] <= 1.05 * row["measured_seconds"] + 1.0
    with site.server.client() as client:
        points = client.get(f"/jobs/{job}/use")["points"]
    assert all(point["cpus"]["least"] >= 0 and point["cpus"]["most"] <= 1.5 for point in points)


def test_an_agent_outlives_its_server_and_tells_the_next(site: Site) -> None:
    agent = site.agent("--node", "node1")
    job = site.sbatch("-w", "node1", script="sleep 600")
    measured_by(site, job, "agent")
    site.server.kill()
    time.sleep(2.5)
    assert agent.lives
    site.server.options = ("--http", site.url.removeprefix("http://"))
    site.server.start()
    measured_by(site, job, "agent")


def test_an_agent_for_one_job_tells_of_that_one_and_ends_with_it(site: Site) -> None:
    job = site.sbatch("-w", "node1", script=f"exec {site.burning(2)} 0")
    other = site.sbatch("-w", "node1", script="sleep 600")
    agent = site.agent("--node", "node1", "--job", job[1:])
    measured_by(site, job, "agent")
    measured_by(site, other, "slurm")
    with site.server.client() as client:
        assert client.nodes()[0]["agent"] is None
    site.cluster.ask("scancel", job[1:])
    assert agent.end() == (0, "")


def test_an_ordinary_users_own_server_hears_that_users_agent(own_site: Site) -> None:
    job = own_site.sbatch("-w", "node2", script="while :; do :; done")
    own_site.agent("--node", "node2", "--job", job[1:])
    measured_by(own_site, job, "agent")
    until(lambda: (own_site.job(job)["used"] or {}).get("cpus"), "its cpu time to be known")


def test_a_job_starts_its_own_agent_in_the_background(site: Site) -> None:
    lines = [
        f"export MUSTER_URL={site.url} MUSTER_TOKEN={site.token}",
        f"{sys.executable} -m muster agent --job $SLURM_JOB_ID --detach",
        f"exec {site.burning(2)} 0",
    ]
    job = site.sbatch("-w", "node2", script="\n".join(lines))
    measured_by(site, job, "agent")
    assert site.job(job)["measured"]["agents"] == 1


@pytest.mark.parametrize(
    ("node", "token", "said"),
    [
        ("node9", None, "this token speaks for node[1-4], not for 'node9'"),
        (
            "node1",
            "mst_none",
            "this token is not known, or has expired; an admin makes one with: muster token",
        ),
    ],
)
def test_what_the_server_refuses_ends_the_agent_with_a_sentence(
    site: Site, node: str, token: str | None, said: str
) -> None:
    agent = Agent(site.cluster, site.url, token or site.token, "--node", node)
    assert agent.end() == (1, f"muster: {said}\n")
