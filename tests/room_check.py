"""Are the fold's columns what its running jobs say? Worked out anew, one job at a time, and compared."""

from collections import Counter

import numpy as np

from muster.model.node import Node
from muster.model.resources import NOTHING
from muster.model.snapshot import Running, Snapshot
from muster.model.units import MILLI
from muster.store.fold import Fold


def validate(fold: Fold) -> None:
    """Raise AssertionError if a node is oversubscribed, or a sum has drifted."""
    snap = fold.snapshot()
    fold.release()
    for node in snap.hardware.nodes:
        _check_node(node, snap)
    _check_sums(snap)
    _check_counts(fold, snap)


def _check_node(node: Node, snap: Snapshot) -> None:
    i, room = snap.hardware.index[node.name], snap.room
    seats = [s for r in snap.running.values() for s in r.seats if s.node == node.name]
    cpus = node.cpus_milli - sum(s.shape.cpus_milli for s in seats)
    memory = node.memory_bytes - sum(s.shape.memory_bytes for s in seats)
    disk = node.disk_bytes - sum(s.shape.disk_bytes for s in seats)
    assert cpus >= 0, f"{node.name} has {cpus} thousandths of a cpu left"
    assert memory >= 0, f"{node.name} has {memory} bytes left"
    assert disk >= 0, f"{node.name} has {disk} bytes of disk left"
    assert (room.cpus[i], room.memory[i], room.disk[i]) == (cpus, memory, disk)
    for g, device in enumerate(node.devices):
        held = sum(s.device_milli for s in seats if g in s.devices)
        assert held <= MILLI, f"GPU {g} of {node.name} is held {held / MILLI} times"
        assert room.gpu[i, g] == MILLI * device.healthy - held
        shares = [s.shape for s in seats if g in s.devices and s.shape.shares_gpu]
        assert sum(s.gpu_milli for s in shares) <= MILLI
        if device.memory_bytes is not None:
            assert sum(s.gpu_memory_bytes for s in shares) <= device.memory_bytes
    assert room.row(i) == (cpus, memory, disk, room.gpu[i].tolist())
    kinds = Counter(room.kind_of(s.shape) for s in seats if s.devices)
    assert room.kinds[i].tolist() == [kinds[k] for k in range(4)]


def _check_sums(snap: Snapshot) -> None:
    """What teams hold, and at what rate they and their owners are charged."""
    for team, held in snap.held.items():
        theirs = (r.held for r in snap.running.values() if r.job.team == team)
        assert held == sum(theirs, NOTHING), f"what {team!r} holds has drifted"
    for (team, owner), account in snap.accounts.items():
        charged = any(_belongs(r, team, owner, snap) for r in snap.running.values())
        idle = np.allclose(account.rate, 0.0)
        assert idle is not charged, f"{team!r}, {owner!r} is charged {account.rate}"


def _belongs(running: Running, team: str, owner: str | None, snap: Snapshot) -> bool:
    """Whether a job that holds something is charged to the team, or to its owner there."""
    job = running.job
    if not any(running.held.vector()):
        return False
    if owner is not None:
        return (job.team, job.owner) == (team, owner)
    return team in snap.tenancy.path(job.team)


def _check_counts(fold: Fold, snap: Snapshot) -> None:
    running = list(snap.running.values())
    arrays = Counter(r.job.array.array for r in running if r.job.array is not None)
    assert {a: n for a, n in snap.array_running.items() if n} == dict(arrays)
    assert snap.tally.by_priority == tuple(sum(r.job.priority == p for r in running) for p in range(3))
    assert snap.tally.movable == sum(r.job.checkpoint is not None for r in running)
    alive = [r.waiting or r.running for r in fold.records.values() if r.outcome is None]
    jobs = [one.job for one in alive if one is not None]
    assert len(jobs) == len(alive), "a job neither waits nor runs, and has not ended"
    assert fold.apart == Counter((w.job.team, w.job.held) for w in snap.ineligible.values())
    ended = Counter(r.outcome for r in fold.records.values() if r.outcome is not None)
    for (_, outcome), count in fold.ended.items():  # of some it may have been forgotten
        ended[outcome] -= count
    assert all(left <= 0 for left in ended.values())
    active = Counter((j.team, j.owner) for j in jobs)
    owners = {holder: n for holder, n in snap.active.items() if holder[1] is not None}
    assert owners == dict(active)
    teams = Counter(t for j in jobs for t in snap.tenancy.path(j.team)[:-1])
    assert {t: n for (t, owner), n in snap.active.items() if owner is None} == dict(teams)
