"""A host that is shared: jobs of others are there, which Muster has adopted and did not start."""

from collections.abc import Collection, Iterable

from muster.engines.base import Host, Known, Shared
from muster.model.job import Job, JobId
from muster.model.snapshot import Running, Waiting
from muster.model.state import State
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.records import Record


class Sharing:
    """Whose a job is, and whether it may be ended from here."""

    fold: Fold
    journal: Journal

    def __init__(self, engine: Host) -> None:
        super().__init__()
        self.shared = engine if isinstance(engine, Shared) else None  # with others, whose jobs are adopted
        self.stops_adopted = False  # whether the steward may stop what others submitted

    def handed_over(self) -> list[Running]:
        """What waits in the host's own queue, as Muster has let it go."""
        if self.shared is None:
            return []
        return [one for one in self.fold.running.values() if one.state is State.STARTING]

    def reaches(self, job: Job) -> bool:
        """Whether the steward may end it: what others submitted, only where that was allowed and we may."""
        if self.shared is None:
            return job.adopted is None
        return (job.adopted is None or self.stops_adopted) and self.shared.out_of_reach(job) is None

    def out_of_reach(self, entry: Waiting | Running) -> str | None:
        """Why it can't be stopped here; None: it can. What waits with us is ours, whoever else is there."""
        if self.shared is None or (isinstance(entry, Waiting) and entry.job.adopted is None):
            return None
        return self.shared.out_of_reach(entry.job)

    def beyond(self, records: Iterable[Record]) -> str | None:
        """Why one of these can't be stopped here; None: they all can."""
        entries = (record.waiting or record.running for record in records)
        found = (self.out_of_reach(entry) for entry in entries if entry is not None)
        return next((why for why in found if why is not None), None)

    def _is_adopted(self, job_id: JobId) -> bool:
        record = self.fold.records.get(job_id)
        entry = None if record is None else record.waiting or record.running
        return entry is not None and entry.job.adopted is not None

    def _tell_host_what_is_known(self) -> None:
        if self.shared is not None:
            self.shared.knows(self._adopted(), list(self.fold.nodes.values()), self._used)

    def _used(self, ids: Collection[JobId]) -> set[JobId]:
        """Asked in a thread of the engine's: what it finds at once, of what was ever told."""
        records, arrays = self.fold.records, self.fold.arrays
        known = {one for one in ids if one in records or one in arrays}
        return known | self.journal.ids_of_ended([one for one in ids if one not in known])

    def _adopted(self) -> list[Known]:
        found = []
        for record in self.fold.records.values():
            entry = record.waiting or record.running
            if entry is not None and entry.job.adopted is not None:
                since = entry.queued_at if isinstance(entry, Waiting) else entry.placed_at
                found.append(Known(entry.job, _standing(record), entry.attempt, since))
        return found


def _standing(record: Record) -> State:
    """As the engine told it: that it was told to stop is ours."""
    running = record.running
    if running is None or record.state is not State.STOPPING:
        return record.state
    return State.STARTING if running.started_at is None else State.RUNNING
