"""What the store keeps besides events, as values; and the parcel in which all of it is handed over."""

from collections.abc import Mapping, Sequence

import msgspec

from muster.model.events import Event
from muster.model.job import JobId
from muster.model.ledger import Booked, Entry, Key
from muster.model.report import Report
from muster.model.units import DAY

RowKey = tuple[JobId, int, float]  # of an attempt, and the second in which a minute or an hour starts
ReportKey = tuple[JobId, int, int]  # of an attempt, and the report's number
StateKey = tuple[JobId, int, str]  # of an attempt, and whose state it is


class EndedJob(msgspec.Struct, frozen=True):
    """A job that has ended, as it is looked up later. The body is its view as JSON."""

    id: JobId
    array_id: str | None
    owner: str
    team: str
    name: str
    outcome: str
    submitted_at: float
    started_at: float | None
    ended_at: float
    body: bytes
    verdict: str | None = None


class Estimate(msgspec.Struct, frozen=True):
    """When a job was thought to start, and when it did."""

    job: JobId
    made_at: float
    earliest: float | None
    latest: float | None
    probability: float | None
    started_at: float | None = None


class Token(msgspec.Struct, frozen=True):
    """Who may come with which token. Only its hash is kept."""

    hash: str
    user: str
    role: str
    made_at: float
    expires_at: float | None = None


class PastRow(msgspec.Struct, frozen=True):
    """What an attempt used, as history of its kind. The body is a ``PastUse``."""

    job: JobId
    attempt: int
    whose: str
    ended_at: float
    body: bytes


class ReportRow(msgspec.Struct, frozen=True):
    """A report as it is kept: which of its attempt's it is, and how long that had run by then."""

    number: int
    ran_seconds: float | None
    report: Report


class HindsightRow(msgspec.Struct, frozen=True):
    """What a job that has reported something held after an exit would have ended it; 0: none would have."""

    job: JobId
    after_seconds: float = 0.0  # of run time
    cpus_after: int = 0  # thousandths times seconds, as is the next
    gpus_after: int = 0
    verdict: str | None = None  # None, as are the next two: nothing would have ended it sooner
    condition: str | None = None
    because: str | None = None


class Retention(msgspec.Struct, frozen=True):
    """For how long usage is kept once it is over; None: for ever."""

    minutes_seconds: float = 2 * DAY
    hours_seconds: float = 400 * DAY
    attempts_seconds: float | None = None


class UsageRows(msgspec.Struct):
    """What changes in the tables of usage. Each replaces what is there under its key."""

    entries: Sequence[Entry] = ()
    minutes: Sequence[Booked] = ()
    hours: Sequence[Booked] = ()
    seq: int | None = None  # the last event that is in the ledger with these
    gone_entries: Sequence[Key] = ()
    gone_minutes: Sequence[RowKey] = ()
    gone_hours: Sequence[RowKey] = ()
    gone_reports: Sequence[ReportKey] = ()
    hindsights: Sequence[HindsightRow] = ()


class Batch(msgspec.Struct):
    """What becomes durable together, or not at all.

    One with usage and without events can wait: it is written when nobody waits for anything else.
    """

    events: Sequence[Event] = ()
    ended: Sequence[EndedJob] = ()
    blobs: Mapping[str, bytes] = {}
    estimates: Sequence[Estimate] = ()
    past: Sequence[PastRow] = ()
    started: Mapping[JobId, float] = {}  # enters in their estimates when jobs really started
    tokens: Sequence[Token] = ()
    revoked: Sequence[str] = ()  # hashes of tokens
    reports: Sequence[ReportRow] = ()
    states: Mapping[StateKey, bytes] = {}  # of whoever goes by reports, as it is with these
    stateless: Sequence[JobId] = ()  # jobs that have ended, and whose states go
    image: bytes | None = None
    image_seq: int | None = None  # the last event that is in the image; None: the last of this batch
    usage: UsageRows | None = None

    @property
    def can_wait(self) -> bool:
        return self.usage is not None and not self.events
