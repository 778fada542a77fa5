"""Worlds for reviews, in words."""

from typing import Any

from muster.model.charter import Charter
from muster.model.resources import Resources
from muster.model.stewardship import Defended, Effort
from muster.model.units import DAY, HOUR, MILLI
from muster.model.usage import Usage
from muster.steward.review.items import Consumer, World

NOW = 1_790_000_000.0
WHOLE = Charter(owner="ana", purpose="Does 8B beat 3B?", until=NOW + 7 * DAY)


def held(gpu_hours: float = 0.0, cpu_hours: float = 0.0) -> Usage:
    amounts = Resources(round(cpu_hours * HOUR * MILLI), 0, round(gpu_hours * HOUR * MILLI))
    return Usage(held=amounts, held_seconds=HOUR)


def consumer(job: str, *, gpu_hours: float = 1.0, charter: Charter = WHOLE, **more: Any) -> Consumer:
    given = {"name": "train", "owner": charter.owner or "", "running": 1, **more}
    usage = held(gpu_hours, 2.0)
    days = ((usage.held.gpus_milli / MILLI, usage.held.cpus_milli / MILLI),)
    return Consumer(job=job, charter=charter, **{"usage": usage, "days": days, **given})


def effort(name: str, charter: Charter = WHOLE, **more: Any) -> Effort:
    return Effort(name=name, charter=charter, opened_at=0.0, opened_by="ana", **more)


def defence(subject: str, *, by: str = "ana", because: str = "two more days", days: float = 7.0) -> Defended:
    return Defended(NOW, subject, by, because, NOW + days * DAY, WHOLE)


def world(*consumers: Consumer, **more: Any) -> World:
    return World(now=NOW, wall=NOW, consumers=consumers, **more)
