"""Somebody sets the clock by days, and nobody gets a digest twice."""

import time
from collections.abc import Iterator

import pytest
from test_clock import Walled, server

from muster.model.message import Message
from muster.model.post import Messaged
from muster.model.units import HOUR
from muster.store.journal import Batch, Journal
from receivers import Web, web
from servers import until

__all__ = ["server"]  # a fixture
FAILS_ONCE = '[ "$MUSTER_ATTEMPT" = 1 ] && { echo MemoryError >&2; exit 1; } || true'


@pytest.fixture
def receiver() -> Iterator[Web]:
    with web() as receiver:
        yield receiver


def test_a_digest_comes_once_however_the_clock_is_set(server: Walled, receiver: Web) -> None:
    _tell_long_ago(server)
    hook = f'[channel.hook]\nkind = "webhook"\nurl = "{receiver.url}"\n'
    server.home.configuration.write_text(f'[attention]\nchannels = ["hook"]\n{hook}')
    server.start()
    until(lambda: receiver.received, "the digest")
    for ahead_hours in (24.0, -24.0, 72.0):
        server.set_clock(ahead_hours)
        _have_news(server)
    assert server.terminate() == 0
    assert len(receiver.received) == 1
    server.start()
    with server.client() as client:
        assert client.digest()["summary"].endswith("3 retried by themselves")


def _tell_long_ago(server: Walled) -> None:
    server.kill()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    question = Message(to="root", about="effort:e", kind="budget", sentence="?", asks=True)
    number = Messaged(time.time() - 25 * HOUR, 1, question)
    journal.write(Batch(events=[number]), lambda _: None)
    journal.close()


def _have_news(server: Walled) -> None:
    with server.client() as client:
        job = client.submit(["sh", "-c", FAILS_ONCE], memory="64M")
        assert client.wait(job["id"])["outcome"] == "SUCCEEDED"
