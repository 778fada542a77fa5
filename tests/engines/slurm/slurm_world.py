"""A fold that is told what two and more passes over Slurm amount to."""

from collections.abc import Collection

import msgspec

from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.fleet import Fleet
from muster.engines.slurm.moves import Picture, Reading
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.others import Seen, facts
from muster.model.events import Event
from muster.model.policy import Policy
from muster.model.state import State
from muster.store.fold import Fold


class Watched:
    """What Muster knows of a cluster, pass by pass. ``unknown_gone``: as if accounting could not be asked."""

    def __init__(self, nodes: tuple[SlurmNode, ...], since: float = 0.0) -> None:
        self.notices = Notices()
        self.fold = Fold(Policy())
        self.reading = Reading(notices=self.notices, used=self._used)
        self.fleet = Fleet(self.notices)
        self.seen = Seen(since=since)
        for event in self.fleet.changed(nodes, lambda: "", 0.0):
            self.fold.apply(event)

    def look(
        self,
        jobs: tuple[SlurmJob, ...],
        at: float,
        attempts: tuple[SlurmAttempt, ...] | None = (),
        ahead_seconds: float = 0.0,
    ) -> list[Event]:
        picture = Picture(at, jobs, self.fleet.gpus, attempts, ahead_seconds)
        events, self.seen = facts(self.seen, picture, self.reading)
        for event in events:
            self.fold.apply(event)
        return events

    def _used(self, ids: Collection[str]) -> list[str]:
        return [one for one in ids if one in self.fold.records or one in self.fold.arrays]

    def state(self, job_id: str) -> State:
        return self.fold.records[job_id].state

    def is_within_what_there_is(self) -> bool:
        """No GPU is anybody's twice, and nobody has more of a node than it has."""
        room = self.fold.snapshot().room
        self.fold.release()
        return bool((room.gpu >= 0).all() and (room.cpus >= 0).all() and (room.memory >= 0).all())


def again(job: SlurmJob, **changes: object) -> SlurmJob:
    """The same record at another time."""
    return msgspec.structs.replace(job, **changes)
