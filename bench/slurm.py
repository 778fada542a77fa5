"""What does it cost Muster to look at a large cluster on Slurm?

Answers for ten thousand jobs and a thousand nodes are made from records of real answers, in the form in
which Slurm writes them (spread over lines, with where each core is), every job with its own id, name
and node. Measured is Muster's own cpu time for one pass, from the bytes of the two answers to what they
mean: not that of Slurm's commands.
"""

import json
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.figures import Figure
from muster.engines.slurm.jobs import read_jobs
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.reasons import why
from muster.engines.slurm.states import job_standing, node_health
from muster.model.errors import BadInput

_JOBS, _NODES, _TRIES = 10_000, 1_000, 5
_RECORDED = Path(__file__).parent.parent / "tests" / "engines" / "slurm" / "recorded"
_MEGABYTE = 1e6


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    if not _RECORDED.is_dir():
        raise BadInput("the recorded answers of Slurm are not here; run the bench from a checkout")
    for folder in sorted(path for path in _RECORDED.iterdir() if path.is_dir()):
        say(f"slurm: {folder.name}")
        jobs, nodes = _answer(folder, "squeue", "jobs", _JOBS), _answer(folder, *_nodes_of(folder), _NODES)
        first, *later = _passes(jobs, nodes)
        yield Figure(
            "slurm-pass",
            f"{_JOBS} jobs, {_NODES} nodes",
            folder.name,
            min(later),
            "s of cpu",
            beside={
                "slowest_s": max(later),
                "first_s": first,  # in which keys are looked at, too
                "megabytes": (len(jobs) + len(nodes)) / _MEGABYTE,
            },
        )


def _passes(jobs: bytes, nodes: bytes) -> list[float]:
    """The cpu seconds of each."""
    notices = Notices()
    found = []
    for _ in range(_TRIES):
        start = time.process_time()
        _look(jobs, nodes, notices)
        found.append(time.process_time() - start)
    return found


def _look(jobs: bytes, nodes: bytes, notices: Notices) -> None:
    for job in read_jobs(jobs, notices):
        job_standing(job, notices)
        if not job.begun:
            why(job, notices)
    for node in read_nodes(nodes, notices):
        node_health(node, notices)


def _nodes_of(folder: Path) -> tuple[str, str]:
    """22.05 lists nodes by sinfo, the others by scontrol."""
    return ("sinfo", "nodes") if folder.name.startswith("22") else ("scontrol-node", "nodes")


def _answer(folder: Path, command: str, key: str, count: int) -> bytes:
    found = [json.loads(path.read_bytes()) for path in sorted(folder.glob(f"*.{command}.json"))]
    records = [record for answer in found for record in answer[key]]
    made = [_one(record, number) for number, record in enumerate(islice(cycle(records), count), 1)]
    return json.dumps({**found[0], "errors": [], key: made}, indent=2).encode()


def _one(record: dict[str, Any], number: int) -> dict[str, Any]:
    """A copy under its own id, on nodes of its own."""
    if "job_id" not in record:
        return {**record, "name": f"node{number}"}
    text = json.dumps(record).replace('"node', f'"rack{number % 250}-node')
    return {**json.loads(text), "job_id": number, "name": f"train-{number}", "comment": f"muster:{number}"}
