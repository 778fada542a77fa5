"""Slurm, looked at: a ``Host`` that takes no jobs, over the jobs of all who use the cluster.

One thread asks, each kind of question once in a look; the server takes the facts when it is woken. An
answer that can't be read changes nothing: the look is made again. Read-only, as it is on the safe first
day, nothing is ever changed in Slurm.
"""

import select
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from muster.engines.base import Capabilities, Grant, Key, Known
from muster.engines.local.clock import Clock
from muster.engines.slurm.adopting import Adopting
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.errors import Denied
from muster.engines.slurm.moves import Reading
from muster.engines.slurm.watch import PERIOD_SECONDS, Bell, Watch
from muster.home import Home
from muster.model.events import Event
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.plan import Action, Stop

_AT_ONCE = 2000  # facts in one answer: a turn must not take long


class Observer:
    """Without commands, or with a wrong SLURM_CONF, it does not begin; without a controller it does."""

    def __init__(
        self,
        home: Home,
        slurm: Slurm,
        reading: Reading,
        *,
        since: float = 0.0,
        period_seconds: float = PERIOD_SECONDS,
        read_only: bool = True,
    ) -> None:
        slurm.version()
        self._slurm = slurm
        self._clock = Clock(str(home.clock), since)
        self._adopting = Adopting(slurm, reading, since or self.now(), read_only=read_only)
        self._bell, self._lock = Bell(), threading.Lock()
        self._facts: deque[Event] = deque()
        self._known: set[Key] = set()
        self._watch = Watch(self.look, period_seconds)

    @property
    def name(self) -> str:
        return "slurm"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(evicts=False, shares_gpus=False, starts=False)

    # --- A look, in its thread ------------------------------------------------------------------------

    def look(self) -> None:
        """Each question once, and nothing is told before all answers are understood.

        The queue comes first: squeue gives up on a dead controller soonest.
        """
        jobs, nodes = self._slurm.jobs(), self._slurm.nodes()
        now, ahead = self.now(), self._clock.wall_ahead_seconds()
        events = self._adopting.look(nodes, jobs, now, ahead)
        self._tell(events)
        self._tell(self._adopting.after(events, now, now + ahead))

    def _tell(self, events: Sequence[Event]) -> None:
        if events:
            with self._lock:
                self._facts.extend(events)
            self._bell.ring()

    # --- The engine ---------------------------------------------------------------------------------

    def now(self) -> float:
        return self._clock.now()

    def wall_ahead_seconds(self) -> float:
        return self._clock.wall_ahead_seconds()

    def fileno(self) -> int:
        return self._bell.fileno()

    def nodes(self) -> Sequence[Node]:
        """They are told as they are found: nobody waits for a controller to begin."""
        return ()

    def observe(self, until: float | None = None) -> Sequence[Event]:
        left = 0.0 if until is None else max(0.0, until - self.now())
        if left and not self._facts:
            select.select([self._bell.fileno()], [], [], left)
        self._bell.hush()
        with self._lock:
            taken = [self._facts.popleft() for _ in range(min(_AT_ONCE, len(self._facts)))]
            if self._facts:
                self._bell.ring()
        return taken

    def act(self, action: Action) -> None:
        """Stopping is all that is done to the jobs of others."""
        if not isinstance(action, Stop):
            raise Denied(f"nothing but a stop is ordered for job {action.job}, which is Slurm's")
        self._adopting.stop(action.job, action.because)
        self._watch.nudge()

    def flush(self) -> None:
        pass

    def settle(self, attempts: Sequence[Key]) -> None:
        pass

    def running(self) -> set[Key]:
        """Whatever was there is there, until Slurm says otherwise."""
        return self._known

    def locate(self, attempts: Sequence[Key]) -> Mapping[Key, list[dict[str, Any]]]:  # noqa: ARG002
        """Their processes are on other machines."""
        return {}

    def grants(self, job: Job) -> tuple[Grant, ...]:  # noqa: ARG002
        """What is limited there, Slurm limits."""
        return ()

    def grants_here(self) -> tuple[Grant, ...]:
        return ()

    def close(self) -> None:
        self._watch.end()
        self._bell.close()

    # --- A host that is shared ------------------------------------------------------------------------

    def knows(self, jobs: Sequence[Known], nodes: Sequence[Node]) -> None:
        self._adopting.knows(jobs, nodes)
        self._known = {(one.job.id, one.attempt) for one in jobs}
        self._watch.begin()

    def takes_jobs(self) -> str | None:
        return (
            "this Muster only observes Slurm, and hands it no jobs: submit it with sbatch, "
            "or start Muster without --observe"
        )

    def waits_because(self, job: JobId) -> str | None:
        return self._adopting.waits_because(job)

    def out_of_reach(self, job: Job) -> str | None:
        return self._adopting.out_of_reach(job)

    def drain(self, node: str, because: str) -> None:
        self._adopting.drain(node, because)
        self._watch.nudge()

    def undrain(self, node: str) -> None:
        self._adopting.undrain(node)
        self._watch.nudge()
