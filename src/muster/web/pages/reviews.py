"""``/reviews``: what was stopped, and what that has freed. Each has its minutes at ``/review?number=N``."""

import asyncio

from muster.model.units import HOUR, show_count
from muster.server.stewardship.review_answers import PastReviewView
from muster.web.desk import Desk
from muster.web.sheet import Cell, Sheet, Table, Visit

_COLUMNS = (
    "number",
    "closed_at",
    "by",
    "stopped",
    "recovered_gpu_seconds_a_day",
    "recovered_cpu_seconds_a_day",
)


class Reviews:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        get, person = self._desk.get, visit.person
        past, now = await asyncio.gather(get(person, "/reviews"), get(person, "/review"))
        reviews: list[PastReviewView] = past.reviews
        stopped = show_count(sum(len(one.stopped) for one in reviews), "job")
        gpus, cpus = now.recovered_gpu_seconds / HOUR, now.recovered_cpu_seconds / HOUR
        freed = f"{gpus:,.0f} GPU·h and {cpus:,.0f} cpu·h until now, as projected"
        return Sheet(
            template="reviews.html",
            title="Past reviews",
            sentence=f"{show_count(len(reviews), 'review')} stopped {stopped} that nobody defended: {freed}."
            if reviews
            else "No review was closed yet.",
            data=past,
            table=Table(_COLUMNS, [_row(one) for one in reviews]),
            scripts=("review.css",),
        )


def _row(one: PastReviewView) -> list[Cell]:
    return [
        one.number,
        one.closed_at,
        one.by,
        len(one.stopped),
        one.recovered_gpu_seconds_a_day,
        one.recovered_cpu_seconds_a_day,
    ]
