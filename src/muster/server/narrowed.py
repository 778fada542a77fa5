"""Which jobs a list is to have. Asked of jobs, before anything is made of those that nobody wants."""

import msgspec

from muster.model.job import Job
from muster.model.state import State
from muster.server.answers import JobView


class Narrowed(msgspec.Struct, frozen=True):
    """None: any. An owner is also who answers for it."""

    owners: frozenset[str] | None = None
    team: str | None = None
    effort: str | None = None
    state: State | None = None

    def has_job(self, job: Job) -> bool:
        """As far as a job says; its state it does not."""
        return self._has(job.owner, job.charter.owner or job.owner, job.team, job.effort)

    def has(self, view: JobView) -> bool:
        return self.state in (None, view.state) and self._has(
            view.owner, view.answers, view.team, view.effort
        )

    def _has(self, owner: str, answers: str, team: str, effort: str | None) -> bool:
        return (
            (self.owners is None or owner in self.owners or answers in self.owners)
            and self.team in (None, team)
            and self.effort in (None, effort)
        )


ANY = Narrowed()
