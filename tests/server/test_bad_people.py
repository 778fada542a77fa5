"""What the server says to those who are not who they should be, or send what they should not.

Each gets a sentence and the right status, and nothing has changed afterwards.
"""

import contextlib
import http.client
import json
import os
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.client import Client, Refused
from muster.server.http import MOST_BYTES
from servers import Server

SECRET = "what nobody else should read"
COMMAND = {"command": ["true"], "options": {"hold": True}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0") as server:
        yield server


@pytest.fixture(scope="module")
def admin(server: Server) -> str:
    with server.client() as client:
        return client.token("boss", "admin")


@pytest.fixture(scope="module")
def ana(server: Server) -> str:
    """A token of somebody who may do what anybody may."""
    with server.client() as client:
        return client.token("ana")


def asked(
    server: Server, token: str | None, method: str, path: str, body: bytes | object = None
) -> tuple[int, Any]:
    """A status and what was said, whatever is asked."""
    host = urllib.parse.urlsplit(server.url).netloc
    connection = http.client.HTTPConnection(host, timeout=10)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, f"/api/v1{path}", raw, headers)
    with contextlib.closing(connection):
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def assert_refused(answer: tuple[int, Any], status: int, *words: str) -> None:
    assert answer[0] == status, answer
    sentence = answer[1]["error"]
    assert sentence
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    for word in words:
        assert word in sentence


def jobs(server: Server) -> list[str]:
    with server.client() as client:
        return [view["id"] for view in client.jobs(all=True)]


# --- Who are you? -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/jobs", "/whoami", "/health", "/nodes", "/events", "/openapi.json"])
def test_without_a_token_nothing_is_told_over_tcp(server: Server, path: str) -> None:
    assert_refused(asked(server, None, "GET", path), 401, "a token is needed")


@pytest.mark.parametrize("token", ["wrong", "mst_" + "A" * 43, "' OR 1=1 --", "\xff\xfe"])
def test_a_wrong_token_is_none(server: Server, token: str) -> None:
    assert_refused(asked(server, token, "GET", "/jobs"), 401, "not known, or has expired")
    assert_refused(asked(server, token, "POST", "/jobs", COMMAND), 401)


def test_another_way_to_say_who_one_is_is_not_believed(server: Server, admin: str) -> None:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=10)
    for headers in ({"Authorization": f"Basic {admin}"}, {"Cookie": admin}, {"X-Remote-User": "root"}):
        connection.request("GET", "/api/v1/jobs", headers=headers)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        answer.read()
    connection.close()


def test_a_token_tells_whose_it_is(server: Server, ana: str, admin: str) -> None:
    assert asked(server, ana, "GET", "/whoami") == (200, {"name": "ana", "role": "user", "teams": []})
    assert asked(server, admin, "GET", "/whoami")[1]["role"] == "admin"


def test_the_command_line_says_so_in_a_sentence(server: Server) -> None:
    done = server.muster("ps", MUSTER_URL=server.url, MUSTER_TOKEN="wrong")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "this token is not known" in done.stderr


# --- That is not yours --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["stop", "hold", "release", "requeue", "suspend", "resume"])
def test_somebody_elses_job_can_t_be_acted_on(server: Server, ana: str, verb: str) -> None:
    job = server.sh("true", hold=True)
    assert_refused(asked(server, ana, "POST", f"/jobs/{job['id']}/{verb}", {}), 403, job["owner"])
    with server.client() as client:
        told_otherwise = {"limits": client.job(job["id"])["limits"], "warnings": []}
        assert client.job(job["id"]) == {**job, **told_otherwise}


def test_a_report_on_somebody_elses_job_is_not_taken(server: Server, ana: str) -> None:
    job = server.sh("true", hold=True)
    assert_refused(asked(server, ana, "POST", f"/jobs/{job['id']}/report", {"values": {"x": 1}}), 403)


def test_somebody_elses_log_can_t_be_read(server: Server, ana: str, admin: str) -> None:
    with server.client() as client:
        job = client.wait(server.sh(f"echo {SECRET}")["id"])["id"]
    for query in ("", "?follow=true", "?attempt=1", "?part=0"):
        assert_refused(asked(server, ana, "GET", f"/jobs/{job}/log{query}"), 403, "'s")
    with Client(server.url, admin) as client:
        assert b"".join(client.logs(job)).decode() == f"{SECRET}\n"


def test_only_an_admin_makes_tokens_and_ends_the_server(server: Server, ana: str) -> None:
    assert_refused(asked(server, ana, "POST", "/tokens", {"user": "ana", "role": "admin"}), 403, "admin")
    assert_refused(asked(server, ana, "POST", "/down", {}), 403, "admin")


