"""Servers that come and go: two at once, one that is told to end, one that finds its store damaged."""

import getpass
import socket
import sqlite3
import time
from collections.abc import Iterator

import pytest

from servers import Server, until

QUICKLY_SECONDS = 3.0


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def test_a_second_server_on_the_same_home_refuses_in_a_sentence(server: Server) -> None:
    second = server.muster("up")
    assert second.returncode == 1
    assert second.stdout == ""
    (sentence,) = second.stderr.splitlines()
    assert f"is in use by another Muster server, process {server.process and server.process.pid}" in sentence
    assert server.answers(), "the second has disturbed the first"


def test_a_server_that_is_told_to_end_does_so_at_once_and_its_jobs_go_on(server: Server) -> None:
    go = server.work / "go"
    job = server.sh(f"until test -f {go}; do sleep 0.02; done; exit 5")
    with server.client() as client:
        until(lambda: client.job(job["id"])["state"] == "RUNNING", "the job to run")
        assert server.processes()
        told_at = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - told_at < QUICKLY_SECONDS
        assert not server.home.socket.exists()
        assert server.processes(), "the job did not outlive its server"
        go.touch()
        until(lambda: not server.processes(), "the job to end")
        server.start()
        assert client.wait(job["id"])["exit_code"] == 5


def test_a_server_ends_at_once_although_somebody_listens(server: Server) -> None:
    with server.client() as client:
        events = client.events()
        job = server.sh("sleep 60")
        assert next(events)["id"] == job["id"]
        told_at = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - told_at < QUICKLY_SECONDS
        events.close()


def test_what_was_just_noted_is_written_down_before_the_server_ends(server: Server) -> None:
    job = server.sh("exit 4")
    with server.client() as client:
        until(lambda: client.job(job["id"])["state"] == "ENDED", "the job to end")
    assert server.terminate() == 0
    assert last_event(server)[1] == "Exited"


@pytest.mark.parametrize("damage", ["cut off", "garbled", "empty"])
def test_a_torn_last_record_is_told_and_the_server_starts(server: Server, damage: str) -> None:
    job = server.sh("exit 4")
    with server.client() as client:
        client.wait(job["id"])
        lost = server.sh("exit 5", hold=True)
        server.terminate()
        seq, _, body = last_event(server)
        torn = {"cut off": body[: len(body) // 2], "garbled": b"\xc1" + body[1:], "empty": b""}[damage]
        with sqlite3.connect(server.home.database) as database:
            database.execute("UPDATE events SET body = ? WHERE seq = ?", (torn, seq))
        database.close()
        server.start()
        assert f"the last event, {seq}, can't be read and was set aside" in server.said()
        assert client.wait(job["id"])["exit_code"] == 4
        assert lost["id"] not in [view["id"] for view in client.jobs(all=True)]
        assert client.wait(server.sh("exit 3")["id"])["exit_code"] == 3


def test_a_record_that_is_damaged_in_the_middle_is_named_and_nothing_is_guessed(server: Server) -> None:
    job = server.sh("exit 4")
    with server.client() as client:
        client.wait(job["id"])
    server.terminate()
    with sqlite3.connect(server.home.database) as database:
        database.execute("UPDATE events SET body = ? WHERE seq = 2", (b"\xc1",))
    database.close()
    again = server.muster("up")
    assert again.returncode == 1
    assert "event 2 of " in again.stderr
    assert "restore it from a backup" in again.stderr
    assert len(again.stderr.splitlines()) == 1


def test_who_knocks_at_the_socket_is_known_by_the_kernels_word(server: Server) -> None:
    with server.client() as client:
        me = client.whoami()
    assert (me["name"], me["role"]) == (getpass.getuser(), "admin")


def test_a_socket_that_a_killed_server_has_left_is_taken_over(server: Server) -> None:
    server.kill()
    assert server.home.socket.exists()
    with socket.socket(socket.AF_UNIX) as knocking, pytest.raises(ConnectionRefusedError):
        knocking.connect(str(server.home.socket))
    server.start()
    with server.client() as client:
        assert client.wait(server.sh("exit 3")["id"])["exit_code"] == 3


def last_event(server: Server) -> tuple[int, str, bytes]:
    with sqlite3.connect(server.home.database) as database:
        found = database.execute("SELECT seq, kind, body FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    database.close()
    return int(found[0]), str(found[1]), bytes(found[2])
