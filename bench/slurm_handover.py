"""How long does it take to hand 500 jobs to Slurm, through Muster and by plain ``sbatch``?

A real cluster is started for it (that of the tests), with a real server on it in ``govern``. Measured is from
the first submission until Slurm has given the last of 500 jobs a number; plain before and after Muster, in
one run, each one ``sbatch`` after the other, as a loop in a shell does it.
"""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figures import Figure

_JOBS = 500
_TESTS = Path(__file__).parent.parent / "tests"
_PATIENCE_SECONDS = 300.0


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    """Nothing, where no cluster can be started."""
    sys.path[:0] = [str(_TESTS / "slurm"), str(_TESTS)]
    clusters = importlib.import_module("slurm_cluster")
    os.environ.setdefault(clusters.WANTED, "1")
    if (why_not := clusters.why_not()) is not None:
        say(f"slurm hand-over: left out, since {why_not}")
        return
    say("slurm hand-over: starting a cluster")
    cluster = clusters.started()
    try:
        yield from _compared(cluster, say)
    finally:
        cluster.stop()


def _compared(cluster: Any, say: Callable[[str], None]) -> Iterator[Figure]:
    say("slurm hand-over: plain, Muster, plain")
    plain = [_plain(cluster)]
    cluster.tidy()
    ours = _through_muster(cluster)
    cluster.tidy()
    plain.append(_plain(cluster))
    beside = {"plain_s": sum(plain) / 2, "of_plain": 2 * ours / sum(plain)}
    yield Figure("slurm-handover", f"{_JOBS} jobs", "govern", ours, "s", beside=beside)


def _plain(cluster: Any) -> float:
    begun = time.monotonic()
    for _ in range(_JOBS):
        subprocess.run(
            ["sbatch", "--quiet", "--output=/dev/null"],
            input=b"#!/bin/sh\nexec /bin/true\n",
            env=cluster.environment(),
            check=True,
        )
    return time.monotonic() - begun


def _through_muster(cluster: Any) -> float:
    with importlib.import_module("slurm_server").SlurmServer(cluster) as server, server.client() as client:
        begun = time.monotonic()
        client.submit_many([{"command": ["/bin/true"]}] * _JOBS)
        while _handed_over(server.home.path) < _JOBS:
            if time.monotonic() - begun > _PATIENCE_SECONDS:
                raise TimeoutError(f"{_handed_over(server.home.path)} of {_JOBS} were handed over")
            time.sleep(0.02)
        return time.monotonic() - begun


def _handed_over(home: Path) -> int:
    """How many have a number, by what the engine has written down."""
    text = (home / "slurm" / "records").read_text()
    return len({line.partition('"set"')[0] for line in text.splitlines() if '"id":' in line})
