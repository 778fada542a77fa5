"""What a job spends its time on, and which of it bounds the job.

Every measured minute is a budget of time. Part of it the job was on its cpus, or could have been and had to
wait for them; part it waited for disks, part for memory that was taken from it; part its GPUs computed; and
in the rest nothing was busy, so it waited for something that no meter sees: a lock, a peer, a person. Each
part is a score from 0 to 1, and the scores of a job are those of its minutes, weighed by how much of them was
measured. The highest says what bounds it, and by how much it stands out says how sure that is. Three things
are more than a sum:

- A GPU that is busy bounds the job, whatever the host does beside it: programs spin while they wait.
- A GPU that computes in bursts while cpus or disks are busy is *starved*: its input bounds the job.
- Want of memory hides behind others. What did not stay in memory is read again, which looks like a slow
  disk, and the kernel's search for room costs cpu. Pressure shows the search; that what is read was
  read before (it *refaults*) shows the rest, whether the kernel tells pressure or not.

Without pressure (version 1 of control groups, old kernels) what is left is throttling, cpus against what is
held, memory at its limit, and bytes from and to disks. That a job waits for its turn on a full node can't be
seen then, and who reads and writes may wait for it or not: such a verdict is at most half sure.
"""

import enum
from collections.abc import Sequence

import msgspec

from muster.model.resources import Resources
from muster.model.units import MIB, MILLI
from muster.model.usage import Rollup, Stat

# Of the time, from where a thing is noticed to where it is all that matters.
_RECLAIMS = (0.04, 0.2)  # waits for memory: little is much
_WAITS = (0.05, 0.5)  # waits for disks
_COMPUTES = (0.5, 0.8)  # a GPU
# The same where pressure is not known: of the memory limit, and of bytes a second.
_AT_LIMIT = (0.9, 0.96)
_MOVES = (0.1 * MIB, 1.0 * MIB)

_BURST, _UNUSED = 0.3, 0.02  # of a GPU: what a burst reaches, and below which it is not used at all
_STEADY, _NEARLY_ALL = 0.15, 0.9  # of a thread: how little its use varies when it never waits
_STANDS_OUT = 0.6  # by so much over the next is beyond doubt
_HALF = 0.5


class Bound(enum.StrEnum):
    CPU = "cpu"
    MEMORY = "memory"
    GPU = "GPU"
    DISK = "disk"
    INPUT = "input"  # a GPU waits for what the host brings
    WAITING = "something else"
    UNKNOWN = "unknown"


class BoundRules(msgspec.Struct, frozen=True):
    least_coverage: float = 0.5  # measured of held, below which nothing is said
    least_seconds: float = 5.0
    doubt_seconds: float = 5.0  # with so much measured, a verdict is half as sure as it can be


class Scores(msgspec.Struct, frozen=True):
    """Parts of the time."""

    cpu: float = 0.0
    thread: float = 0.0  # of the cpu score, what single threads make where there are cpus to spare
    memory: float = 0.0
    disk: float = 0.0
    gpu: float | None = None  # the busiest; None: it holds none, or nobody knows
    bursts: float = 0.0  # in which a GPU computed now and then


class Judgement(msgspec.Struct, frozen=True):
    """What bounds a job, by what scores, and how sure that is (0 to 1)."""

    bound: Bound
    scores: Scores
    sure: float
    coverage: float
    blind: bool = False  # it holds GPUs, and how busy they were nobody knows


def judge(minutes: Sequence[Rollup], held: Resources, rules: BoundRules) -> Judgement:
    """What bounds an attempt that holds so much, by its minutes."""
    held_seconds = sum(minute.held_seconds for minute in minutes)
    seen = [minute for minute in minutes if minute.measured_seconds > 0 and minute.cpus is not None]
    measured = sum(minute.measured_seconds for minute in seen)
    coverage = min(1.0, measured / held_seconds) if held_seconds > 0 else 0.0
    if measured < rules.least_seconds or coverage < rules.least_coverage:
        return Judgement(Bound.UNKNOWN, Scores(), 0.0, coverage)
    scores = _averaged([(_scores(minute, held), minute.measured_seconds / measured) for minute in seen])
    (found, best), (_, second), *_ = _ranked(scores)
    sure = min(1.0, (best - second) / _STANDS_OUT) * coverage * measured / (measured + rules.doubt_seconds)
    by_pressure = any(minute.io_pressure is not None for minute in seen)
    if not by_pressure and found in (Bound.DISK, Bound.MEMORY, Bound.WAITING):
        sure = min(sure, _HALF)
    if blind := bool(held.gpus_milli) and scores.gpu is None:  # they may be what it is busy with
        found, sure = (Bound.UNKNOWN, 0.0) if found is Bound.WAITING else (found, min(sure, _HALF))
    return Judgement(found, scores, sure, coverage, blind)


