"""What a subject is about: its charter, its jobs, and who answers for it."""

from muster.model.charter import Charter
from muster.model.events import Amended, Event
from muster.model.job import Job
from muster.model.stewardship import (
    Defended,
    EffortAmended,
    EffortClosed,
    EffortOpened,
    Subject,
    of_effort,
    of_job,
    split,
)
from muster.store.fold import Fold
from muster.store.records import Record
from muster.store.spending import subjects_of

AMENDING = (Amended, EffortOpened, EffortAmended, EffortClosed, Defended)


def job_of(record: Record) -> Job:
    """Of a record that has not ended."""
    entry = record.running or record.waiting
    assert entry is not None
    return entry.job


def job_named(fold: Fold, name: str) -> Job | None:
    """A job that lives, or what an array is made of that does."""
    record, array = fold.records.get(name), fold.arrays.get(name)
    if array is not None:
        return array.template if array.left else None
    return None if record is None or record.outcome is not None else job_of(record)


def charter_of(fold: Fold, subject: Subject) -> Charter | None:
    """None: it is over, or a team."""
    kind, name = split(subject)
    if kind == "job":
        job = job_named(fold, name)
        return None if job is None else job.charter
    effort = fold.stewardship.efforts.get(name) if kind == "effort" else None
    return None if effort is None or not effort.is_open else effort.charter


def amended_by(event: Event) -> Subject | None:
    """Whose charter is another by a fact, or is none any more."""
    if isinstance(event, Amended):
        return of_job(event.job)
    if isinstance(event, EffortOpened):
        return of_effort(event.effort.name)
    if isinstance(event, EffortAmended | EffortClosed):
        return of_effort(event.effort)
    return event.subject if isinstance(event, Defended) else None


def begun_at(fold: Fold, subject: Subject) -> float:
    """When it was submitted or opened."""
    kind, name = split(subject)
    if kind == "job":
        job = job_named(fold, name)
        return fold.now if job is None else job.submitted_at
    return fold.stewardship.efforts[name].opened_at


def records_of(fold: Fold, subject: Subject) -> list[Record]:
    """Its jobs that have not ended."""
    kind, name = split(subject)
    if kind == "job" and name not in fold.arrays:
        found = fold.records.get(name)
        return [] if found is None or found.outcome is not None else [found]
    living = [record for record in fold.records.values() if record.outcome is None]
    path = fold.tenancy.path
    return [r for r in living if subject in subjects_of(job := job_of(r), path(job.team))]


def owner_of(fold: Fold, subject: Subject) -> str:
    """Who answers for a job or an effort."""
    kind, name = split(subject)
    if kind == "effort":
        return fold.stewardship.efforts[name].owner
    job = job_named(fold, name)
    return "" if job is None else job.charter.owner or job.owner


def called(fold: Fold, subject: Subject) -> str:
    """``job 12 train``, ``effort llama-eval``."""
    kind, name = split(subject)
    job = job_named(fold, name) if kind == "job" else None
    return f"{kind} {name}" if job is None else f"job {name} {job.name}".rstrip()


def extending(subject: Subject, what: str) -> str:
    """The command that extends it."""
    kind, name = split(subject)
    verb = f"effort extend {name}" if kind == "effort" else f"extend {name}"
    return f'muster {verb} {what} --because "…"'
