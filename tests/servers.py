"""A real server for tests: ``muster up`` in a home of its own, which can be killed and started again there.

Whatever a test leaves behind ends with it: the server, its keeper, and every job.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from muster.client import Client, NoServer
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.errors import MusterError
from muster.model.job import JobId

PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.005

View = dict[str, Any]


class Server:
    """``muster up`` with these options, in a folder that is removed with it unless it was given."""

    def __init__(self, *options: str, home: Path | None = None) -> None:
        self.home = Home(home or Path(tempfile.mkdtemp(prefix="muster-")))
        self.home.path.chmod(0o755)  # jobs of other users go through it
        self.options = options
        self.work = Path(tempfile.mkdtemp(prefix="muster-work-"))  # for what jobs write
        self.log = self.work / "server.log"
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Self:
        self.launch()
        until(self.answers, lambda: f"the server to answer; it said: {self.said()[-2000:]}")
        return self

    def launch(self) -> None:
        """Start it, and don't wait."""
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "muster", "up", "--home", str(self.home.path), *self.options]

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server has ended: {self.said()[-2000:]}"
        try:
            with self.client() as client:
                return bool(client.health()["pid"] == self.process.pid)
        except NoServer:
            return False

    def said(self) -> str:
        """What the server has written, this time and before."""
        return self.log.read_text(errors="replace")

    def client(self) -> Client:
        return Client(home=self.home.path)

    @contextmanager
    def clearing(self) -> Iterator[Client]:
        """A client; what jobs there are in the end are stopped at once."""
        with self.client() as client:
            yield client
            for job in client.jobs(limit=0):
                client.stop(job["id"], grace_seconds=0)
            until(lambda: not client.jobs(), "all to have ended")

    @property
    def url(self) -> str:
        """Where it answers over TCP; it was started with ``--http 127.0.0.1:0``, and chose the port."""
        return re.findall(r"http://[\d.]+:\d+", self.said())[-1]

    def kill(self) -> None:
        """As the kernel does it, without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def terminate(self) -> int:
        """Ask it to go. Its exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(PATIENCE_SECONDS)
        self.process = None
        return code

    def sh(self, script: str, **options: object) -> View:
        """Submit a line of shell."""
        with self.client() as client:
            return client.submit(["sh", "-c", script], **options)

    def muster(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """The command line, as a user would call it."""
        return subprocess.run(
            [sys.executable, "-m", "muster", *words],
            env={**os.environ, "MUSTER_HOME": str(self.home.path), **environment},
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def processes(self) -> list[int]:
        """Everything that runs as a job of this server, however it came about."""
        mark = f"\0MUSTER_HOME={self.home.path.resolve()}\0".encode()
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_job(pid, mark)]

    def attempts_kept(self) -> set[tuple[JobId, int]]:
        """What the keeper runs. Only while there is no server, whose place this takes."""
        engine = self._engine()
        try:
            return engine.running()
        finally:
            engine.close()

    def close(self) -> None:
        self.kill()
        self._engine().close(end_jobs=True)
        shutil.rmtree(self.home.path, ignore_errors=True)  # a disk that was mounted there is its owner's
        shutil.rmtree(self.work)

    def _engine(self) -> LocalEngine:
        return LocalEngine(self.home, _unknown, lambda _: {})


def until(
    true: Callable[[], object], what: str | Callable[[], str], seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait for it, but not for ever."""
    deadline = time.monotonic() + seconds
    while not true():
        waited_for = what if isinstance(what, str) else what()
        assert time.monotonic() < deadline, f"waited in vain for {waited_for}"
        time.sleep(_LOOK_SECONDS)


def _unknown(job_id: JobId) -> NoReturn:
    raise MusterError(f"nobody has told of job {job_id}")


def _is_job(pid: int, mark: bytes) -> bool:
    try:
        environment = b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return mark in environment and b"\0MUSTER_ATTEMPT=" in environment
