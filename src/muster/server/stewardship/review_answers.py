"""What the API answers about reviews."""

from collections.abc import Mapping

import msgspec

from muster.model.job import JobId
from muster.model.resources import NOTHING, Resources
from muster.model.stewardship import Defended
from muster.model.units import MILLI
from muster.server.stewardship.review import Reviewing, Seen
from muster.steward.review.items import Item
from muster.steward.review.minutes import title
from muster.store.reviews import PastReview


class DefenceView(msgspec.Struct):
    """Who wants it to go on, why, and until when."""

    subject: str
    by: str
    because: str
    at: float
    until: float
    times: int = 1  # that the same thing was defended


class ReviewDay(msgspec.Struct):
    """What was held on one of the last days."""

    gpu_seconds: float
    cpu_seconds: float


class ReviewItem(msgspec.Struct, kw_only=True):
    """One subject that consumed, or waits to."""

    subject: str
    what: str  # as people call it
    kind: str  # defended, habit or forgotten
    because: str  # it is of that kind
    owner: str | None
    is_present: bool | None  # whether the owner is still there; null: there is none
    team: str
    purpose: str | None
    jobs: list[str]  # and arrays, the latest first
    living: list[str]  # those of them that run or wait
    gpus: float  # that it holds now
    cpus: float
    stops: list[str]  # what is stopped at the close, unless it is defended
    stops_at: float | None  # when, if whoever answers for it was told in time
    told_at: float | None
    running: int
    waiting: int
    gpu_held_seconds: float | None  # null: it is not Muster's
    cpu_held_seconds: float | None
    used_share: float | None  # of its GPUs, or of its cpus if it has none; null: not measured
    coverage: float | None
    idle_seconds: float | None
    until: float | None
    budget: str | None
    budget_left: float | None  # the part of it
    success: list[str]
    failure: list[str]
    defences: list[DefenceView]  # the latest first
    days: list[ReviewDay]  # the last of them is that until now
    action: str | None  # the command that defends it


class ReviewView(msgspec.Struct, kw_only=True):
    """What consumes, by whom, defended or not; what stops when."""

    number: int | None  # null: none is open
    since: float
    opened_at: float | None
    closes_at: float | None  # of the one that is open, or the next; null: reviews are off
    schedule: str
    items: list[ReviewItem]  # the largest first
    recovered_gpu_seconds: float  # projected: what was stopped would have held it until now
    recovered_cpu_seconds: float


class PastReviewView(msgspec.Struct, kw_only=True):
    """A review that is closed."""

    number: int
    since: float
    closed_at: float
    by: str | None  # null: the schedule
    stopped: list[str]
    recovered_gpu_seconds_a_day: float  # projected
    recovered_cpu_seconds_a_day: float
    minutes: str | None = None  # Markdown; of one review


class PastReviews(msgspec.Struct):
    reviews: list[PastReviewView]  # the latest first


def review_of(reviewing: Reviewing, seen: Seen) -> ReviewView:
    current, ahead = reviewing.reviews.current, reviewing.wall_ahead_seconds
    gpus, cpus = reviewing.recovered_seconds()
    schedule, held = reviewing.rules.schedule, reviewing.held_now()
    return ReviewView(
        number=None if current is None else current.number,
        since=seen.since + ahead,
        opened_at=None if current is None else current.opened_at + ahead,
        closes_at=reviewing.closes_next(),
        schedule="off" if schedule is None else str(schedule),
        items=[_item(item, reviewing, held) for item in seen.items],
        recovered_gpu_seconds=gpus,
        recovered_cpu_seconds=cpus,
    )


def _item(item: Item, reviewing: Reviewing, held: Mapping[JobId, Resources]) -> ReviewItem:
    current, ahead = reviewing.reviews.current, reviewing.wall_ahead_seconds
    told_at = None if current is None else current.listed.get(item.subject)
    is_foreign = item.foreign is not None
    now = sum((held[one.job] for one in item.consumers if one.job in held), NOTHING)
    can_be_defended = item.is_undefended and bool(item.to_defend) and not is_foreign
    return ReviewItem(
        subject=item.subject,
        what=title(item),
        kind=item.kind.value,
        because=item.because,
        owner=item.owner or None,
        is_present=reviewing.present(item.owner) if item.owner and not is_foreign else None,
        team=item.team,
        purpose=item.purpose,
        jobs=[one.job for one in item.consumers],
        living=[one.job for one in item.consumers if one.is_living],
        gpus=now.gpus_milli / MILLI,
        cpus=now.cpus_milli / MILLI,
        stops=list(item.stops),
        stops_at=reviewing.stops_at(item),
        told_at=None if told_at is None else told_at + ahead,
        running=item.running,
        waiting=item.waiting,
        gpu_held_seconds=None if is_foreign else item.usage.held.gpus_milli / MILLI,
        cpu_held_seconds=None if is_foreign else item.usage.held.cpus_milli / MILLI,
        used_share=item.used_share,
        coverage=item.usage.coverage,
        idle_seconds=item.idle_seconds,
        until=item.charter.until,
        budget=item.charter.budget,
        budget_left=item.budget_left,
        success=list(item.charter.success),
        failure=list(item.charter.failure),
        defences=[_numbered(item, n, ahead) for n in range(len(item.defences), 0, -1)],
        days=[ReviewDay(gpus, cpus) for gpus, cpus in item.days],
        action=f'muster defend {item.to_defend} --because "…" --until DATE' if can_be_defended else None,
    )


def _numbered(item: Item, times: int, ahead: float) -> DefenceView:
    return defence_of(item.defences[times - 1], times, ahead)


def defence_of(said: Defended, times: int, ahead: float) -> DefenceView:
    return DefenceView(said.subject, said.by, said.because, said.at + ahead, said.until, times)


def past_of(review: PastReview, ahead: float, *, whole: bool) -> PastReviewView:
    return PastReviewView(
        number=review.number,
        since=review.since + ahead,
        closed_at=review.closed_at + ahead,
        by=review.by or None,
        stopped=[one.job for one in review.stopped],
        recovered_gpu_seconds_a_day=sum(one.gpu_seconds_a_day for one in review.stopped),
        recovered_cpu_seconds_a_day=sum(one.cpu_seconds_a_day for one in review.stopped),
        minutes=review.minutes if whole else None,
    )