def _ranked(scores: Scores) -> list[tuple[Bound, float]]:
    """The highest first, and among equals in the order below."""
    gpu = 0.0 if scores.gpu is None else _ramp(scores.gpu, _COMPUTES)
    memory, disk, cpu = scores.memory, scores.disk, scores.cpu
    if memory >= _HALF:  # it shows as the others, too
        disk, cpu = disk * (1 - memory), cpu * (1 - memory)
    starved = scores.bursts * max(memory, disk, cpu)
    aside = 1 - max(gpu if gpu >= _HALF else 0.0, starved if starved >= _HALF else 0.0)
    found = {
        Bound.GPU: gpu,
        Bound.INPUT: starved * (1 - gpu),
        Bound.MEMORY: memory * aside,
        Bound.DISK: disk * aside,
        Bound.CPU: cpu * aside,
    }
    found[Bound.WAITING] = 1 - max(found.values())
    return sorted(found.items(), key=lambda item: -item[1])


def _averaged(weighed: list[tuple[Scores, float]]) -> Scores:
    on_gpus = [(scores.gpu, weight) for scores, weight in weighed if scores.gpu is not None]
    known = sum(weight for _, weight in on_gpus)
    return Scores(
        sum(scores.cpu * weight for scores, weight in weighed),
        sum(scores.thread * weight for scores, weight in weighed),
        sum(scores.memory * weight for scores, weight in weighed),
        sum(scores.disk * weight for scores, weight in weighed),
        sum(busy * weight for busy, weight in on_gpus) / known if known else None,
        sum(scores.bursts * weight for scores, weight in weighed),
    )


# --- The scores of a minute -------------------------------------------------------------------------


def _scores(minute: Rollup, held: Resources) -> Scores:
    cpu, thread = _cpu(minute, held)
    waits, again = _waits(minute, cpu), _again(minute)
    memory = max(_reclaims(minute, held), waits * again)
    disk = waits * (1 - max(again, _reclaims(minute, held)))
    gpus = [stat for stat in minute.gpu_busy if stat is not None]
    busy = max((stat.mean for stat in gpus), default=None)
    bursts = busy is not None and busy > _UNUSED and any(stat.most >= _BURST for stat in gpus)
    return Scores(cpu, thread, memory, disk, busy, float(bursts))


def _cpu(minute: Rollup, held: Resources) -> tuple[float, float]:
    """The part of the time on cpus or waiting for them; and the same if only its threads are too few."""
    share = held.cpus_milli / MILLI
    pinned = _mean(minute.cpus) / share if share else 0.0
    waits = max(_mean(minute.throttled), _mean(minute.cpu_pressure))
    thread = _thread(minute)
    busy = min(1.0, max(pinned, thread) + waits)
    return busy, busy if thread > pinned + _STEADY and waits < _STEADY else 0.0


def _thread(minute: Rollup) -> float:
    """How busy the busiest thread seems. Of several it is known only if they never wait."""
    cpus = minute.cpus
    assert cpus is not None
    if minute.processes is not None and minute.processes.most <= 1:
        return min(1.0, cpus.mean)
    whole = max(1, round(cpus.mean))
    steady = cpus.most - cpus.least <= _STEADY * whole and cpus.mean >= _NEARLY_ALL * whole
    return min(1.0, cpus.mean / whole) if steady else 0.0


def _waits(minute: Rollup, cpu: float) -> float:
    """The part of the time waiting for disks; where that is not known, guessed from what was moved."""
    if minute.io_pressure is not None:
        return _ramp(minute.io_pressure.mean, _WAITS)
    moved = (minute.read_bytes or 0) + (minute.written_bytes or 0)
    return _ramp(moved / minute.measured_seconds, _MOVES) * (1 - cpu)


def _again(minute: Rollup) -> float:
    """The part of what was read that had been read before, and did not stay."""
    if not minute.refaulted_bytes or not minute.read_bytes:
        return 0.0
    return min(1.0, minute.refaulted_bytes / minute.read_bytes)


def _reclaims(minute: Rollup, held: Resources) -> float:
    """How much the kernel had to search for memory."""
    if minute.memory_pressure is not None:
        return _ramp(minute.memory_pressure.mean, _RECLAIMS)
    if minute.memory_bytes is None or not held.memory_bytes or minute.refaulted_bytes is not None:
        return 0.0
    # At its limit nobody is slow for that alone; who reads all the time besides may read the same again.
    full = _ramp(minute.memory_bytes.mean / held.memory_bytes, _AT_LIMIT)
    return full * _ramp((minute.read_bytes or 0) / minute.measured_seconds, _MOVES)


def _mean(stat: Stat | None) -> float:
    return 0.0 if stat is None else stat.mean


def _ramp(value: float, between: tuple[float, float]) -> float:
    """0 up to the first, 1 from the second."""
    none, all_ = between
    return min(1.0, max(0.0, (value - none) / (all_ - none)))
