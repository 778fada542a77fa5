"""What does it cost Muster to look at a large cluster on Slurm?

Answers for ten thousand jobs and a thousand nodes are made from records of real answers, in the form in
which Slurm writes them (spread over lines, with where each core is), every job with its own id, name
and node. Measured is Muster's own cpu time for one pass, from the bytes of the two answers to what they
mean: not that of Slurm's commands. Then the same with what follows from it, as an observing server does it:
facts, and state. The first look finds all jobs new; at each later one, some have moved on.
"""

import json
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figure
from muster.engines.slurm.answers import SlurmJob
from muster.engines.slurm.fleet import Fleet
from muster.engines.slurm.jobs import read_jobs
from muster.engines.slurm.moves import Picture, Reading
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.others import Seen, facts
from muster.engines.slurm.reasons import why
from muster.engines.slurm.states import job_standing, node_health
from muster.model.errors import BadInput
from muster.model.policy import Policy
from muster.store.fold import Fold

_JOBS, _NODES, _TRIES = 10_000, 1_000, 5
_MOVED = 500  # jobs, between two looks
_AT = 4e9  # after all that was recorded
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

        first, *later = _observed(jobs, nodes)
        yield Figure(
            "slurm-observe",
            f"{_JOBS} jobs, {_NODES} nodes, facts and state",
            folder.name,
            max(later),
            "s of cpu",
            beside={"fastest_s": min(later), "first_s": first, "moved": _MOVED},
        )


def _observed(jobs: bytes, nodes: bytes) -> list[float]:
    """The cpu seconds of each look. Between two, the first jobs of those that run have been requeued."""
    notices = Notices()
    reading, fleet, fold, seen = Reading(notices=notices), Fleet(notices), Fold(Policy()), Seen()
    found = []
    for number in range(_TRIES):
        start = time.process_time()
        records = _moved(read_jobs(jobs, notices), number)
        told = fleet.changed(read_nodes(nodes, notices), str, _AT)
        events, seen = facts(seen, Picture(_AT + number, records, fleet.gpus), reading)
        for event in (*told, *events):
            fold.apply(event)
        found.append(time.process_time() - start)
    return found


def _moved(jobs: tuple[SlurmJob, ...], number: int) -> tuple[SlurmJob, ...]:
    running = [place for place, job in enumerate(jobs) if job.states == ("RUNNING",)][:_MOVED]
    changed = list(jobs)
    for place in running:
        changed[place] = msgspec.structs.replace(jobs[place], restarts=number)
    return tuple(changed)


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
    made = {**json.loads(text), "job_id": number, "name": f"train-{number}", "comment": f"muster:{number}"}
    return made | {key: number for key in ("array_job_id", "het_job_id") if _is_set(record.get(key))}


def _is_set(value: Any) -> bool:
    return bool(value.get("number") if isinstance(value, dict) else value)
