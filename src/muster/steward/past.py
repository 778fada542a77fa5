"""What past runs used, and which of them were the same work.

The same work is that of the same owner under the same kind of name; better still by the same command, and
best spread over as many parts and GPUs, too. Runs that are more alike count alone, once there are enough of
them. How much memory or time was asked is no likeness: that is what advice changes, and who compared by it
would go on learning from the runs before the first advice.
"""

import hashlib
import math
from collections.abc import Sequence

import msgspec

from muster.model.events import Outcome
from muster.model.history import LIKER, kind_of, whose_history
from muster.model.job import Gang, Job, JobId
from muster.model.run import Run
from muster.model.usage import Rollup, Stat


class Request(msgspec.Struct, frozen=True):
    """What a job asked for, and what tells whether another is the same work."""

    whose: str  # its owner's, or without one its team's
    kind: str  # of name
    command: str  # a hash; empty where it is not known
    gang: Gang
    limit_seconds: float | None = None

    @classmethod
    def of(cls, job: Job) -> "Request":
        whose = whose_history(job.owner, job.team)
        return cls(whose, kind_of(job.name), command_of(job.run), job.gang, job.time_limit_seconds)


class PastUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt used. Memory is that of the part, and of the device, that took most."""

    job: JobId
    request: Request
    ended_at: float
    outcome: Outcome
    seconds: float
    cpus: float | None = None  # busy, in its busier minutes
    throttled: float | None = None  # part of the time in which its cap held it back
    memory_peak_bytes: int | None = None
    gpu_memory_peak_bytes: int | None = None


def command_of(run: Run | None) -> str:
    """Equal for equal commands, and short."""
    if run is None or not (run.argv or run.script):
        return ""
    said = "\0".join((run.script or "", *run.argv))
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


_BUSIER = 0.95  # of its measured time an attempt uses no more cpus than this says


def past_use(
    job: Job,
    minutes: Sequence[Rollup],
    *,
    ended_at: float,
    outcome: Outcome,
    seconds: float,
    memory_peak_bytes: int | None = None,
) -> PastUse:
    """What an attempt used, by its minutes and, where it is known, the kernel's own peak of its largest part.

    Minutes are of the whole attempt. Of several parts' memory they do not tell the largest, so it is unknown.
    """
    parts = job.gang.size
    if memory_peak_bytes is None and parts == 1:
        memory_peak_bytes = _most([minute.memory_bytes for minute in minutes])
    on_gpus = [stat for minute in minutes for stat in minute.gpu_memory_bytes]
    return PastUse(
        job=job.id,
        request=Request.of(job),
        ended_at=ended_at,
        outcome=outcome,
        seconds=seconds,
        cpus=_busier(minutes, parts),
        throttled=_mean_throttled(minutes),
        memory_peak_bytes=memory_peak_bytes,
        gpu_memory_peak_bytes=_most(on_gpus),
    )


def _most(stats: Sequence[Stat | None]) -> int | None:
    return max((math.ceil(stat.most) for stat in stats if stat is not None), default=None)


def _busier(minutes: Sequence[Rollup], parts: int) -> float | None:
    known = [(m.cpus.mean / parts, m.measured_seconds) for m in minutes if m.cpus is not None]
    return quantile(known, _BUSIER)


def _mean_throttled(minutes: Sequence[Rollup]) -> float | None:
    known = [(m.throttled.mean, m.measured_seconds) for m in minutes if m.throttled is not None]
    total = sum(seconds for _, seconds in known)
    return sum(part * seconds for part, seconds in known) / total if total > 0 else None


def quantile(weighed: Sequence[tuple[float, float]], part: float) -> float | None:
    """The value up to which ``part`` of the weight lies; None without any."""
    wanted = part * sum(weight for _, weight in weighed)
    found = None
    for value, weight in sorted(weighed):
        found = value
        wanted -= weight
        if wanted <= 0:
            break
    return found


# --- The same work ------------------------------------------------------------------------------------


def same_work(history: Sequence[PastUse], request: Request, *, least: int, most: int) -> tuple[PastUse, ...]:
    """The last runs of the same work: the most alike of which there are ``least``. Oldest first, as given."""
    if not (request.kind or request.command):
        return ()  # jobs without a name have nothing in common but their owner
    kin = [use for use in history if use.request.whose == request.whose and _is_kin(use.request, request)]
    for is_alike in (_is_twin, _has_command):
        alike = [use for use in kin if is_alike(use.request, request)]
        if len(alike) >= least:
            return tuple(alike[-most:])
    return tuple(kin[-most:])


def likeness(one: Request, other: Request) -> float:
    """How much a run tells of another, as for run times (see ``schedule.predict``)."""
    return LIKER ** (_has_command(one, other) + (_layout(one) == _layout(other)))


def _is_kin(one: Request, other: Request) -> bool:
    return one.kind == other.kind if other.kind else one.command == other.command


def _has_command(one: Request, other: Request) -> bool:
    return bool(other.command) and one.command == other.command


def _is_twin(one: Request, other: Request) -> bool:
    return _has_command(one, other) and _layout(one) == _layout(other)


def _layout(request: Request) -> list[tuple[int, int, bool]]:
    return [(part.count, part.shape.gpus, part.shape.shares_gpu) for part in request.gang.parts]
