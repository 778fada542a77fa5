"""Asking the server for what a frame needs, and no more often than it changes.

A frame a second is one question. What jobs used in the last day changes by the hour, so it is asked for once
a minute, for the rows that are shown, and all of them together; the review and the sums of use likewise. What
the place looks like is told one glyph for each GPU, node or rack, whichever fits.
"""

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from muster.client import Client, NoServer
from muster.model.errors import MusterError
from muster.tui.frame import fits
from muster.tui.seen import JOBS, MAP, QUEUE, REVIEW, USE, Gaze, Seen

View = dict[str, Any]
GRAINS = ("gpu", "node", "rack")
_SPARKS_SECONDS = 60.0
_SPARKS_AT_ONCE = 50
_SLOW_SECONDS = 30.0  # after which reviews and sums of use are asked for again
_LOG_BYTES = 8_000
_LOG_LINES = 12


class Looking:
    """One who looks at a server. Not to be shared between threads."""

    def __init__(self, client: Client, **narrowed: object) -> None:
        self._client = client
        self._narrowed = narrowed
        self._screen: tuple[object, ...] | None = None  # for which the grain was chosen
        self._generation, self._grain = 0, 0
        self._sparks: dict[str, tuple[float, list[float | None]]] = {}
        self._slow: dict[str, tuple[float, View]] = {}
        self.last: Seen | None = None

    def look(self, gaze: Gaze, columns: int, height: int | None, limit: int) -> Seen:
        """What there is to see; of a server that is away, what was seen last, and why it is not live."""
        try:
            self.last = self._look(gaze, columns, height, limit)
        except MusterError as error:
            if self.last is None:
                raise
            self.last = replace(self.last, away=str(error))
        return self.last

    def _look(self, gaze: Gaze, columns: int, height: int | None, limit: int) -> Seen:
        top = self._top(gaze, columns, height, limit)
        at = time.time()
        review = self._now_and_then(REVIEW, self._client.review) if gaze.mode == REVIEW else None
        use = self._now_and_then(USE, self._used) if gaze.mode == USE else None
        sparks = self._sparks_of([job["id"] for job in top["jobs"] if job["started_at"] is not None])
        return Seen(top, gaze.mode, at, sparks, review, use)

    def _top(self, gaze: Gaze, columns: int, height: int | None, limit: int) -> View:
        asked = {
            "which": "waiting" if gaze.mode == QUEUE else "all",
            "order": gaze.order,
            "match": gaze.match or None,
            "limit": limit if gaze.mode in (JOBS, QUEUE) else 0,
            **self._narrowed,
        }
        if gaze.mode not in (JOBS, MAP) or (gaze.mode == JOBS and not gaze.is_map_shown):
            return self._client.top(by="none", **asked)
        screen = (gaze.mode, columns, height)
        grain = self._grain if self._screen == screen else 0
        while True:
            top = self._client.top(by=GRAINS[grain], **asked)
            if top["generation"] != self._generation and self._screen == screen and grain:
                self._screen, self._generation, grain = None, top["generation"], 0
                continue  # the place is another: look again from near
            if grain + 1 == len(GRAINS) or fits(top, gaze, columns, height):
                self._screen, self._generation, self._grain = screen, top["generation"], grain
                return top
            grain += 1

    def _used(self) -> View:
        return self._client.use(by="team", since="24h")

    def _now_and_then(self, what: str, ask: Callable[[], View]) -> View:
        known = self._slow.get(what)
        if known is None or time.monotonic() - known[0] > _SLOW_SECONDS:
            known = self._slow[what] = (time.monotonic(), ask())
        return known[1]

    def forget(self) -> None:
        """Something was done: what is asked for now and then is asked for at the next look."""
        self._slow.clear()

    def _sparks_of(self, jobs: list[str]) -> dict[str, list[float | None]]:
        now = time.monotonic()
        old = [job for job in jobs if now - self._sparks.get(job, (-_SPARKS_SECONDS,))[0] >= _SPARKS_SECONDS]
        if old:
            asked = old[:_SPARKS_AT_ONCE]
            found = self._client.sparks(asked)["sparks"]
            self._sparks |= {job: (now, found.get(job, [])) for job in asked}
        self._sparks = {job: self._sparks[job] for job in jobs if job in self._sparks}
        return {job: shares for job, (_, shares) in self._sparks.items()}


def about(client: Client, job: str) -> View:
    """All about a job, from the API; what can't be told says why."""
    asked: dict[str, Callable[[], Any]] = {
        "job": lambda: client.job(job),
        "cost": lambda: client.cost(job),
        "why": lambda: client.why(job),
        "where": lambda: client.where(job),
        "log": lambda: last_lines(client, job),
    }
    told: View = {}
    for what, ask in asked.items():
        if what == "why" and told["job"]["state"] not in ("QUEUED", "HELD"):
            continue
        try:
            told[what] = ask()
        except NoServer:
            raise
        except MusterError as error:
            if what == "job":
                raise
            told[what] = {"refused": str(error)}
    return told


def last_lines(client: Client, job: str) -> list[str]:
    """What it wrote last."""
    told = b"".join(client.logs(job, last_bytes=_LOG_BYTES))
    return told.decode(errors="replace").splitlines()[-_LOG_LINES:]
