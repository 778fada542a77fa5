"""At the next ``muster`` call on a terminal, one line says that questions wait; nowhere else."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from muster.model.message import Message
from muster.model.post import Messaged
from muster.store.journal import Batch, Journal
from servers import Server

LINE = "1 question for you: muster digest"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    server.home.make()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    question = Message(to="root", about="job:99", kind="review", sentence="?", asks=True)
    journal.write(Batch(events=[Messaged(time.time(), 1, question)]), lambda _: None)
    journal.close()
    yield server.start()
    server.close()


def on_a_terminal(server: Server, *words: str) -> str:
    """What a person sees."""
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "muster", *words],
        env={**os.environ, "MUSTER_HOME": str(server.home.path), "TERM": "xterm"},
        stdout=theirs,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    return text


def test_on_a_terminal_the_last_line_says_so_dimly(server: Server) -> None:
    said = on_a_terminal(server, "whoami")
    assert said.splitlines()[-1] == f"\x1b[2m{LINE}\x1b[0m"
    assert said.count(LINE) == 1
    assert on_a_terminal(server, "ps").count(LINE) == 1


@pytest.mark.parametrize("words", [("whoami", "-o", "json"), ("digest", "--peek"), ("--version",)])
def test_programs_and_those_who_look_anyway_are_not_told(server: Server, words: tuple[str, ...]) -> None:
    assert LINE not in on_a_terminal(server, *words)


def test_without_a_terminal_nothing_is_said(server: Server) -> None:
    done = server.muster("whoami")
    assert LINE not in done.stdout + done.stderr
