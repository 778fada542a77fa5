"""The simulated engine in our time: what virtual jobs do happens when it is due, and a descriptor says so.

It is the same engine on another clock. Whatever is asked of it, it first lets happen what is due by then. One
thread does nothing but wait for the next moment at which something is, and then makes the descriptor
readable: a server that is woken by it has no need to poll.

Who it runs it finds where the server does, and how long each lasts is told by a *fate*. It may go on with
what another simulator has begun in virtual time. Its ``speed`` is that of work: jobs are done so many times
as fast. The clock stays everybody's.
"""

import contextlib
import os
import select
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from muster.engines.base import Capabilities, Grant, Key
from muster.engines.sim.engine import SimEngine, _Attempt, _Task
from muster.model.errors import BadInput, MusterError
from muster.model.events import Event, Exited, NodeHealth, Outcome, Seat, Vacated
from muster.model.job import Job, JobId
from muster.model.node import Health, Node
from muster.model.plan import Action, Evict, Limit, Resume, Start, Stop, Suspend
from muster.model.units import MILLI

_BY = "the simulation"
_FIRST_PID, _PIDS = 2000, 30_000


class Life(msgspec.Struct, frozen=True):
    """How long a job works if it is left alone, and how it ends."""

    seconds: float
    outcome: Outcome = Outcome.SUCCEEDED
    exit_code: int | None = 0


class Seated(msgspec.Struct, frozen=True):
    """An attempt that runs, for those who make up what it does."""

    job: Job
    attempt: int
    placed_at: float
    seats: tuple[Seat, ...]
    is_still: bool = False  # suspended
    ends_at: float | None = None  # by itself


Fate = Callable[[Job, int], Life]  # of an attempt


class _Steady:
    """Begins as the wall's clock does, and never goes back; not before ``since``, either."""

    def __init__(self, since: float) -> None:
        self._ahead = max(time.time(), since) - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._ahead


