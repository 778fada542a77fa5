"""How much of a cluster can be filled: GPU-sharing pods on Alibaba's openb nodes.

The protocol of the FGD study (USENIX ATC'23): pods arrive one by one in shuffled order and never
leave; what finds no place is turned away, without a queue. When 130 % of the GPUs have been asked
for, how much is allocated? If a trace asks for less, copies of its pods drawn at random follow; if
for more, pods drawn at random are left out. The order of nodes is shuffled too, once per seed, so
that no policy lives off it. ``fgd`` knows the mix of pods in advance, as published; ``default``
learns it from those that have arrived.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev

import msgspec
import numpy as np

from bench import bound, departures
from bench.ask import Ask, Family, rows_of
from bench.figures import Figure
from muster.model.errors import BadInput
from muster.model.events import NodeSeen, Placed, Submitted, Withdrawn
from muster.model.job import Job
from muster.model.policy import Policy, preset
from muster.model.units import MILLI, parse_number
from muster.schedule import schedule
from muster.store.fold import Fold
from muster.traces import openb
from muster.traces.trace import Trace

_PREFIX, _ENDING = "openb_pod_list_", ".csv"
_SEEDS = 10
_ARRIVED = 1.3  # of the GPUs
_PUBLISHED_AS: dict[str, str] = {
    "fgd": "FGD",
    "best-fit": "BestFit",
    "dot-product": "DotProd",
    "packing": "GpuPacking",
    "clustering": "GpuClustering",
    "random": "Random",
}


def files(folder: Path) -> dict[str, Path]:
    found = folder.glob(f"{_PREFIX}*{_ENDING}")
    return {path.name.removeprefix(_PREFIX).removesuffix(_ENDING): path for path in found}


def measure(ask: Ask) -> Iterator[Figure]:
    for variant, path in ask.files.items():
        yield from _allocated(ask, variant, path)
        if "default" in ask.policies:
            yield from departures.measure(variant, _trace(str(path)), ask.say)


FAMILY = Family(
    folder="openb",
    expects=f"{_PREFIX}*{_ENDING} beside {openb.NODE_FILES[0]}",
    files=files,
    policies=("default", "fgd", "best-fit"),
    more_policies=("dot-product", "packing", "clustering", "random"),
    measure=measure,
)


class _Case(msgspec.Struct, frozen=True):
    """One run."""

    path: str
    policy: str
    seed: int


def _allocated(ask: Ask, variant: str, path: Path) -> Iterator[Figure]:
    """Every policy's figure; ours is set against the others', so all are measured first."""
    gpus = _gpus(_trace(str(path)))
    left: dict[str, list[float]] = {}
    for policy in ask.policies:
        seeds = range(ask.seeds or _SEEDS)
        cases = [_Case(str(path), policy, seed) for seed in seeds]
        left[policy] = []
        for seed, gpus_left in enumerate(_each(cases, ask.workers), 1):
            left[policy].append(gpus_left)
            ask.say(f"placement {variant} {policy}: {seed} of {len(cases)} seeds")
    published = _published(path.parent / "published.csv", variant)
    for policy, lefts in left.items():
        percents = [100 * (1 - gpus_left / gpus) for gpus_left in lefts]
        beside = {"gpus_left": fmean(lefts)}
        if policy == "default" and bound.is_available():
            beside |= _against_bound(path, left)
        yield Figure(
            "placement",
            variant,
            policy,
            fmean(percents),
            "% allocated",
            sd=stdev(percents) if len(percents) > 1 else None,
            published=published.get(policy),
            beside=beside,
        )


def _each(cases: list[_Case], workers: int) -> Iterator[float]:
    if workers == 1:
        yield from map(_gpus_left, cases)
    else:
        with ProcessPoolExecutor(workers) as pool:
            yield from pool.map(_gpus_left, cases)


def _against_bound(path: Path, left: dict[str, list[float]]) -> dict[str, float]:
    """What the best could leave, and the part of the distance from fgd to it that we close."""
    trace = _trace(str(path))
    seeds = range(len(left["default"]))
    arrived = ([job.gang.parts[0].shape for job in arrivals(trace, seed)] for seed in seeds)
    least = fmean(bound.gpus_left(trace.nodes, shapes) for shapes in arrived)
    beside = {"bound_gpus_left": least}
    if "fgd" in left and (distance := fmean(left["fgd"]) - least):
        beside["closed"] = (fmean(left["fgd"]) - fmean(left["default"])) / distance
    return beside


def _published(path: Path, variant: str) -> dict[str, float]:
    """Mean allocated percent by policy, from a table that may lie beside the traces."""
    ours = {published: policy for policy, published in _PUBLISHED_AS.items()}
    columns = ("trace", "policy", "arrived_percent", "allocated_percent_mean")
    return {
        ours[policy]: parse_number(mean)
        for trace, policy, arrived, mean in rows_of(path, columns)
        if trace == variant and policy in ours and parse_number(arrived) == 100 * _ARRIVED
    }


# --- One run -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _trace(path: str) -> Trace:
    trace = openb.read(path)
    if not _gpus(trace):
        raise BadInput(f"expected a list of nodes with GPUs beside {path}: {openb.NODE_FILES[0]}")
    if not any(entry.job.gang.asked().gpus_milli for entry in trace.jobs):
        raise BadInput(f"expected pods that ask for GPUs in {path}; there is none")
    return trace


def _gpus(trace: Trace) -> int:
    return sum(len(node.devices) for node in trace.nodes)


def arrivals(trace: Trace, seed: int) -> list[Job]:
    """Shuffled pods that ask for 130 % of the GPUs; each is a job of its own, a second apart."""
    rng = np.random.default_rng(seed)
    jobs = [trace.jobs[i].job for i in rng.permutation(len(trace.jobs))]
    room_milli = _ARRIVED * _gpus(trace) * MILLI - sum(map(_asked_milli, jobs))
    if room_milli < 0:
        _leave_out(jobs, -room_milli, rng)
    else:
        _add_copies(jobs, room_milli, rng)
    replace = msgspec.structs.replace
    return [replace(job, id=str(n), submitted_at=float(n)) for n, job in enumerate(jobs)]


def _leave_out(jobs: list[Job], least_milli: float, rng: np.random.Generator) -> None:
    while least_milli > 0:
        least_milli -= _asked_milli(jobs.pop(int(rng.integers(len(jobs)))))


def _add_copies(jobs: list[Job], most_milli: float, rng: np.random.Generator) -> None:
    """Until the next would be too much."""
    known = len(jobs)
    while most_milli >= (asked := _asked_milli(drawn := jobs[int(rng.integers(known))])):
        most_milli -= asked
        jobs.append(drawn)


def _asked_milli(job: Job) -> int:
    return job.gang.asked().gpus_milli


def _gpus_left(case: _Case) -> float:
    """GPUs unallocated after the last arrival."""
    trace = _trace(case.path)
    jobs = arrivals(trace, case.seed)
    policy = msgspec.structs.replace(preset("fifo"), place=case.policy, compact=False, seed=case.seed)
    fold = _cluster(trace, policy, case.seed)
    if case.policy == "fgd":
        _rehearse(fold, jobs)
    free_milli = _gpus(trace) * MILLI
    for job in jobs:
        if _arrives(fold, policy, job):
            free_milli -= _asked_milli(job)
    return free_milli / MILLI


def _cluster(trace: Trace, policy: Policy, seed: int) -> Fold:
    fold = Fold(policy)
    shuffled = np.random.default_rng((seed, 1)).permutation(len(trace.nodes))
    for i in shuffled:
        fold.apply(NodeSeen(0.0, trace.nodes[i]))
    return fold


def _rehearse(fold: Fold, jobs: list[Job]) -> None:
    """Everybody has come once before and gone again: that is how the mix is known in advance."""
    for job in jobs:
        before = msgspec.structs.replace(job, id=f"before-{job.id}", submitted_at=0.0)
        fold.apply(Submitted(0.0, before))
        fold.apply(Withdrawn(0.0, before.id))


def _arrives(fold: Fold, policy: Policy, job: Job) -> bool:
    """Whether it found a place; if not, it is turned away."""
    now = job.submitted_at
    fold.apply(Submitted(now, job))
    plan = schedule(fold.snapshot(), policy, now=now)
    fold.release()
    for start in plan.starts:
        fold.apply(Placed(now, start.job, start.attempt, start.seats, start.expected_seconds))
    if not plan.starts:
        fold.apply(Withdrawn(now, job.id))
    return bool(plan.starts)
