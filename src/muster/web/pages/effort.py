"""``/effort/NAME`` and ``/efforts``: one question, one owner, many jobs; at what cost, ending when?"""

import asyncio
from urllib.parse import quote

import msgspec

from muster.model.charter import Verdict
from muster.model.units import show_count
from muster.server.answers import EffortView, JobView
from muster.server.stewardship.costs import EffortCost
from muster.steward.exits.terms import Compares, Sign, show, terms_of
from muster.web import words
from muster.web.desk import Desk
from muster.web.pages.job_acts import acts_on_effort
from muster.web.pages.job_charts import exits_of
from muster.web.sheet import Sheet, Table, Visit

_MOST_LIVING = 200
_UPWARD = frozenset({Sign.AT_LEAST, Sign.ABOVE})
_JOB_COLUMNS = (
    "id",
    "name",
    "owner",
    "state",
    "outcome",
    "verdict",
    "gpus",
    "started_at",
    "ended_at",
    "metrics",
)
_COLUMNS = (
    "name",
    "owner",
    "team",
    "state",
    "purpose",
    "living",
    "budget",
    "spent",
    "share",
    "until",
    "opened_at",
)


class EffortSheet(msgspec.Struct, frozen=True):
    effort: EffortView
    cost: EffortCost
    living: list[JobView]
    more: int  # that live and are left out


class Best(msgspec.Struct, frozen=True):
    """How near anybody has come to a condition, of the last values of those jobs that are listed."""

    condition: str
    verdict: str
    value: float | None
    job: str | None


class EffortPage:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        name, get = visit.values[0], self._desk.get
        path = f"/efforts/{quote(name, safe='')}"
        effort, cost = await asyncio.gather(get(visit.person, path), get(visit.person, f"{path}/cost"))
        living = await get(visit.person, "/jobs", effort=name, limit=_MOST_LIVING)
        data = EffortSheet(effort, cost, living.jobs, living.more)
        return Sheet(
            template="effort.html",
            title=effort.name,
            sentence=_sentence(data, self._desk.wall()),
            data=data,
            table=Table(_JOB_COLUMNS, [_job_row(view) for view in (*data.living, *cost.ended)]),
            more={
                "effort": effort,
                "acts": acts_on_effort(visit.person, effort, self._desk.ground.service),
                "best": bests(effort, (*data.living, *cost.ended)),
                "pieces": pieces(effort),
            },
            scripts=("job.css",),
        )


