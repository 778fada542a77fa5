"""What happens to one job between two looks, as facts: it waits, sits, runs, leaves, ends.

A job that is COMPLETING keeps its seats, so it goes on until its nodes are clean; then its end has the time
at which it ended.
"""

from collections.abc import Callable, Mapping

import msgspec

from muster.engines.slurm.adopted import Devices, Unit, limit_of, seats_of
from muster.engines.slurm.answers import Exit, SlurmAttempt, SlurmJob
from muster.engines.slurm.naming import Used
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.reasons import why
from muster.engines.slurm.states import Standing
from muster.model.charter import Charter
from muster.model.events import (
    Event,
    Exited,
    Held,
    Outcome,
    Placed,
    Released,
    Resumed,
    Started,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.job import JobId
from muster.model.state import State

SEATED = frozenset((State.STARTING, State.RUNNING, State.SUSPENDED))
CANCELLED, PREEMPTED, _REQUEUED = "cancelled in Slurm", "preempted in Slurm", "requeued in Slurm"
_SUSPENDED = "suspended in Slurm"
_OOM_SIGNAL = 125  # Slurm's own, and none of the kernel's

Mark = tuple[object, ...]  # what of a record can make a difference


class Told(msgspec.Struct, frozen=True, gc=False):
    """Where a job stands by what was told of it. ENDED: told, and still listed."""

    state: State
    attempt: int = 0
    at: float = 0.0  # since when it sits; of one that waits, since when it does again; when it ended
    mark: Mark = ()
    missing_since: float | None = None


class Picture(msgspec.Struct, frozen=True):
    """What a pass has found. Times in it are the wall's, which is ``ahead_seconds`` of ours."""

    at: float  # ours
    jobs: tuple[SlurmJob, ...]
    gpus: Mapping[str, int]  # of each node that was told of
    attempts: tuple[SlurmAttempt, ...] | None = None  # of those that are missing; None: could not be asked
    ahead_seconds: float = 0.0


class Reading(msgspec.Struct, frozen=True):
    """How records are understood here."""

    team_of: Callable[[str, str], str] = lambda _, account: account  # by user and account
    is_own: Callable[[SlurmJob], bool] = lambda _: False  # one that Muster handed over
    used: Used = lambda _: ()  # which of some ids are taken, by whom that may be
    charter_in: Callable[[str, str, float], Charter] = lambda *_: Charter()  # of a script, its name, the wall
    stands: Mapping[str, tuple[str | None, str | None]] = {}  # nodes → rack and switch, by the layout
    notices: Notices = msgspec.field(default_factory=Notices)


class Moves:
    """Tells what has become of jobs."""

    def __init__(self, now: Picture, reading: Reading, devices: Devices) -> None:
        self._now, self._reading, self._devices = now, reading, devices
        self.events: list[Event] = []

    def moved(self, unit: Unit, standing: Standing, told: Told, mark: Mark) -> Told:
        state = standing.state
        assert state is not None
        if told.state is State.ENDED:
            return msgspec.structs.replace(told, mark=mark)
        if state in (State.QUEUED, State.HELD):
            told = self._waits(unit, state, told)
        elif state is State.ENDED:
            told = self._ends(unit, standing, told)
        else:
            told = self._sits(unit, state, told)
        return Told(told.state, told.attempt, told.at, mark)  # whoever is listed is not missing

    def _waits(self, unit: Unit, state: State, told: Told) -> Told:
        if told.state in SEATED:
            told = self._vacated(unit, told)
        if state is told.state:
            return told
        at = self._now.at
        said = str(why(unit.lead, self._reading.notices))
        self.events.append(Held(at, unit.id, said) if state is State.HELD else Released(at, unit.id))
        return msgspec.structs.replace(told, state=state)

    def _sits(self, unit: Unit, state: State, told: Told) -> Told:
        """It has its nodes: it starts, runs, is suspended, or its nodes are being cleaned."""
        if state is State.STOPPING and (told.state in SEATED or not unit.lead.begun):
            return told
        if told.state in SEATED and self._is_another(unit, told):
            told = self._vacated(unit, told)
        if told.state not in SEATED:
            told = self.placed(unit, told)
        if state is State.STARTING:
            return told
        return self.as_it_runs(unit, state, told)

    def _is_another(self, unit: Unit, told: Told) -> bool:
        """Whether it was requeued and started again between two looks."""
        restarts = unit.lead.restarts
        return restarts is not None and restarts + 1 > told.attempt

    def as_it_runs(self, unit: Unit, state: State, told: Told) -> Told:
        one, attempt, at = unit.id, told.attempt, self._now.at
        if told.state is State.STARTING:
            begun = max(told.at or at, self.ours(unit.lead.started_at, at))
            self.events.append(Started(begun, one, attempt))
            told = Told(State.RUNNING, attempt, told.at, told.mark, told.missing_since)
        if state is State.SUSPENDED and told.state is State.RUNNING:
            self.events.append(Suspended(at, one, attempt, _SUSPENDED))
        elif state is State.RUNNING and told.state is State.SUSPENDED:
            self.events.append(Resumed(at, one, attempt))
        else:
            return told
        return msgspec.structs.replace(told, state=state)

    def placed(self, unit: Unit, told: Told) -> Told:
        if told.state is State.HELD:
            self.events.append(Released(self.ours(unit.lead.started_at, self._now.at), unit.id))
        restarts = unit.lead.restarts
        attempt = told.attempt + 1 if restarts is None else max(restarts + 1, told.attempt + 1)
        at = max(told.at, self.ours(unit.lead.started_at, self._now.at))
        lasts = limit_of(unit.lead)
        self.events.append(Placed(at, unit.id, attempt, seats_of(unit, self._devices), lasts, lasts))
        return Told(State.STARTING, attempt, at)

    def _vacated(self, unit: Unit, told: Told) -> Told:
        """A requeue resets the time of submission: that is when it left."""
        lead, placed_at = unit.lead, told.at or self._now.at
        left = lead.preempted_at or lead.submitted_at
        at = self.ours(left, self._now.at)
        if at < placed_at:  # it was not reset: all that is known is that it has left by now
            at = max(placed_at, self.ours(lead.started_at, self._now.at))
        because = PREEMPTED if lead.preempted_at is not None else _REQUEUED
        self.events.append(Vacated(at, unit.id, told.attempt, because, at - placed_at))
        return Told(State.QUEUED, told.attempt, at)

    def _ends(self, unit: Unit, standing: Standing, told: Told) -> Told:
        lead = unit.lead
        outcome = standing.outcome or Outcome.STOPPED
        ended = max((record.ended_at or 0.0 for record in unit.records), default=0.0) or None
        if told.state in SEATED and self._is_another(unit, told) and lead.begun:
            told = self._vacated(unit, told)
        if told.state not in SEATED and lead.begun:
            told = self.as_it_runs(unit, State.RUNNING, self.placed(unit, told))
        status = next((r.exit for r in unit.records if r.exit not in (None, Exit())), lead.exit)
        because = PREEMPTED if "PREEMPTED" in lead.states else CANCELLED
        return self.over(unit.id, told, outcome, status, self.ours(ended, self._now.at), because)

    def over(
        self, one: JobId, told: Told, outcome: Outcome, status: Exit | None, at: float, because: str
    ) -> Told:
        said = because if outcome is Outcome.STOPPED else ""
        if told.state in SEATED:
            at = max(at, told.at or at)
            code, signal = _codes(outcome, status)
            self.events.append(Exited(at, one, told.attempt, outcome, code, signal, because=said))
        else:
            self.events.append(Withdrawn(at, one, outcome, because=said))
        return Told(State.ENDED, told.attempt, at)

    def ours(self, wall: float | None, otherwise: float) -> float:
        """In our time, and never later than this look."""
        return otherwise if wall is None else min(wall - self._now.ahead_seconds, self._now.at)


def _codes(outcome: Outcome, status: Exit | None) -> tuple[int | None, int | None]:
    """Exit code and signal. Those of a job that was stopped from outside say nothing of its own."""
    if outcome is Outcome.SUCCEEDED:
        return 0, None
    if status is None or outcome is not Outcome.FAILED:
        return None, None
    if status.signal and status.signal != _OOM_SIGNAL:
        return None, status.signal
    return status.code, None
