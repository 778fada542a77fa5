"""``/review``: what should stop? What consumed, by whom, defended or not; and what is stopped when.

``/review?number=N`` are the minutes of one that is closed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from muster.model.units import DAY, HOUR, show_count
from muster.server.people import Person
from muster.server.stewardship.review_answers import ReviewItem, ReviewView
from muster.web import words
from muster.web.desk import Desk
from muster.web.minutes import blocks_of
from muster.web.pictures import bar, spark
from muster.web.sheet import Cell, Sheet, Table, Visit
from muster.web.standing import may_act

_FEW, _MANY = 24, 2000
_LATEST = 5  # of those that are closed
_MOST_LETTERS = 200
_COLUMNS = (
    "what",
    "kind",
    "because",
    "owner",
    "team",
    "gpus",
    "gpu_held_seconds",
    "cpu_held_seconds",
    "used_share",
    "coverage",
    "purpose",
    "until",
    "budget",
    "stops",
    "stops_at",
)


class Asked(msgspec.Struct, frozen=True):
    """Which items; it is the page's address, too."""

    mine: bool = False
    team: str = ""
    undefended: bool = False
    all: bool = False

    def url(self, **other: object) -> str:
        changed = msgspec.structs.replace(self, **other)
        said = {
            "mine": "1" if changed.mine else "",
            "team": changed.team,
            "undefended": "1" if changed.undefended else "",
            "all": "1" if changed.all else "",
        }
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/review?{query}" if query else "/review"

    @property
    def is_narrow(self) -> bool:
        return self.mine or self.undefended or bool(self.team)


class Shown(msgspec.Struct, frozen=True):
    """An item, and what the page says of it."""

    item: ReviewItem
    place: int  # the largest is 1
    key: str  # of its element
    spark: Markup | None
    bar: Markup | None  # None: nothing of it was measured
    acts: str | None  # where one acts on it: ``jobs/12``; none: one may not, or nothing of it lives
    link: str | None
    is_effort: bool


class Review:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        number = visit.query.get("number", "").strip()
        return await (self._minutes(visit.person, number) if number else self._open(visit))

    async def _open(self, visit: Visit) -> Sheet:
        asked, person = _asked(visit.query), visit.person
        review, past = await asyncio.gather(
            self._desk.get(person, "/review"), self._desk.get(person, "/reviews")
        )
        chosen = [one for one in enumerate(review.items, 1) if self._is_asked(one[1], asked, person)]
        chosen.sort(key=lambda one: not one[1].stops)  # what is to be answered first; of those, the largest
        asked_for = sum(bool(item.stops) for _, item in chosen)
        listed = chosen[: _MANY if asked.all else min(_MANY, max(_FEW, asked_for))]
        rules = self._desk.ground.config().review
        return Sheet(
            template="review.html",
            title="Review" if review.number is None else f"Review {review.number}",
            sentence=sentence_of(review, self._desk.wall()),
            data=msgspec.structs.replace(review, items=[item for _, item in chosen]),
            table=Table(_COLUMNS, [_row(item) for _, item in chosen]),
            more={
                "asked": asked,
                "shown": [self._shown(item, place, person) for place, item in listed],
                "more": len(chosen) - len(listed),
                "of": len(review.items),
                "teams": sorted({item.team for item in review.items if item.team}),
                "undefended": sum(bool(item.stops) for item in review.items),
                "due": [item for item in review.items if item.stops_at is not None],
                "past": past.reviews[:_LATEST],
                "past_count": len(past.reviews),
                "revive_seconds": rules.revive_seconds,
                "longest_seconds": rules.longest_seconds,
                "may_close": person.role in ("lead", "admin") and review.number is not None,
            },
            scripts=("review.css",),
        )

    def _is_asked(self, item: ReviewItem, asked: Asked, person: Person) -> bool:
        if asked.mine and not person.is_called(item.owner):
            return False
        return (not asked.team or item.team == asked.team) and (not asked.undefended or bool(item.stops))

    def _shown(self, item: ReviewItem, place: int, person: Person) -> Shown:
        kind, _, name = item.subject.partition(":")
        is_effort = kind == "effort"
        target = name if is_effort else item.living[0] if item.living else ""
        where = f"{'efforts' if is_effort else 'jobs'}/{quote(target, safe='')}" if target else None
        may = may_act(self._desk, person, item.owner or "", item.team)
        page = "effort" if is_effort else "job"
        known = target or (item.jobs[0] if item.jobs else "")
        return Shown(
            item=item,
            place=place,
            key=quote(item.subject, safe=""),
            spark=_spark(item),
            bar=None if item.used_share is None else bar(item.used_share, _used(item.used_share)),
            acts=where if may and item.living else None,
            link=f"/{page}/{quote(known, safe='')}" if known else None,
            is_effort=is_effort,
        )

    async def _minutes(self, person: Person, number: str) -> Sheet:
        past = await self._desk.get(person, f"/reviews/{quote(number, safe='')}")
        blocks = blocks_of(past.minutes or "")
        stopped = show_count(len(past.stopped), "job")
        return Sheet(
            template="minutes.html",
            title=f"Review {past.number}",
            sentence=f"Closed {words.clock(past.closed_at, self._desk.wall())}, and {stopped} stopped.",
            data=past,
            table=Table(("stopped",), [(job,) for job in past.stopped]),
            more={"blocks": blocks[1:] if blocks and blocks[0].kind == "heading" else blocks},
            scripts=("review.css",),
        )


