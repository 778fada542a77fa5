"""Everybody's jobs and all nodes of a cluster, kept up with: what whoever looks at Slurm shares.

``look`` is called in a thread that may wait, with the answers of one pass, and returns the facts; the rest
is called by the server, and never waits. What is to be stopped is remembered and ordered in a look, in one
call, again until it is gone: so a controller that is away loses no order. Read-only, nothing is ordered at
all.
"""

import logging
import os
import time
from collections.abc import Sequence

from msgspec.structs import replace

from muster.engines.base import Known
from muster.engines.slurm.adopted import own_id
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.books import own_user
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.errors import Denied
from muster.engines.slurm.fleet import Fleet
from muster.engines.slurm.moves import SEATED, Picture, Reading, Told
from muster.engines.slurm.naming import Used, called_again
from muster.engines.slurm.others import PATIENCE_SECONDS, Seen, facts, missing
from muster.engines.slurm.scripts import Scripts
from muster.model.events import ArraySubmitted, Event, Submitted, Withdrawn
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.state import State

log = logging.getLogger("muster")

_AGAIN_SECONDS = 60.0
_MOST_STOPS = 1000  # in one call
_NOT_WAITING = frozenset((*SEATED, State.ENDED))


class Adopting:
    """What was told so far, and what is to be stopped."""

    def __init__(self, slurm: Slurm, reading: Reading, since: float) -> None:
        self._slurm, self._reading = slurm, reading
        self._seen, self._looked_at = Seen(since=since), since
        self.fleet = Fleet(reading.notices, reading.stands)
        self._scripts = Scripts(slurm, reading.charter_in)
        self._stops: dict[JobId, str] = {}  # and why
        self._is_operator: bool | None = None  # None: Slurm has not said yet
        self._asks_again_at = 0.0
        self._me, self._is_root = own_user(), os.geteuid() == 0
        self._numbers: dict[JobId, list[int]] = {}
        self._shut: set[JobId] = set()  # of which Slurm does not let us see what they use

    # --- In the thread that looks ---------------------------------------------------------------------

    def look_at_nodes(self, nodes: Sequence[SlurmNode], now: float) -> list[Event]:
        """What is new of them. The topology is asked if there are others than before."""
        return self.fleet.changed(nodes, self._slurm.topology, now)

    def look(
        self,
        jobs: tuple[SlurmJob, ...],
        attempts: tuple[SlurmAttempt, ...] | None,
        now: float,
        ahead_seconds: float,
    ) -> list[Event]:
        """The facts of a pass. ``attempts``: of those who are missing; None: accounting can't be asked."""
        self._ask_what_we_may()
        picture = Picture(now, jobs, self.fleet.gpus, attempts, ahead_seconds)
        events, self._seen = facts(self._seen, picture, self._reading)
        self._looked_at = now
        self._numbers = self._numbers_of(jobs)
        return [self._with_reason(event) for event in events]

    def _ask_what_we_may(self) -> None:
        """Now and then, until it is known: who is an operator is in accounting, which may be away."""
        if self._is_operator is None and time.monotonic() >= self._asks_again_at:
            self._is_operator = self._slurm.is_operator()
            self._asks_again_at = time.monotonic() + _AGAIN_SECONDS

    def missing_since(self, jobs: tuple[SlurmJob, ...]) -> float | None:
        """From when on accounting is to be asked, in our time, for those who are not listed any more."""
        return self._looked_at - 10 * PATIENCE_SECONDS if missing(self._seen, jobs) else None

    def _numbers_of(self, jobs: Sequence[SlurmJob]) -> dict[JobId, list[int]]:
        """Of those that run."""
        found: dict[JobId, list[int]] = {}
        self._shut = set()
        for job in jobs:
            if job.begun and not self._reading.is_own(job):
                found.setdefault(self._seen.id_of(job), []).append(job.id)
                if not self._is_root and job.user != self._me:
                    self._shut.add(self._seen.id_of(job))
        return found

    def _with_reason(self, event: Event) -> Event:
        """What waited was cancelled because somebody here said so."""
        if isinstance(event, Withdrawn) and event.job in self._stops:
            return replace(event, because=self._stops[event.job])
        return event

    def after(self, events: Sequence[Event], now: float, wall: float) -> list[Event]:
        """What can wait until a pass is told: charters in scripts, and what is to be stopped."""
        new = [job for job in map(_submitted, events) if job is not None]
        self._scripts.wanted(job for job in new if self._is_operator or job.owner == self._me)
        alive = {one for one, told in self._seen.jobs.items() if told.state is not State.ENDED}
        self._cancel(alive)
        return self._scripts.read(alive, now, wall)

    def _cancel(self, alive: set[JobId]) -> None:
        for gone in [one for one in list(self._stops) if one not in alive]:
            del self._stops[gone]
        ids = [own_id(one) for one in list(self._stops)[:_MOST_STOPS]]
        try:
            self._slurm.cancel(ids)
        except Denied as error:
            self._stops.clear()
            log.warning("%s", error)

    # --- For the server -------------------------------------------------------------------------------

    def knows(self, jobs: Sequence[Known], nodes: Sequence[Node], used: Used) -> None:
        """Before the first look."""
        self.fleet.knows(nodes)
        self._reading = replace(self._reading, used=used)
        told = {one.job.id: Told(one.state, one.attempt, one.since) for one in jobs}
        arrays = frozenset(one.job.array.array for one in jobs if one.job.array is not None)
        self._seen = Seen(self._seen.since, told, arrays, again=called_again(told))

    def stop(self, job: JobId, because: str) -> None:
        if self._slurm.read_only:
            raise Denied(
                f"job {job} is not stopped: this Muster only observes Slurm, and changes nothing there"
            )
        self._stops[job] = because

    def numbers(self, job: JobId) -> tuple[int, ...]:
        """Under which Slurm runs it."""
        return tuple(self._numbers.get(job, ()))

    def is_measured(self, job: JobId) -> bool:
        """Whether Slurm lets us see what it measures of it: of our own, or of all as root."""
        return job not in self._shut

    def waits_because(self, job: JobId) -> str | None:
        told = self._seen.jobs.get(job)
        if told is not None and told.state in _NOT_WAITING:
            return None
        return self._seen.why(job, self._reading.notices)

    def out_of_reach(self, job: Job) -> str | None:
        """None if Slurm would let us stop it, or a sentence why not."""
        by_hand = f"`scancel {own_id(job.id)}`"
        if self._slurm.read_only:
            return f"job {job.id} is Slurm's, which this Muster only observes: stop it there with {by_hand}"
        if self._is_operator or job.owner == self._me:
            return None
        if self._is_operator is None:
            return (
                f"job {job.id} is {job.owner}'s in Slurm, which has not said yet whether this Muster may "
                f"stop it: try again in a moment, or ask {job.owner} for {by_hand}"
            )
        return (
            f"job {job.id} is {job.owner}'s in Slurm, and this Muster runs as {self._me}, who is no operator "
            f"there: ask {job.owner} or an operator for {by_hand}"
        )

    def drain(self, node: str, because: str) -> None:
        self._check_may_change("drain nodes")
        self._slurm.drain(node, because)

    def undrain(self, node: str) -> None:
        self._check_may_change("resume nodes")
        self._slurm.undrain(node)

    def _check_may_change(self, what: str) -> None:
        if self._slurm.read_only:
            raise Denied(f"this Muster only observes Slurm, so it can't {what}: use scontrol, as an operator")
        if self._is_operator is False:  # if it is not known, Slurm decides
            raise Denied(f"this Muster runs as {self._me}, who is no operator of Slurm, so it can't {what}")


def _submitted(event: Event) -> Job | None:
    if isinstance(event, Submitted):
        return event.job
    return event.template if isinstance(event, ArraySubmitted) else None
