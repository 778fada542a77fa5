"""Compaction: moving jobs that keep checkpoints, to open a block for a gang that needs one.

When a job does not fit although enough is free in all, jobs may be moved off a node: each must keep
checkpoints, must find another seat at once, and what moving them costs (unsaved work, saving, restoring)
must be worth it: the GPU-time that the waiting job gains by starting before its promise is at least
``compact_gain`` times the GPU-time that the moves cost.
"""

from muster.model.job import Gang
from muster.model.plan import Promise
from muster.model.policy import Policy
from muster.model.snapshot import Running, Waiting
from muster.model.units import MILLI
from muster.schedule.place import Placer
from muster.schedule.preempt import Evictions, Victims


def moves_for(
    waiting: Waiting,
    promise: Promise | None,
    evictions: Evictions,
    placer: Placer,
    policy: Policy,
    now: float,
) -> Victims | None:
    """Jobs to move so that this one can start; None if it is not possible or not worth it."""
    found = evictions.cheapest(waiting, _movable)
    if found is None or len(found.jobs) > policy.most_moves:
        return None
    if promise is not None and promise.starts_at is not None:
        asked = waiting.job.gang.asked()
        weight = (asked.gpus_milli or asked.cpus_milli) / MILLI
        gain = max(0.0, promise.starts_at - now) * weight
        if gain < policy.compact_gain * found.cost:
            return None
    movers = [victim for victim, _ in found.jobs]
    return found if _all_find_seats(movers, waiting.job.gang, placer) else None


def _movable(victim: Running) -> str | None:
    return "compact" if victim.job.checkpoint is not None else None


def _all_find_seats(movers: list[Running], gang: Gang, placer: Placer) -> bool:
    """Whether the gang and, after it, all movers have room; changes nothing."""
    with placer.scratch.trial():
        for victim in movers:
            placer.scratch.leave_all(victim.seats)
        if placer.place(gang) is None:
            return False
        return all(placer.place(victim.job.gang) is not None for victim in movers)
