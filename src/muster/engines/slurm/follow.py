"""Following: one thread that asks Slurm now and then, and carries out what attempts are told.

A *pass* asks once for each kind of thing, whatever the number of jobs: the queue, which is everybody's;
accounting, if somebody is missing there, and what those have used who ended; nodes, less often. An answer
that can't be read changes nothing. How often follows from what there is to see and from how long Slurm takes
to answer. A controller that is away stops nothing but this thread: the next pass finds out what it missed.
"""

import fcntl
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable

from muster.engines.base import Key
from muster.engines.local import logs
from muster.engines.slurm import attempts as accounting
from muster.engines.slurm.adopting import Adopting
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm, batches
from muster.engines.slurm.desk import Desk
from muster.engines.slurm.errands import Errands, Gatherer, run_errands
from muster.engines.slurm.errors import ControllerDown, SlurmError, TooSlow
from muster.engines.slurm.fates import Fates
from muster.engines.slurm.finding import LAG_SECONDS, Finder
from muster.engines.slurm.folding import folded_attempts, folded_jobs
from muster.engines.slurm.lasts import Lasts, ended, with_use
from muster.engines.slurm.life import Life
from muster.engines.slurm.pace import BUSY_SECONDS, Pace
from muster.engines.slurm.partitions import Partitions
from muster.engines.slurm.settings import PLACE, SlurmSettings
from muster.home import Home
from muster.model.events import Event, Exited, Vacated
from muster.model.plan import Limit, Resume, Suspend

log = logging.getLogger("muster")

_NEW_SECONDS = 60.0
_NODES_SECONDS = 5.0
_GONE_WRONG_SECONDS = _CLOSING_SECONDS = 5.0


