"""Pausing what has spent its budget, and letting it go on: that, and nothing that a person has held."""

from typing import Protocol

from muster.model.events import Event, Held, Released, Resumed, Suspended
from muster.model.job import Job
from muster.model.plan import Action, Resume, Suspend
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.stewardship import BudgetFreed, BudgetReached, Subject
from muster.server.stewardship.ending import hold_back, is_adopted
from muster.server.stewardship.subjects import records_of
from muster.store.fold import Fold
from muster.store.records import Record


class Pausing(Protocol):
    """What is needed of the service."""

    fold: Fold

    def now(self) -> float: ...

    def note(self, event: Event, *actions: Action) -> None: ...


def pause(service: Pausing, subject: Subject, because: str, how: str) -> int:
    """Who waits is held; who runs leaves with a checkpoint, or stands still if it keeps none (``auto``).

    Returns how many stand still.
    """
    leave: list[Record] = []
    still = 0
    for record in records_of(service.fold, subject):
        running = record.running
        if is_adopted(record):  # it can't be made to pause
            continue
        if running is None or running.state is State.STARTING or _can_leave(running, how):
            leave.append(record)
        elif running.state is State.RUNNING:
            _suspend(service, running, because)
            still += 1
    hold_back(service, leave, because)
    return still


def _can_leave(running: Running, how: str) -> bool:
    return how == "requeue" or (how == "auto" and running.job.checkpoint is not None)


def _suspend(service: Pausing, running: Running, because: str) -> None:
    job, attempt = running.job.id, running.attempt
    service.note(Suspended(service.now(), job, attempt, because), Suspend(job, attempt))


def free(service: Pausing, reached: BudgetReached) -> None:
    """What was paused for a budget goes on, unless another that it spends is spent as well."""
    now = service.now()
    service.note(BudgetFreed(now, reached.subject, reached.because))
    for record in records_of(service.fold, reached.subject):
        waiting, running = record.waiting, record.running
        if waiting is not None and record.state is State.HELD and waiting.held_because == reached.because:
            release(service, waiting.job)
        elif running is not None and running.state is State.SUSPENDED and running.because == reached.because:
            _resume(service, running, now)


def release(service: Pausing, job: Job) -> None:
    """One that is held goes back to the queue, unless something else keeps it back."""
    now, why = service.now(), service.fold.kept_back(job)
    service.note(Released(now, job.id))
    if why is not None:
        service.note(Held(now, job.id, why))


def _resume(service: Pausing, running: Running, now: float) -> None:
    job, attempt = running.job.id, running.attempt
    other = service.fold.exhausted(running.job)
    service.note(Resumed(now, job, attempt), Resume(job, attempt))
    if other is not None:
        _suspend(service, running, other.because)
