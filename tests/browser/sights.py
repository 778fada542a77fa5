"""Places to look at: empty, one laptop, a small site, the simulated Delta, ten thousand GPUs, and malice.

The two that are simulated take seconds to start. Nobody changes anything there, so all processes of a run
share them: who comes first starts one, who leaves last ends it.
"""

import fcntl
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.application.names import MOST_LETTERS
from muster.client import Client
from servers import Server, until
from visitor import Visitor

LONG = "w" * 200
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627"
MARKUP = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
HERE = platform.node()
SITE = f"""\
muster_layout: 1
site: small
kinds:
  big: {{u: 2, gpus: {{model: A40, count: 4, mem: 48G}}}}
racks:
  - {{name: "R[01-02]", room: main, row: A}}
place:
  - {{nodes: "{HERE}", kind: big, racks: "R01"}}
  - {{nodes: "g[01-08]", kind: big, racks: "R[01-02]", per_rack: 4}}
"""
CONFIGURATION = """\
[node]
cpus = 8
gpus = 4
gpu_model = "A40"
layout = "layout.yaml"
[monitor]
period = "1s"
[review]
schedule = "daily 03:00"
opens = "2d"
notice = "0.5s"
[team.vision]
users = ["ana"]
[team.speech]
users = ["eve"]
"""


class World:
    """Where it is, and who may ask there."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        self._cookies: dict[str, str] = {}

    def client(self, user: str = "") -> Client:
        """As whoever runs the server, or as somebody with a token."""
        if not user:
            return Client(home=self.home)
        with Client(home=self.home) as admin:
            return Client(self.url, admin.token(user))

    def link(self, user: str = "") -> str:
        with self.client(user) as client:
            return str(client.web_link()["urls"][0])

    def cookie(self, user: str = "") -> str:
        """Of a session that windows share; who signs out needs one of their own."""
        if user not in self._cookies:
            visitor = Visitor(self, signed_in=False)  # type: ignore[arg-type]
            visitor.sign_in(self.link(user))
            self._cookies[user] = visitor.cookie
        return self._cookies[user]


@contextmanager
def world(name: str, folder: Path) -> Iterator[World]:
    """``folder``: where processes of a run find what they share."""
    makers = {"empty": _empty, "laptop": _laptop, "site": _site, "malice": _malice}
    with makers[name]() if name in makers else _shared_demo(name, folder) as made:
        yield made


def shared_folder(basetemp: Path) -> Path:
    """The same for all processes of a run: each of several has a folder of its own in it."""
    return basetemp.parent if "PYTEST_XDIST_WORKER" in os.environ else basetemp


@contextmanager
def _empty() -> Iterator[World]:
    with Server("--http", "127.0.0.1:0") as server:
        yield World(server.url, server.home.path)


@contextmanager
def _laptop() -> Iterator[World]:
    with _empty() as made:
        with made.client() as client:
            for purpose in ("Does the baseline still hold?", "How long is a piece of string?"):
                client.submit(["sh", "-c", "echo begun; sleep 1000"], purpose=purpose, cpus=0.1)
            client.submit(["true"], purpose="Does anything end?")
        yield made


@contextmanager
def _site() -> Iterator[World]:
    """One machine that is there among some that are not; reviews; people of two teams."""
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    (server.home.path / "layout.yaml").write_text(SITE)
    with server:
        yield World(server.url, server.home.path)


@contextmanager
def _malice() -> Iterator[World]:
    with _empty() as made:
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
def _shared_demo(name: str, folder: Path) -> Iterator[World]:
    kept = folder / f"{name}.json"
    with _alone(kept):
        found = json.loads(kept.read_text()) if kept.exists() else {**_demo(name, folder), "watched_by": 0}
        kept.write_text(json.dumps({**found, "watched_by": found["watched_by"] + 1}))
    try:
        yield World(found["url"], Path(found["home"]))
    finally:
        with _alone(kept):
            left = json.loads(kept.read_text())["watched_by"] - 1
            kept.write_text(json.dumps({**found, "watched_by": left}))
            if not left:
                kept.unlink()
                os.kill(found["pid"], signal.SIGTERM)
                until(lambda: not _is_there(found["pid"]), "the demonstration to end")


@contextmanager
def _alone(beside: Path) -> Iterator[None]:
    with beside.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_started: list["subprocess.Popen[bytes]"] = []


def _demo(name: str, folder: Path) -> dict[str, object]:
    """``muster demo``, as a newcomer would start it."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "muster", "demo", "--http", "127.0.0.1:0", "--site", name],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    _started.append(process)
    until(lambda: _said(log) is not None, lambda: f"the demo; it said {log.read_text()}", seconds=120)
    return {"pid": process.pid, **(_said(log) or {})}


def _said(log: Path) -> dict[str, str] | None:
    text = log.read_text()
    url, home = re.search(r"http://[\d.]+:\d+", text), re.search(r"MUSTER_HOME=([^\s;]+)", text)
    return None if url is None or home is None else {"url": url[0], "home": home[1]}


def _is_there(pid: int) -> bool:
    """Whoever started it has to have noticed its end, too."""
    for process in _started:
        if process.pid == pid:
            return process.poll() is None
    return Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()
