"""What became of our attempts, from the queue and, for who is not there any more, from accounting."""

from collections.abc import Iterator, Mapping, Sequence

from muster.engines.slurm.answers import SlurmAttempt, SlurmJob
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.finding import LAG_SECONDS
from muster.engines.slurm.life import End, Life, end_of_job, end_of_tries
from muster.engines.slurm.states import job_standing
from muster.model.events import Event, Outcome
from muster.model.state import State

_BEGUN = frozenset({State.RUNNING, State.SUSPENDED, State.STOPPING})
_WAITS = frozenset({State.QUEUED, State.HELD, State.STARTING})

Queue = Mapping[int, SlurmJob]
Tries = Mapping[int, tuple[SlurmAttempt, ...]]


class Fates:
    """With the lock of the books held. ``requeued`` gathers what waits in Slurm and is not to run again."""

    def __init__(self, books: Books, slurm: Slurm) -> None:
        self._books, self._notices = books, slurm.notices
        self.requeued: list[int] = []

    def followed(self) -> list[Life]:
        return [life for life in self._books.lives.values() if life.id is not None and not life.is_over]

    def missing_since(self, queue: Queue) -> float | None:
        """Since when, by the wall, accounting is asked for who is not in the queue or was requeued there."""
        asked = [life for life in self.followed() if _needs_accounting(queue.get(life.id or 0))]
        return min((life.seen_wall or life.since for life in asked), default=None)

    def facts(self, queue: Queue, tries: Tries | None) -> list[Event]:
        """``tries`` is None if accounting does not answer: then nothing follows for who is missing."""
        return [fact for life in self.followed() for fact in self._follow(life, queue, tries)]

    def _follow(self, life: Life, queue: Queue, tries: Tries | None) -> Iterator[Event]:
        assert life.id is not None
        job = queue.get(life.id)
        if job is not None and not job.restarts:
            life.missing_since, life.seen_wall = None, self._books.clock.wall()
            life.components = tuple(one.id for one in job.components)
            yield from self._follow_job(life, job)
        elif tries is not None:
            yield from self._follow_tries(life, job, tries.get(life.id, ()))

    def _follow_job(self, life: Life, job: SlurmJob) -> Iterator[Event]:
        standing = job_standing(job, self._notices)
        if job.begun and (standing.state in _BEGUN or standing.state is State.ENDED):
            yield from life.begins(job, self._books.at(job.started_at))
        if standing.state in _WAITS:
            self._waits(life, job)
        elif standing.state in (State.RUNNING, State.SUSPENDED):
            yield from life.stands_still(standing.state is State.SUSPENDED, self._books.clock.now())
        elif standing.state is State.ENDED and standing.outcome is not None:
            end = end_of_job(job, standing.outcome)
            yield life.ends(end, self._books.at(end.wall))

    def _waits(self, life: Life, job: SlurmJob) -> None:
        life.waits = job
        if life.waits_since is None:
            life.waits_since = self._books.clock.wall()

    def _follow_tries(
        self, life: Life, job: SlurmJob | None, tries: Sequence[SlurmAttempt]
    ) -> Iterator[Event]:
        """It is not in the queue any more, or it was requeued there: its first try says how it ended."""
        wall = self._books.clock.wall()
        end = end_of_tries(tries, self._notices)
        if end is None and job is not None:  # 22.05 has no record of who was requeued and waits
            end = End(None, Outcome.STOPPED, None, "requeued by Slurm")
        if end is None:
            life.missing_since = life.missing_since or wall
            if wall - life.missing_since < LAG_SECONDS:
                return
            end = End(None, Outcome.NODE_LOST, None, "Slurm has forgotten it")
        started = next((one.started_at for one in tries if one.started_at is not None), None)
        if started is not None and life.began_at is None:
            yield from life.begins(job or SlurmJob(life.id or 0, ()), self._books.at(started))
        if job is not None and end.vacated is None:
            end = end._replace(vacated="requeued by Slurm")
        if job is not None and job_standing(job, self._notices).outcome is None:
            self.requeued.append(job.id)
        yield life.ends(end, self._books.at(end.wall))


def _needs_accounting(job: SlurmJob | None) -> bool:
    return job is None or bool(job.restarts)
