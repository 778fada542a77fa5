"""By how much is a budget overshot?

A real server, real jobs, each with a budget of a second or two of what it holds. A job says what time it is,
every few milliseconds; it is paused when it falls silent (it stands still) or when SIGTERM comes (it is to
leave with a checkpoint). The time from the crossing until then, in milliseconds, is the overshoot; beside it,
after what time the server had decided. A sampling interval is five seconds.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.figures import Figure
from muster.client import Client, NoServer
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.errors import MusterError
from muster.model.events import Placed
from muster.model.job import Job, JobId
from muster.model.stewardship import BudgetReached, of_job
from muster.monitor.rates import PERIOD_SECONDS
from muster.store.journal import Journal

_RUNS = 10
_PATIENCE_SECONDS = 30.0
_CLOCK = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print(time.time(), flush=True), sys.exit(0)))\n"
    "while True:\n"
    "    print(time.time(), flush=True)\n"
    "    time.sleep(0.002)\n"
)
_CONFIGURATION = '[node]\ncpus = 64\n[budgets]\npause = "{pause}"\n'


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    for pause in ("suspend", "requeue"):
        say(f"budget: {pause}")
        overshot, decided = _overshot(pause)
        beside = {
            "median_ms": median(overshot),
            "decided_after_ms": max(decided),
            "of_an_interval_percent": max(overshot) / (10 * PERIOD_SECONDS),
            "measured": float(len(overshot)),
        }
        yield Figure("budget-overshoot", f"{_RUNS} jobs", pause, max(overshot), "ms at worst", beside=beside)


def _overshot(pause: str) -> tuple[list[float], list[float]]:
    """In milliseconds of what each holds: until it was paused, and until that was decided."""
    home = Home(Path(tempfile.mkdtemp(prefix="muster-")))
    home.configuration.write_text(_CONFIGURATION.format(pause=pause))
    command = [sys.executable, "-m", "muster", "up", "--home", str(home.path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Client(home=home.path) as client:
            _wait_for(lambda: _answers(client))
            silent = _paused(client)
        server.terminate()
        server.wait(_PATIENCE_SECONDS)
        return _compared(home, silent)
    finally:
        server.kill()
        server.wait()
        LocalEngine(home, _unknown, lambda _: {}).close(end_jobs=True)
        shutil.rmtree(home.path, ignore_errors=True)


def _unknown(job_id: JobId) -> Job:
    raise MusterError(f"nobody has told of job {job_id}")


def _answers(client: Client) -> bool:
    try:
        return bool(client.health())
    except NoServer:
        return False


def _wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise MusterError("the server does not do what it should")
        time.sleep(0.05)


def _paused(client: Client) -> dict[JobId, tuple[float, float]]:
    """Of each job, its budget in seconds of a cpu, and when it was last heard of."""
    budgets = {}
    for number in range(_RUNS):
        seconds = 1.0 + number / 10
        view = client.submit(
            [sys.executable, "-c", _CLOCK], budget=f"{seconds / 3600:.12f} CPUh", checkpoint_every="1h"
        )
        budgets[view["id"]] = seconds
    _wait_for(lambda: all(client.job(job)["state"] in ("SUSPENDED", "HELD") for job in budgets))
    time.sleep(0.2)  # for what was written and is still on its way
    return {job: (seconds, _last_word(client, job)) for job, seconds in budgets.items()}


def _last_word(client: Client, job: JobId) -> float:
    text = b"".join(client.logs(job)).decode()
    return float(re.findall(r"^(\d+\.\d+)$", text, re.MULTILINE)[-1])


def _compared(home: Home, silent: dict[JobId, tuple[float, float]]) -> tuple[list[float], list[float]]:
    journal = Journal.open(f"sqlite:///{home.database}")
    events = list(journal.events_after(0))
    journal.close()
    placed = {event.job: event.at for event in events if isinstance(event, Placed) and event.attempt == 1}
    reached = {event.subject: event.at for event in events if isinstance(event, BudgetReached)}
    overshot, decided = [], []
    for job, (seconds, last) in silent.items():
        crossed = placed[job] + seconds
        overshot.append(1000 * max(0.0, last - crossed))
        decided.append(1000 * (reached[of_job(job)] - crossed))
    return overshot, decided


if __name__ == "__main__":
    os.nice(5)
    for figure in measure():
        print(figure)
