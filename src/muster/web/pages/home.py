"""``/``: what is mine, and what must I answer today?"""

import asyncio
from urllib.parse import quote

import msgspec

from muster.model.state import State
from muster.model.units import show_count
from muster.server.answers import EffortView, JobView
from muster.server.people import Person
from muster.server.stewardship.post_routes import DigestView
from muster.web.desk import Desk
from muster.web.sheet import Sheet, Table, Visit

_MOST_ENDED = 12
_COLUMNS = ("id", "name", "state", "gpus", "nodes", "started_at", "used_share", "purpose", "until", "reason")


class Mine(msgspec.Struct, frozen=True):
    """What somebody has here."""

    digest: DigestView
    running: list[JobView]
    waiting: list[JobView]
    ended: list[JobView]  # the latest
    efforts: list[EffortView]


class Home:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        mine = await self._gathered(visit.person)
        jobs = [*mine.running, *mine.waiting, *mine.ended]
        return Sheet(
            template="home.html",
            title="Mine",
            sentence=_sentence(mine),
            data=mine,
            table=Table(_COLUMNS, [_row(view) for view in jobs]),
            more={"links": {one.number: _page_of(one.about) for one in mine.digest.questions}},
        )

    async def _gathered(self, person: Person) -> Mine:
        get = self._desk.get
        digest, living, past, efforts = await asyncio.gather(
            get(person, "/digest", peek=True),
            get(person, "/jobs", mine=True, limit=500),
            get(person, "/jobs", mine=True, all=True, state="ENDED", limit=_MOST_ENDED),
            get(person, "/efforts"),
        )
        running = [view for view in living.jobs if view.started_at is not None]
        waiting = [view for view in living.jobs if view.started_at is None and view.state is not State.ENDED]
        own = [effort for effort in efforts.efforts if person.is_called(effort.owner)]
        return Mine(digest, running, waiting, past.jobs, own)


def _page_of(about: str) -> str | None:
    """Where a question is answered; none: it is about neither a job nor an effort."""
    kind, _, name = about.partition(":")
    page = {"job": "job", "array": "job", "effort": "effort"}.get(kind)
    return f"/{page}/{quote(name, safe='')}" if page and name else None


def _sentence(mine: Mine) -> str:
    questions = len(mine.digest.questions)
    asked = "Nothing needs an answer from you"
    if questions:
        asked = f"{show_count(questions, 'question')} {'needs' if questions == 1 else 'need'} your answer"
    gpus = sum(view.gpus for view in mine.running)
    held = f", holding {show_count(gpus, 'GPU')}" if gpus else ""
    runs, waits = len(mine.running), len(mine.waiting)
    said = f"{show_count(runs, 'job')} of yours {'runs' if runs == 1 else 'run'}{held}"
    return f"{asked}. {said}; {waits} {'waits' if waits == 1 else 'wait'}."


def _row(view: JobView) -> list[str | float | int | None]:
    share = None if view.used is None else view.used.share
    return [
        view.id,
        view.name,
        view.state.value,
        view.gpus,
        " ".join(view.nodes),
        view.started_at,
        share,
        view.purpose,
        view.until,
        view.reason,
    ]
