"""What people wrote for Muster in scripts that they gave to sbatch: ``#MUSTER --for "…" --success "…"``.

Slurm answers for one script at a time, so each is asked for once, a few in a look, and never before what
matters is told. A script that says nothing to Muster changes nothing; one that can't be understood neither,
and that is said once.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable

from muster.engines.slurm.adopted import own_id
from muster.engines.slurm.client import Slurm
from muster.model.charter import Charter
from muster.model.errors import BadInput
from muster.model.events import Amended, Event
from muster.model.job import Job

log = logging.getLogger("muster")

_AT_ONCE = 10  # scripts in one look
_MOST = 10_000  # that are waited for: of more, the oldest are passed over
_MARK = "#MUSTER"
_SAID = "its script says so"

CharterIn = Callable[[str, str, float], Charter]
"""A script, what it is called, and the time by the wall → the charter in it."""


class Scripts:
    def __init__(self, slurm: Slurm, charter_in: CharterIn) -> None:
        self._slurm, self._charter_in = slurm, charter_in
        self._wanted: deque[Job] = deque(maxlen=_MOST)

    def wanted(self, jobs: Iterable[Job]) -> None:
        self._wanted.extend(jobs)

    def read(self, alive: Collection[str], now: float, wall: float) -> list[Event]:
        """The charters of some of those that are still there."""
        events: list[Event] = []
        asked = 0
        while self._wanted and asked < _AT_ONCE:
            job = self._wanted.popleft()
            if job.id not in alive and not any(one.startswith(f"{job.id}_") for one in alive):
                continue
            asked += 1
            charter = self._charter(job, wall)
            if charter is not None:
                events.append(Amended(now, job.id, charter, job.owner, _SAID))
        return events

    def _charter(self, job: Job, wall: float) -> Charter | None:
        text = self._slurm.script(own_id(job.id))
        if text is None or _MARK not in text:
            return None
        try:
            charter = self._charter_in(text, f"the script of {job.id}", wall)
        except BadInput as error:
            log.warning("%s", error)
            return None
        return None if charter == Charter() else charter
