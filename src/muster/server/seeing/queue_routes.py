"""What can be asked about the queue as a whole."""

import asyncio
from typing import Annotated

import msgspec

from muster.model.tenancy import Tenancy
from muster.server.http import Call, Route
from muster.server.seeing.queue import Chosen, Line, queue_view
from muster.server.seeing.queue_answers import KeptEstimate, QueueView
from muster.server.service import Service
from muster.server.use import Name
from muster.store.rows import Estimate

Rows = Annotated[int, msgspec.Meta(ge=1, le=2000)]


class QueueQuery(msgspec.Struct, forbid_unknown_fields=True):
    team: Name | None = None  # and those below it
    owner: Name | None = None
    mine: bool = False
    limit: Rows = 200


class QueueRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def queue(self, call: Call) -> QueueView:
        """On a snapshot and in a thread, so that nobody waits for it."""
        asked: QueueQuery = call.query
        service, fold = self._service, self._service.fold
        owner = call.person.name if asked.mine else asked.owner
        owners = None if owner is None else frozenset(service.directory.all_names(owner))
        line = Line(
            fold.snapshot(),
            service.plan,
            service.policy,
            service.now(),
            fold.wall_ahead_seconds,
            fold.lined_up,
            service.handed_over(),
            service.views.said_elsewhere,
            _chosen(asked.team, owners, fold.tenancy),
        )
        return await asyncio.to_thread(self._answer, line, asked.limit)

    def _answer(self, line: Line, limit: int) -> QueueView:
        view = queue_view(line, limit)
        kept = self._service.journal.last_estimates([row.first for row in view.jobs if row.ask_why])
        for row in view.jobs:
            if row.first in kept:
                row.estimate = _kept(kept[row.first], line)
        return view

    def table(self) -> list[Route]:
        said = "Who waits, in the order in which room is offered, and why."
        return [
            Route("GET", "/api/v1/queue", self.queue, QueueView, said, query=QueueQuery, errors=(507,)),
        ]


def _chosen(team: str | None, owners: frozenset[str] | None, tenancy: Tenancy) -> Chosen | None:
    if team is None and owners is None:
        return None

    def is_chosen(whose: str, owner: str) -> bool:
        return (team is None or team in tenancy.path(whose)) and (owners is None or owner in owners)

    return is_chosen


def _kept(said: Estimate, line: Line) -> KeptEstimate | None:
    """What it was, unless that is over by now: it waits still, so it was wrong."""
    if said.earliest is None or said.latest is None or said.latest < line.now:
        return None
    times = (said.earliest + line.ahead, said.latest + line.ahead)
    return KeptEstimate(*times, said.probability or 0.0, said.made_at + line.ahead, line.now - said.made_at)
