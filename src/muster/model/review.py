"""Reviews as facts: opened, listed, postponed, closed; and who was heard of.

Times of facts are steady, as all are; only ``closes_at`` is the wall's, since people go by that.
"""

import msgspec

from muster.model.events import Event
from muster.model.history import kind_of
from muster.model.job import JobId
from muster.model.stewardship import Subject


def of_work(owner: str, name: str, purpose: str | None) -> Subject:
    """What is submitted again and again: the same owner, kind of name and purpose."""
    return f"work:{owner}/{kind_of(name)}" + (f"/{purpose}" if purpose else "")


def of_foreign(node: str, user: str | None) -> Subject:
    """What runs on a node and is not Muster's."""
    return f"foreign:{node}/{user or ''}"


class ReviewOpened(Event, frozen=True):
    number: int
    since: float  # it is about what consumed from then on
    closes_at: float


class ReviewListed(Event, frozen=True):
    """These are undefended, and whoever answers for each was told."""

    number: int
    told: dict[Subject, str]  # whom
    again: bool = False  # a reminder


class ReviewPostponed(Event, frozen=True):
    """Nobody could have answered."""

    number: int
    closes_at: float
    because: str


class Stopped(msgspec.Struct, frozen=True):
    """A job or an array that a review has stopped, and what it had held a day lately."""

    job: JobId
    gpu_seconds_a_day: float
    cpu_seconds_a_day: float
    revived_at: float | None = None


class ReviewClosed(Event, frozen=True):
    """It is decided who is stopped: whoever is named and still lives after a restart is stopped then."""

    number: int
    by: str  # a person; empty: the schedule
    stopped: tuple[Stopped, ...]
    minutes: str  # Markdown


class PersonSeen(Event, frozen=True):
    """Somebody has called. Noted once a day, and at once if they were asked something."""

    who: str