class EffortsPage:
    """Those that are open first; ``?who=mine`` only those of whoever looks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        is_mine = visit.query.get("who") == "mine"
        found = (await self._desk.get(visit.person, "/efforts", all=True)).efforts
        chosen = [one for one in found if not is_mine or visit.person.is_called(one.owner)]
        under_way = [one for one in chosen if one.verdict is None]
        closed = sorted(
            (one for one in chosen if one.verdict is not None), key=lambda one: -(one.closed_at or 0.0)
        )
        under_way.sort(key=lambda one: (one.paused is not None, -_share(one), one.name))
        return Sheet(
            template="efforts.html",
            title="Efforts",
            sentence=_sentence_on_all(under_way, len(closed), is_mine=is_mine),
            data=[*under_way, *closed],
            table=Table(_COLUMNS, [_row(one) for one in (*under_way, *closed)]),
            more={"under_way": under_way, "closed": closed, "is_mine": is_mine, "pieces": pieces},
            scripts=("job.css",),
        )


# --- Words ----------------------------------------------------------------------------------------------


def _sentence(data: EffortSheet, now: float) -> str:
    effort, total = data.effort, data.cost.total
    state = _state(effort)
    held = f"{words.gpu_hours(total.gpu_held_seconds)} GPU·h held"
    if total.gpu_used_seconds is not None and total.gpu_held_seconds:
        held += f", {total.gpu_used_seconds / total.gpu_held_seconds:.0%} of it truly used"
    if not total.gpu_held_seconds:
        held = f"{words.gpu_hours(total.cpu_held_seconds)} cpu·h held"
    spent = (
        "" if effort.spending is None else f" {effort.spending.share:.0%} of {effort.spending.text} spent."
    )
    until = (
        ""
        if effort.until is None or effort.verdict
        else f" It ends {words.clock(effort.until, now)} at the latest."
    )
    ended = sum(effort.ended.values())
    living = f"{show_count(effort.living, 'job')} {'lives' if effort.living == 1 else 'live'}"
    jobs = f"{living}, {ended:,} {'has' if ended == 1 else 'have'} ended"
    return f"{effort.owner}'s effort is {state}: {jobs}; {held}.{spent}{until}"


def _state(effort: EffortView) -> str:
    if effort.verdict is not None:
        return f"closed as {effort.verdict}"
    is_spent = effort.spending is not None and effort.spending.decide_by is not None
    return "under way" if effort.paused is None and not is_spent else "paused"


def _sentence_on_all(under_way: list[EffortView], closed: int, *, is_mine: bool) -> str:
    whose = " of yours" if is_mine else ""
    paused = sum(one.paused is not None for one in under_way)
    near = sum(_share(one) >= 0.8 for one in under_way)
    said = f"{show_count(len(under_way), 'effort')}{whose} open"
    said += f", {paused} of them paused" if paused else ""
    said += f"; {near} spent 80% of the budget or more" if near else ""
    return f"{said}; {closed} closed."


def _share(effort: EffortView) -> float:
    return 0.0 if effort.spending is None else effort.spending.share


# --- Pictures -------------------------------------------------------------------------------------------

_GOOD, _BAD, _SPENT = (
    ("won", "succeeded"),
    ("lost", "failed", "out of memory", "node lost"),
    ("out-of-budget", "out-of-time"),
)


class Piece(msgspec.Struct, frozen=True):
    """A part of a bar: how many, how they are called and drawn, and where it lies in a hundred."""

    what: str
    count: int
    look: str
    x: float
    width: float


def pieces(effort: EffortView) -> list[Piece]:
    """Its jobs in one bar: those that live, then those that have ended, by verdict."""
    counts = [("live", effort.living), *sorted(effort.ended.items(), key=lambda one: _order(one[0]))]
    whole, x, found = sum(count for _, count in counts), 0.0, []
    for what, count in counts:
        if count:
            width = 100 * count / whole
            found.append(
                Piece(what.lower().replace("_", " "), count, _look(what), round(x, 2), round(width, 2))
            )
            x += width
    return found


def _look(what: str) -> str:
    word = what.lower().replace("_", " ")
    if word == "live":
        return "live"
    if word in _GOOD:
        return "won"
    if word in _BAD:
        return "lost"
    if word in _SPENT:
        return "spent"
    return "undefended" if word == Verdict.UNDEFENDED else "other"


def _order(what: str) -> tuple[int, str]:
    looks = ("live", "won", "lost", "spent", "undefended", "other")
    return looks.index(_look(what)), what


def bests(effort: EffortView, jobs: tuple[JobView, ...]) -> list[Best]:
    """For each comparison in its conditions the job whose last value comes nearest to meeting it."""
    return [
        _best(term, one.verdict, jobs)
        for one in exits_of(effort)
        for term in terms_of(one.condition)
        if isinstance(term, Compares)
    ]


def _best(term: Compares, verdict: str, jobs: tuple[JobView, ...]) -> Best:
    told = [
        (value, view.id) for view in jobs if isinstance(value := view.metrics.get(term.metric), int | float)
    ]
    if term.sign in _UPWARD:
        value, job = max(told, key=lambda one: one[0], default=(None, None))
    else:
        value, job = min(told, key=lambda one: one[0], default=(None, None))
    return Best(show(term), verdict, value, job)


# --- Tables ---------------------------------------------------------------------------------------------


def _job_row(view: JobView) -> tuple[str | float | None, ...]:
    return (
        view.id,
        view.name,
        view.owner,
        view.state.value,
        None if view.outcome is None else view.outcome.value,
        None if view.verdict is None else view.verdict.value,
        view.gpus,
        view.started_at,
        view.ended_at,
        " ".join(f"{name}={value}" for name, value in view.metrics.items()),
    )


def _row(effort: EffortView) -> tuple[str | float | None, ...]:
    spending = effort.spending
    return (
        effort.name,
        effort.owner,
        effort.team,
        _state(effort),
        effort.purpose,
        effort.living,
        effort.budget,
        None if spending is None else spending.spent,
        None if spending is None else spending.share,
        effort.until,
        effort.opened_at,
    )