@pytest.mark.parametrize(
    "body",
    [
        {"user": "ana", "role": "emperor"},
        {"user": ""},
        {"user": "a\nb"},
        {"user": "../root"},
        {"user": "ana", "days": -1},
        {"user": "ana", "days": 1e300},
        {"user": "x" * 65},
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(server: Server, admin: str, body: object) -> None:
    assert_refused(asked(server, admin, "POST", "/tokens", body), 400)


# --- That is not a job --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\0b", "\x1b[31mred", "a/b", "..", "../../etc/passwd", "a\\b", " ", "x" * 129, "\u202e"],
)
def test_a_name_that_could_do_harm_is_refused(server: Server, admin: str, name: str) -> None:
    before = jobs(server)
    body = {**COMMAND, "options": {"name": name, "hold": True}}
    assert_refused(asked(server, admin, "POST", "/jobs", body), 400, "name:")
    assert jobs(server) == before


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"nonsense",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe\x00",
        b'{"command": ["\xff"]}',
        b'{"command": ["\\ud800"]}',
        b"[" * 200_000,
        b'{"options":' * 5000,
        b'{"command": 5}',
        b'{"command": ["true"], "umask": 1e400}',
        b'{"command": ["true"], "umask": 99999999999999999999999}',
        b'{"command": ["true"], "unknown": 1}',
        b'{"command": ["true"], "cwd": "../.."}',
        b'{"command": ["tr\\u0000ue"]}',
        b'{"command": []}',
        b"",
    ],
)
def test_a_body_that_is_no_request_is_refused(server: Server, admin: str, raw: bytes) -> None:
    before = jobs(server)
    for path in ("/jobs", "/plan", "/jobs?dry_run=true"):
        assert_refused(asked(server, admin, "POST", path, raw), 400)
    assert jobs(server) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run: [", "line 2"),
        ("run: x\ngpuss: 1\n", "line 2"),
        ("run: x\n  bad: indent\n", "line 2"),
        ("run: x\ncompute: {gpus: -1}\n", "gpus"),
        ("run: x\ncompute: {gpus: 1e99}\n", "gpus"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", ""),
        ("!!python/object/apply:os.system ['true']", ""),
        ("- 1\n- 2\n", ""),
        ("run: x\0y", ""),
        ("", ""),
    ],
)
def test_yaml_that_is_no_application_is_refused(server: Server, admin: str, text: str, words: str) -> None:
    assert_refused(asked(server, admin, "POST", "/jobs", {"yaml": text}), 400, words)


def test_more_than_a_request_can_be_is_refused_and_the_server_lives(server: Server, admin: str) -> None:
    with Client(server.url, admin) as client:
        for padding in (MOST_BYTES, 16 * MOST_BYTES):
            with pytest.raises(Refused, match="at most 4 MiB") as caught:
                client.post("/jobs", {"yaml": "x" * padding})
            assert caught.value.status == 413
    assert_refused(asked(server, admin, "POST", "/jobs", {"yaml": "a: 1\n" * 300_000}), 400, "megabyte")


# --- That is not an id --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc", "..", "1/../2", "1\n", "1\0", "1;true", "%2e%2e", "é", "-1", "' OR 1=1", "1" * 5000),
        *("1_", "1_[]", "1_[1-", "1_[3-x]", "1_[9-1]", "1_[1,,2]", "1_[0-99999999999999]"),
        f"1_[{'1' * 5000}]",
    ],
)
def test_what_is_no_id_is_refused_wherever_one_is_expected(server: Server, admin: str, name: str) -> None:
    quoted = urllib.parse.quote(name, safe="")
    for path in (f"/jobs/{quoted}", f"/jobs/{quoted}/log", f"/jobs/{quoted}/why", f"/events?job={quoted}"):
        assert_refused(asked(server, admin, "GET", path), 400)
    assert_refused(asked(server, admin, "POST", f"/jobs/{quoted}/stop", {}), 400)


def test_an_id_of_nobody_is_not_found(server: Server, admin: str) -> None:
    for path in ("/jobs/999999", "/jobs/999999/log", "/jobs/999999_3/why", "/nothing", "/jobs/1/nothing"):
        assert_refused(asked(server, admin, "GET", path), 404, "there is no")


@pytest.mark.parametrize(
    "query",
    ["limit=-1", "limit=x", "limit=9999999999999999999", "state=ASLEEP", "no=1", "all=2", "team=a&team=b"],
)
def test_a_question_that_makes_no_sense_is_refused(server: Server, admin: str, query: str) -> None:
    assert_refused(asked(server, admin, "GET", f"/jobs?{query}"), 400)


def test_another_method_is_refused(server: Server, admin: str) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert_refused(asked(server, admin, method, "/jobs"), 405, "POST and GET")


@pytest.mark.parametrize(
    "raw", [b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00"]
)
def test_what_is_not_http_is_hung_up_on(server: Server, admin: str, raw: bytes) -> None:
    where = urllib.parse.urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), 10) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000)[:12] in (b"HTTP/1.1 400", b"")
    assert asked(server, admin, "GET", "/health")[0] == 200


# --- That is not a log --------------------------------------------------------------------------------


@pytest.mark.parametrize("follow", [False, True])
def test_a_link_where_a_log_should_be_is_not_followed(server: Server, admin: str, follow: bool) -> None:
    secret = server.work / "secret"
    secret.write_text(SECRET)
    log = ended_log(server)
    log.unlink()
    log.symlink_to(secret)
    query = "?follow=true" if follow else ""
    answer = asked(server, admin, "GET", f"/jobs/{job_of(log)}/log{query}")
    assert_refused(answer, 404, "is not a log that Muster wrote")


def test_a_pipe_or_a_folder_where_a_log_should_be_keeps_nobody_waiting(server: Server, admin: str) -> None:
    for put in (os.mkfifo, os.mkdir):
        log = ended_log(server)
        log.unlink()
        put(log)
        answer = asked(server, admin, "GET", f"/jobs/{job_of(log)}/log")
        assert_refused(answer, 404, "is not a log that Muster wrote")


def job_of(log: Path) -> str:
    return log.name.partition(".")[0]


def ended_log(server: Server) -> Path:
    with server.client() as client:
        return Path(client.wait(server.sh("echo here")["id"])["log"])
