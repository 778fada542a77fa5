"""Reviews, folded: the one that is open, the minutes of those before, and what can be brought back."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from muster.model.charter import Verdict
from muster.model.errors import IllegalTransition
from muster.model.events import Event
from muster.model.job import Job, JobId
from muster.model.review import (
    PersonSeen,
    ReviewClosed,
    ReviewListed,
    ReviewOpened,
    ReviewPostponed,
    Stopped,
)
from muster.model.stewardship import Subject

_MOST_REVIEWS = 200  # whose minutes are kept
_MOST_REVIVABLE = 1000  # jobs and arrays
_CAN_COME_BACK = frozenset({Verdict.UNDEFENDED, Verdict.OUT_OF_TIME, Verdict.OUT_OF_BUDGET})

Params = tuple[tuple[str, str], ...]


class Review(msgspec.Struct):
    """One that is open."""

    number: int
    since: float
    opened_at: float
    closes_at: float  # by the wall
    waits_from: float  # from then on people could answer
    listed: dict[Subject, float] = {}  # since when whoever answers for it knows
    listed_at: float | None = None  # the last time
    reminded_at: float | None = None


class PastReview(msgspec.Struct, frozen=True):
    number: int
    since: float
    closes_at: float  # by the wall, as it was announced
    closed_at: float
    by: str
    stopped: tuple[Stopped, ...]
    minutes: str


class Revivable(msgspec.Struct):
    """A job that could go on, or members of an array that could."""

    job: Job  # of an array, one of its members
    at: float  # of the last end
    verdict: Verdict
    members: list[tuple[int, Params]] = []
    revived_by: JobId | None = None


class Reviews(msgspec.Struct):
    """All that is remembered of reviews."""

    current: Review | None = None
    past: dict[int, PastReview] = {}
    seen: dict[str, float] = {}  # when each person last called, to within a day
    asked: dict[str, float] = {}  # since when who was asked has not called
    revivable: dict[JobId, Revivable] = {}  # by the first of those that go on with each other's work

    def apply(self, event: Event) -> None:
        """Take a fact in. What can't be raises, and changes nothing."""
        _HANDLERS[type(event)](self, event)

    def copied(self) -> "Reviews":
        """One that stays as it is while this goes on."""
        current = self.current
        return Reviews(
            None if current is None else replace(current, listed=dict(current.listed)),
            dict(self.past),
            dict(self.seen),
            dict(self.asked),
            {job: replace(one, members=list(one.members)) for job, one in self.revivable.items()},
        )

    @property
    def last(self) -> PastReview | None:
        return self.past[max(self.past)] if self.past else None

    # --- Facts --------------------------------------------------------------------------------------

    def _opened(self, event: ReviewOpened) -> None:
        if self.current is not None:
            raise IllegalTransition(f"review {self.current.number} is open")
        self.current = Review(event.number, event.since, event.at, event.closes_at, event.at)

    def _open(self, number: int) -> Review:
        if self.current is None or self.current.number != number:
            raise IllegalTransition(f"review {number} is not open")
        return self.current

    def _listed(self, event: ReviewListed) -> None:
        review = self._open(event.number)
        review.listed_at = event.at
        if event.again:
            review.reminded_at = event.at
        for subject, whom in event.told.items():
            review.listed.setdefault(subject, event.at)
            self.asked.setdefault(whom, event.at)

    def _postponed(self, event: ReviewPostponed) -> None:
        review = self._open(event.number)
        review.closes_at, review.waits_from, review.reminded_at = event.closes_at, event.at, None

    def _closed(self, event: ReviewClosed) -> None:
        review, self.current = self._open(event.number), None
        self.past[event.number] = PastReview(
            review.number, review.since, review.closes_at, event.at, event.by, event.stopped, event.minutes
        )
        for number in sorted(self.past)[:-_MOST_REVIEWS]:
            del self.past[number]

    def _seen(self, event: PersonSeen) -> None:
        self.seen[event.who] = event.at
        self.asked.pop(event.who, None)

    # --- Jobs ---------------------------------------------------------------------------------------

    def entered(self, job: Job) -> None:
        """One that goes on with another's work: that can't be brought back twice."""
        one = self.revivable.get(origin_of(job))
        if job.revives is not None and one is not None and one.revived_by is None:
            one.revived_by = unit_of(job)
            self._not_recovered(unit_of(one.job), job.submitted_at)

    def ended(self, job: Job, at: float, verdict: Verdict | None, *, taken_back: bool) -> None:
        origin, unit = origin_of(job), unit_of(job)
        one = self.revivable.get(origin)
        if taken_back and one is not None and one.revived_by == unit:
            one.revived_by = None
        if verdict not in _CAN_COME_BACK:
            return
        if one is None or unit_of(one.job) != unit:
            one = Revivable(job, at, verdict)
        one.at, one.verdict = at, verdict
        if job.array is not None:
            one.members.append((job.array.index, job.params))
        self.revivable.pop(origin, None)
        self.revivable[origin] = one  # the latest last
        while len(self.revivable) > _MOST_REVIVABLE:
            del self.revivable[next(iter(self.revivable))]

    def stopped(self, unit: JobId) -> Revivable | None:
        """What can be known of a job, or an array, that was ended by its charter."""
        return next((one for one in self.revivable.values() if unit_of(one.job) == unit), None)

    def _not_recovered(self, unit: JobId, at: float) -> None:
        for number, review in self.past.items():
            if any(one.job == unit for one in review.stopped):
                stopped = tuple(
                    replace(one, revived_at=at) if one.job == unit else one for one in review.stopped
                )
                self.past[number] = replace(review, stopped=stopped)


def unit_of(job: Job) -> JobId:
    """What is handled as one: the array, or the job."""
    return job.id if job.array is None else job.array.array


def origin_of(job: Job) -> JobId:
    """The first of those that go on with each other's work."""
    first = job.revives or job.id
    return first if job.array is None else first.partition("_")[0]


_HANDLERS: dict[type[Event], Callable[[Reviews, Any], None]] = {
    ReviewOpened: Reviews._opened,
    ReviewListed: Reviews._listed,
    ReviewPostponed: Reviews._postponed,
    ReviewClosed: Reviews._closed,
    PersonSeen: Reviews._seen,
}
REVIEWED = tuple(_HANDLERS)
