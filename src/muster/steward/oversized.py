"""Which requests are far from the truth, and what asking for less would have freed."""

from collections.abc import Sequence

import msgspec

from muster.model.job import JobId
from muster.model.resources import NOTHING, Resources
from muster.model.units import GIB, HOUR, MILLI
from muster.steward.past import PastUse, Request
from muster.steward.rightsize import Advice, Advised, SizeRules, advise


class Oversized(msgspec.Struct, frozen=True):
    """Work that asks for far more than it needs."""

    request: Request  # as it was last asked for
    job: JobId  # the last that did
    advice: Advice
    runs: int
    saved: Resources  # times seconds: held by its runs beyond what is advised
    cluster_seconds: (
        float  # for so long the whole cluster would have been free of it, in the scarcer resource
    )

    def __str__(self) -> str:
        freed = []
        if self.saved.memory_bytes:
            freed.append(f"{self.saved.memory_bytes / GIB / HOUR:,.0f} GiB·h of memory")
        if self.saved.cpus_milli:
            freed.append(f"{self.saved.cpus_milli / MILLI / HOUR:,.0f} cpu·h")
        what = f"{self.request.whose}'s {self.request.kind or 'job ' + self.job}"
        return f"{what}: {self.advice.flags} would have freed {' and '.join(freed)} in {self.runs} runs"


def oversized(
    history: Sequence[PastUse],
    capacity: Resources,
    rules: SizeRules | None = None,
    *,
    now: float | None = None,
) -> list[Oversized]:
    """The requests that are far from the truth, those that cost most first."""
    rules = rules or SizeRules()
    by_work: dict[tuple[str, str], list[PastUse]] = {}
    for use in history:
        work = (use.request.whose, use.request.kind or use.request.command)
        by_work.setdefault(work, []).append(use)
    found = (_judged(uses, capacity, rules, now) for uses in by_work.values())
    return sorted((one for one in found if one is not None), key=lambda one: -one.cluster_seconds)


def _judged(
    uses: list[PastUse], capacity: Resources, rules: SizeRules, now: float | None
) -> Oversized | None:
    last = uses[-1]
    advice = advise(uses, last.request, rules, now=now)
    far = Advice(
        cpus=advice.cpus if _is_far(advice.cpus, rules) else None,
        memory=advice.memory if _is_far(advice.memory, rules) else None,
    )
    if far.cpus is None and far.memory is None:
        return None
    saved = NOTHING
    for use in uses:
        saved = saved + _saved(use, far)
    parts = [(saved.cpus_milli, capacity.cpus_milli), (saved.memory_bytes, capacity.memory_bytes)]
    seconds = max((amount / total for amount, total in parts if total), default=0.0)
    return Oversized(last.request, last.job, advice, len(uses), saved, seconds)


def _is_far(found: Advised | None, rules: SizeRules) -> bool:
    return found is not None and found.asked >= rules.far * found.value


def _saved(use: PastUse, far: Advice) -> Resources:
    cpus = memory = 0.0
    for part in use.request.gang.parts:
        if far.cpus is not None:
            cpus += max(0.0, part.shape.cpus_milli - far.cpus.value) * part.count
        if far.memory is not None:
            memory += max(0.0, part.shape.memory_bytes - far.memory.value) * part.count
    return Resources(cpus_milli=round(cpus * use.seconds), memory_bytes=round(memory * use.seconds))
