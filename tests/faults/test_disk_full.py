"""The disk with Muster's home is full: what can't be written down is refused, what runs goes on.

Once there is space again, everything goes on by itself.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client import Client, Refused
from servers import Server, until

DISK = "size=12m"
PAD = "x" * 100_000  # of each submission's environment, so that few fit into what is left


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    disk = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk, and not everywhere")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def server(small_disk: Path) -> Iterator[Server]:
    with Server(home=small_disk) as server:
        yield server


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def submit_until_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch, **options: object
) -> tuple[list[str], Refused]:
    """A few submissions may still fit into what the store has reserved."""
    accepted: list[str] = []
    for number in range(200):
        monkeypatch.setenv("PAD", f"{number}{PAD}")
        try:
            accepted.append(client.submit(["sh", "-c", "exit 3"], **options)["id"])
        except Refused as refusal:
            return accepted, refusal
    raise AssertionError("a full disk took everything")


def test_a_full_disk_refuses_submissions_and_nothing_else_and_recovers_by_itself(
    server: Server, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = server.work / "go"
    going_on = server.sh(f"until test -f {go}; do sleep 0.02; done; exit 7")["id"]
    with server.client() as client:
        until(lambda: client.job(going_on)["state"] == "RUNNING", "the job to run")
        filler = fill(small_disk)
        accepted, refusal = submit_until_refused(client, monkeypatch)
        assert (refusal.status, refusal.exit_code) == (507, 1)
        assert "the journal can't be written" in str(refusal)
        assert "full" in str(client.health()["trouble"])
        assert_refused_on_the_command_line(server)
        assert client.job(going_on)["state"] == "RUNNING"
        go.touch()
        until(lambda: not server.processes(), "the job to end")
        filler.unlink()
        assert client.wait(going_on, 20.0)["exit_code"] == 7
        until(lambda: client.health()["trouble"] is None, "the server to recover")
        last = client.wait(client.submit(["sh", "-c", "exit 4"])["id"], 20.0)
        assert last["exit_code"] == 4
        assert [client.wait(job, 20.0)["exit_code"] for job in accepted] == [3] * len(accepted)
        assert_only_these_are_known(client, {going_on, *accepted, last["id"]})
        assert_all_is_as_before_a_restart(server, client)
        assert_only_these_are_known(client, {going_on, *accepted, last["id"]})


def test_an_array_that_was_refused_is_not_there_afterwards(
    server: Server, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client() as client:
        filler = fill(small_disk)
        accepted, _ = submit_until_refused(client, monkeypatch, array="1-3", cpus=0.1)
        filler.unlink()
        until(lambda: client.health()["trouble"] is None, "the server to recover")
        for array in accepted:
            client.wait(array, 20.0)
        assert_only_these_are_known(client, {f"{array}_{i}" for array in accepted for i in (1, 2, 3)})
        refused = str(max(map(int, accepted), default=0) + 1)
        for job_id in (refused, f"{refused}_2"):
            with pytest.raises(Refused, match=f"there is no job {job_id}"):
                client.job(job_id)
        with pytest.raises(Refused, match=f"there is no job {refused} to wait for"):
            client.submit(["true"], after_ok=[refused])


def assert_only_these_are_known(client: Client, wanted: set[str]) -> None:
    """Whoever was refused is not there, not even as one that was stopped."""
    assert {view["id"] for view in client.jobs(all=True, members=True, limit=0)} == wanted


def assert_refused_on_the_command_line(server: Server) -> None:
    done = server.muster("submit", "--", "true", PAD="")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "the journal can't be written" in done.stderr


def assert_all_is_as_before_a_restart(server: Server, client: Client) -> None:
    """What was refused is not there, and what was not is."""
    before = [(view["id"], view["outcome"], view["exit_code"]) for view in client.jobs(all=True)]
    assert client.jobs() == []
    server.terminate()
    server.start()
    assert [(view["id"], view["outcome"], view["exit_code"]) for view in client.jobs(all=True)] == before


def test_a_job_whose_end_can_t_be_written_down_is_not_forgotten_with_the_server(
    server: Server, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = server.work / "go"
    job = server.sh(f"until test -f {go}; do sleep 0.02; done; exit 7")["id"]
    with server.client() as client:
        until(lambda: client.job(job)["state"] == "RUNNING", "the job to run")
        filler = fill(small_disk)
        submit_until_refused(client, monkeypatch)
        go.touch()
        until(lambda: not server.processes(), "the job to end")
        server.kill()
        filler.unlink()
        server.start()
        found = client.wait(job, 20.0)
        assert (found["exit_code"], found["attempt"]) == (7, 1)
