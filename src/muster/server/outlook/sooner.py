"""Changes that would start a job sooner, each tried out before it is said.

What to try follows from the reason why the job waits: of what it asks too much for now, as much as there is;
any model of GPU, parts that may sit apart, another priority, a limit short enough to be gone before whom it
would delay. A change that lets it start now is shown first; of the others those that clearly help.
"""

from collections.abc import Callable, Iterator

import msgspec

from muster.model.job import Gang, Job, Part, Priority, Together
from muster.model.policy import Policy
from muster.model.reasons import BehindPromise, NoRoom, NoRoomTogether, OutOfService, QuotaReached, Reason
from muster.model.snapshot import Snapshot, Waiting
from muster.model.units import GIB, HOUR, MIB, MILLI, MINUTE
from muster.schedule import schedule
from muster.schedule.predict import spread
from muster.server.outlook.world import entered, find_waiting, with_change, world_around

Change = tuple[str, Job]  # as options of the command line, and the job with it

_MOST_SHOWN = 4
_CLEARLY = 0.6  # of the wait that is left: less may be luck


def changes(
    snap: Snapshot, waiting: Waiting, reason: Reason, priorities: tuple[Priority, ...]
) -> Iterator[Change]:
    """What may help, the most promising first."""
    job = waiting.job
    if isinstance(reason, OutOfService):
        reason = reason.short
    if len(job.gang.parts) == 1:
        yield from _smaller(job, job.gang.parts[0], reason)
    if any(p.shape.gpu_models for p in job.gang.parts):
        parts = tuple(_with_shape(p, gpu_models=()) for p in job.gang.parts)
        yield "--gpu-model any", _with_gang(job, Gang(parts, job.gang.together))
    if job.gang.size > 1 and job.gang.together is not Together.ANYWHERE:
        yield "--together anywhere", _with_gang(job, Gang(job.gang.parts, Together.ANYWHERE))
    yield from _shorter(snap, waiting, reason)
    for priority in sorted(priorities, reverse=True):
        if priority != job.priority:
            yield f"--priority {priority.name.lower()}", msgspec.structs.replace(job, priority=priority)


def _smaller(job: Job, part: Part, reason: Reason) -> Iterator[Change]:
    """Less of what decides."""
    gang, shape = job.gang, part.shape
    if isinstance(reason, NoRoomTogether) and 0 < reason.most < part.count:
        yield f"--nodes {reason.most}", _with_gang(job, Gang((Part(shape, reason.most),), gang.together))
    what, most = _short_of(reason, part)
    for option, asked, unit in (("gpus", shape.gpus, 1), ("cpus", shape.cpus_milli, MILLI)):
        if what == option:
            for amount in dict.fromkeys((most // unit, asked // unit // 2)):
                if 0 < amount < asked // unit:
                    field = "gpus" if option == "gpus" else "cpus_milli"
                    smaller = _with_shape(part, **{field: amount * unit})
                    yield f"--{option} {amount}", _with_gang(job, Gang((smaller,), gang.together))
    if what == "memory" and MIB <= most < shape.memory_bytes:
        unit, letter = (GIB, "G") if most >= GIB else (MIB, "M")
        smaller = _with_shape(part, memory_bytes=most // unit * unit)
        yield f"--memory {most // unit}{letter}", _with_gang(job, Gang((smaller,), gang.together))


def _short_of(reason: Reason, part: Part) -> tuple[str, int]:
    """What there is not enough of, and how much of it one part may have."""
    if isinstance(reason, NoRoom):
        return reason.what.lower(), reason.most
    if isinstance(reason, QuotaReached):
        each = reason.left // part.count
        return ("gpus", each // MILLI) if reason.what.startswith("GPUs") else (reason.what, each)
    if isinstance(reason, NoRoomTogether) or part.shape.gpus > 1:
        return "gpus", 0  # half will do
    return "", 0


def _shorter(snap: Snapshot, waiting: Waiting, reason: Reason) -> Iterator[Change]:
    """A limit within which it is gone in time, if it is likely to make do with it."""
    if not isinstance(reason, BehindPromise):
        return
    unit, letter = (HOUR, "h") if reason.in_seconds >= 4 * HOUR else (MINUTE, "m")
    count = int(reason.in_seconds // unit)
    limit = waiting.job.time_limit_seconds
    if (
        count
        and (limit is None or count * unit < limit)
        and spread(snap.history, waiting.lane)[0] <= count * unit
    ):
        yield f"--time {count}{letter}", msgspec.structs.replace(waiting.job, time_limit_seconds=count * unit)


def _with_shape(part: Part, **fields: object) -> Part:
    return Part(msgspec.structs.replace(part.shape, **fields), part.count)


def _with_gang(job: Job, gang: Gang) -> Job:
    return msgspec.structs.replace(job, gang=gang)


def starts_now(snap: Snapshot, policy: Policy, job: Job, now: float) -> bool:
    """Whether the job, as it is in the snapshot, would start in the next cycle."""
    target = find_waiting(snap, job.id)
    world = None if target is None else world_around(snap, policy, target, now)
    if target is None or world is None:
        return False
    near = world.snap if world.whole else entered(world.snap, target)
    return any(start.job == job.id for start in schedule(near, policy, now=now).starts)


class Sooner(msgspec.Struct, frozen=True):
    """A change that would start the job sooner."""

    change: str
    starts_at: float


def sooner(
    snap: Snapshot,
    policy: Policy,
    waiting: Waiting,
    tried: Iterator[Change],
    *,
    now: float,
    likely: float,
    ask: Callable[[Snapshot, str], float | None],
    has_time: Callable[[], bool],
) -> tuple[Sooner, ...]:
    """Those changes that help. ``ask`` estimates when a job starts, ``likely`` when it does without."""
    found: list[Sooner] = []
    later: list[tuple[str, Snapshot]] = []
    helped: set[str] = set()  # less of the same need not be tried
    for option, job in tried:
        if not has_time() or len(found) == _MOST_SHOWN:
            break
        if _kind(option) in helped:
            continue
        changed = with_change(snap, waiting, job)
        if starts_now(changed, policy, job, now):
            found.append(Sooner(option, now))
            helped.add(_kind(option))
        else:
            later.append((option, changed))
    for option, changed in later:
        if not has_time() or len(found) == _MOST_SHOWN:
            break
        if _kind(option) in helped:
            continue
        at = ask(changed, waiting.job.id)
        if at is not None and at - now < _CLEARLY * (likely - now):
            found.append(Sooner(option, at))
            helped.add(_kind(option))
    return tuple(sorted(found, key=lambda s: s.starts_at))


def _kind(option: str) -> str:
    return option.split(" ", 1)[0]
