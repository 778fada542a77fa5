"""Looking jobs up: those that live, those that ended lately, those of long ago."""

from collections import OrderedDict

import msgspec

from muster.model.events import Outcome
from muster.model.job import JobId
from muster.server.answers import JobView
from muster.server.views import Views
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.records import Record

_MOST_ENDED = 100_000  # that are listed when all are asked for


class Looking:
    """What is known of jobs, wherever it is kept."""

    fold: Fold
    journal: Journal
    views: Views
    recent: OrderedDict[JobId, JobView]

    def is_known(self, job_id: JobId) -> bool:
        return job_id in self.fold.records or job_id in self.fold.arrays

    def look_up(self, job_id: JobId) -> JobView | None:
        """A job or an array: living, ended lately, or long ago."""
        record = self.fold.records.get(job_id)
        if record is not None and record.outcome is None:
            return self.views.live(record)
        array = self.fold.arrays.get(job_id)
        if array is not None:
            return self.views.array(array)
        if job_id in self.recent:
            return self.recent[job_id]
        found = self.journal.job(job_id)
        return None if found is None else msgspec.json.decode(found.body, type=JobView)

    def outcome_of(self, job_id: JobId) -> Outcome | None:
        """How a job or an array has ended, lately or long ago."""
        view = self.look_up(job_id)
        return None if view is None else view.outcome

    def listed(self, limit: int | None, *, ended: bool, members: bool) -> tuple[list[JobView], int]:
        """All that live, and if asked those that have ended, the newest first."""
        views, more = self.views.listed(limit, members=members)
        if ended and (limit is None or len(views) < limit):
            left = None if limit is None else limit - len(views)
            views += self._ended(left)
        return views, more

    def _ended(self, limit: int | None) -> list[JobView]:
        """From memory as far as it goes, then from history."""
        views = list(reversed(self.recent.values()))[:limit]
        if limit is None or len(views) < limit:
            known = {view.id for view in views}
            found = self.journal.jobs_ended(_MOST_ENDED if limit is None else limit)
            old = (msgspec.json.decode(row.body, type=JobView) for row in found)
            views += [view for view in old if view.id not in known]
        return views[:limit]

    def members_of(self, job_id: JobId) -> list[Record]:
        """The records of a job, or of an array's members, that have not ended."""
        if job_id in self.fold.arrays:
            start = f"{job_id}_"
            found = [r for i, r in self.fold.records.items() if i.startswith(start)]
        else:
            found = [r for r in (self.fold.records.get(job_id),) if r is not None]
        return [r for r in found if r.outcome is None]
