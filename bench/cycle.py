"""How fast is deciding: placements per second in one process, and a full cycle over a long queue."""

import gc
import time
from collections.abc import Iterator

import numpy as np

from bench.figures import Figure
from muster.model.events import Exited, NodeSeen, Outcome, Placed, Started, Submitted, TeamSet
from muster.model.job import Checkpoint, Gang, Job, Priority, Together, single
from muster.model.node import Device, Node
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.tenancy import Quota, Team
from muster.model.units import GIB, HOUR, MILLI
from muster.schedule import schedule
from muster.store.fold import Fold

_TEAMS, _OWNERS = 16, 8


def measure(seeds: int = 3) -> Iterator[Figure]:
    """The best of a few runs: what the machine can do, not what else it was doing."""
    for nodes, queued in ((1_000, 4_000), (10_000, 16_000)):
        rate = max(_placements_per_second(nodes, queued, seed) for seed in range(seeds))
        yield Figure("placements", str(nodes), "default", rate, "placements/s")
    short = max(_placements_per_second(10_000, 2_000, seed) for seed in range(seeds))
    long = max(_placements_per_second(10_000, 64_000, seed) for seed in range(seeds))
    yield Figure("placements-64000-queued", "10000", "default", long, "placements/s")
    yield Figure("long-queue-ratio", "10000", "default", long / short, "of the rate at 2,000 queued")
    seconds = min(_full_cycle(seed)[0] for seed in range(seeds))
    yield Figure("full-cycle-100000-waiting", "1000", "default", seconds, "s")


def _placements_per_second(nodes: int, queued: int, seed: int) -> float:
    fold = _cluster(nodes, Policy(), seed)
    for job in _queue(queued, seed):
        fold.apply(Submitted(job.submitted_at, job))
    plan, seconds = _timed(fold, Policy())
    return len(plan.starts) / seconds


def _full_cycle(seed: int) -> tuple[float, Plan]:
    """A full cluster, half of it low priority, some teams over quota; 100,000 jobs wait."""
    policy = Policy()
    fold = _cluster(1_000, policy, seed)
    for i in range(_TEAMS // 2):
        fold.apply(TeamSet(0.0, Team(f"team{i}", quota=Quota(gpus_milli=400 * MILLI))))
    for job in _queue(12_000, seed + 1, low=0.5):
        fold.apply(Submitted(job.submitted_at, job))
    plan = schedule(fold.snapshot(), policy, now=0.0)
    fold.release()
    for start in plan.starts:
        fold.apply(Placed(0.0, start.job, start.attempt, start.seats, start.expected_seconds))
        fold.apply(Started(0.0, start.job, start.attempt))
    for job in _queue(100_000, seed, prefix="w", at=HOUR / 4):
        fold.apply(Submitted(job.submitted_at, job))
    plan, seconds = _timed(fold, policy, now=HOUR / 2)
    return seconds, plan


def _timed(fold: Fold, policy: Policy, now: float = 0.0) -> tuple[Plan, float]:
    snap = fold.snapshot()
    gc.collect()
    begun = time.perf_counter()
    plan = schedule(snap, policy, now=now)
    return plan, time.perf_counter() - begun


def _cluster(nodes: int, policy: Policy, seed: int) -> Fold:
    """Nodes of eight GPUs in racks of ten, with some history of runs."""
    fold = Fold(policy)
    gpus = tuple(Device("A100", 80 * GIB, numa=g // 4) for g in range(8))
    for i in range(nodes):
        node = Node(f"n{i:05}", 128 * MILLI, 1024 * GIB, devices=gpus, rack=f"r{i // 10}")
        fold.apply(NodeSeen(0.0, node))
    for job in _queue(256, seed, prefix="h"):
        fold.apply(Submitted(0.0, job))
    plan = schedule(fold.snapshot(), policy, now=0.0)
    fold.release()
    for start in plan.starts:
        fold.apply(Placed(0.0, start.job, 1, start.seats, start.expected_seconds))
        fold.apply(Exited(0.0, start.job, 1, Outcome.SUCCEEDED, 0))
    return fold


def _queue(count: int, seed: int, *, prefix: str = "q", low: float = 0.1, at: float = 0.0) -> Iterator[Job]:
    """Whole GPUs, shares and gangs, from many owners in several teams."""
    rng = np.random.default_rng(seed)
    shapes = _gangs()
    weights = np.array([weight for _, weight in shapes])
    kinds = rng.choice(len(shapes), count, p=weights / weights.sum())
    for i in range(count):
        team = int(rng.integers(_TEAMS))
        yield Job(
            f"{prefix}{i}",
            shapes[kinds[i]][0],
            at,
            name="train",
            owner=f"user{team}-{int(rng.integers(_OWNERS))}",
            team=f"team{team}",
            priority=Priority.LOW if rng.random() < low else Priority.NORMAL,
            time_limit_seconds=float(rng.choice([1, 4, 24])) * HOUR,
            checkpoint=Checkpoint(600.0, 20.0, 20.0) if rng.random() < 0.5 else None,
        )


def _gangs() -> list[tuple[Gang, float]]:
    """What is asked for, and how often."""
    return [
        (_share(250, 4), 18),
        (_share(500, 6), 14),
        (_share(460, 6), 8),
        (_whole(1, 8), 28),
        (_whole(1, 12), 12),
        (_whole(2, 16), 9),
        (_whole(4, 48), 4),
        (_whole(8, 96), 3),
        (_whole(8, 96, 2), 1.5),
        (_whole(4, 48, 2, Together.RACK), 1.5),
        (single(cpus_milli=8 * MILLI, memory_bytes=32 * GIB), 6),
    ]


def _share(milli: int, cpus: int) -> Gang:
    return single(gpus=1, gpu_milli=milli, cpus_milli=cpus * MILLI, memory_bytes=16 * GIB)


def _whole(gpus: int, cpus: int, parts: int = 1, together: Together = Together.ANYWHERE) -> Gang:
    memory = gpus * 64 * GIB
    return single(gpus=gpus, cpus_milli=cpus * MILLI, memory_bytes=memory, parts=parts, together=together)
