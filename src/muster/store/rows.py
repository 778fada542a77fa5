"""What the store keeps besides events, as values; and the parcel in which all of it is handed over."""

from collections.abc import Mapping, Sequence

import msgspec

from muster.model.events import Event
from muster.model.job import JobId


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


class Batch(msgspec.Struct):
    """What becomes durable together, or not at all."""

    events: Sequence[Event] = ()
    ended: Sequence[EndedJob] = ()
    blobs: Mapping[str, bytes] = {}
    estimates: Sequence[Estimate] = ()
    started: Mapping[JobId, float] = {}  # enters in their estimates when jobs really started
    tokens: Sequence[Token] = ()
    revoked: Sequence[str] = ()  # hashes of tokens
    image: bytes | None = None
    image_seq: int | None = None  # the last event that is in the image; None: the last of this batch
