"""Where a job, or an array, is in its life; and what of it a dependent looks at."""

import math

import msgspec

from muster.model.events import Outcome
from muster.model.job import After, Dependency, Job, JobId
from muster.model.snapshot import Running, Waiting
from muster.model.state import State


class Record(msgspec.Struct, gc=False):
    """Where a job is in its life. Exactly one of ``waiting`` and ``running`` is set until it has ended."""

    state: State
    waiting: Waiting | None = None
    running: Running | None = None
    outcome: Outcome | None = None


class ArrayRecord(msgspec.Struct):
    """Where an array is in its life: it ends with its last member."""

    template: Job
    size: int
    left: int  # members that have not ended
    failed: int = 0

    @property
    def outcome(self) -> Outcome | None:
        if self.left:
            return None
        return Outcome.FAILED if self.failed else Outcome.SUCCEEDED


def meets(dependency: Dependency, outcome: Outcome) -> bool:
    """Whether a job that ended so is one that the dependent can follow."""
    if dependency.after is After.ANY:
        return True
    return (outcome is Outcome.SUCCEEDED) is (dependency.after is After.OK)


def end_of(at: float, seconds: float | None) -> float:
    return math.inf if seconds is None else at + seconds


def begins_shifted(jobs: dict[JobId, Waiting], seconds: float) -> dict[JobId, Waiting]:
    """With begin times that are so much later; the same if they are not."""
    if not seconds:
        return jobs
    replace = msgspec.structs.replace
    shifted = {
        job_id: replace(w, job=replace(w.job, begin_at=w.job.begin_at + seconds))
        for job_id, w in jobs.items()
        if w.job.begin_at is not None
    }
    return jobs | shifted


def by_age(waiting: Waiting) -> tuple[float, JobId]:
    return (waiting.job.submitted_at, waiting.job.id)
