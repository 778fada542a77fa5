"""Places to look at: empty, one laptop, the simulated Delta, ten thousand GPUs, and one full of malice."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.application.names import MOST_LETTERS
from muster.client import Client
from servers import Server, until

LONG = "w" * 200
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627"
MARKUP = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


class World:
    """Where it is, and who may ask there."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home

    def client(self) -> Client:
        return Client(home=self.home)

    def link(self) -> str:
        with self.client() as client:
            return str(client.web_link()["urls"][0])


@contextmanager
def world(name: str) -> Iterator[World]:
    makers = {"empty": _empty, "laptop": _laptop, "malice": _malice, "delta": _demo, "stress": _demo}
    with makers[name](name) as made:
        yield made


@contextmanager
def _empty(_: str) -> Iterator[World]:
    with Server("--http", "127.0.0.1:0") as server:
        yield World(server.url, server.home.path)


@contextmanager
def _laptop(_: str) -> Iterator[World]:
    with _empty("") as made:
        with made.client() as client:
            for purpose in ("Does the baseline still hold?", "How long is a piece of string?"):
                client.submit(["sh", "-c", "echo begun; sleep 1000"], purpose=purpose, cpus=0.1)
            client.submit(["true"], purpose="Does anything end?")
        yield made


@contextmanager
def _malice(_: str) -> Iterator[World]:
    with _empty("") as made:
        with made.client() as client:
            for text in (LONG, RIGHT_TO_LEFT, MARKUP):
                name = text.replace("/", "")[:MOST_LETTERS]
                purpose = f"What becomes of {text[:160]} on a page?"
                effort = "".join(filter(str.isalnum, text))[:64]
                client.post("/efforts", {"name": effort, "charter": {"for": purpose}})
                script = "printf '%s\\n' \"$0\"; sleep 1000"
                client.submit(["sh", "-c", script, text], name=name, purpose=purpose, effort=effort, cpus=0.1)
        yield made


@contextmanager
def _demo(name: str) -> Iterator[World]:
    """``muster demo``, as a newcomer would start it."""
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
        log = Path(folder, "log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "muster", "demo", "--http", "127.0.0.1:0", "--site", name],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        try:
            until(lambda: _said(log) is not None, lambda: f"the demo; it said {log.read_text()}")
            found = _said(log)
            assert found is not None
            yield found
        finally:
            process.terminate()
            process.wait()


def _said(log: Path) -> World | None:
    text = log.read_text()
    url, home = re.search(r"http://[\d.]+:\d+", text), re.search(r"MUSTER_HOME=([^\s;]+)", text)
    return None if url is None or home is None else World(url[0], Path(home[1]))
