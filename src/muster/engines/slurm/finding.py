"""Finding attempts again in Slurm by their mark: whose number was lost, and what was handed over twice."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from muster.engines.base import Key
from muster.engines.slurm.answers import SlurmJob
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm, batches
from muster.engines.slurm.desk import Desk
from muster.engines.slurm.errors import SlurmError
from muster.engines.slurm.life import Life
from muster.engines.slurm.script import Marks
from muster.engines.slurm.states import job_standing

log = logging.getLogger("muster")

LAG_SECONDS = 120.0  # by which accounting, or a clock, may be behind


class Finder:
    def __init__(self, books: Books, slurm: Slurm, desk: Desk, marks: Marks) -> None:
        self._books, self._slurm, self._desk, self._marks = books, slurm, desk, marks

    def is_own(self, job: SlurmJob) -> bool:
        """Whether this Muster handed it over. What others write into a comment counts for nothing."""
        key = self._marks.read(job.comment)
        return key is not None and self._books.user_of(key) == job.user

    def marked(self, jobs: Iterable[SlurmJob]) -> dict[Key, list[SlurmJob]]:
        """Our jobs by attempt, the first first."""
        found: dict[Key, list[SlurmJob]] = {}
        for job in jobs:
            key = self._marks.read(job.comment)
            if key is not None and self._books.user_of(key) == job.user:
                found.setdefault(key, []).append(job)
        return {key: sorted(some, key=lambda job: job.id) for key, some in found.items()}

    def claim(self, marked: Mapping[Key, Sequence[SlurmJob]]) -> dict[str, Life]:
        """Give attempts whose number is not known the job with their mark. Those without, by name.

        With the lock of the books held.
        """
        unnamed = {}
        for key, life in self._books.lives.items():
            order = self._desk.orders.get(key)
            if life.id is not None or life.is_over or (order is not None and order.in_flight):
                continue
            if key in marked:
                self._has_found(life, marked[key][0].id)
            elif order is None or order.after_pass >= self._desk.next_pass - 1:
                unnamed[self._marks.name(key, life.job.name if life.job else "")] = life
        return unnamed

    def _has_found(self, life: Life, number: int) -> None:
        self._desk.orders.pop(life.key, None)
        self._books.has_id(life, number)

    def claim_named(self, unnamed: Mapping[str, Life]) -> None:
        """The same in accounting, for what the queue has forgotten."""
        if not unnamed:
            return
        since = min(life.since for life in unnamed.values()) - LAG_SECONDS
        try:
            rows = [row for some in batches(unnamed) for row in self._slurm.named(some, since)]
        except SlurmError as error:
            log.debug("the queue alone says what was handed over: %s", error)
            return
        with self._books.lock:
            for number, user, name in sorted(rows):
                life = unnamed.get(name)
                if life is not None and life.id is None and user == life.user:
                    self._has_found(life, number)

    def cancel_doubles(self, marked: Mapping[Key, Sequence[SlurmJob]]) -> None:
        """A second job under one mark has not run, and is not to. Without a first there is no second."""
        with self._books.lock:
            ours = {key: life.id for key in marked if (life := self._books.lives.get(key)) is not None}
        doubles = [
            job.id
            for key, number in ours.items()
            for job in marked[key]
            if number not in (None, job.id) and job_standing(job, self._slurm.notices).outcome is None
        ]
        if doubles:
            log.warning("cancelled in Slurm, since handed over twice: %s", doubles)
            for some in batches(doubles):
                self._slurm.cancel(some)
