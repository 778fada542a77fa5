"""What jobs report: from wherever they tell it into the store, to people, and to whoever decides by it.

A report is a measurement and no event (see ``docs/decisions/0013-reports-are-measurements.md``). Those that
come over the API and those that are gathered (``monitor.reports``) go one way, in the service's thread: they
are numbered, shown, written with all else of the turn, and handed to a listener. With them is written how far
the gathering has come, so that a server that was killed goes on from there.

An attempt's last lines count. So its end is taken in when they have been heard: at once if they are few, as
they nearly always are; otherwise a thread reads them, and the end waits, for a while at most.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from muster.engines.base import Host
from muster.model.errors import MusterError
from muster.model.events import Event, Exited, Retried, Started, Vacated, Withdrawn
from muster.model.job import Job, JobId
from muster.model.ledger import Key
from muster.model.report import Report
from muster.model.snapshot import Running
from muster.monitor.reports.gather import Gatherer
from muster.monitor.reports.sources import OUTPUT, Teller, source_of
from muster.server.metering import Metering
from muster.server.views import Views
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.rows import ReportRow, StateKey

log = logging.getLogger("muster")

_KIND = "reports"
_PATIENCE_SECONDS = 2.0  # that an end waits for the last lines
_MOST_NAMES = 256  # whose last values are shown
_THIN_EVERY = 3000  # reports of an attempt


class Reporting(Protocol):
    """What is needed of the service."""

    fold: Fold
    engine: Host
    journal: Journal
    views: Views

    def keep_reports(
        self, rows: Sequence[ReportRow], states: Mapping[StateKey, bytes], over: JobId | None = None
    ) -> None:
        """Write these with all else of this turn; of a job that is over, the states go."""
        ...


class _Seen(msgspec.Struct, array_like=True):
    """What is known of an attempt's reports: how many there were, how far they were read, the last values."""

    count: int = 0
    position: bytes = b""
    values: dict[str, float] = {}


class _Waiting(msgspec.Struct):
    """An end that waits for the last lines."""

    fact: Exited | Vacated
    again: Callable[[Event], None]
    timer: asyncio.TimerHandle


def has_exits(job: Job) -> bool:
    """Whether its own charter says how it ends by what it reports."""
    return bool(job.charter.success or job.charter.failure)


