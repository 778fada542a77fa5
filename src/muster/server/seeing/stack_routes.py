"""What can be asked about what stands on what."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from muster.model.errors import BadInput, MusterError
from muster.model.node import Node
from muster.model.snapshot import Running
from muster.monitor.meters.parts import PartSeen
from muster.monitor.meters.processes import members_of, shown_of
from muster.server.answers import Grant
from muster.server.errors import NotFound
from muster.server.http import Call, Route
from muster.server.people import may_read_log
from muster.server.seeing.stack import (
    Part,
    Place,
    bottom_of,
    sentence_of_job,
    sentence_of_place,
    with_processes,
    words_of,
)
from muster.server.seeing.stack_answers import Stack
from muster.server.service import Service
from muster.server.standing import read_standing
from muster.server.use import Name

_MOST_NODES = 200  # that are told with what stands on them
_MOST_PROCESSES = 500  # of a part
_HERE = "here"  # where no layout says what the place is called


class StackQuery(msgspec.Struct, forbid_unknown_fields=True):
    job: Name | None = None  # up to its processes
    node: Name | None = None


class StackRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def stack(self, call: Call) -> Stack:
        asked: StackQuery = call.query
        return await (self._of_place(asked.node) if asked.job is None else self._of_job(call, asked))

    async def _of_place(self, node: str | None) -> Stack:
        chosen = self._chosen(node)
        place = self._place(list(self._service.fold.running.values()))
        names = {one.name for one in chosen}
        jobs = sum(1 for one in place.running if any(seat.node in names for seat in one.seats))

        def answer() -> Stack:
            bottom = bottom_of(self._named(place), chosen, _MOST_NODES)
            said = sentence_of_place(bottom, jobs)
            return Stack(said, self._service.wall(), None, node, words_of(bottom), bottom)

        return await asyncio.to_thread(answer)

    async def _of_job(self, call: Call, asked: StackQuery) -> Stack:
        running = self._running(asked.job or "")
        on = {seat.node for seat in running.seats}
        if asked.node is not None and asked.node not in on:
            raise BadInput(
                f"job {running.job.id} has no seat on {asked.node}; it is on {', '.join(sorted(on))}"
            )
        chosen = [n for n in self._chosen(asked.node) if n.name in on]
        service, job = self._service, running.job
        others = (one for one in service.fold.running.values() if one is not running)
        place = self._place([running, *others])
        key = (job.id, running.attempt)
        located = service.engine.locate([key]).get(key)
        limits = [Grant(g.what, g.amount, g.how, g.by) for g in service.engine.grants(job)]
        tenancy, answers = service.fold.tenancy, job.charter.owner
        sees = may_read_log(call.person, job.owner, job.team, tenancy, answers)

        def answer() -> Stack:
            parts = None if located is None else [_part(one) for one in located]
            bottom = bottom_of(self._named(place), chosen, _MOST_NODES)
            bottom = with_processes(bottom, running, parts, limits, sees_words=sees)
            said = sentence_of_job(bottom, running, parts)
            return Stack(said, service.wall(), job.id, asked.node, words_of(bottom), bottom)

        return await asyncio.to_thread(answer)

    def _running(self, job_id: str) -> Running:
        running = self._service.fold.running.get(job_id)
        if running is None:
            if self._service.look_up(job_id) is None:
                raise NotFound(f"there is no job {job_id[:40]!r}")
            raise BadInput(f"job {job_id} does not run, so it stands on nothing")
        return running

    def _chosen(self, node: str | None) -> list[Node]:
        nodes = self._service.fold.nodes
        if node is None:
            return list(nodes.values())
        if node not in nodes:
            raise NotFound(f"there is no node {node[:40]!r}; muster node shows those there are")
        return [nodes[node]]

    def _place(self, running: Sequence[Running]) -> Place:
        service = self._service
        used = {one.job.id: said for one in running if (said := service.views.used(one)) is not None}
        metering = service.metering
        readings = {} if metering is None else metering.readings()
        return Place(_HERE, dict(service.fold.nodes), running, used, readings)

    def _named(self, place: Place) -> Place:
        """With the name that the layout gives the site."""
        try:
            layout = read_standing(self._service.home, None)
        except MusterError:
            return place
        return place if layout is None else msgspec.structs.replace(place, site=layout.site)

    def table(self) -> list[Route]:
        said = "What stands on what: rack, node, control group, job, process."
        errors = (404, 409)
        return [Route("GET", "/api/v1/stack", self.stack, Stack, said, query=StackQuery, errors=errors)]


def _part(located: dict[str, Any]) -> Part:
    """Looked at when it is asked for."""
    where = msgspec.convert(located, PartSeen)
    members = members_of(where)
    shown = shown_of(members, _MOST_PROCESSES)
    return Part(where, shown, max(0, len(members) - _MOST_PROCESSES))
