"""``/use``: what consumes the cluster, and who defends it?

Above, held and used over time, of everybody or of one group; below, the same as a tree of bars to one scale,
from teams, owners or purposes down to jobs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from muster.server.people import Person
from muster.server.seeing.use_answers import UseLine, UseSeries, UseTree
from muster.web.address import chosen, count
from muster.web.charts import SCRIPTS, Chart, Mark, Series, bounds, with_gaps
from muster.web.desk import Desk
from muster.web.sheet import Sheet, Table, Visit
from muster.web.use_rows import COLUMNS, Drawing, amount_of, table_rows, whole_bar

SPANS = (("24h", "day"), ("7d", "week"), ("30d", "30 days"), ("90d", "90 days"))
BY = ("team", "owner", "purpose")
_USUAL = "7d"
_FEW, _MANY = 200, 2000
_MOST_LETTERS = 200
_MOST_OPEN = 12  # so many at the first level, and what is below them is shown at once


class Asked(msgspec.Struct, frozen=True):
    """It is the page's address, too. ``group``: one of those over time; None: everybody."""

    since: str = _USUAL
    by: str = "team"
    group: str | None = None
    limit: int = _FEW

    def url(self, **other: object) -> str:
        changed = msgspec.structs.replace(self, **other)
        said = {
            "since": changed.since if changed.since != _USUAL else None,
            "by": changed.by if changed.by != "team" else None,
            "group": changed.group,
            "limit": str(changed.limit) if changed.limit != _FEW else None,
        }
        query = urlencode({name: value for name, value in said.items() if value is not None})
        return f"/use?{query}" if query else "/use"

    @property
    def series_by(self) -> str:
        """Over time there are no purposes."""
        return "owner" if self.by == "owner" else "team"


class Use:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        asked = asked_in(visit.query)
        tree, series = await asyncio.gather(
            self._tree(visit.person, asked), self._series(visit.person, asked)
        )
        return Sheet(
            template="use.html",
            title="Use",
            sentence=tree.sentence,
            data={"tree": tree, "series": series},
            table=Table(COLUMNS, list(table_rows(tree.total))),
            more={"asked": asked, **_drawn(tree, asked), **_over_time(series, asked)},
            scripts=(*SCRIPTS, "use.css"),
        )

    async def _tree(self, person: Person, asked: Asked) -> UseTree:
        found: UseTree = await self._desk.get(
            person, "/use/tree", by=asked.by, since=asked.since, limit=asked.limit
        )
        return found

    async def _series(self, person: Person, asked: Asked) -> UseSeries:
        found: UseSeries = await self._desk.get(person, "/use/series", by=asked.series_by, since=asked.since)
        return found


def asked_in(query: Mapping[str, str]) -> Asked:
    group = query.get("group")
    return Asked(
        since=query.get("since", "").strip()[:40] or _USUAL,
        by=chosen(query, "by", BY, "team"),
        group=None if group is None else group[:_MOST_LETTERS],
        limit=count(query, "limit", _FEW, _MANY),
    )


def _drawn(tree: UseTree, asked: Asked) -> dict[str, Any]:
    top, total = tree.total.children, amount_of(tree.total, tree.drawn_by)
    drawing = Drawing.of(top, tree.drawn_by, opens=len(top) <= _MOST_OPEN)
    is_gpu = tree.drawn_by == "gpu"
    capacity = tree.capacity_gpu_seconds if is_gpu else tree.capacity_cpu_seconds
    return {
        "tree": tree,
        "rows": drawing.rows(top),
        "unit": drawing.unit,
        "total": total,
        "whole": whole_bar(total, capacity, drawing.unit),
        "capacity": capacity,
        "metric": tree.metrics.gpu if is_gpu else tree.metrics.cpu,
        "has_quotas": any(node.quota_gpu_seconds is not None for node in top) and is_gpu,
        "spans": [(words, asked.url(since=since), asked.since == since) for since, words in SPANS],
        "bys": [(by, asked.url(by=by, group=None), asked.by == by) for by in BY],
        "is_cut": any(node.kind == "rest" for node in _all(top)) and asked.limit < _MANY,
        "most": _MANY,
    }


def _all(nodes: Sequence[Any]) -> Sequence[Any]:
    return [one for node in nodes for one in (node, *_all(node.children))]


# --- Over time ------------------------------------------------------------------------------------------


def _over_time(series: UseSeries, asked: Asked) -> dict[str, Any]:
    line = line_of(series, asked.group)
    groups = [
        (one.group or f"in no {asked.series_by}", asked.url(group=one.group), asked.group == one.group)
        for one in series.lines
        if one.group is not None
    ]
    return {
        "series": series,
        "chart": None if line is None else chart_of(series, line, asked),
        "groups": groups,
        "everybody": asked.url(group=None),
    }


def line_of(series: UseSeries, group: str | None) -> UseLine | None:
    """None: who is asked for is not among those who held most."""
    if group is None:
        return series.total
    return next((line for line in series.lines if line.group == group), None)


def chart_of(series: UseSeries, line: UseLine, asked: Asked) -> Chart:
    at, (held, used) = with_gaps(series.at, [line.held, line.used], series.step_seconds)
    many = "GPUs" if series.unit == "gpu" else "cpus"
    marks = (Mark(f"all {series.capacity:g} {many}", y=series.capacity),)
    _, high = bounds([0.0, *held], [series.capacity])
    whose = "everybody" if asked.group is None else asked.group or f"in no {asked.series_by}"
    return Chart(
        "use",
        f"{many} held and used, {whose}",
        series.sentence if asked.group is None else said_of(line, many),
        at,
        (Series("held", held, "hatched"), Series(f"used, by {series.metric or 'no meter'}", used, "filled")),
        marks,
        low=0.0,
        high=high,
    )


def said_of(line: UseLine, many: str) -> str:
    """``On average 12.5 GPUs were held, and 63% of that was used.``"""
    mean, most = sum(line.held) / max(1, len(line.held)), max(line.held, default=0.0)
    pairs = [(held, used) for held, used in zip(line.held, line.used, strict=True) if used is not None]
    whole = sum(held for held, _ in pairs)
    share = sum(used for _, used in pairs) / whole if whole else None
    used = "use was not measured" if share is None else f"{share:.0%} of that was used"
    return f"On average {mean:.3g} {many} were held, and {used}; at most {most:.4g} were held."
