"""What a turn hands to the journal, and what follows from it."""

import asyncio

from muster.model.events import Event
from muster.model.job import JobId
from muster.model.plan import Action
from muster.store.rows import Batch, EndedJob, Estimate, PastRow, ReportRow, StateKey, Token


class Parcel:
    """The events of a turn, and what follows once they are durable."""

    __slots__ = (
        "actions",
        "blobs",
        "changed",
        "ended",
        "estimates",
        "events",
        "handed_at",
        "past",
        "reports",
        "settled",
        "started",
        "stateless",
        "states",
        "submitted",
        "tokens",
        "waiters",
    )

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ended: list[EndedJob] = []
        self.blobs: dict[str, bytes] = {}
        self.estimates: list[Estimate] = []
        self.past: list[PastRow] = []
        self.reports: list[ReportRow] = []
        self.states: dict[StateKey, bytes] = {}
        self.stateless: list[JobId] = []
        self.started: dict[JobId, float] = {}  # of jobs whose start had been estimated
        self.tokens: list[Token] = []
        self.actions: list[Action] = []
        self.settled: list[tuple[JobId, int]] = []
        self.submitted: list[JobId] = []
        self.changed: set[JobId] = set()
        self.waiters: list[asyncio.Future[None]] = []
        self.handed_at = 0.0  # to the journal, by the clock of the loop

    @property
    def is_urgent(self) -> bool:
        return bool(self.actions or self.waiters)

    @property
    def has_anything(self) -> bool:
        return bool(
            self.is_urgent or self.events or self.settled or self.estimates or self.reports or self.states
        )

    def batch(self) -> Batch:
        return Batch(
            events=self.events,
            ended=self.ended,
            blobs=self.blobs,
            estimates=self.estimates,
            started=self.started,
            past=self.past,
            tokens=self.tokens,
            reports=self.reports,
            states=self.states,
            stateless=self.stateless,
        )
