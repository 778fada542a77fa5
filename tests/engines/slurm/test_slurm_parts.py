"""The lines of shell that run on nodes, run here: what keeps a log within its bound, and nothing else."""

import os
import signal
import subprocess
import time
from pathlib import Path

from muster.engines.local.logs import full_notice
from muster.engines.slurm.parts import bounded

MOST = 10_000


def started(log: Path, program: str) -> subprocess.Popen[bytes]:
    script = "\n".join([*bounded(f"'{log}'", MOST), f"exec {program}"])
    with open(log, "ab") as out:
        return subprocess.Popen(["sh", "-c", script], stdout=out, stderr=out, start_new_session=True)


def until_cut(log: Path) -> None:
    deadline = time.monotonic() + 20
    while not log.read_text().endswith(full_notice(MOST)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_log_is_cut_back_again_and_again(tmp_path: Path) -> None:
    log = tmp_path / "a 'log"
    quoted = Path(str(log).replace("'", "'\\''"))
    log.write_bytes(b"x" * 3 * MOST)
    script = "\n".join([*bounded(f"'{quoted}'", MOST), "exec sleep 100"])
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        until_cut(log)
        with open(log, "ab") as file:
            file.write(b"y" * 3 * MOST)
        until_cut(log)
        assert log.read_text() == "x" * MOST + full_notice(MOST)
    finally:
        process.kill()
        process.wait()


def test_it_changes_no_exit_code_and_is_not_waited_for(tmp_path: Path) -> None:
    process = started(tmp_path / "log", "sh -c 'echo done; exit 3'")
    assert process.wait(timeout=10) == 3
    assert (tmp_path / "log").read_text() == "done\n"


def test_the_program_has_no_child_that_it_does_not_know(tmp_path: Path) -> None:
    waits = "import os, sys\ntry: os.wait()\nexcept ChildProcessError: sys.exit(4)"
    process = started(tmp_path / "log", f"python3 -c '{waits}'")
    assert process.wait(timeout=10) == 4


def test_it_outlives_signals_and_ends_with_the_program(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = started(log, "sh -c 'trap : USR1 TERM; while :; do sleep 0.05; done'")
    time.sleep(0.3)  # it must have its traps
    for number in (signal.SIGUSR1, signal.SIGTERM):
        os.killpg(process.pid, number)
    with open(log, "ab") as file:
        file.write(b"x" * 3 * MOST)
    until_cut(log)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while _group_lives(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
