"""The stream: everything first, then what changes, one tick a second; and on from where one was."""

import http.client
import json
from collections.abc import Iterator

import pytest

from servers import PATIENCE_SECONDS, Server
from visitor import Visitor


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0") as made:
        yield made


class Listener:
    """A browser's end of the stream."""

    def __init__(self, visitor: Visitor, since: str = "", level: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(visitor.host, timeout=PATIENCE_SECONDS)
        self._connection.request(
            "GET", f"/live?since={since}&level={level}", headers={"cookie": visitor.cookie, **headers}
        )
        self._response = self._connection.getresponse()
        self.kind = self.mark = ""

    def next(self) -> dict[str, object]:
        """The next tick's data."""
        fields: dict[str, str] = {}
        while True:
            line = self._response.readline().decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                self.kind, self.mark = fields["event"], fields["id"]
                found: dict[str, object] = json.loads(fields["data"])
                return found

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def test_a_stranger_hears_nothing(server: Server) -> None:
    assert Visitor(server, signed_in=False).get("/live").status == 401


def test_first_everything_then_ticks(server: Server) -> None:
    listener = Listener(Visitor(server), level="nodes")
    first = listener.next()
    assert listener.kind == "all"
    assert len(first["changes"]) == 1  # type: ignore[arg-type]
    second = listener.next()
    assert listener.kind == "tick"
    assert float(second["at"]) > float(first["at"])  # type: ignore[arg-type]
    listener.close()


def test_who_comes_back_hears_only_what_was_missed(server: Server) -> None:
    visitor = Visitor(server)
    listener = Listener(visitor, level="nodes")
    listener.next()
    mark = listener.mark
    listener.close()
    again = Listener(visitor, level="nodes", **{"last-event-id": mark})
    assert not again.next()["changes"]
    assert again.kind == "tick"
    again.close()


@pytest.mark.parametrize("mark", ["other-1", "x", "", "-", "a-99999999999999999999", "\u0661-1"])
def test_who_has_heard_of_another_server_hears_everything(server: Server, mark: str) -> None:
    listener = Listener(Visitor(server), since=mark.encode("ascii", "ignore").decode(), level="nodes")
    listener.next()
    assert listener.kind == "all"
    listener.close()


def test_a_fact_shows_in_the_next_tick(server: Server) -> None:
    listener = Listener(Visitor(server), level="nodes")
    before = listener.next()["facts"]
    with server.client() as client:
        job = client.submit(["sleep", "100"], cpus=1)["id"]
        for _ in range(5):
            tick = listener.next()
            if tick["changes"]:
                break
        assert tick["facts"] > before  # type: ignore[operator]
        assert tick["changes"], "a node holds more than before"
        client.stop(job)
    listener.close()


def test_those_who_listen_are_let_go_when_the_server_ends() -> None:
    with Server("--http", "127.0.0.1:0") as made:
        listener = Listener(Visitor(made))
        listener.next()
        assert made.terminate() == 0
        listener.close()
