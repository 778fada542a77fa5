"""An agent's token tells readings of its nodes, and does nothing else; of others only an admin tells them."""

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from muster.client import Client, Refused
from muster.server.agents import may_speak_for
from muster.server.people import Person
from muster.web.door import COOKIE
from servers import Server

_READINGS = "/api/v1/agent/readings"
_TOLD = {"node": "node1", "since_boot_seconds": 1.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0", home=tmp_path_factory.mktemp("home")) as made:
        yield made


def token(server: Server, user: str, role: str) -> str:
    with server.client() as client:
        return client.token(user, role)


def asked(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_with_an_agents_token_every_other_route_is_refused(server: Server) -> None:
    with server.client() as client:
        paths = client.get("/openapi.json")["paths"]
    bearer = {"Authorization": f"Bearer {token(server, 'node[1-4]', 'agent')}"}
    tried = 0
    for path, methods in paths.items():
        for method in methods:
            if path != _READINGS:
                status, said = asked(server, method.upper(), re.sub(r"{\w+}", "1", path), {}, **bearer)
                assert (status, "an agent's" in said) == (403, True), path
                tried += 1
    assert tried > 50


def test_an_agents_token_is_no_cookie(server: Server) -> None:
    agents, people = token(server, "node1", "agent"), token(server, "ana", "user")
    for path in ("/", "/where", "/use.json", "/live"):
        assert asked(server, "GET", path, Cookie=f"{COOKIE}={agents}")[0] == 401, path
        if path != "/live":
            assert asked(server, "GET", path, Cookie=f"{COOKIE}={people}")[0] == 200, path


def test_who_is_no_agent_tells_nothing_but_an_admin(server: Server) -> None:
    for role in ("user", "lead"):
        with (
            Client(server.url, token(server, "ana", role)) as client,
            pytest.raises(Refused, match="only agents and admins tell") as refused,
        ):
            client.tell_readings(_TOLD)
        assert refused.value.status == 403


def test_a_server_that_reads_its_jobs_itself_hears_no_agents(server: Server) -> None:
    for client in (server.client(), Client(server.url, token(server, "node1", "agent"))):
        with client, pytest.raises(Refused, match="no agents are heard here") as refused:
            client.tell_readings(_TOLD)
        assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"node": "node1"}',
        b'{"node": "", "since_boot_seconds": 1}',
        b'{"node": "node1", "since_boot_seconds": -1}',
        b'{"node": "node1", "since_boot_seconds": NaN}',
        b'{"node": "node1", "since_boot_seconds": 1e999}',
        b'{"node": "node1", "since_boot_seconds": 1, "readings": [{"job": 1}]}',
        b'{"node": "node1", "since_boot_seconds": 1, "readings": ' + b"[" * 10_000 + b"}",
    ],
)
def test_what_is_no_message_is_refused_in_a_sentence(server: Server, body: bytes) -> None:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        bearer = {"Authorization": f"Bearer {token(server, 'node1', 'agent')}"}
        connection.request("POST", _READINGS, body, bearer)
        answer = connection.getresponse()
        assert answer.status == 400
        assert json.loads(answer.read())["error"].startswith("the request's JSON is not as expected")
    finally:
        connection.close()


def test_an_agents_token_names_its_nodes() -> None:
    agent = Person("gpu[01-03],login", role="agent")
    assert may_speak_for(agent, "gpu02") is None
    assert may_speak_for(agent, "login") is None
    assert may_speak_for(agent, "gpu04") == "this token speaks for gpu[01-03],login, not for 'gpu04'"
    assert may_speak_for(Person("boss", role="admin"), "gpu04") is None


def test_what_is_no_list_of_nodes_is_no_agents_name(server: Server) -> None:
    with server.client() as client, pytest.raises(Refused, match="can't read 'node"):
        client.token("node[1-", "agent")


def test_the_command_line_says_what_is_missing(server: Server, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for words, environment, code, said in (
        ((), {"MUSTER_URL": "http://127.0.0.1:1"}, 1, "hears nobody without a token"),
        ((), {"MUSTER_URL": "somewhere"}, 2, "is not a server's address"),
        (("--token-file", str(tmp_path / "none")), {}, 2, "none can't be read: No such file"),
        (("--token-file", str(tmp_path / "empty")), {}, 2, "empty has no token in it"),
        (("--log", "x"), {}, 2, "--log goes with --detach"),
        (("--job", "x"), {}, 2, "--job"),
    ):
        done = server.muster("agent", *words, **environment)
        assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (code, True, 1), done.stderr


def test_the_agent_ends_with_the_servers_own_sentence(server: Server) -> None:
    done = server.muster("agent", "--job", "1", "--node", "node1")
    assert (done.returncode, done.stderr) == (
        2,
        "muster: no agents are heard here: this server reads the meters of its jobs itself\n",
    )
