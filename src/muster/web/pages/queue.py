"""``/queue``: why is my job waiting, when will it start, what would start it sooner?

The list costs next to nothing. When a job starts and what would help is simulated, which takes a moment: it
has a page of its own (``/queue/why/ID``, see ``why``), and the list shows that one as soon as it is there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from muster.model.state import State
from muster.server.answers import JobView
from muster.server.people import Person
from muster.server.seeing.queue_answers import QueueRow, QueueView
from muster.web.address import chosen, count
from muster.web.desk import Desk
from muster.web.sheet import Cell, Sheet, Table, Visit
from muster.web.standing import may_act

_FEW, _MANY = 200, 2000
_MOST_LETTERS = 200
_COLUMNS = (
    "position",
    "id",
    "name",
    "owner",
    "team",
    "state",
    "jobs",
    "wants",
    "reason",
    "starts_earliest",
    "starts_latest",
    "submitted_at",
    "purpose",
)


class Asked(msgspec.Struct, frozen=True):
    """Whom the page is about; it is the page's address, too."""

    team: str = ""
    owner: str = ""
    mine: bool = False
    by: str = ""  # "team": a part for each
    limit: int = _FEW
    job: str = ""  # the one that is opened

    def url(self, **other: object) -> str:
        """The same page with something else asked."""
        changed = msgspec.structs.replace(self, **other)
        said = {
            "team": changed.team,
            "owner": changed.owner,
            "mine": "1" if changed.mine else "",
            "by": changed.by,
            "limit": "" if changed.limit == _FEW else str(changed.limit),
            "job": changed.job,
        }
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/queue?{query}" if query else "/queue"

    @property
    def is_narrow(self) -> bool:
        return bool(self.team or self.owner or self.mine)


class Group(msgspec.Struct, frozen=True):
    """Rows of one team, or all of them."""

    team: str | None
    rows: list[QueueRow]


class Queue:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        asked, person = asked_in(visit.query), visit.person
        queue, teams, accuracy = await asyncio.gather(
            self._queue(person, asked),
            self._desk.get(person, "/teams"),
            self._desk.get(person, "/accuracy"),
        )
        mine = await self._mine(person, queue, asked)
        return Sheet(
            template="queue.html",
            title="Queue",
            sentence=sentence_of(queue, mine, asked),
            data=queue,
            table=Table(_COLUMNS, [_row(row) for row in queue.jobs]),
            more={
                "asked": asked,
                "groups": grouped(queue.jobs, asked.by == "team"),
                "teams": [team for team in teams.teams if team.name],
                "mine_waiting": mine,
                "accuracy": accuracy,
                "opened": await self._opened(person, asked.job),
                "may": lambda row: may_act(self._desk, person, row.owner, row.team),
                "most": _MANY,
            },
            scripts=("queue.css",),
        )

    async def _queue(self, person: Person, asked: Asked) -> QueueView:
        found: QueueView = await self._desk.get(
            person,
            "/queue",
            team=asked.team or None,
            owner=asked.owner or None,
            mine=asked.mine,
            limit=asked.limit,
        )
        return found

    async def _mine(self, person: Person, queue: QueueView, asked: Asked) -> int:
        """How many of all are theirs; asked for only where the list does not tell."""
        if not asked.is_narrow and not queue.more:
            return sum(row.count for row in queue.jobs if person.is_called(row.owner))
        if asked.mine and not asked.team:
            return queue.waiting
        found: QueueView = await self._desk.get(person, "/queue", mine=True, limit=1)
        return found.waiting

    async def _opened(self, person: Person, job_id: str) -> JobView | None:
        found: JobView | None = await self._desk.job(person, job_id) if job_id else None
        return found


def asked_in(query: Mapping[str, str]) -> Asked:
    """What an address says; what is left empty in a form is not said."""

    def text(name: str) -> str:
        return query.get(name, "").strip()[:_MOST_LETTERS]

    return Asked(
        team=text("team"),
        owner=text("owner"),
        mine=text("mine") not in ("", "0", "false"),
        by=chosen(query, "by", ("team",), ""),
        limit=count(query, "limit", _FEW, _MANY),
        job=text("job"),
    )


def grouped(rows: Sequence[QueueRow], by_team: bool) -> list[Group]:
    """In the order in which the first of each has its turn."""
    if not by_team:
        return [Group(None, list(rows))] if rows else []
    teams: dict[str, list[QueueRow]] = {}
    for row in rows:
        teams.setdefault(row.team, []).append(row)
    return [Group(team, some) for team, some in teams.items()]


def sentence_of(queue: QueueView, mine: int, asked: Asked) -> str:
    """How many wait, and for what. Without names: they stand in the list."""
    if not queue.waiting:
        whose = "Nothing of what you asked about waits" if asked.is_narrow else "Nothing waits"
        return f"{whose}: what is submitted now, and fits, starts at once."
    jobs = "1 job is" if queue.waiting == 1 else f"{queue.waiting:,} jobs are"
    said = ", ".join(f"{one.jobs:,} {_singular(one.words, one.jobs)}" for one in queue.reasons)
    return f"{jobs} in the queue: {said}.{'' if asked.is_narrow else _yours(mine, queue.waiting)}"


def _yours(mine: int, waiting: int) -> str:
    if not mine:
        return ""
    if mine == waiting:
        return " It is yours." if mine == 1 else " All of them are yours."
    return f" {mine:,} of them {'is' if mine == 1 else 'are'} yours."


def _singular(words: str, count: int) -> str:
    """``wait for room`` → ``waits for room``, of one."""
    verb, space, rest = words.partition(" ")
    one = {"wait": "waits", "are": "is"}.get(verb, verb)
    return f"{one if count == 1 else verb}{space}{rest}"


def _row(row: QueueRow) -> list[Cell]:
    said = row.estimate
    return [
        row.position,
        row.id,
        row.name,
        row.owner,
        row.team,
        State(row.state).value,
        row.count,
        row.wants,
        None if row.reason is None else row.reason.sentence,
        None if said is None else said.earliest,
        None if said is None else said.latest,
        row.submitted_at,
        row.purpose,
    ]
