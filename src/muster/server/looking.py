"""Looking jobs up: those that live, those that ended lately, those of long ago."""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

import msgspec

from muster.model.events import Outcome
from muster.model.job import JobId
from muster.model.state import State
from muster.server.answers import JobView
from muster.server.narrowed import ANY, Narrowed
from muster.server.views import Views
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.records import Record
from muster.store.rows import EndedJob

_MOST_ENDED = 100_000  # that are looked through when all are asked for
_PAGE = 2000


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

    def listed(
        self, limit: int | None, *, ended: bool, members: bool, wanted: Narrowed = ANY
    ) -> tuple[list[JobView], int]:
        """All that live, and if asked those that have ended, the newest first; and how many more at least."""
        if wanted is ANY:
            views, more = self.views.listed(limit, members=members)
        else:
            views, more = self._narrowed(limit, wanted, members=members)
        if ended and (limit is None or len(views) < limit):
            views += islice(self._ended(wanted), None if limit is None else limit - len(views))
        return views, more

    def _narrowed(self, limit: int | None, wanted: Narrowed, *, members: bool) -> tuple[list[JobView], int]:
        if wanted.state is State.ENDED:
            return [], 0
        found = [
            view for view in self.views.listed(None, members=members, wanted=wanted)[0] if wanted.has(view)
        ]
        shown = found[:limit]
        return shown, len(found) - len(shown)

    def _ended(self, wanted: Narrowed) -> Iterator[JobView]:
        """From memory as far as it goes, then from history, as far as somebody wants it."""
        known = set(self.recent)
        yield from (view for view in reversed(list(self.recent.values())) if wanted.has(view))
        before: tuple[float, JobId] | None = None
        for _ in range(_MOST_ENDED // _PAGE):
            page = self.journal.jobs_ended(_PAGE, before=before)
            for row in page:
                if row.id not in known:
                    view = msgspec.json.decode(row.body, type=JobView)
                    if wanted.has(view):
                        yield view
            if len(page) < _PAGE:
                return
            before = (page[-1].ended_at, page[-1].id)

    def members_of(self, job_id: JobId) -> list[Record]:
        """The records of a job, or of an array's members, that have not ended."""
        if job_id in self.fold.arrays:
            start = f"{job_id}_"
            found = [r for i, r in self.fold.records.items() if i.startswith(start)]
        else:
            found = [r for r in (self.fold.records.get(job_id),) if r is not None]
        return [r for r in found if r.outcome is None]


def ended_row(view: JobView) -> EndedJob:
    """A job that has ended, as the store keeps it."""
    assert view.ended_at is not None
    return EndedJob(
        id=view.id,
        array_id=view.array.id if view.array else None,
        owner=view.owner,
        team=view.team,
        name=view.name,
        outcome=str(view.outcome),
        submitted_at=view.submitted_at,
        started_at=view.started_at,
        ended_at=view.ended_at,
        body=msgspec.json.encode(view),
        verdict=None if view.verdict is None else str(view.verdict),
    )