class LiveEngine(SimEngine):
    """Runs virtual jobs in real time. All of it may be called from any thread."""

    name = "sim"
    capabilities = Capabilities(virtual_time=False)

    def __init__(
        self,
        nodes: Iterable[Node],
        find: Callable[[JobId], Job],
        fate: Fate,
        *,
        past: SimEngine | None = None,
        since: float = 0.0,
        speed: float = 1.0,
    ) -> None:
        if not speed > 0:
            raise BadInput(f"nothing gets done at a speed of {speed:g}; it must be above zero")
        clock = self._clock = _Steady(since)
        self._seconds: dict[JobId, float] = {}
        self._codes: dict[JobId, tuple[Outcome, int | None]] = {}
        super().__init__(nodes, self._seconds, exits=self._codes, enforce_limits=True, start_at=clock.now())
        self._find, self._fate, self._speed = find, fate, speed
        self._lock = threading.RLock()
        self._facts: list[Event] = []
        self._still: dict[JobId, tuple[float, Event | None]] = {}  # since when, and what would have ended it
        self._natural: dict[JobId, Exited] = {}  # how those that run end if no limit comes first
        self._waker = _Waker(clock.now)
        if past is not None:
            self._go_on_with(past)

    def _go_on_with(self, past: SimEngine) -> None:
        """What was begun is done at our speed from now on."""
        self._nodes, self._tasks, self._heap = past._nodes, past._tasks, past._heap
        self._serial = past._serial
        for task in self._tasks.values():
            attempt = task.attempt
            if attempt is not None and isinstance(attempt.ending, Exited):
                left = max(0.0, attempt.ending.at - self._now) / self._speed
                self._run_to(task, attempt, msgspec.structs.replace(attempt.ending, at=self._now + left))
        self._wake_in_time()

    # --- The protocol -------------------------------------------------------------------------------

    def now(self) -> float:
        return self._clock.now()

    def wall_ahead_seconds(self) -> float:
        return time.time() - self._clock.now()

    def fileno(self) -> int:
        return self._waker.descriptor

    def nodes(self) -> Sequence[Node]:
        with self._lock:
            return super().nodes()

    def observe(self, until: float | None = None) -> Sequence[Event]:
        while True:
            with self._lock:
                self._waker.clear()
                self._catch_up()
                facts, self._facts = self._facts, []
                nothing_left = self._wake_in_time() is None
            if facts or (until is None and nothing_left):
                return facts
            left = None if until is None else until - self.now()
            if left is not None and left <= 0:
                return ()
            select.select([self._waker.descriptor], [], [], left)

    def act(self, action: Action) -> None:
        with self._lock:
            self._catch_up()
            if isinstance(action, Start):
                self._learn(action)
            task = self._task(action.job)
            attempt = task.attempt
            if attempt is not None and attempt.number == action.attempt:
                self._act_on(task, attempt, action)
            super().act(action)
            self._wake_in_time()

    def running(self) -> set[Key]:
        with self._lock:
            return {(t.job.id, t.attempt.number) for t in self._tasks.values() if t.attempt is not None}

    def settle(self, attempts: Sequence[Key]) -> None:
        """Who is tried again after a failure begins anew."""
        with self._lock:
            for job, number in attempts:
                task = self._tasks.get(job)
                if task is not None and task.ended and task.attempts == number:
                    self._forget(job)

    def flush(self) -> None:
        """Whatever it was told it has done."""

    def locate(self, attempts: Sequence[Key]) -> Mapping[Key, list[dict[str, Any]]]:
        with self._lock:
            known = {key: self._seats_of(key) for key in attempts}
        return {
            key: [{"pid": pid_of(*key, part)} for part in range(len(seats))]
            for key, seats in known.items()
            if seats
        }

    def grants(self, job: Job) -> tuple[Grant, ...]:
        shape = job.gang.parts[0].shape
        amounts = (
            ("cpu share", shape.cpus_milli / MILLI),
            ("memory", shape.memory_bytes),
            ("gpus", shape.gpus * shape.gpu_milli / MILLI),
            ("time", job.time_limit_seconds or 0.0),
        )
        return tuple(Grant(what, amount, "enforced", _BY) for what, amount in amounts if amount)

    def grants_here(self) -> tuple[Grant, ...]:
        return tuple(Grant(what, 1, "enforced", _BY) for what in ("cpu share", "memory", "gpus"))

    def close(self) -> None:
        self._waker.close()

    # --- For those who make up what happens ---------------------------------------------------------

    def seated(self) -> list[Seated]:
        """All attempts that run now."""
        with self._lock:
            return [self._seated(task, task.attempt) for task in self._tasks.values() if task.attempt]

    def turn(self, node: str, health: Health, because: str = "") -> None:
        """A node is lost, or comes back, at once."""
        with self._lock:
            self._catch_up()
            self.will(NodeHealth(self._now, node, health, because))
            self._wake_in_time()

    def _seated(self, task: _Task, attempt: _Attempt) -> Seated:
        ends_at = None if attempt.ending is None else attempt.ending.at
        is_still = task.job.id in self._still
        return Seated(task.job, attempt.number, attempt.placed_at, attempt.seats, is_still, ends_at)

    # --- Time ---------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Let happen what is due."""
        now = self._clock.now()
        while facts := super().observe(now):
            self._facts += facts

    def _wake_in_time(self) -> float | None:
        """When the next thing happens; None: nothing does by itself."""
        at = self._now if self._facts else self._next_at()
        self._waker.set(at)
        return at

    # --- Acting -------------------------------------------------------------------------------------

    def _learn(self, action: Start) -> None:
        """Who was never heard of is looked for."""
        if action.job in self._tasks:
            return
        try:
            job = self._find(action.job)
        except (KeyError, MusterError):
            raise BadInput(f"the engine knows no job {action.job}") from None
        life = self._fate(job, action.attempt)
        self._seconds[job.id] = life.seconds / self._speed
        self._codes[job.id] = (life.outcome, life.exit_code)
        self.learn(job)

    def _start(self, task: _Task, action: Start) -> None:
        super()._start(task, action)
        attempt = task.attempt
        if attempt is not None and isinstance(attempt.ending, Exited):
            lasts = attempt.restore_seconds + max(0.0, task.run_seconds - task.saved_seconds)
            how = self._codes.get(task.job.id, (Outcome.SUCCEEDED, 0))
            self._natural[task.job.id] = Exited(self._now + lasts, task.job.id, attempt.number, *how)

    def _act_on(self, task: _Task, attempt: _Attempt, action: Action) -> None:
        job = task.job.id
        if isinstance(action, Suspend) and job not in self._still and attempt.told_at is None:
            self._still[job] = (self._now, attempt.ending)
            attempt.ending = None
        elif isinstance(action, Resume | Stop | Evict) and job in self._still:
            self._wake(task, attempt)
        elif isinstance(action, Limit) and attempt.told_at is None:
            self._limit(task, attempt, action.seconds)

    def _wake(self, task: _Task, attempt: _Attempt) -> None:
        """The time for which it stood still was none of its life."""
        since, ending = self._still.pop(task.job.id)
        stood = self._now - since
        attempt.placed_at += stood
        natural = self._natural.get(task.job.id)
        if natural is not None:
            self._natural[task.job.id] = msgspec.structs.replace(natural, at=natural.at + stood)
        if ending is not None:
            self._ends(attempt, msgspec.structs.replace(ending, at=ending.at + stood))

    def _limit(self, task: _Task, attempt: _Attempt, seconds: float | None) -> None:
        natural = self._natural.get(task.job.id)
        if natural is None or task.job.id in self._still:
            return
        end = natural
        if seconds is not None and attempt.placed_at + seconds < natural.at:
            at = max(self._now, attempt.placed_at + seconds)
            end = Exited(at, task.job.id, attempt.number, Outcome.TIMEOUT)
        if attempt.ending != end:
            self._ends(attempt, end)

    def _run_to(self, task: _Task, attempt: _Attempt, end: Exited) -> None:
        self._natural[task.job.id] = end
        self._ends(attempt, end)

    def _over(self, event: Exited | Vacated, attempt: _Attempt) -> None:
        super()._over(event, attempt)
        self._still.pop(event.job, None)
        self._natural.pop(event.job, None)

    def _forget(self, job: JobId) -> None:
        self._tasks.pop(job, None)
        self._seconds.pop(job, None)
        self._codes.pop(job, None)

    def _seats_of(self, key: Key) -> tuple[Seat, ...]:
        task = self._tasks.get(key[0])
        attempt = None if task is None else task.attempt
        return () if attempt is None or attempt.number != key[1] else attempt.seats


class _Waker:
    """Makes a descriptor readable at a moment. A thread waits for it, and does nothing else."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._now = now
        self._changed = threading.Condition()
        self._at: float | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._wait, name="waker", daemon=True)
        self._thread.start()

    def set(self, at: float | None) -> None:
        with self._changed:
            if at != self._at:
                self._at = at
                self._changed.notify()

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        os.close(self.descriptor)

    def _wait(self) -> None:
        with self._changed:
            while not self._closed:
                left = None if self._at is None else self._at - self._now()
                if left is not None and left <= 0:
                    self._at = None
                    os.eventfd_write(self.descriptor, 1)
                else:
                    self._changed.wait(left)


def pid_of(job: JobId, attempt: int, part: int) -> int:
    """A number that a process could have; always the same for the same part."""
    return _FIRST_PID + hash_of(f"{job}.{attempt}.{part}") % _PIDS


def hash_of(text: str) -> int:
    """As Python's own, but the same in every process."""
    return zlib.crc32(text.encode())
