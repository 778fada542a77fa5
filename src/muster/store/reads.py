"""Looking things up in the store, from any thread. What was just handed over may not be there yet."""

from collections.abc import Callable, Collection
from typing import Union

import msgspec
from sqlalchemy import ColumnElement, and_, func, or_, select

from muster.model.events import DeviceHealth, Event, NodeHealth, Placed
from muster.model.job import JobId
from muster.model.post import Settled
from muster.model.review import ReviewOpened
from muster.model.stewardship import Defended
from muster.store.hindsight_reads import HindsightReads
from muster.store.report_reads import ReportReads
from muster.store.rows import EndedJob, Estimate, Token
from muster.store.seeing_reads import SeeingReads
from muster.store.tables import blobs, estimates, events, jobs, tokens
from muster.store.usage_reads import UsageReads

_MANY = 500  # values in one question

# Every kind that there is, so that none can be written and not be read.
_KINDS = tuple(Event.__subclasses__())
assert {Defended, ReviewOpened, Settled} <= set(_KINDS)  # of people, of reviews and of the post
decode_event: Callable[[bytes], Event] = msgspec.msgpack.Decoder(Union[_KINDS]).decode  # noqa: UP007


class Reads(UsageReads, ReportReads, HindsightReads, SeeingReads):
    """The questions that the store answers."""

    def job(self, job_id: JobId) -> EndedJob | None:
        """A job that has ended."""
        found = self._rows(select(jobs).where(jobs.c.id == job_id))
        return EndedJob(*found[0]) if found else None

    def ids_of_ended(self, wanted: Collection[JobId]) -> set[JobId]:
        """Which of these are jobs that have ended, or arrays with a member that has."""
        found: set[JobId] = set()
        ids = sorted(wanted)
        for i in range(0, len(ids), _MANY):
            some = ids[i : i + _MANY]
            for column in (jobs.c.id, jobs.c.array_id):
                found.update(row[0] for row in self._rows(select(column).where(column.in_(some)).distinct()))
        return found

    def jobs_ended(
        self,
        limit: int = 100,
        *,
        owner: str | None = None,
        team: str | None = None,
        array_id: str | None = None,
        before: tuple[float, JobId] | None = None,
        since: float | None = None,
    ) -> list[EndedJob]:
        """The latest that ended, the newest first; ``before``: go on after this one's end and id."""
        query = select(jobs).where(*_chosen(owner, team, array_id))
        if since is not None:
            query = query.where(jobs.c.ended_at >= since)
        if before is not None:
            ended_at, job_id = before
            same_instant = and_(jobs.c.ended_at == ended_at, jobs.c.id < job_id)
            query = query.where(or_(jobs.c.ended_at < ended_at, same_instant))
        query = query.order_by(jobs.c.ended_at.desc(), jobs.c.id.desc()).limit(limit)
        return [EndedJob(*row) for row in self._rows(query)]

    def count_ended(
        self, *, owner: str | None = None, team: str | None = None, array_id: str | None = None
    ) -> int:
        query = select(func.count()).select_from(jobs).where(*_chosen(owner, team, array_id))
        return int(self._rows(query)[0][0])

    def events_of(self, job_id: JobId) -> list[Event]:
        """Everything that ever happened to a job, or to an array as a whole."""
        query = select(events.c.body).where(events.c.job == job_id).order_by(events.c.seq)
        return [decode_event(row[0]) for row in self._rows(query)]

    def told_of(self, job_id: JobId, kinds: Collection[str], limit: int) -> tuple[list[Event], int]:
        """What happened to a job of these kinds: the first, and the last so many; and how many there are."""
        mine = (events.c.job == job_id, events.c.kind.in_(sorted(kinds)))
        count = int(self._rows(select(func.count()).select_from(events).where(*mine))[0][0])
        query = select(events.c.body).where(*mine)
        rows = [*reversed(self._rows(query.order_by(events.c.seq.desc()).limit(limit)))]
        if count > len(rows):
            rows = [*self._rows(query.order_by(events.c.seq).limit(1)), *rows]
        return [decode_event(row[0]) for row in rows], count

    def nodes_of(self, wanted: Collection[JobId]) -> dict[tuple[JobId, int], tuple[str, ...]]:
        """The nodes that each attempt of some jobs was placed on."""
        found: dict[tuple[JobId, int], tuple[str, ...]] = {}
        ids = sorted(wanted)
        for i in range(0, len(ids), _MANY):
            mine = (events.c.job.in_(ids[i : i + _MANY]), events.c.kind == Placed.__name__)
            for row in self._rows(select(events.c.body).where(*mine)):
                event = decode_event(row[0])
                assert isinstance(event, Placed)
                found[event.job, event.attempt] = tuple(dict.fromkeys(seat.node for seat in event.seats))
        return found

    def outages(self, limit: int) -> list[NodeHealth | DeviceHealth]:
        """The latest of what nodes and GPUs were taken out of service, and brought back, in order."""
        kinds = (NodeHealth.__name__, DeviceHealth.__name__)
        mine = (events.c.job.is_(None), events.c.kind.in_(kinds))
        query = select(events.c.body).where(*mine).order_by(events.c.seq.desc()).limit(limit)
        found = (decode_event(row[0]) for row in reversed(self._rows(query)))
        return [event for event in found if isinstance(event, NodeHealth | DeviceHealth)]

    def blob(self, key: str) -> bytes | None:
        found = self._rows(select(blobs.c.body).where(blobs.c.key == key))
        return found[0][0] if found else None

    def token(self, hashed: str) -> Token | None:
        found = self._rows(select(tokens).where(tokens.c.hash == hashed))
        return Token(*found[0]) if found else None

    def tokens(self) -> list[Token]:
        return [Token(*row) for row in self._rows(select(tokens).order_by(tokens.c.made_at))]

    def estimates_of(self, job_id: JobId) -> list[Estimate]:
        """What was said about when it would start, in order."""
        query = select(estimates).where(estimates.c.job == job_id).order_by(estimates.c.made_at)
        return [Estimate(*row) for row in self._rows(query)]

    def estimates_settled(self, limit: int = 1000) -> list[Estimate]:
        """Of jobs that have started since, the latest first: how good were they?"""
        query = select(estimates).where(estimates.c.started_at.is_not(None))
        query = query.order_by(estimates.c.started_at.desc(), estimates.c.made_at.desc()).limit(limit)
        return [Estimate(*row) for row in self._rows(query)]


def _chosen(owner: str | None, team: str | None, array_id: str | None) -> list[ColumnElement[bool]]:
    wanted = ((jobs.c.owner, owner), (jobs.c.team, team), (jobs.c.array_id, array_id))
    return [column == value for column, value in wanted if value is not None]
