"""The scripts for shells, in the shells themselves where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from canned import Canned, view


@pytest.fixture(autouse=True)
def muster(server: Canned, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a ``muster`` on the PATH, and a server with a job."""
    server.answers["GET /jobs"] = {"jobs": [view()], "more": 0}
    command = home / "bin" / "muster"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from muster.cli.main import main; main()" "$@"\n'
    )
    command.chmod(0o755)
    (home / "train.sh").touch()
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))


def said(shell: str, *arguments: str) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


LINES = [
    ("sto", ["stop"]),
    ("stop ", ["12"]),
    ("ps --state R", ["RUNNING"]),
    ("submit --gpu-mem", ["--gpu-memory"]),
]


@pytest.mark.parametrize(("typed", "found"), LINES)
def test_zsh_completes(typed: str, found: list[str]) -> None:
    """Also where nothing else has asked for completion before."""
    words = " ".join(f"'{word}'" for word in f"muster {typed}".split(" "))
    load = 'eval "$(muster completion zsh)"; [[ $_comps[muster] == _muster ]] || exit 3'
    as_if = f"compadd() {{ shift; print -l -- $@ }}; words=({words}); CURRENT=$#words; _muster"
    assert said("zsh", "-f", "-c", f"{load}; {as_if}") == found


@pytest.mark.parametrize(("typed", "found"), [*LINES, ("submit tra", ["train.sh"])])
def test_fish_completes(typed: str, found: list[str]) -> None:
    script = f"muster completion fish | source; complete -C 'muster {typed}'"
    assert said("fish", "--no-config", "-c", script) == found
