"""``/time``: what happened, what is planned? A row for each node, GPU, team or owner."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from muster.model.units import DAY, HOUR, WEEK
from muster.server.seeing.time_answers import Bar, Timeline, TimeRow
from muster.web.address import chosen, count
from muster.web.desk import Desk
from muster.web.gantt import drawn
from muster.web.hues import definitions
from muster.web.sheet import Cell, Sheet, Table, Visit

BY = ("node", "gpu", "team", "owner")
COLOURS = ("team", "owner", "how")
SPANS = (("6h", "6 h", 6 * HOUR), ("1d", "day", DAY), ("7d", "week", WEEK))
_MOST_LETTERS = 200
_FEW, _MANY = 200, 1000
_COLUMNS = (
    "row",
    "rack",
    "kind",
    "start",
    "end",
    "latest",
    "job",
    "attempt",
    "name",
    "owner",
    "team",
    "gpus",
    "how",
    "count",
)


class Asked(msgspec.Struct, frozen=True):
    """It is the page's address, too. ``colour``: empty, as is usual for what the rows are."""

    by: str = "node"
    rack: str = ""
    node: str = ""
    since: str = ""
    until: str = ""
    colour: str = ""
    limit: int = _FEW

    def said(self, **other: object) -> dict[str, str]:
        changed = msgspec.structs.replace(self, **other)
        values = {
            "by": changed.by if changed.by != "node" else "",
            "rack": changed.rack,
            "node": changed.node,
            "since": changed.since,
            "until": changed.until,
            "colour": changed.colour,
            "limit": "" if changed.limit == _FEW else str(changed.limit),
        }
        return {name: value for name, value in values.items() if value}

    def url(self, **other: object) -> str:
        query = urlencode(self.said(**other))
        return f"/time?{query}" if query else "/time"

    @property
    def painted(self) -> str:
        """Rows of teams are all of one team."""
        return self.colour or ("owner" if self.by == "team" else "team")


class Time:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        asked = asked_in(visit.query)
        found: Timeline = await self._desk.get(
            visit.person,
            "/timeline",
            by=asked.by,
            rack=asked.rack or None,
            node=asked.node or None,
            since=asked.since or None,
            until=asked.until or None,
            limit=asked.limit,
        )
        racks = [rack.name for rack in self._desk.seeing.layout().racks]
        return Sheet(
            template="time.html",
            title="Time",
            sentence=found.sentence,
            data=found,
            table=Table(_COLUMNS, [_row(row, bar, found) for row in found.rows for bar in row.bars]),
            more=_shown(found, asked, racks),
            scripts=("time.css", "gantt.js"),
        )


def asked_in(query: Mapping[str, str]) -> Asked:
    def text(name: str) -> str:
        return query.get(name, "").strip()[:_MOST_LETTERS]

    return Asked(
        by=chosen(query, "by", BY, "node"),
        rack=text("rack"),
        node=text("node"),
        since=text("since")[:40],
        until=text("until")[:40],
        colour=chosen(query, "colour", COLOURS, ""),
        limit=count(query, "limit", _FEW, _MANY),
    )


def _shown(found: Timeline, asked: Asked, racks: list[str]) -> dict[str, Any]:
    has_bars = any(row.bars for row in found.rows)
    kept = {name: value for name, value in asked.said().items() if name not in ("since", "until")}
    return {
        "asked": asked,
        "gantt": drawn(found, asked.painted, kept) if found.rows and has_bars else None,
        "hues": definitions(),
        "racks": racks,
        "bys": [(by, asked.url(by=by, colour=""), asked.by == by) for by in BY],
        "colours": [
            (
                f"by {colour}" if colour != "how" else "by how it went",
                asked.url(colour=colour),
                asked.painted == colour,
            )
            for colour in COLOURS
        ],
        "spans": [
            (words, asked.url(since=since, until=""), is_span(found, long)) for since, words, long in SPANS
        ],
        "pan": panned(found, asked),
        "is_whole": not asked.rack and not asked.node,
        "most": _MANY,
    }


def is_span(found: Timeline, seconds: float) -> bool:
    """As without ``until``: so long until now, and a quarter of it ahead."""
    is_past = abs(found.now - found.since - seconds) < 60
    return is_past and abs(found.until - found.now - seconds / 4) < 60


def panned(found: Timeline, asked: Asked) -> dict[str, str]:
    """Addresses half as far before and after; after what is planned nothing comes."""
    half = (found.until - found.since) / 2

    def moved(seconds: float) -> str:
        return asked.url(since=f"{found.since + seconds:.0f}", until=f"{found.until + seconds:.0f}")

    return {"earlier": moved(-half), "later": moved(half) if found.since + half < found.now else ""}


def _row(row: TimeRow, bar: Bar, found: Timeline) -> list[Cell]:
    job = found.jobs.get(bar.job or "")
    who: list[Cell] = [None] * 4 if job is None else [job.name, job.owner, job.team, job.gpus]
    where: list[Cell] = [
        row.id,
        row.rack,
        bar.kind.value,
        bar.start,
        bar.end,
        bar.latest,
        bar.job,
        bar.attempt,
    ]
    return [*where, *who, bar.how, bar.count]
