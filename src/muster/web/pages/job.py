"""``/job/ID``: what is this, whose, for what, at what cost, ending when?"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from muster.model.errors import MusterError
from muster.model.state import State
from muster.server.answers import JobMetrics, Jobs, JobUse, JobView, Why
from muster.server.errors import Forbidden
from muster.server.people import Person
from muster.server.stewardship.costs import CostView
from muster.web import charts
from muster.web.desk import Desk
from muster.web.logtext import readable
from muster.web.pages.job_acts import acts_on_job
from muster.web.pages.job_charts import exits_of, metric_charts, use_charts
from muster.web.pages.job_words import ends_of, sentence
from muster.web.sheet import Sheet, Table, Visit

_T = TypeVar("_T")
_LOG_BYTES, _LOG_LINES = 65_536, 200
_MOST_MEMBERS = 200
_METRIC_POINTS = 600
SCRIPTS = (*charts.SCRIPTS, "job.css", "job.js")


class JobSheet(msgspec.Struct, frozen=True):
    """All that is known of a job. What nobody can tell is null."""

    job: JobView
    cost: CostView | None
    metrics: JobMetrics | None = None
    use: JobUse | None = None
    where: Any = None
    story: Any = None
    why: Why | None = None
    members: Jobs | None = None  # of an array


class LogEnd(msgspec.Struct, frozen=True):
    """The end of a log, or why it is not shown."""

    text: str = ""
    refused: str = ""
    address: str = ""  # of all of it
    is_live: bool = False


class JobPage:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        path = f"/jobs/{quote(visit.values[0], safe='')}"
        view: JobView = await self._desk.get(visit.person, path)
        data, log = await asyncio.gather(
            self._gathered(visit, path, view), self._log(visit.person, path, view, visit.query)
        )
        now, service = self._desk.wall(), self._desk.ground.service
        return Sheet(
            template="job.html",
            title=f"{view.id} {view.name}",
            sentence=sentence(view, now),
            data=data,
            table=_table(data),
            more={
                "view": view,
                "log": log,
                "ends": ends_of(view, now),
                "acts": acts_on_job(visit.person, view, service),
                "metric_charts": [] if data.metrics is None else metric_charts(view, data.metrics),
                "use_charts": [] if data.use is None else use_charts(data.use),
                "exits": exits_of(view),
                "is_over": view.state is State.ENDED,
                "waits": view.started_at is None and view.state is not State.ENDED,
            },
            scripts=SCRIPTS,
        )

    async def _gathered(self, visit: Visit, path: str, view: JobView) -> JobSheet:
        """Each part by itself: what one can't tell is no reason to show none."""
        get, person = self._desk.get, visit.person
        is_one = view.counts is None
        asked: dict[str, Awaitable[Any]] = {
            "cost": get(person, f"{path}/cost"),
            "where": get(person, f"{path}/where"),
            "story": get(person, f"{path}/story"),
        }
        if is_one:
            asked["metrics"] = get(person, f"{path}/metrics", points=_METRIC_POINTS)
            asked["use"] = get(person, f"{path}/use")
        else:
            asked["members"] = get(person, "/jobs", job=view.id, limit=_MOST_MEMBERS)
        if visit.query.get("why"):
            asked["why"] = get(person, f"{path}/why")
        found = await asyncio.gather(*(_if_known(one) for one in asked.values()))
        return JobSheet(view, **{"cost": None, **dict(zip(asked, found, strict=True))})

    async def _log(self, person: Person, path: str, view: JobView, query: Mapping[str, str]) -> LogEnd:
        if view.counts is not None or (view.log is None and not view.attempt):
            return LogEnd()
        chosen = {name: query[name] for name in ("attempt", "part") if query.get(name, "").isdecimal()}
        asked = "".join(f"&{name}={value}" for name, value in chosen.items())
        address = f"/log/{quote(view.id, safe='')}?{asked[1:]}"
        is_latest = chosen.get("attempt", str(view.attempt)) == str(view.attempt)
        try:
            streamed = await self._desk.get(person, f"{path}/log", last_bytes=_LOG_BYTES, **chosen)
            raw = b"".join([piece async for piece in streamed.pieces])
        except Forbidden as error:
            return LogEnd(refused=str(error))
        except MusterError as error:
            return LogEnd(refused=str(error), address=address)
        text = readable(raw, _LOG_LINES, is_cut=len(raw) >= _LOG_BYTES)
        return LogEnd(text, address=address, is_live=is_latest and view.state is not State.ENDED)


async def _if_known(asked: Awaitable[_T]) -> _T | None:
    try:
        return await asked
    except MusterError:
        return None


def _table(data: JobSheet) -> Table:
    """A line for each member of an array; of one job a line for each thing that can be said."""
    if data.members is not None:
        columns = ("id", "state", "outcome", "verdict", "gpus", "nodes", "started_at", "ended_at", "params")
        return Table(columns, [_member(view) for view in data.members.jobs])
    return Table(("what", "value"), [(name, _plain(value)) for name, value in _told(data)])


def _member(view: JobView) -> tuple[str | float | None, ...]:
    params = " ".join(f"{name}={value}" for name, value in view.params.items())
    how = (view.outcome and view.outcome.value, view.verdict and view.verdict.value)
    return (
        view.id,
        view.state.value,
        *how,
        view.gpus,
        " ".join(view.nodes),
        view.started_at,
        view.ended_at,
        params,
    )


def _told(data: JobSheet) -> list[tuple[str, object]]:
    view, cost = data.job, data.cost
    fields = (
        *("id", "name", "owner", "answers", "team", "effort", "purpose", "success", "failure", "until"),
        *(
            "state",
            "outcome",
            "verdict",
            "reason",
            "cause",
            "attempt",
            "submitted_at",
            "started_at",
            "ended_at",
        ),
        *("gpus", "cpus", "memory_bytes", "time_limit_seconds", "nodes", "devices", "command", "cwd"),
    )
    told: list[tuple[str, object]] = [(name, getattr(view, name)) for name in fields]
    if view.budget is not None:
        told += [("budget", view.budget.text), ("budget_spent", view.budget.spent)]
    if cost is not None:
        told += [
            ("gpu_held_seconds", cost.total.gpu_held_seconds),
            ("gpu_used_seconds", cost.total.gpu_used_seconds),
        ]
        told += [
            ("cpu_held_seconds", cost.total.cpu_held_seconds),
            ("cpu_used_seconds", cost.total.cpu_used_seconds),
        ]
        told += [("money", cost.money), ("currency", cost.currency)]
    return told + [(f"metric {name}", value) for name, value in view.metrics.items()]


def _plain(value: object) -> str | float | int | None:
    if isinstance(value, list):
        return "; ".join(map(str, value)) or None
    return value if isinstance(value, str | float | int) or value is None else str(value)