def _asked(query: Mapping[str, str]) -> Asked:
    def is_set(name: str) -> bool:
        return query.get(name, "") not in ("", "0", "false")

    team = query.get("team", "").strip()[:_MOST_LETTERS]
    return Asked(is_set("mine"), team, is_set("undefended"), is_set("all"))


def sentence_of(review: ReviewView, now: float) -> str:
    """``9 items hold 61 GPUs (1,464 GPU·h a day); nobody defends 3 of them, which stop Thu 17:00.``"""
    return f"{_held(review.items)} {_then(review, now)}"


def _held(items: Sequence[ReviewItem]) -> str:
    if not items:
        return "Nothing has consumed anything."
    gpus, cpus = sum(item.gpus for item in items), sum(item.cpus for item in items)
    verb = "holds" if len(items) == 1 else "hold"
    if gpus:
        held = f"{show_count(gpus, 'GPU')} ({gpus * DAY / HOUR:,.0f} GPU·h a day)"
    else:
        held = f"{show_count(cpus, 'cpu')} ({cpus * DAY / HOUR:,.0f} cpu·h a day)" if cpus else "nothing now"
    return f"{show_count(len(items), 'item')} {verb} {held}."


def _then(review: ReviewView, now: float) -> str:
    undefended = [item for item in review.items if item.stops]
    nobody = (
        f"Nobody defends {len(undefended):,} of them" if undefended else "Somebody answers for all that lives"
    )
    if review.closes_at is None:
        return f"{nobody}; reviews are off, so nothing stops."
    at = words.clock(review.closes_at, now)
    if review.number is None:
        return f"{nobody}. The next review closes {at}."
    due = sum(item.stops_at is not None for item in undefended)
    if not undefended:
        return f"{nobody}; the review closes {at}."
    which = "they stop" if due == len(undefended) > 1 else "it stops" if due == 1 else f"{due:,} stop"
    return f"{nobody}: {which} {at} unless somebody does."


def _used(share: float) -> str:
    return f"{words.percent(share)} of it truly used"


def _spark(item: ReviewItem) -> Markup | None:
    has_gpus = any(day.gpu_seconds for day in item.days)
    values = [(day.gpu_seconds if has_gpus else day.cpu_seconds) / HOUR for day in item.days]
    if not any(values):
        return None
    unit = "GPU·h" if has_gpus else "cpu·h"
    each = ", ".join(f"{value:,.3g}" for value in values)
    return spark(values, f"held on the last {show_count(len(values), 'day')}, in {unit}: {each}")


def _row(item: ReviewItem) -> list[Cell]:
    return [
        item.what,
        item.kind,
        item.because,
        item.owner,
        item.team,
        item.gpus,
        item.gpu_held_seconds,
        item.cpu_held_seconds,
        item.used_share,
        item.coverage,
        item.purpose,
        item.until,
        item.budget,
        " ".join(item.stops),
        item.stops_at,
    ]
