"""What a machine can mend: it is run again without asking anybody, a few times at most.

Who was made to leave, or stood on bad hardware, is run again as it was. Who ran out of memory is run again
with more, up to a cap. Whatever a program did by itself it would do again, so that is its owner's.
"""

import msgspec

from muster.model.job import Gang, Job, Part
from muster.model.units import show_bytes
from muster.steward.cause import Cause, Kind
from muster.steward.humane import bytes_up

_AS_IT_WAS = {
    Kind.PREEMPTED: "it was made to leave",
    Kind.NODE_FAULT: "its node failed",
    Kind.GPU_FAULT: "its GPU failed",
}


class MendRules(msgspec.Struct, frozen=True):
    """The policy. A cap of 0: never with more."""

    tries: int = 3  # at most, for one job
    factor: float = 1.5  # by which memory grows with each
    most_memory_bytes: int = 0  # for each part: what the largest node has, or less
    most_gpu_memory_bytes: int = 0  # on each GPU: what the largest device has, or less


class Again(msgspec.Struct, frozen=True):
    """Run it again, with this gang."""

    gang: Gang
    because: str


def mend(cause: Cause, job: Job, rules: MendRules, tried: int) -> Again | None:
    """How to run the job again; None if that is not for a machine. ``tried``: how often it was so before."""
    if tried >= rules.tries:
        return None
    if (because := _AS_IT_WAS.get(cause.kind)) is not None:
        return Again(job.gang, f"{because}: it is run again as it was")
    if cause.kind is Kind.HOST_OUT_OF_MEMORY:
        return _with_more(job, cause, rules)
    if cause.kind is Kind.GPU_OUT_OF_MEMORY:
        return _with_more_on_gpus(job, cause, rules)
    return None


def _with_more(job: Job, cause: Cause, rules: MendRules) -> Again | None:
    """Every part gets more: which of them it was that ran out is not always known."""
    peak, cap = cause.peak_bytes or 0, rules.most_memory_bytes
    asked = [part.shape.memory_bytes for part in job.gang.parts]
    grown = [max(had, _grown(had or peak, rules, cap)) for had in asked]
    parts = tuple(_replaced(p, memory_bytes=more) for p, more in zip(job.gang.parts, grown, strict=True))
    return _again(job, parts, "memory", max(asked), max(grown))


def _with_more_on_gpus(job: Job, cause: Cause, rules: MendRules) -> Again | None:
    """It may have been granted more than it asked for, such as a whole device: that was not enough."""
    limit, cap = cause.limit_bytes or 0, rules.most_gpu_memory_bytes
    asked = [part.shape.gpu_memory_bytes for part in job.gang.parts]
    grown = [
        max(had, _grown(max(had, limit), rules, cap)) if part.shape.gpus else had
        for had, part in zip(asked, job.gang.parts, strict=True)
    ]
    parts = tuple(_replaced(p, gpu_memory_bytes=more) for p, more in zip(job.gang.parts, grown, strict=True))
    return _again(job, parts, "GPU memory", max(*asked, limit), max(grown))


def _grown(had: int, rules: MendRules, cap: int) -> int:
    """More than it had, within the cap; nothing if there is no more."""
    more = min(bytes_up(had * rules.factor), cap)
    return more if had and more > had else 0


def _replaced(part: Part, **fields: int) -> Part:
    return Part(msgspec.structs.replace(part.shape, **fields), part.count)


def _again(job: Job, parts: tuple[Part, ...], what: str, before: int, after: int) -> Again | None:
    if parts == job.gang.parts:
        return None
    grew = f"{show_bytes(before)} → {show_bytes(after)}" if before else f"now {show_bytes(after)}"
    return Again(Gang(parts, job.gang.together), f"it ran out of {what}: it is run again with more ({grew})")