class Reports:
    """All reports. One thread, that of the service, but for the gathering."""

    def __init__(self, service: Reporting, metering: Metering) -> None:
        self._service, self._metering, self._fold = service, metering, service.fold
        self.on_reports: Callable[[list[Report]], None] | None = None  # of attempts that live
        self.on_begin: Callable[[], None] | None = None  # of who goes by what was kept
        self.wants_soon: Callable[[Job], bool] = has_exits
        self.makers = dict(OUTPUT)
        self._loop = asyncio.get_running_loop()
        self._gatherer = Gatherer(service.engine.now, self._news)
        self._seen: dict[Key, _Seen] = {}
        self._with_states: set[JobId] = set()
        self._lingering: dict[Key, _Seen] = {}  # of attempts that are over, and not heard to their end
        self._waiting: dict[Key, _Waiting] = {}
        self._heard_all: set[Key] = set()  # of attempts whose end is taken in just now
        self._crowded: set[Key] = set()
        self._thinning = False

    def begin(self) -> None:
        """Go on where an earlier server stood."""
        states = self.kept(_KIND)
        for running in self._fold.running.values():
            key = (running.job.id, running.attempt)
            if key in states:
                self._seen[key] = msgspec.msgpack.decode(states[key], type=_Seen)
                self._show(running.job.id, self._seen[key].values)
            if running.started_at is not None:
                self._listen_to(running)
        self._gatherer.begin()
        if self.on_begin is not None:
            self.on_begin()

    def end(self) -> None:
        self._gatherer.end()
        self._fetch()

    def reconsider(self) -> None:
        """Whom somebody waits for may have changed."""
        for running in self._fold.running.values():
            key = (running.job.id, running.attempt)
            self._gatherer.hurry(key, soon=self.wants_soon(running.job))

    # --- Facts --------------------------------------------------------------------------------------

    def saw(self, event: Event) -> None:
        """A fact that was folded in just now."""
        if isinstance(event, Started):
            running = self._fold.running.get(event.job)
            if running is not None and running.attempt == event.attempt:
                self._listen_to(running)
        elif isinstance(event, Exited | Vacated | Retried):
            self._over((event.job, event.attempt))
        if isinstance(event, Exited | Withdrawn) and event.job in self._with_states:
            self._with_states.discard(event.job)
            self._service.keep_reports((), {}, over=event.job)

    def _over(self, key: Key) -> None:
        """What is still to be heard of it goes where the rest is, and nowhere else."""
        self._lingering[key] = self._seen.pop(key, _Seen())
        if self._gatherer.finish(key):
            self._fetch()
            self._lingering.pop(key, None)

    def _listen_to(self, running: Running) -> None:
        job, key = running.job, (running.job.id, running.attempt)
        if self._gatherer.knows(key):
            return
        seen, since = self._seen.get(key), running.started_at or running.placed_at
        position = b"" if seen is None else seen.position
        teller = Teller(job, running.attempt, self._service.views.log_of(running), since, position)
        try:
            source = source_of(teller, self.makers)
        except MusterError as error:
            log.warning("what job %s reports can't be read: %s", job.id, error)
            return
        if source is not None:
            self._gatherer.watch(key, source, soon=self.wants_soon(job))

    def has_all(self, fact: Exited | Vacated, again: Callable[[Event], None]) -> bool:
        """Whether all that the attempt said was heard; else ``again`` is called with the fact when it was."""
        key = (fact.job, fact.attempt)
        if key in self._heard_all:
            return True
        if key in self._waiting:
            return False
        running = self._fold.running.get(fact.job)
        if running is not None and running.attempt == fact.attempt and running.started_at is None:
            self._listen_to(running)  # it was over before it was heard of
        if self._gatherer.finish(key):
            self._fetch()
            return True
        timer = self._loop.call_later(_PATIENCE_SECONDS, self._go_on, key)
        self._waiting[key] = _Waiting(fact, again, timer)
        return False

    def _go_on(self, key: Key) -> None:
        """Take the end in, whether or not all was heard."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.timer.cancel()
            self._heard_all.add(key)
            waiting.again(waiting.fact)
            self._heard_all.discard(key)
            self._waiting.pop(key, None)

    # --- Reports ------------------------------------------------------------------------------------

    def _news(self) -> None:
        """There is something to fetch. Called from any thread, perhaps when the loop has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._fetch_if_well)

    def _fetch_if_well(self) -> None:
        """While nothing can be written, nobody has to look further either: what was said is in the logs."""
        if self._service.journal.sick is None:
            self._fetch()

    def _fetch(self) -> None:
        finished = list(self._gatherer.finished())  # first: what is heard of them is there by then
        taken: list[Report] = []
        for key, reports, position in self._gatherer.fetched():
            self._take_in(key, reports, position, taken)
        self._tell(taken)
        for key in finished:
            self._go_on(key)
            self._lingering.pop(key, None)

    def take(self, reports: list[Report]) -> None:
        """What an attempt that runs has told over the API."""
        taken: list[Report] = []
        self._take_in((reports[0].job, reports[0].attempt), reports, None, taken)
        self._tell(taken)

    def keep(self, key: Key, kind: str, body: bytes) -> None:
        """What somebody else who goes by reports wants back after a restart, of a job that lives.

        It is written with the reports that were handed out just now, or not at all. See ``kept``.
        """
        self._with_states.add(key[0])
        self._service.keep_reports((), {(*key, kind): body})

    def kept(self, kind: str) -> dict[Key, bytes]:
        """What was kept, as it is in the store."""
        found = self._service.journal.report_states(kind)
        self._with_states.update(job for job, _ in found)
        return found

    def _take_in(self, key: Key, reports: list[Report], position: bytes | None, taken: list[Report]) -> None:
        job, attempt = key
        running = self._fold.running.get(job)
        lives = running is not None and running.attempt == attempt
        seen = self._seen.setdefault(key, _Seen()) if lives else self._lingering.get(key)
        if seen is None:
            return
        first, seen.count = seen.count, seen.count + len(reports)
        rows = [
            ReportRow(number, self._ran_seconds(key, report.at), report)
            for number, report in enumerate(reports, first)
        ]
        if not lives:
            self._service.keep_reports(rows, {})
            return
        seen.position = seen.position if position is None else position
        for report in reports:
            _update(seen.values, report.values)
        for at in dict.fromkeys(report.at for report in reports):
            self._metering.signs.reported(job, attempt, at)
        self._show(job, seen.values)
        self._with_states.add(job)
        self._service.keep_reports(rows, {(job, attempt, _KIND): msgspec.msgpack.encode(seen)})
        if first // _THIN_EVERY != seen.count // _THIN_EVERY:
            self._thin(key)
        taken += reports

    def _show(self, job: JobId, values: dict[str, float]) -> None:
        if values:
            self._service.views.metrics[job] = values
            self._metering.reported[job] = values

    def _ran_seconds(self, key: Key, at: float) -> float | None:
        """Without the time for which it stood still."""
        entry = self._metering.ledger.entry(*key)
        if entry is None or entry.started_at is None:
            return None
        still = entry.suspended_seconds
        if entry.suspended_at is not None:
            still += max(0.0, at - entry.suspended_at)
        return max(0.0, at - entry.started_at - still)

    def _tell(self, reports: list[Report]) -> None:
        if not reports or self.on_reports is None:
            return
        try:
            self.on_reports(reports)
        except Exception:
            log.exception("nothing followed from what was reported")

    # --- Upkeep -------------------------------------------------------------------------------------

    def _thin(self, key: Key) -> None:
        self._crowded.add(key)
        if not self._thinning:
            self._thinning = True
            threading.Thread(target=self._thin_aside, name="thinning", daemon=True).start()

    def _thin_aside(self) -> None:
        try:
            while self._crowded:
                self._metering.upkeep.thin(self._crowded.pop())
        except Exception:
            log.exception("reports could not be thinned out")
        self._thinning = False


def _update(values: dict[str, float], new: Mapping[str, float]) -> None:
    if len(values) < _MOST_NAMES:
        values.update(new)
    else:
        values.update((name, value) for name, value in new.items() if name in values)
