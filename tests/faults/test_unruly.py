"""Jobs that fork without end, daemonise, hide, turn a deaf ear and talk without end: with groups and without.

They are stopped all the same, how they ended is told, and nothing of them is left. The bombs are bounded: by
a limit on the processes of a user whom nobody else is, and by a time after which they stop by themselves.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client import Client
from muster.engines.local import processes
from servers import Server, until

MOST_PROCESSES = 120
BOMB_SECONDS = 20
LOG_BYTES = 100_000

# Says who it is, then forks: into a crowd, into sessions of their own, or from one to the next.
BOMB = f"""
import os, resource, sys, time
most = {MOST_PROCESSES}
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
else:
    most += len(os.listdir("/proc"))
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
kind, ends = sys.argv[1], time.monotonic() + {BOMB_SECONDS}
while time.monotonic() < ends:
    try:
        is_child = os.fork() == 0
    except OSError:
        time.sleep(0.001)
        continue
    if is_child and "sessions" in kind:
        os.setsid()
    if not is_child and "hops" in kind:
        os._exit(0)
"""


class WithoutGroups(Server):
    """On a machine that has no control groups at all, as far as it can see."""

    def command(self) -> list[str]:
        hide = 'umount --recursive --lazy /sys/fs/cgroup && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", hide, "sh", *super().command()]


def can_hide_groups() -> bool:
    command = ["unshare", "--mount", "umount", "--recursive", "--lazy", "/sys/fs/cgroup"]
    return os.geteuid() == 0 and not subprocess.run(command, check=False, capture_output=True).returncode


@pytest.fixture(params=["groups", "no groups"], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    wanted = request.param == "groups"
    if not wanted and os.path.exists("/sys/fs/cgroup") and not can_hide_groups():
        pytest.skip("the groups that are here can't be hidden")
    with Server() if wanted else WithoutGroups() as server, server.client() as client:
        if has_groups(client) is not wanted:
            pytest.skip("groups can't be made here")
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


def has_groups(client: Client) -> bool:
    (node,) = client.nodes()
    return any(limit["what"] == "memory" and limit["how"] == "enforced" for limit in node["limits"])


def lives(pid: int) -> bool:
    process = processes.look(pid)
    return process is not None and process.state != "Z"


def assert_nothing_is_left(server: Server, client: Client) -> None:
    until(lambda: not client.jobs(), lambda: f"an end of {client.jobs()}")
    until(lambda: not server.processes(), lambda: f"an end of {server.processes()}")
    assert client.nodes()[0]["jobs"] == 0


def started(client: Client, *argv: str, **options: object) -> str:
    job: str = client.submit(list(argv), **options)["id"]
    until(lambda: client.job(job)["state"] != "QUEUED", "the job to start")
    return job


@pytest.mark.parametrize("kind", ["a crowd", "a crowd in sessions"])
def test_a_bomb_is_stopped_to_the_last(server: Server, client: Client, kind: str) -> None:
    job = started(client, sys.executable, "-c", BOMB, kind)
    until(lambda: len(server.processes()) > 20, "the bomb to go off")
    client.stop(job, grace_seconds=0.0)
    view = client.wait(job, 30.0)
    assert (view["outcome"], view["signal"]) == ("STOPPED", 9)
    assert_nothing_is_left(server, client)


@pytest.mark.parametrize("kind", ["hops", "hops in sessions"])
def test_who_forks_and_ends_and_forks_and_ends_is_caught(server: Server, client: Client, kind: str) -> None:
    """The main process is over at once; what it has left behind is nobody's child for long."""
    view = client.wait(started(client, sys.executable, "-c", BOMB, kind), 30.0)
    assert (view["outcome"], view["exit_code"]) == ("SUCCEEDED", 0)
    assert_nothing_is_left(server, client)


