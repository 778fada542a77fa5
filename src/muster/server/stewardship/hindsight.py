"""Looking back on work that has ended: when an exit would have ended it, and what it held after that.

When a job that has reported something ends, its reports are replayed (``steward.exits.hindsight``), in a
thread and on what is written down, so that nobody waits for it; what is found is kept beside the ledger. It
takes a few seconds. A server that is killed meanwhile looks again when it comes back.
"""

import asyncio
import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec

from muster.model.errors import BadInput, MusterError
from muster.model.events import Event, Exited, Withdrawn
from muster.model.job import JobId
from muster.model.ledger import Entry, Spent, usage_of
from muster.model.resources import NOTHING, Resources
from muster.model.units import HOUR
from muster.server.service import Service
from muster.steward.exits.compiled import Exits, compiled
from muster.steward.exits.hindsight import Past, RunTime, look_back
from muster.steward.exits.replay import STALLED_SECONDS, Report
from muster.store.database import StoreError
from muster.store.journal import Journal
from muster.store.rows import Batch, HindsightRow, UsageRows

log = logging.getLogger("muster")

_SOON_SECONDS = 2.0  # after an end: those that end together are looked at together
_LATER_SECONDS = 60.0  # if the store can't be asked
_AT_ONCE = 1000  # jobs
_MOST_REPORTS = 50_000  # who has more, over all attempts, is not judged
_MOST_MISSED = 10_000  # jobs that ended just before a crash


class _Ended(msgspec.Struct):
    """What is asked of the last view of a job."""

    reason: str | None = None
    effort: str | None = None
    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()


class LookingBack:
    """Sees jobs end, and looks back on them."""

    def __init__(self, service: Service, stalled_seconds: float = STALLED_SECONDS) -> None:
        self._service, self._stalled_seconds = service, stalled_seconds
        self._ended: dict[JobId, None] = {}  # who is to be looked at, in order
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hindsight")
        self._is_over = False
        service.listeners.append(self._saw)

    def begin(self, last_fact_at: float) -> None:
        """With those that an earlier server saw end just before it did."""
        since = last_fact_at + self._service.fold.wall_ahead_seconds - HOUR
        missed = self._service.journal.jobs_to_look_back_on(since, _MOST_MISSED)
        self._ended.update(dict.fromkeys(missed))
        self._look_in(_SOON_SECONDS)

    def end(self) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    # --- When ---------------------------------------------------------------------------------------

    def _saw(self, event: Event) -> None:
        if not isinstance(event, Exited | Withdrawn):
            return
        view = self._service.recent.get(event.job)
        if view is None:
            return
        earlier = view.attempt - 1 if isinstance(event, Exited) else view.attempt
        if view.metrics or earlier > 0:  # what earlier attempts have reported the store knows
            self._ended[event.job] = None
            self._look_in(_SOON_SECONDS)

    def _look_in(self, seconds: float) -> None:
        if self._ended and self._timer is None and not self._is_over:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._start)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """All that ended is in the store once the metering stands still; then a thread can look it up."""
        metering, next_seconds = self._service.metering, _SOON_SECONDS
        assert metering is not None, "a server meters"
        jobs = list(self._ended)[:_AT_ONCE]
        efforts = self._service.fold.stewardship.efforts.values()
        saying = frozenset(effort.name for effort in efforts if effort.charter.failure)
        try:
            async with metering.still():
                pass
            await asyncio.get_running_loop().run_in_executor(self._thread, self._look_at, jobs, saying)
            for job in jobs:
                self._ended.pop(job, None)
        except MusterError as error:  # the store; nothing else gets here
            log.warning("nobody could look back on what has ended: %s", error)
            next_seconds = _LATER_SECONDS
        self._timer = None
        self._look_in(next_seconds)

    # --- What ---------------------------------------------------------------------------------------

    def _look_at(self, jobs: Collection[JobId], saying: frozenset[str]) -> None:
        journal = self._service.journal
        for job in jobs:
            if self._is_over:
                return
            try:
                row = hindsight_of(journal, job, saying, self._stalled_seconds)
            except StoreError:
                raise
            except Exception:  # of one job, which is not to keep others from being looked at
                log.exception("nobody could look back on job %s", job)
                continue
            if row is not None:
                journal.write(Batch(usage=UsageRows(hindsights=[row])), _written)


def hindsight_of(
    journal: Journal, job: JobId, saying: frozenset[str], stalled_seconds: float
) -> HindsightRow | None:
    """What a job that has ended held too late; None: it can't be told.

    ``saying`` are the efforts that say when they are lost.
    """
    rows = journal.reports(job, limit=_MOST_REPORTS + 1)
    ended = journal.job(job) if 0 < len(rows) <= _MOST_REPORTS else None
    if ended is None:
        return None
    view, time = msgspec.json.decode(ended.body, type=_Ended), RunTime(journal.events_of(job))
    told = (row.report for row in rows)
    reports = [Report(time.until(one.at), one.values, one.step, attempt=one.attempt) for one in told]
    reports.sort(key=lambda one: one.ran_seconds)
    past = Past(reports, time.total, view.reason or "")
    says = bool(view.failure) or view.effort in saying
    found = look_back(past, _exits(view), says_when_lost=says, stalled_seconds=stalled_seconds)
    at = None if found is None else time.moment(found.ran_seconds)
    if found is None or at is None:
        return HindsightRow(job)
    held = held_after(journal.entries_of({job}).values(), at)
    after = time.total - found.ran_seconds
    how = (found.verdict, found.condition, found.because)
    return HindsightRow(job, after, held.cpus_milli, held.gpus_milli, *how)


def held_after(entries: Collection[Entry], at: float) -> Resources:
    """What the attempts of a job that has ended held from a moment on."""
    ends = [entry.ended_at for entry in entries if entry.ended_at is not None]
    last = max(ends, default=at)
    return sum((usage_of(entry, Spent(), at, last).held for entry in entries), NOTHING)


def _exits(view: _Ended) -> Exits:
    """None of them, if an older version took what this one does not understand."""
    try:
        return compiled(view.success, view.failure)
    except BadInput as error:
        log.debug("%s", error)
        return Exits()


def _written(error: BaseException | None) -> None:
    """What could not be written is looked at after the next start; the journal says so itself."""
