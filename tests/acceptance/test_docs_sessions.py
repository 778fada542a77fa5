"""Pages that are a session with a server: their commands, in their order, do what the page shows.

A page says so in a comment. What stands below a command is what it prints: of each line the first word must
come, since times and names differ. A file that the page shows under its name is there when it is used.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from muster.client import Client, NoServer
from muster.engines.local.engine import LocalEngine
from muster.home import Home

ROOT = Path(__file__).parents[2]
SAYS_SO = "<!-- A test runs these commands in this order against a server. -->"
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    if SAYS_SO in path.read_text()
]
MACHINE = '[node]\ncpus = 2\nmemory = "4G"\n'  # that of the pages, where it is called lab7
HERE, THERE = socket.gethostname().partition(".")[0], "lab7"
LEFT_OUT = "…"  # a whole line, or the end of a word
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SERVES_WITHIN_SECONDS = 30.0
_COMMAND_SECONDS = 30.0


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, beside the home of a server that has just been started."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    (home / "muster.toml").write_text(MACHINE)
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUSTER_HOME", str(home))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    server = subprocess.Popen([sys.executable, "-m", "muster", "up"], stdout=subprocess.DEVNULL)
    try:
        _wait_for_server(home)
        yield folder
    finally:
        _end(home)
        server.kill()
        server.wait()


def _wait_for_server(home: Path) -> None:
    until = time.monotonic() + _SERVES_WITHIN_SECONDS
    while True:
        try:
            _health(home)
        except NoServer:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _health(home: Path) -> dict[str, Any]:
    with Client(home=home) as client:
        return client.health()


def _end(home: Path) -> None:
    """The server, which may not be the one that the fixture started, and then its jobs."""
    with suppress(NoServer):
        os.kill(_health(home)["pid"], signal.SIGKILL)
    LocalEngine(Home(home), {}.__getitem__, lambda _: {}).close(end_jobs=True)


def _sessions(page: str) -> list[tuple[str, list[str]]]:
    """Commands, and the lines that a page shows below each."""
    found: list[tuple[str, list[str]]] = []
    for block in _CONSOLE.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and line.strip():
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_session_in_the_docs_goes_as_it_is_told(name: str, folder: Path) -> None:
    page = (ROOT / name).read_text()
    for file, text in _FILE.findall(page):
        (folder / file).write_text(text)
    for command, shown in _sessions(page):
        done = subprocess.run(
            command.replace(THERE, HERE),
            shell=True,
            check=False,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_SECONDS,
        )
        assert done.returncode == 0, f"{name}: {command}\n{done.stdout}"
        printed = done.stdout.replace(HERE, THERE).splitlines()
        missing = [word for word in _first_words(shown) if not _is_among(word, _first_words(printed))]
        assert not missing, f"{name}: {command}: no line begins with {missing}:\n{done.stdout}"


def _is_among(word: str, printed: set[str]) -> bool:
    if not word.endswith(LEFT_OUT):
        return word in printed
    return any(other.startswith(word.removesuffix(LEFT_OUT)) for other in printed)


def _first_words(lines: list[str]) -> set[str]:
    return {line.split()[0] for line in lines if line.strip()}


def test_the_tutorial_and_the_first_page_are_sessions() -> None:
    assert {"README.md", "docs/tutorial.md", "docs/how-to/submit-jobs.md"} <= set(PAGES)