def test_a_bomb_that_has_asked_for_few_processes_gets_no_more(server: Server, client: Client) -> None:
    job = started(client, sys.executable, "-c", BOMB, "a crowd", pids=30)
    if has_groups(client):
        until(lambda: len(server.processes()) == 30, "the bomb to go off")
        client.stop(job, grace_seconds=0.0)
    view = client.wait(job, 30.0)
    assert view["outcome"] == ("STOPPED" if has_groups(client) else "FAILED")
    assert_nothing_is_left(server, client)


def test_a_bomb_that_reaches_its_time_limit_is_gone_with_it(server: Server, client: Client) -> None:
    job = started(client, sys.executable, "-c", BOMB, "a crowd in sessions", time="1s", grace="0s")
    assert client.wait(job, 30.0)["outcome"] == "TIMEOUT"
    assert_nothing_is_left(server, client)


def test_a_daemon_ends_with_its_job(server: Server, client: Client) -> None:
    view = client.wait(started(client, "sh", "-c", "setsid setsid sleep 60 & sleep 0.3; exit 3"), 30.0)
    assert (view["outcome"], view["exit_code"]) == ("FAILED", 3)
    assert_nothing_is_left(server, client)


def test_a_daemon_that_forgets_who_it_was_ends_with_its_job(server: Server, client: Client) -> None:
    """Without groups, once no other job runs: until then nobody can tell whose it is."""
    pid = server.work / "pid"
    daemon = f"exec env -i setsid sh -c 'echo $$ >{pid}; exec /bin/sleep 60'"
    other = started(client, "sleep", "60", cpus=0.1)
    view = client.wait(started(client, "sh", "-c", f"({daemon}) & sleep 0.3; exit 3", cpus=0.1), 30.0)
    assert view["exit_code"] == 3
    daemon_pid = int(pid.read_text())
    assert lives(daemon_pid) is not has_groups(client)
    client.stop(other)
    until(lambda: not lives(daemon_pid), "an end of the daemon")
    assert_nothing_is_left(server, client)
    pid.unlink()


def test_who_does_not_listen_is_killed_after_its_grace(server: Server, client: Client) -> None:
    loop = "while :; do sleep 0.05; done"
    job = started(client, "sh", "-c", f"trap '' TERM HUP; ({loop}) & {loop}", grace="0.3s")
    client.stop(job)
    view = client.wait(job, 30.0)
    assert (view["outcome"], view["signal"]) == ("STOPPED", 9)
    assert_nothing_is_left(server, client)


def test_who_talks_without_end_fills_its_log_and_no_more(server: Server, client: Client) -> None:
    job = started(client, "sh", "-c", "yes & yes & exec yes", log_limit=str(LOG_BYTES))
    log = Path(client.job(job)["log"] or "")
    until(lambda: log.exists() and log.stat().st_size >= LOG_BYTES, "the log to be full")
    client.stop(job)
    assert client.wait(job, 30.0)["outcome"] == "STOPPED"
    text = b"".join(client.logs(job))
    assert text.startswith(b"y\ny\n")
    assert text.endswith(b"all is dropped\n")
    assert len(text) < LOG_BYTES + 100
    assert_nothing_is_left(server, client)


def test_all_of_it_at_once(server: Server, client: Client) -> None:
    """A deaf daemon that talks and forks, beside a job that behaves."""
    good = started(client, "sh", "-c", "sleep 1.5; exit 4", cpus=0.1)
    script = (
        f"trap '' TERM; yes & setsid setsid {sys.executable} -c '{BOMB}' 'a crowd in sessions' & sleep 60"
    )
    bad = started(client, "sh", "-c", script, log_limit=str(LOG_BYTES), grace="0.2s", cpus=0.1)
    until(lambda: len(server.processes()) > 20, "the bomb to go off")
    client.stop(bad)
    assert client.wait(bad, 30.0)["outcome"] == "STOPPED"
    assert client.wait(good, 30.0)["exit_code"] == 4
    assert_nothing_is_left(server, client)
