"""Ending work by its charter: whatever the cause, it goes the same way.

The verdict, its reason and the order to stop are one event. So a server that is killed between the verdict
and the stop comes back with both: what is stopping is told to stop again.
"""

from collections.abc import Iterable
from typing import Protocol

from muster.model.charter import Verdict
from muster.model.events import Event, Evicting, Held, Stopping, Withdrawn
from muster.model.job import Job
from muster.model.plan import Action, Evict, Stop
from muster.model.snapshot import Running
from muster.model.state import State
from muster.store.records import Record


class Noting(Protocol):
    """What is needed of the service."""

    def now(self) -> float: ...

    def note(self, event: Event, *actions: Action) -> None: ...


class Ending(Noting, Protocol):
    """And to end what others submitted."""

    def reaches(self, job: Job) -> bool: ...

    def order(self, action: Action) -> None: ...


def end(service: Ending, records: Iterable[Record], verdict: Verdict, because: str) -> int:
    """Jobs end with this verdict: those that wait at once, those that run with warning and grace.

    Who is on the way out already goes on leaving, and what is out of reach goes on. Returns how many were
    told. The last come first: out of a long queue that costs least.
    """
    now, count = service.now(), 0
    for record in reversed([record for record in records if _is_reached(service, record)]):
        if record.waiting is not None and record.waiting.job.adopted is not None:
            service.order(Stop(record.waiting.job.id, record.waiting.attempt, because))
            count += 1
        elif record.waiting is not None:
            service.note(Withdrawn(now, record.waiting.job.id, because=because, verdict=verdict))
            count += 1
        elif record.running is not None and not is_ending(record.running):
            job, attempt = record.running.job.id, record.running.attempt
            service.note(Stopping(now, job, attempt, because, verdict), Stop(job, attempt, because))
            count += 1
    return count


def hold_back(service: Noting, records: Iterable[Record], because: str) -> int:
    """Jobs wait until they are released: those that run leave with a checkpoint and go back to the queue.

    What others submitted is in their queue, not in ours.
    """
    now, count = service.now(), 0
    for record in reversed([record for record in records if not is_adopted(record)]):
        if record.waiting is not None and record.state is State.QUEUED:
            service.note(Held(now, record.waiting.job.id, because))
            count += 1
        elif record.running is not None and record.running.state is not State.STOPPING:
            job, attempt = record.running.job.id, record.running.attempt
            service.note(Evicting(now, job, attempt, because, hold=True), Evict(job, attempt, because))
            count += 1
    return count


def is_adopted(record: Record) -> bool:
    entry = record.waiting or record.running
    return entry is not None and entry.job.adopted is not None


def _is_reached(service: Ending, record: Record) -> bool:
    entry = record.waiting or record.running
    return entry is not None and service.reaches(entry.job)


def is_ending(running: Running) -> bool:
    return running.state is State.STOPPING and not running.evicted
