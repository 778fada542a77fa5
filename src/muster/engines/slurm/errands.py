"""What has to be said to Slurm about attempts that are leaving: gathered first, then said in few commands.

Told to leave, a program hears the signal that it asked for, if there is time for one; then SIGTERM; and so
long before the deadline as Slurm itself waits between SIGTERM and SIGKILL (KillWait), Slurm is told to end
it. So the job has its grace, and never less than Slurm gives everybody. Who waits in the queue is cancelled.
"""

import contextlib
import signal as signals
from collections.abc import Iterable

import msgspec

from muster.engines.local import leaving
from muster.engines.local.logs import Folder
from muster.engines.local.spawn import NotStarted, person
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm, batches
from muster.engines.slurm.desk import Desk
from muster.engines.slurm.life import BACK, EVICT, STOP, TIME, End, Life, Told
from muster.engines.slurm.reasons import why
from muster.home import Home
from muster.model.events import Outcome
from muster.model.job import Job
from muster.model.run import Run

_AGAIN_SECONDS = 60.0  # whom Slurm was told to end, and has not
_RETRY_SECONDS = 5.0


class Errands:
    """Commands to give, and when there will be more."""

    def __init__(self) -> None:
        self.ends: list[Life] = []
        self.signals: list[tuple[Life, str]] = []
        self.wakes: list[Life] = []
        self.words: list[Life] = []  # who find a stop file
        self.next_wall: float | None = None

    @property
    def any(self) -> bool:
        return bool(self.ends or self.signals or self.wakes)

    def later(self, wall: float) -> None:
        self.next_wall = wall if self.next_wall is None else min(self.next_wall, wall)

    def undo(self, wall: float) -> None:
        """None of it may have been heard: it is said again, soon."""
        for life in self.ends:
            life.ended_wall = None
        for life, _ in self.signals:
            life.has_asked = False
        self.later(wall + _RETRY_SECONDS)


class Gatherer:
    """Looks at attempts one by one. With the lock of the books held."""

    def __init__(
        self, books: Books, desk: Desk, kill_wait_seconds: float, soon_seconds: float | None, passes: int
    ) -> None:
        self._books, self._desk, self._passes = books, desk, passes
        self._kill_wait_seconds, self._soon_seconds = kill_wait_seconds, soon_seconds
        self._wall = books.clock.wall()
        self.found = Errands()

    def gather(self, lives: Iterable[Life]) -> Errands:
        for life in lives:
            if life.told is None:
                self._watch(life)
            if life.told is not None:
                self._see_off(life, life.told)
        return self.found

    def _watch(self, life: Life) -> None:
        """Its time may be up; or Slurm does not start it where it was to be."""
        limit = None if life.job is None else life.job.time_limit_seconds
        if life.began_at is not None and limit is not None:
            due = life.began_at + limit + self._books.clock.wall_ahead_seconds()
            self._unless_before(due, life, TIME, "its time limit is reached")
        if life.began_at is None and life.waits_since is not None and self._soon_seconds is not None:
            because = "Slurm has not started it there"
            if life.waits is not None:
                because += f": {why(life.waits, self._desk.notices).sentence}"
            self._unless_before(life.waits_since + self._soon_seconds, life, BACK, because)

    def _unless_before(self, due: float, life: Life, kind: str, because: str) -> None:
        if self._wall >= due:
            leave(life, self._books, kind, because, None, self._kill_wait_seconds)
        else:
            self.found.later(due)

    def _see_off(self, life: Life, told: Told) -> None:
        if life.id is None:
            self._never_handed_over(life)
        elif life.seen_wall is None:  # it may run, or not: the next pass tells
            return
        elif life.began_at is None or self._wall >= told.end_at:
            self._end(life)
        elif not life.has_asked:
            self._ask(life, told)
        else:
            self.found.later(told.end_at)

    def _never_handed_over(self, life: Life) -> None:
        """If that is certain, it is over without having started."""
        if self._desk.may_be_in_slurm(life.key, self._passes):
            return
        self._desk.orders.pop(life.key, None)
        self._books.tell([life.ends(End(None, Outcome.STOPPED), self._books.clock.now())])

    def _end(self, life: Life) -> None:
        if life.ended_wall is None or self._wall >= life.ended_wall + _AGAIN_SECONDS:
            life.ended_wall = self._wall
            self.found.ends.append(life)

    def _ask(self, life: Life, told: Told) -> None:
        if life.suspended:
            self.found.wakes.append(life)
        if not life.has_warned:
            life.has_warned = True
            self.found.words.append(life)
            notice = _run(life.job).notice
            if told.ask_at > self._wall and notice is not None:
                self.found.signals.append((life, signals.Signals(notice.signal).name.removeprefix("SIG")))
        if self._wall >= told.ask_at:
            life.has_asked = True
            self.found.signals.append((life, "TERM"))
            self.found.later(told.end_at)
        else:
            self.found.later(told.ask_at)


def leave(
    life: Life, books: Books, kind: str, because: str, grace_seconds: float | None, kill_wait_seconds: float
) -> None:
    """It is to go. A stop overrules an eviction, and makes no deadline later."""
    wall = books.clock.wall()
    terms = _terms(life.job)
    grace = leaving.grace_seconds(terms, kind) if grace_seconds is None else grace_seconds
    deadline, since = wall + grace, wall
    if life.told is not None:
        if kind != STOP:
            return
        since = life.told.at  # it may have left for that since, unseen, as when a server is started again
        deadline = min(deadline, life.told.deadline)
        kind = STOP if life.told.kind in (EVICT, BACK) else life.told.kind
    ask_at = wall + leaving.warning_seconds(terms, kind, grace)
    books.is_told(life, Told(kind, because, since, ask_at, deadline - kill_wait_seconds, deadline))


def _terms(job: Job | None) -> dict[str, object]:
    run = _run(job)
    kept = None if job is None else job.checkpoint
    return {
        "grace_seconds": run.grace_seconds,
        "checkpoint": None if kept is None else msgspec.structs.asdict(kept),
        "notice": None if run.notice is None else msgspec.structs.asdict(run.notice),
    }


def _run(job: Job | None) -> Run:
    return Run() if job is None or job.run is None else job.run


def run_errands(errands: Errands, slurm: Slurm, home: Home) -> None:
    """In as few commands as there are kinds. Raises what Slurm says."""
    for life in errands.words:
        _write_stop_file(life, home)
    if errands.wakes:
        for some in batches([life.id for life in errands.wakes if life.id is not None]):
            slurm.control("resume", some)
    kinds: dict[tuple[str, bool], list[int]] = {}
    for life, signal in errands.signals:
        of_steps = life.job is not None and life.job.gang.size > 1
        if life.id is not None:
            kinds.setdefault((signal, of_steps), []).append(life.id)
    for (signal, of_steps), ids in kinds.items():
        for some in batches(ids):
            slurm.cancel(some, signal=signal, steps_only=of_steps)
    for some in batches([life.id for life in errands.ends if life.id is not None]):
        slurm.cancel(some)


def _write_stop_file(life: Life, home: Home) -> None:
    if life.told is not None:
        with contextlib.suppress(NotStarted, OSError):
            folder = Folder(str(home.logs), life.key[0], person(_run(life.job).user))
            folder.tell_stop(life.key[1], life.told.because, life.told.deadline)
