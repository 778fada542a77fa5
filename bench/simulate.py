"""How fast is a replay: months of a real cluster's jobs, under the default policy.

The Philly trace tells no nodes. Its jobs are replayed on 60 nodes of 8 GPUs, which about three
quarters of its GPU-hours would fill. Reading the file counts. It runs in a process of its own, so
that the peak of memory is the replay's; where cpu seconds are fewer, the machine was shared.
"""

import multiprocessing
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.ask import Ask, Family
from bench.figures import Figure
from muster.model.policy import preset
from muster.model.units import MILLI
from muster.simulate.run import replay
from muster.traces import philly
from muster.traces.lines import has_columns, load
from muster.traces.nodespec import parse_nodes

NODES = "60x8"
_KIB_PER_MB = 1e6 / 1024


def files(folder: Path) -> dict[str, Path]:
    found = folder.glob("*.csv")
    return {path.stem: path for path in found if has_columns(load(str(path)), philly.COLUMNS)}


def measure(ask: Ask) -> Iterator[Figure]:
    for variant, path in ask.files.items():
        ask.say(f"simulate {variant}")
        spawn = multiprocessing.get_context("spawn")  # a fork would start with our own memory
        with ProcessPoolExecutor(1, mp_context=spawn) as alone:
            seconds, beside = alone.submit(_timed, str(path)).result()
        yield Figure("simulate", variant, "default", seconds, "s", beside=beside)


FAMILY = Family(
    folder="philly",
    expects="*.csv of Philly jobs",
    files=files,
    policies=("default",),
    more_policies=(),
    measure=measure,
)


def _timed(path: str) -> tuple[float, dict[str, float]]:
    """Wall seconds, and what they were spent on."""
    begun = time.perf_counter()
    trace = philly.read(path)
    nodes = parse_nodes(NODES)
    done = replay(trace, nodes, preset("fair"))
    seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    return seconds, {
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / _KIB_PER_MB,
        "jobs": float(len(trace.jobs)),
        "gpus": done.gpus_total_milli / MILLI,
        "cycles": float(done.cycles),
    }
