"""``/queue/why/ID``: one job that waits: because of what, until when, and what would start it sooner.

Simulated, so it takes a moment; ``/queue?job=ID`` shows itself at once and fetches this into it.
"""

import asyncio
from datetime import datetime
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from muster.model.state import State
from muster.server.answers import JobView, Why
from muster.server.people import Person
from muster.server.seeing.queue_answers import QueueRow, QueueView
from muster.web import words
from muster.web.desk import Desk
from muster.web.pictures import StartRange, range_in_words, start_range
from muster.web.sheet import Sheet, Table, Visit
from muster.web.standing import may_act

_MANY = 2000
_WAITS = (State.QUEUED, State.HELD)


class Line(msgspec.Struct, frozen=True):
    """Something that it depends on whether a job starts. The first that is not met decides."""

    sentence: str
    met: bool
    decides: bool = False
    action: str | None = None


class Whole(msgspec.Struct, frozen=True):
    """What there is to say about a job that waits."""

    job: JobView
    why: Why
    row: QueueRow | None  # in the queue; None: it does not wait, or is far behind
    of: int  # so many wait in its team


class WhyPage:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        whole = await self._whole(visit.person, visit.values[0])
        job, why, now = whole.job, whole.why, self._desk.wall()
        lines = lines_of(why)
        return Sheet(
            template="why.html",
            title=f"Why does {job.id} wait?" if job.state in _WAITS else f"Job {job.id}",
            sentence=why.text.splitlines()[0],
            data=whole,
            table=Table(
                ("what", "met", "decides", "action"),
                [(one.sentence, str(one.met).lower(), str(one.decides).lower(), one.action) for one in lines],
            ),
            more={
                "lines": lines,
                "picture": _picture(why, now),
                "starts": _starts(why, now),
                "waits": job.state in _WAITS,
                "may": may_act(self._desk, visit.person, job.owner, job.team, job.answers),
            },
            scripts=("queue.css",),
        )

    async def _whole(self, person: Person, job_id: str) -> Whole:
        job: JobView = await self._desk.job(person, job_id)
        path = f"/jobs/{quote(job_id, safe='')}/why"
        why, queue = await asyncio.gather(
            self._desk.get(person, path),
            self._desk.get(person, "/queue", team=job.team or None, limit=_MANY),
        )
        return Whole(job, why, _place(queue, why.id), queue.waiting)


def lines_of(why: Why) -> list[Line]:
    """What keeps it first; then what would not."""
    kept = [
        Line(one.sentence, False, decides=at == 0, action=one.action) for at, one in enumerate(why.reasons)
    ]
    beside = [Line(f"{one.kind}: {one.sentence}", one.state == "ok") for one in why.beside]
    return [*kept, *sorted(beside, key=lambda one: one.met)]


def _place(queue: QueueView, job_id: str) -> QueueRow | None:
    """Its row, or that of the members among which it waits."""
    array = job_id.partition("_")[0]
    found = [row for row in queue.jobs if row.first == job_id]
    found += [row for row in queue.jobs if row.array is not None and row.array.id == array]
    return found[0] if found else None


def _range(why: Why) -> StartRange | None:
    said = why.estimate
    if said is None:
        return None
    return StartRange(said.earliest, said.latest, said.probability, said.latest_by_limits)


def _picture(why: Why, now: float) -> Markup | None:
    when = _range(why)
    return None if when is None else start_range(when, now, lambda at: words.clock(at, now), _zone(now))


def _starts(why: Why, now: float) -> str | None:
    when = _range(why)
    return None if when is None else range_in_words(when, now, lambda at: words.clock(at, now))


def _zone(now: float) -> float:
    ahead = datetime.fromtimestamp(now).astimezone().utcoffset()
    return 0.0 if ahead is None else ahead.total_seconds()
