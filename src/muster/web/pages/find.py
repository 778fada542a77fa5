"""``/find``: from a word to the page that it means, or to a choice of them."""

from urllib.parse import quote

import msgspec

from muster.model.errors import MusterError
from muster.model.units import show_count
from muster.server.people import Person
from muster.web.desk import Desk
from muster.web.sheet import Sheet, Table, Visit

_MOST_LETTERS, _MOST_FOUND = 200, 50


class Hit(msgspec.Struct, frozen=True):
    """Something of that name, or with that word in what it is for."""

    kind: str
    name: str
    about: str
    url: str


class Find:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        word = visit.query.get("q", "").strip()[:_MOST_LETTERS]
        hits = await self._hits(visit.person, word) if word else []
        shown = hits[:_MOST_FOUND]
        found = f"{show_count(len(hits), 'thing')} for “{word}”" if word else "Say a job, a person, a node"
        return Sheet(
            template="find.html",
            title="Find",
            sentence=f"{found}." if hits or not word else f"Nothing here is called “{word}”.",
            data=shown,
            more={"left_out": len(hits) - len(shown)},
            table=Table(("kind", "name", "about", "url"), [(h.kind, h.name, h.about, h.url) for h in shown]),
        )

    async def _hits(self, person: Person, word: str) -> list[Hit]:
        """The very thing first, then whatever has the word in it."""
        low = word.casefold()
        return [
            *await self._job(person, word),
            *await self._efforts(person, low),
            *await self._nodes(person, low),
            *await self._jobs(person, low),
        ]

    async def _job(self, person: Person, word: str) -> list[Hit]:
        try:
            view = await self._desk.get(person, f"/jobs/{quote(word, safe='')}")
        except MusterError:
            return []
        return [Hit("job", view.id, view.name, f"/job/{quote(view.id)}")]

    async def _efforts(self, person: Person, low: str) -> list[Hit]:
        efforts = (await self._desk.get(person, "/efforts")).efforts
        return [
            Hit("effort", one.name, one.purpose or "", f"/effort/{quote(one.name, safe='')}")
            for one in efforts
            if low in f"{one.name} {one.owner} {one.purpose or ''}".casefold()
        ]

    async def _nodes(self, person: Person, low: str) -> list[Hit]:
        nodes = (await self._desk.get(person, "/nodes")).nodes
        return [
            Hit("node", node.name, node.health, f"/where?node={quote(node.name, safe='')}")
            for node in nodes
            if low in node.name.casefold()
        ]

    async def _jobs(self, person: Person, low: str) -> list[Hit]:
        jobs = (await self._desk.get(person, "/jobs", limit=0)).jobs
        return [
            Hit(
                "job",
                view.id,
                f"{view.name}, {view.owner}: {view.purpose or 'nobody said what for'}",
                f"/job/{quote(view.id)}",
            )
            for view in jobs
            if low in f"{view.name} {view.owner} {view.answers} {view.purpose or ''}".casefold()
        ]
