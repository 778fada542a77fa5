"""Somebody sets the clock, by hours, forwards and back, while jobs run, wait for a time and have limits.

The server and its keeper run with a clock on the wall that the test sets (``wall.c``); what it can't set is
how time goes by.
"""

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client import Client
from muster.model.units import HOUR
from muster.store.journal import Journal
from servers import Server, View, until

LIBRARY = Path(__file__).with_name("wall.c")
SOON_SECONDS = 60.0  # nothing in these tests takes longer


class Wall:
    """A clock that is so many seconds ahead of the real one."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self._file, library = folder / "ahead", folder / "wall.so"
        self.set(0.0)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, LIBRARY, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "WALL_AHEAD": str(self._file)}

    def set(self, ahead_seconds: float) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", int(ahead_seconds)))
        self.ahead_seconds = ahead_seconds

    def now(self) -> float:
        return time.time() + self.ahead_seconds


class Walled(Server):
    """A server that reads the time from this wall, and its keeper too."""

    def __init__(self, wall: Wall) -> None:
        super().__init__()
        self.wall = wall
        self._marker: str | None = None

    def command(self) -> list[str]:
        return ["env", *(f"{k}={v}" for k, v in self.wall.environment.items()), *super().command()]

    def set_clock(self, ahead_hours: float) -> None:
        """And wait until the server has seen it, and shows when a job was submitted by the new clock."""
        self.wall.set(ahead_hours * HOUR)
        with self.client() as client:
            if self._marker is None:
                self._marker = client.submit(["true"], hold=True)["id"]
            until(lambda: self._is_shown(client.job(self._marker)), "the server to look at the clock")

    def _is_shown(self, view: View) -> bool:
        return bool(abs(view["submitted_at"] - self.wall.now()) < SOON_SECONDS)

    def told(self, *words: str) -> str:
        """By the command line, with the same clock on the wall."""
        done = self.muster(*words, **self.wall.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Walled]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler, with which to make a clock that can be set")
    wall = Wall(tmp_path, compiler)
    with Walled(wall) as server:
        yield server


@pytest.fixture
def client(server: Walled) -> Iterator[Client]:
    with server.client() as client:
        yield client


def waits_for(path: Path, code: int = 0) -> str:
    return f"until test -f {path}; do sleep 0.02; done; exit {code}"


def is_state(client: Client, job: str, state: str) -> bool:
    return bool(client.job(job)["state"] == state)


def assert_times_fit(view: View, wall: Wall) -> None:
    """In their order, not from the future, and as far apart as they were."""
    times = [view["submitted_at"], view["started_at"], view["ended_at"]]
    known = [at for at in times if at is not None]
    assert known == sorted(known), view
    assert wall.now() - SOON_SECONDS < known[0], view
    assert known[-1] < wall.now() + 1, view


def assert_journal_in_order(server: Server) -> None:
    """Each job's events; and all together, but for what crosses on its way between the processes."""
    journal = Journal.open(f"sqlite:///{server.home.database}")
    try:
        _, events = journal.load()
        told = [(event.at, getattr(event, "job", "")) for event in events]
    finally:
        journal.close()
    last: dict[object, float] = {}
    latest = 0.0
    for at, job in told:
        job_id = getattr(job, "id", job)
        assert at >= last.get(job_id, 0.0), (at, job_id)
        assert at > latest - 1.0, (at, job_id)
        last[job_id], latest = at, max(at, latest)


def test_jobs_that_run_go_on_with_their_limits_as_time_goes_by(server: Walled, client: Client) -> None:
    go = server.work / "go"
    long = server.sh(waits_for(go, 7), time=f"{int(SOON_SECONDS)}s", cpus=0.1)["id"]
    until(lambda: is_state(client, long, "RUNNING"), "the job to run")
    for ahead_hours in (5.0, -3.0):
        server.set_clock(ahead_hours)
        assert is_state(client, long, "RUNNING"), "its limit is not reached"
        assert_times_fit(client.job(long), server.wall)
        short = server.sh("sleep 1000", time="1s", grace="0s", cpus=0.1)["id"]
        server.wall.set(-20 * HOUR)  # and it can't be put off either
        assert client.wait(short, 20.0)["outcome"] == "TIMEOUT"
        server.wall.set(ahead_hours * HOUR)
        assert_times_fit(client.job(short), server.wall)
    go.touch()
    ended = client.wait(long, 20.0)
    assert ended["exit_code"] == 7
    assert 0 <= ended["ended_at"] - ended["started_at"] < SOON_SECONDS
    server.terminate()
    assert_journal_in_order(server)


