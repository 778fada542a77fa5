"""What can be asked about time: who had which node or GPU, who has it now, and who is planned to have it.

Who runs, and where it is planned that somebody starts, the state has; it is copied on its own thread, and the
rest is put together in another.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from muster.model.errors import BadInput
from muster.model.job import Job, JobId
from muster.model.ledger import devices_of
from muster.model.node import Node
from muster.model.plan import Promise
from muster.model.snapshot import Running, Snapshot
from muster.model.units import DAY, parse_seconds
from muster.schedule.predict import lasts, leaves_at
from muster.server.http import Call, Route
from muster.server.seeing.time_answers import Kind, TimeBy, Timeline
from muster.server.seeing.time_picture import Asked, Picture
from muster.server.seeing.timeline import Sat, gpu_row
from muster.server.service import Service
from muster.server.use import Name, moment

_MOST_WAITING = 50

Rows = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Moment = Annotated[str, msgspec.Meta(max_length=40)]


class TimeQuery(msgspec.Struct, forbid_unknown_fields=True):
    by: TimeBy = TimeBy.NODE
    since: Moment | None = None  # seconds since the epoch, or how long ago; not said: a day
    until: Moment | None = None  # the same, or how long from now, such as +6h; not said: a quarter more
    node: Name | None = None
    rack: Name | None = None
    limit: Rows = 200


class TimeRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def timeline(self, call: Call) -> Timeline:
        query: TimeQuery = call.query
        service, fold = self._service, self._service.fold
        ahead, now = fold.wall_ahead_seconds, service.now()
        asked = _asked(query, fold.nodes.values(), now, ahead)
        living = [*self._running(now), *self._planned()]
        nodes, guessed = dict(fold.nodes), set(list(service.estimated)[:_MOST_WAITING])
        jobs = self._jobs({*(sat.job for sat in living), *guessed})
        metering = service.metering
        assert metering is not None, "a server meters"
        async with metering.still():  # so that what is over is in the store

            def answer() -> Timeline:
                picture = Picture(service.journal, asked, ahead, nodes, jobs)
                return picture.drawn(living, guessed)

            return await asyncio.to_thread(answer)

    def _jobs(self, wanted: Iterable[JobId]) -> dict[JobId, Job]:
        """Those of them that live."""
        records = (self._service.fold.records.get(job_id) for job_id in wanted)
        entries = (record.running or record.waiting for record in records if record is not None)
        return {entry.job.id: entry.job for entry in entries if entry is not None}

    def _running(self, now: float) -> Iterator[Sat]:
        for running in self._service.fold.running.values():
            likely = leaves_at(running, now, firm=False)
            latest = None if running.job.time_limit_seconds is None else running.latest_end
            yield _sat(running, running.placed_at, now, Kind.RUNNING)
            if not math.isinf(likely):
                yield _sat(running, now, likely, Kind.PREDICTED)._replace(latest=latest)

    def _planned(self) -> list[Sat]:
        """Who waits, and whose start is planned or promised."""
        fold, promises = self._service.fold, self._service.plan.promises
        if not promises:
            return []
        snap = fold.snapshot()
        found = [sat for one in promises if (sat := self._planned_one(one, snap)) is not None]
        fold.release()  # nobody else has borrowed meanwhile
        return found

    def _planned_one(self, promise: Promise, snap: Snapshot) -> Sat | None:
        record = self._service.fold.records.get(promise.job)
        waiting = None if record is None else record.waiting
        if waiting is None or promise.starts_at is None:
            return None
        long, start, job = lasts(snap, self._service.policy, waiting), promise.starts_at, waiting.job
        latest = None if job.time_limit_seconds is None else start + long.firm
        whose = (job.id, waiting.attempt + 1, job.owner, job.team)
        nodes = tuple(dict.fromkeys(promise.nodes))
        return Sat(*whose, start, start + long.plan, Kind.PREDICTED, nodes, (), None, latest, promise.firm)

    def table(self) -> list[Route]:
        said, path = "Who had which node or GPU, has it now, and will have it.", "/api/v1/timeline"
        return [Route("GET", path, self.timeline, Timeline, said, query=TimeQuery, errors=(404, 507))]


def _sat(running: Running, start: float, end: float, kind: Kind) -> Sat:
    job, nodes = running.job, tuple(dict.fromkeys(seat.node for seat in running.seats))
    devices = tuple((held.node, held.device) for held in devices_of(running.seats))
    return Sat(job.id, running.attempt, job.owner, job.team, start, end, kind, nodes, devices)


# --- What is asked ---------------------------------------------------------------------------------------


def _asked(query: TimeQuery, nodes: Iterable[Node], now: float, ahead: float) -> Asked:
    since = (now + ahead - DAY if query.since is None else moment(query.since, now + ahead)) - ahead
    until = _until(query.until, since, now, ahead)
    if since >= until:
        raise BadInput("there is nothing between since and until; since lies before until")
    is_narrowed = query.node is not None or query.rack is not None
    chosen = [n for n in nodes if query.node in (None, n.name) and query.rack in (None, n.rack)]
    if is_narrowed and not chosen:
        raise BadInput("there is no such node or rack; muster node shows those there are")
    every = list(_rows(sorted(chosen, key=_naturally), query.by))
    told = dict(every[: query.limit])
    names = frozenset(node.name for node in chosen) if is_narrowed else None
    return Asked(query.by, since, until, now, told, len(every) - len(told), query.limit, names)


def _until(text: str | None, since: float, now: float, ahead: float) -> float:
    if text is None:
        return now + max(0.0, now - since) / 4
    if text.startswith("+"):
        return now + parse_seconds(text[1:])
    return moment(text, now + ahead) - ahead


def _rows(nodes: Iterable[Node], by: TimeBy) -> Iterator[tuple[str, tuple[Node, int | None]]]:
    for node in nodes:
        if by is TimeBy.NODE:
            yield node.name, (node, None)
        elif by is TimeBy.GPU:
            for device in range(len(node.devices)):
                yield gpu_row(node.name, device), (node, device)


def _naturally(node: Node) -> list[tuple[int, str]]:
    """``n2`` before ``n10``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", node.name)]
