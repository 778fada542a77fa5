"""Efforts, defences and reviews: what people say about work, as values and as facts.

A *subject* is what somebody answers for: ``job:12`` (an array is one), ``effort:llama-eval``, ``team:nlp``.
"""

import enum

import msgspec

from muster.model.charter import Charter, Verdict
from muster.model.events import Event
from muster.model.job import JobId

Subject = str


def of_job(job_id: JobId) -> Subject:
    return f"job:{job_id}"


def of_effort(name: str) -> Subject:
    return f"effort:{name}"


def of_team(name: str) -> Subject:
    return f"team:{name}"


def split(subject: Subject) -> tuple[str, str]:
    """What kind of subject it is, and which."""
    kind, _, name = subject.partition(":")
    return kind, name


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """Work under one charter and one owner, of many jobs."""

    name: str
    charter: Charter
    team: str = ""
    opened_at: float
    opened_by: str
    first_wins: bool = False  # the success of one of its jobs is its own, and ends the others
    paused: str | None = None  # why none of its jobs starts
    verdict: Verdict | None = None
    closed_at: float | None = None
    because: str = ""  # how it came to its verdict

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def owner(self) -> str:
        return self.charter.owner or self.opened_by


class EffortOpened(Event, frozen=True):
    effort: Effort


class EffortNoted(Event, frozen=True):
    """Somebody wrote down what should not be forgotten."""

    effort: str
    by: str
    text: str


class EffortAmended(Event, frozen=True):
    """Its charter is another from now on: extended, or taken over."""

    effort: str
    charter: Charter
    by: str
    because: str = ""


class EffortPaused(Event, frozen=True):
    """None of its jobs starts any more."""

    effort: str
    by: str
    because: str


class EffortGoesOn(Event, frozen=True):
    effort: str
    by: str
    because: str = ""


class EffortClosed(Event, frozen=True):
    effort: str
    verdict: Verdict
    by: str
    because: str = ""


class Defended(Event, frozen=True):
    """A named person wants this to go on, says why, and until when."""

    subject: Subject
    by: str
    because: str
    until: float  # the new end
    charter: Charter  # with it


class BudgetWarned(Event, frozen=True):
    """Most of a budget is spent, and whoever answers for it was told: once for a budget, and for a period."""

    subject: Subject
    budget: str
    spent: float  # in the budget's unit
    since: float | None = None  # when the period began, if it is one for a period


class BudgetReached(Event, frozen=True):
    """A budget is spent: nothing new of its subject starts, and what runs is paused, to be decided on."""

    subject: Subject
    budget: str
    spent: float
    because: str  # what those that are paused for it say
    since: float | None = None


class BudgetFreed(Event, frozen=True):
    """There is budget again: what was paused for it goes on, and nothing else."""

    subject: Subject
    because: str  # as it was said when it was paused


class DateWarned(Event, frozen=True):
    """The end date is near, and whoever answers for it was told."""

    subject: Subject
    until: float


class Told(enum.StrEnum):
    """What an entry of a story is about."""

    OPENED = "opened"
    NOTE = "note"
    AMENDED = "amended"
    PAUSED = "paused"
    GOES_ON = "goes on"
    DEFENDED = "defended"
    JOB = "job"
    CLOSED = "closed"


class Entry(msgspec.Struct, frozen=True):
    """One line of an effort's story."""

    at: float
    what: Told
    text: str
    by: str = ""