def test_begin_times_are_those_of_the_clock_on_the_wall(server: Walled, client: Client) -> None:
    job = server.sh("exit 3", begin="now+2h")["id"]
    server.set_clock(1.0)
    assert client.job(job)["reason"].startswith("asked to begin in 59m")
    assert "asked to begin in 59m" in server.told("why", job)
    server.set_clock(-1.0)
    assert client.job(job)["reason"].startswith("asked to begin in 2h 59m")
    hours_ago = time.strftime("%Y-%m-%dT%H:%M", time.localtime(server.wall.now() - 2 * HOUR))
    assert client.wait(server.sh("exit 4", begin=hours_ago)["id"], 20.0)["exit_code"] == 4
    server.set_clock(2.1)
    assert client.wait(job, 20.0)["exit_code"] == 3
    assert_times_fit(client.job(job), server.wall)


def test_a_retry_comes_after_its_interval_whatever_the_clock_shows(server: Walled, client: Client) -> None:
    server.set_clock(-9.0)
    job = server.sh("test $MUSTER_ATTEMPT = 2", retry=1)["id"]
    until(lambda: client.job(job)["attempt"] == 1, "the first attempt")
    until(lambda: is_state(client, job, "QUEUED"), "it to fail")
    assert client.job(job)["reason"].startswith("asked to begin in ")
    assert client.wait(job, 20.0)["outcome"] == "SUCCEEDED"


def test_who_was_first_stays_first_when_the_clock_goes_back(server: Walled, client: Client) -> None:
    """Also if the server, or all of Muster, does not live to see it."""
    order, go = server.work / "order", server.work / "go"
    cpus = sum(node["cpus"] for node in client.nodes())
    blocker = server.sh(waits_for(go), cpus=cpus)["id"]
    until(lambda: is_state(client, blocker, "RUNNING"), "the first to run")
    server.set_clock(4.0)
    waiting = [server.sh(f"echo {number} >>{order}", cpus=cpus)["id"] for number in (1, 2)]
    server.kill()
    server.wall.set(-4 * HOUR)
    server.start()
    waiting += [server.sh(f"echo {number} >>{order}", cpus=cpus)["id"] for number in (3, 4)]
    go.touch()
    for job in waiting:
        client.wait(job, 20.0)
        assert_times_fit(client.job(job), server.wall)
    assert order.read_text().split() == ["1", "2", "3", "4"]
    server.terminate()
    assert_journal_in_order(server)


def test_estimates_are_about_the_time_that_goes_by(server: Walled, client: Client) -> None:
    go = server.work / "go"
    cpus = sum(node["cpus"] for node in client.nodes())
    past = [server.sh("sleep 0.1", cpus=0.1)["id"] for _ in range(5)]
    server.set_clock(50.0)
    for job in past:
        view = client.wait(job, 20.0)
        assert 0 <= view["ended_at"] - view["started_at"] < SOON_SECONDS
    blocker = server.sh(waits_for(go), time="10m", cpus=cpus)["id"]
    until(lambda: is_state(client, blocker, "RUNNING"), "the first to run")
    waiting = server.sh("exit 0", time="1m", cpus=cpus)["id"]
    for ahead_hours in (-50.0, 7.0):
        server.set_clock(ahead_hours)
        now = server.wall.now()
        for said in (
            client.why(waiting)["estimate"],
            client.plan(["true"], time="1m", cpus=cpus)["estimate"],
        ):
            assert now - 1 < said["earliest"] <= said["latest"] <= said["latest_by_limits"] < now + 2 * HOUR
        assert f" {waiting} " in server.told("ps")
        assert f"{waiting} sh" in server.told("show", waiting)
    go.touch()
    assert client.wait(waiting, 20.0)["outcome"] == "SUCCEEDED"
