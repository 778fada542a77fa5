"""A PostgreSQL server of the tests' own, and what all tests of the journal do."""

import os
import pwd
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from muster.model.events import Event, Held
from muster.store.journal import Batch, Journal

Opener = Callable[..., Journal]

LONG_SECONDS = 30.0  # a test that waits so long has failed


def held(number: int) -> Event:
    return Held(float(number), f"j{number}")


class Answers:
    """Collects what ``done`` was called with, and waits for so many calls."""

    def __init__(self) -> None:
        self.told: list[tuple[int, BaseException | None]] = []
        self._more = threading.Condition()

    def of(self, number: int) -> Callable[[BaseException | None], None]:
        def done(error: BaseException | None) -> None:
            with self._more:
                self.told.append((number, error))
                self._more.notify_all()

        return done

    def wait(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.told) >= count, LONG_SECONDS)


def put(journal: Journal, batch: Batch) -> None:
    """Write, and wait until it is durable."""
    answers = Answers()
    journal.write(batch, answers.of(0))
    answers.wait(1)
    assert answers.told == [(0, None)]


class Postgres:
    """A server in a temporary folder, reached through a socket there."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries, self.folder = binaries, folder
        self._user = _unprivileged()
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", "data", "-U", "muster", "-A", "trust", "--no-sync")
        self.start()

    def start(self) -> None:
        # Nothing here has to survive a loss of power, and no test looks at the clock.
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def database(self) -> str:
        """The URL of a store that nobody has opened yet: a schema of its own, which is made quickly."""
        name = f"m{uuid.uuid4().hex}"
        self._run("psql", "-h", str(self.folder), "-U", "muster", "-c", f"CREATE SCHEMA {name}", "postgres")
        return f"postgresql://muster@/postgres?host={self.folder}&options=-csearch_path%3D{name}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        nowhere = subprocess.DEVNULL  # not a pipe: the server would keep it open
        subprocess.run(command, cwd=self.folder, user=self._user, check=True, stdout=nowhere)


def _unprivileged() -> str | None:
    """PostgreSQL refuses to run as root: whom it runs as instead."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
