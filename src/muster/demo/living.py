"""What goes on while somebody watches: jobs print and report, people submit.

A thread that does what jobs and people do, from outside: jobs write into their logs, people ask the server
over its socket. All that follows, the server does.
"""

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path

from muster.client import Client
from muster.demo import logs
from muster.demo.people import VISITOR
from muster.demo.work import USUAL, Kind
from muster.engines.sim import LiveEngine, Seated
from muster.home import Home
from muster.model.errors import MusterError
from muster.model.job import Job
from muster.model.units import MILLI

log = logging.getLogger("muster")

_TICK_SECONDS = 1.0
_LOUD = 0.12  # of those that run, the part that prints in a tick
_MOST_LOUD = 60
_TELLING = 0.25  # of what they print, the part that is a report
_BETWEEN_SECONDS = 25.0  # from one submission to the next, on average

KindOf = Callable[[Job], Kind]


class Living:
    """Runs beside the server until it is ended."""

    def __init__(
        self, home: Home, engine: LiveEngine, kind_of: KindOf, visitor: str, seed: int, speed: float
    ) -> None:
        self._home, self._engine, self._kind_of, self._visitor = home, engine, kind_of, visitor
        self._luck = random.Random(seed)
        self._rate = speed / _BETWEEN_SECONDS
        self._over = threading.Event()
        self._known: set[tuple[str, int]] = set()
        self._thread = threading.Thread(target=self._live, name="living", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _live(self) -> None:
        with Client(home=self._home.path) as client:
            while not self._over.wait(_TICK_SECONDS):
                try:
                    self._tick(client)
                except (MusterError, OSError) as error:
                    if not self._over.is_set():
                        log.info("the simulated people had to wait: %s", error)

    def _tick(self, client: Client) -> None:
        for one in self._loud([one for one in self._engine.seated() if not one.is_still]):
            self._print(one)
        if self._luck.random() < self._rate * _TICK_SECONDS:
            self._submit(client)

    # --- Jobs -----------------------------------------------------------------------------------------

    def _loud(self, running: list[Seated]) -> list[Seated]:
        """Who prints in this tick: first those that report and have not been heard yet."""
        new = [one for one in running if self._tells(one) and (one.job.id, one.attempt) not in self._known]
        count = min(len(running), _MOST_LOUD, max(1, round(_LOUD * len(running))))
        return [*new[:_MOST_LOUD], *self._luck.sample(running, count)]

    def _tells(self, one: Seated) -> bool:
        return self._kind_of(one.job).curve is not None

    def _print(self, one: Seated) -> None:
        """Who is new says who it is, and what it reports it reports at once; then now and then."""
        kind, key = self._kind_of(one.job), (one.job.id, one.attempt)
        is_new = key not in self._known
        self._known.add(key)
        done, tells = self._done(one), self._tells(one)
        lines: list[str] = []
        if is_new and not self._path(one).exists():
            lines += logs.first_lines(kind, one.job.id, done, 2)
        if tells and (is_new or self._luck.random() < _TELLING):
            lines.append(logs.report_line(kind, one.job.id, done))
        else:
            lines.append(logs.plain_line(kind, one.job.id, done))
        with self._path(one).open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def _path(self, one: Seated) -> Path:
        return logs.path_of(self._home.logs, one.job.id, one.attempt, one.job.gang.size)

    def _done(self, one: Seated) -> float:
        """How much of its work is done, from 0 to 1."""
        if one.ends_at is None or one.ends_at <= one.placed_at:
            return 0.5
        return min(1.0, (self._engine.now() - one.placed_at) / (one.ends_at - one.placed_at))

    # --- People ---------------------------------------------------------------------------------------

    def _submit(self, client: Client) -> None:
        kind = self._luck.choices(USUAL, weights=[kind.each_day for kind in USUAL])[0]
        owner = self._luck.choice(kind.owners)
        asked = _options(kind, self._visitor if owner == VISITOR else owner)
        client.submit_many([{"command": kind.command.split(), **asked}])


def _options(kind: Kind, owner: str) -> dict[str, object]:
    """As somebody would write it in ``application.yaml``."""
    asked: dict[str, object] = {
        "name": kind.name,
        "team": kind.team,
        "owner": owner,
        "cpus": max(1, round(kind.cpus * (kind.gpus * kind.milli / MILLI or 1))),
        "memory": f"{max(4, 48 * kind.gpus * kind.milli // MILLI)}G",
        "priority": kind.priority.name.lower(),
    }
    if kind.gpus:
        asked["gpus"] = kind.gpus * kind.milli / MILLI
    if kind.limit_hours is not None:
        asked["time"] = f"{kind.limit_hours:g}h"
    if kind.purpose is not None:
        asked |= {"purpose": kind.purpose, "success": list(kind.success), "failure": list(kind.failure)}
    return asked