class Follower:
    def __init__(
        self,
        books: Books,
        slurm: Slurm,
        desk: Desk,
        finder: Finder,
        adopting: Adopting,
        settings: SlurmSettings,
        home: Home,
    ) -> None:
        self._books, self._slurm, self._desk, self._finder = books, slurm, desk, finder
        self._adopting, self._settings, self._home = adopting, settings, home
        self._fates, self._lasts = Fates(books, slurm), Lasts(slurm)
        self._pace = Pace(settings.period_seconds)
        self.partitions = Partitions()
        self.kill_wait_seconds: float | None = None
        self.passes = 0  # that are complete
        self._requests: deque[tuple[int, Suspend | Resume | Limit]] = deque()
        self._nodes_at: float | None = None
        self._next_pass_at = 0.0
        self._woken = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="slurm", daemon=True)

    def start(self) -> None:
        """Who knows of no nodes asks for them first; if Slurm does not answer, they are told when it does."""
        if not self._adopting.fleet.nodes:
            try:
                self._adopting.look_at_nodes(self._slurm.nodes(), self._books.clock.now())
            except SlurmError as error:
                self._pace.say(str(error))
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def hurry(self, seconds: float = BUSY_SECONDS / 4) -> None:
        """Something was done: look soon what became of it."""
        self._next_pass_at = min(self._next_pass_at, time.monotonic() + seconds)
        self._woken.set()

    def request(self, number: int, action: Suspend | Resume | Limit) -> None:
        """Something for Slurm to do with a job, next."""
        self._requests.append((number, action))

    def close(self) -> None:
        """A controller that does not answer is not waited for."""
        self._closing = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_SECONDS)

    # --- The thread ---

    def _run(self) -> None:
        while not self._closing and not self._alone():
            time.sleep(BUSY_SECONDS / 10)
        while not self._closing:
            try:
                due = self.turn()
            except Exception:
                level = logging.DEBUG if self._closing else logging.ERROR  # books are closed at the end
                log.log(level, "Slurm can't be followed", exc_info=True)
                due = time.monotonic() + _GONE_WRONG_SECONDS
            self._woken.wait(max(0.0, due - time.monotonic()))
            self._woken.clear()

    def _alone(self) -> bool:
        """Whether no command that a server before us had started is still under way."""
        try:
            fcntl.flock(self._books.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def turn(self) -> float:
        """Errands, a pass if it is time, and what may be handed over. When to come again."""
        self._fulfil()
        due = [self._run_errands()]
        if time.monotonic() >= self._next_pass_at:
            self._next_pass_at = float("inf")  # who hurries meanwhile is heard
            self._look()
            self._next_pass_at = min(self._next_pass_at, time.monotonic() + self._pause())
        due.append(self._next_pass_at)
        with self._books.lock:
            due.append(self._desk.give_ready(self.passes))
        return min(at for at in due if at is not None)

    def _pause(self) -> float:
        with self._books.lock:
            lives = [life for life in self._books.lives.values() if not life.is_over]
            wall = self._books.clock.wall()
            busy = any(life.told is not None or _is_new(life, wall) for life in lives)
            return self._pace.pause(busy=busy or bool(self._desk.orders), calm=bool(lives))

    def _run_errands(self) -> float | None:
        """What attempts are to be told now; when the next is, in monotonic time."""
        if self.kill_wait_seconds is None or self._slurm.read_only:
            return None
        wall = self._books.clock.wall()
        with self._books.lock:
            lives = [life for life in self._books.lives.values() if not life.is_over]
            soon = self._settings.soon_seconds if self._settings.mode == PLACE else None
            gatherer = Gatherer(self._books, self._desk, self.kill_wait_seconds, soon, self.passes)
            errands = gatherer.gather(lives)
        self._carry_out(errands)
        return None if errands.next_wall is None else time.monotonic() + max(0.05, errands.next_wall - wall)

    def _fulfil(self) -> None:
        """What was asked for and is not allowed, or comes too late, is said and forgotten."""
        while self._requests:
            number, action = self._requests[0]
            try:
                if isinstance(action, Limit):
                    self._slurm.limit(number, action.seconds)
                else:
                    self._slurm.control("suspend" if isinstance(action, Suspend) else "resume", [number])
            except (ControllerDown, TooSlow) as error:
                self._pace.say(str(error))
                return
            except SlurmError as error:
                log.warning("job %s: %s", action.job, error)
            self._requests.popleft()
            self._next_pass_at = 0.0

    def _carry_out(self, errands: Errands) -> None:
        try:
            run_errands(errands, self._slurm, self._home)
        except SlurmError as error:
            self._pace.say(str(error))
            with self._books.lock:
                errands.undo(self._books.clock.wall())
        if errands.any:
            self._next_pass_at = min(self._next_pass_at, time.monotonic() + BUSY_SECONDS / 2)

    # --- A pass ---

    def _look(self) -> None:
        begun = time.monotonic()
        with self._books.lock:
            number = self._desk.next_pass
            self._desk.next_pass += 1
        try:
            self._pass(begun)
        except SlurmError as error:
            self._pace.failed(str(error))
            return
        for sentence in self._slurm.notices.take():
            log.warning("%s", sentence)
        self._pace.worked(time.monotonic() - begun)
        self.passes = number

    def _pass(self, begun: float) -> None:
        """The queue comes first: squeue gives up on a dead controller soonest."""
        jobs = self._slurm.jobs()
        self._look_at_nodes(begun)
        queue = {job.id: job for job in folded_jobs(jobs)}
        with self._books.lock:
            marked = self._finder.marked(queue.values())
            self._books.forget_users(marked)
            unnamed = self._finder.claim(marked)
        self._finder.claim_named(unnamed)
        attempts = self._attempts(jobs, queue)
        with self._books.lock:
            tries = None if attempts is None else accounting.by_job(folded_attempts(attempts))
            facts = self._fates.facts(queue, tries)
        now, ahead = self._books.clock.now(), self._books.clock.wall_ahead_seconds()
        others = self._adopting.look(jobs, attempts, now, ahead)
        spent = self._lasts.of(self._numbers(ended([*facts, *others])))
        self._cut_logs(facts)
        with self._books.lock:
            self._books.tell(with_use(facts, spent))
        self._books.pass_on(with_use(others, spent))
        if not self._slurm.read_only:
            self._finder.cancel_doubles(marked)
            self._cancel_requeued()
        self._books.pass_on(self._adopting.after(others, now, now + ahead))

    def _numbers(self, keys: Iterable[Key]) -> dict[Key, tuple[int, ...]]:
        lives = self._books.lives
        return {key: lives[key].numbers if key in lives else self._adopting.numbers(key[0]) for key in keys}

    def _cut_logs(self, facts: Iterable[Event]) -> None:
        """Of those that are over: what they wrote last may be beyond the limit. Before anybody is told."""
        for key in [(fact.job, fact.attempt) for fact in facts if isinstance(fact, Exited | Vacated)]:
            job = self._books.lives[key].job
            if job is not None and job.run is not None:
                for part in range(job.gang.size):
                    name = logs.log_name(*key, part, job.gang.size)
                    logs.cut(f"{self._home.logs}/{name}", job.run.log_bytes)

    def _look_at_nodes(self, begun: float) -> None:
        if self.kill_wait_seconds is None:
            self.kill_wait_seconds = self._slurm.kill_wait_seconds()
        if self._nodes_at is not None and begun - self._nodes_at < _NODES_SECONDS:
            return
        nodes, partitions = self._slurm.nodes(), self._slurm.partitions()
        self.partitions.look(nodes, partitions)
        told = self._adopting.look_at_nodes(nodes, self._books.clock.now())
        with self._books.lock:
            self._books.tell(told)
        self._nodes_at = begun

    def look_at_nodes_soon(self) -> None:
        """Somebody has changed one."""
        self._nodes_at = None
        self.hurry(0.0)

    def _attempts(
        self, jobs: tuple[SlurmJob, ...], queue: dict[int, SlurmJob]
    ) -> tuple[SlurmAttempt, ...] | None:
        """Of accounting, once for all who are missing in the queue; None: it does not answer."""
        with self._books.lock:
            ours = self._fates.missing_since(queue)
        others = self._adopting.missing_since(jobs)
        if others is not None:
            others += self._books.clock.wall_ahead_seconds()
        since = min((at for at in (ours, others) if at is not None), default=None)
        if since is None:
            return ()
        try:
            return self._slurm.attempts(since - LAG_SECONDS)
        except SlurmError as error:
            self._pace.say(str(error))
            return None

    def _cancel_requeued(self) -> None:
        """What an operator had requeued is not to run again. Until Slurm was told, it is kept in mind."""
        for some in batches(list(self._fates.requeued)):
            self._slurm.cancel(some)
        self._fates.requeued.clear()


def _is_new(life: Life, wall: float) -> bool:
    """Handed over lately, and not begun: it will soon, or it waits for others."""
    return life.began_at is None and wall - life.since < _NEW_SECONDS
