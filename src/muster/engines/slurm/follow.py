"""Following: one thread that asks Slurm now and then, and carries out what attempts are told.

A *pass* asks once for each kind of thing, whatever the number of jobs: the queue; accounting, if somebody is
missing there; nodes, less often. How often follows from what there is to see and from how long Slurm takes to
answer. A controller that is away stops nothing but this thread: the next pass finds out what it missed.
"""

import fcntl
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from muster.engines.base import Key
from muster.engines.slurm import attempts as accounting
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm, batches
from muster.engines.slurm.desk import Desk
from muster.engines.slurm.errands import Errands, Gatherer, run_errands
from muster.engines.slurm.errors import ControllerDown, SlurmError, TooSlow
from muster.engines.slurm.inventory import Inventory
from muster.engines.slurm.life import End, Life, end_of_job, end_of_tries
from muster.engines.slurm.script import Marks
from muster.engines.slurm.settings import PLACE, SlurmSettings
from muster.engines.slurm.states import job_standing
from muster.home import Home
from muster.model.events import Event, NodeHealth, NodeSeen, Outcome
from muster.model.node import Health, Node
from muster.model.plan import Limit, Resume, Suspend
from muster.model.state import State

log = logging.getLogger("muster")

_BUSY_SECONDS, _CALM_SECONDS, _IDLE_SECONDS = 1.0, 2.0, 15.0
_NEW_SECONDS = 60.0
_SHARE = 5.0  # no more than one part in so many of the time is spent asking
_NODES_SECONDS = 5.0
_AWAY_SECONDS = 5.0  # after a pass that failed
_MISSING_SECONDS = 120.0  # unknown to queue and accounting for so long: it is gone
_BEGUN = frozenset({State.RUNNING, State.SUSPENDED, State.STOPPING})
_WAITS = frozenset({State.QUEUED, State.HELD, State.STARTING})


class Follower:
    def __init__(
        self, books: Books, slurm: Slurm, desk: Desk, marks: Marks, settings: SlurmSettings, home: Home
    ) -> None:
        self._books, self._slurm, self._desk, self._marks = books, slurm, desk, marks
        self._settings, self._home = settings, home
        self.inventory = Inventory()
        self.kill_wait_seconds: float | None = None
        self.passes = 0  # that are complete
        self._requests: deque[tuple[int, Suspend | Resume | Limit]] = deque()
        self._trouble = ""
        self._nodes_at = 0.0
        self._next_pass_at = 0.0
        self._woken = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="slurm", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def hurry(self) -> None:
        """Something was handed over: look soon what became of it."""
        self._next_pass_at = min(self._next_pass_at, time.monotonic() + _BUSY_SECONDS / 4)
        self._woken.set()

    def request(self, number: int, action: Suspend | Resume | Limit) -> None:
        """Something for Slurm to do with a job, next."""
        self._requests.append((number, action))

    def close(self) -> None:
        self._closing = True
        self._woken.set()
        self._thread.join()

    # --- The thread ---

    def _run(self) -> None:
        while not self._closing and not self._alone():
            time.sleep(_BUSY_SECONDS / 10)
        while not self._closing:
            try:
                due = self.turn()
            except Exception:
                log.exception("Slurm can't be followed")
                due = time.monotonic() + _AWAY_SECONDS
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
        now = time.monotonic()
        if now >= self._next_pass_at:
            took = self._look()
            self._next_pass_at = time.monotonic() + self._period(took)
        due.append(self._next_pass_at)
        with self._books.lock:
            ready_at = self._desk.give_ready(self.passes)
        return min(time_ for time_ in (*due, ready_at) if time_ is not None)

    def _period(self, took: float | None) -> float:
        if took is None:
            return _AWAY_SECONDS
        with self._books.lock:
            lives = [life for life in self._books.lives.values() if not life.is_over]
            wall = self._books.clock.wall()
            busy = any(life.told is not None or _is_new(life, wall) for life in lives)
            orders = bool(self._desk.orders)
        least = _BUSY_SECONDS if busy or orders else _CALM_SECONDS if lives else _IDLE_SECONDS
        return min(max(least, _SHARE * took), 4 * _IDLE_SECONDS)

    def _run_errands(self) -> float | None:
        """What attempts are to be told now; when the next is, in monotonic time."""
        if self.kill_wait_seconds is None:
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
                self._say(str(error))
                return
            except SlurmError as error:
                log.warning("job %s: %s", action.job, error)
            self._requests.popleft()
            self._next_pass_at = 0.0

    def _carry_out(self, errands: Errands) -> None:
        try:
            run_errands(errands, self._slurm, self._home)
        except SlurmError as error:
            self._say(str(error))
            with self._books.lock:
                errands.undo(self._books.clock.wall())
        if errands.any:
            self._next_pass_at = min(self._next_pass_at, time.monotonic() + _BUSY_SECONDS / 2)

    # --- A pass ---

    def look_at_nodes_once(self) -> None:
        """Before there is a thread. If Slurm does not answer, nodes are told when it does."""
        try:
            self._look_at_nodes(time.monotonic())
        except SlurmError as error:
            self._say(str(error))

    def _look(self) -> float | None:
        """How long it took; None: Slurm did not answer."""
        begun = time.monotonic()
        with self._books.lock:
            number = self._desk.next_pass
            self._desk.next_pass += 1
        try:
            self._look_at_nodes(begun)
            self._look_at_jobs()
        except SlurmError as error:
            self._say(str(error))
            return None
        for sentence in self._slurm.notices.take():
            log.warning("%s", sentence)
        if self._trouble:
            log.warning("Slurm answers again")
            self._trouble = ""
        self.passes = number
        return time.monotonic() - begun

    def _say(self, sentence: str) -> None:
        if sentence != self._trouble:
            self._trouble = sentence
            log.warning("%s", sentence)

    def _look_at_nodes(self, now: float) -> None:
        if self.kill_wait_seconds is None:
            self.kill_wait_seconds = self._slurm.kill_wait_seconds()
        if self._nodes_at and now - self._nodes_at < _NODES_SECONDS:
            return
        nodes, partitions = self._slurm.nodes(), self._slurm.partitions()
        with self._books.lock:
            changed = self.inventory.look(nodes, partitions, self._slurm.notices)
            if self._nodes_at:  # those of the first look are asked for
                self._books.tell(_node_facts(changed, self._books.clock.now()))
        self._nodes_at = now

    def _look_at_jobs(self) -> None:
        """The queue; and accounting, for who is not there any more or was requeued."""
        found = {job.id: job for job in self._slurm.jobs()}
        with self._books.lock:
            marked = self._marked(found.values())
            unnamed = self._claim(marked)
            asked = [life for life in self._followed() if _needs_accounting(found.get(life.id or 0))]
        self._claim_named(unnamed)
        tries = self._tries(asked) if asked else {}
        with self._books.lock:
            facts = [fact for life in self._followed() for fact in self._follow(life, found, tries)]
            self._books.tell(facts)
        self._cancel_doubles(marked)

    def _followed(self) -> list[Life]:
        return [life for life in self._books.lives.values() if life.id is not None and not life.is_over]

    def _tries(self, asked: Sequence[Life]) -> Mapping[int, tuple[SlurmAttempt, ...]] | None:
        """None: accounting does not answer, so nothing follows for them now."""
        since = min(life.since for life in asked) - _MISSING_SECONDS
        try:
            return accounting.by_job(self._slurm.attempts(since))
        except SlurmError as error:
            self._say(str(error))
            return None

    # --- Finding again ---

    def _marked(self, jobs: Iterable[SlurmJob]) -> dict[Key, list[SlurmJob]]:
        """Our jobs by attempt, the first first. What others write into a comment counts for nothing."""
        found: dict[Key, list[SlurmJob]] = {}
        for job in jobs:
            key = self._marks.read(job.comment)
            life = None if key is None else self._books.lives.get(key)
            if key is not None and life is not None and job.user == life.user:
                found.setdefault(key, []).append(job)
        return {key: sorted(some, key=lambda job: job.id) for key, some in found.items()}

    def _claim(self, marked: Mapping[Key, Sequence[SlurmJob]]) -> dict[str, Life]:
        """Give attempts whose number is not known the job with their mark. Those without, by name."""
        unnamed = {}
        for key, life in self._books.lives.items():
            order = self._desk.orders.get(key)
            if life.id is not None or life.is_over or (order is not None and order.in_flight):
                continue
            if key in marked:
                self._has_found(life, marked[key][0].id)
            elif order is None or order.after_pass >= self._desk.next_pass - 1:
                unnamed[self._marks.name(key, life.job.name if life.job else "")] = life
        return unnamed

    def _has_found(self, life: Life, number: int) -> None:
        self._desk.orders.pop(life.key, None)
        self._books.has_id(life, number)

    def _claim_named(self, unnamed: Mapping[str, Life]) -> None:
        """The same in accounting, for what the queue has forgotten."""
        if not unnamed:
            return
        since = min(life.since for life in unnamed.values()) - _MISSING_SECONDS
        try:
            rows = [row for some in batches(unnamed) for row in self._slurm.named(some, since)]
        except SlurmError as error:
            log.debug("the queue alone says what was handed over: %s", error)
            return
        with self._books.lock:
            for number, user, name in sorted(rows):
                life = unnamed.get(name)
                if life is not None and life.id is None and user == life.user:
                    self._has_found(life, number)

    def _cancel_doubles(self, marked: Mapping[Key, Sequence[SlurmJob]]) -> None:
        """A second job under one mark has not run, and is not to. Without a first there is no second."""
        with self._books.lock:
            ours = {key: life.id for key in marked if (life := self._books.lives.get(key)) is not None}
        doubles = [
            job.id
            for key, number in ours.items()
            for job in marked[key]
            if number not in (None, job.id) and job_standing(job, self._slurm.notices).outcome is None
        ]
        if doubles:
            log.warning("cancelled in Slurm, since handed over twice: %s", doubles)
            for some in batches(doubles):
                self._slurm.cancel(some)

    # --- What became of an attempt ---

    def _follow(
        self, life: Life, jobs: Mapping[int, SlurmJob], tries: Mapping[int, tuple[SlurmAttempt, ...]] | None
    ) -> Iterator[Event]:
        assert life.id is not None
        job = jobs.get(life.id)
        if job is not None and not job.restarts:
            life.missing_since = None
            yield from self._follow_job(life, job)
        elif tries is not None:
            yield from self._follow_tries(life, job, tries.get(life.id, ()))

    def _follow_job(self, life: Life, job: SlurmJob) -> Iterator[Event]:
        life.is_seen = True
        standing = job_standing(job, self._slurm.notices)
        if job.begun and (standing.state in _BEGUN or standing.state is State.ENDED):
            yield from life.begins(job, self._books.at(job.started_at))
        if standing.state in _WAITS:
            self._waits(life, job)
        elif standing.state in (State.RUNNING, State.SUSPENDED):
            yield from life.stands_still(standing.state is State.SUSPENDED, self._books.clock.now())
        elif standing.state is State.ENDED and standing.outcome is not None:
            end = end_of_job(job, standing.outcome)
            yield life.ends(end, self._books.at(end.wall))

    def _waits(self, life: Life, job: SlurmJob) -> None:
        life.waits = job
        if life.waits_since is None:
            life.waits_since = self._books.clock.wall()

    def _follow_tries(
        self, life: Life, job: SlurmJob | None, tries: Sequence[SlurmAttempt]
    ) -> Iterator[Event]:
        """It is not in the queue any more, or it was requeued there: its first try says how it ended."""
        wall = self._books.clock.wall()
        end = end_of_tries(tries, self._slurm.notices)
        if end is None and job is not None:  # 22.05 has no record of who was requeued and waits
            end = End(None, Outcome.STOPPED, None, "requeued by Slurm")
        if end is None:
            life.missing_since = life.missing_since or wall
            if wall - life.missing_since < _MISSING_SECONDS:
                return
            end = End(None, Outcome.NODE_LOST, None, "Slurm has forgotten it")
        started = next((one.started_at for one in tries if one.started_at is not None), None)
        if started is not None and life.began_at is None:
            yield from life.begins(job or SlurmJob(life.id or 0, ()), self._books.at(started))
        if job is not None and end.vacated is None:
            end = end._replace(vacated="requeued by Slurm")
        if job is not None and job_standing(job, self._slurm.notices).outcome is None:
            self._slurm.cancel([job.id])
        yield life.ends(end, self._books.at(end.wall))


def _is_new(life: Life, wall: float) -> bool:
    """Handed over lately, and not begun: it will soon, or it waits for others."""
    return life.began_at is None and wall - life.since < _NEW_SECONDS


def _needs_accounting(job: SlurmJob | None) -> bool:
    return job is None or bool(job.restarts)


def _node_facts(changed: Iterable[tuple[Node | None, Node]], now: float) -> Iterator[Event]:
    """A node that differs in nothing but its health is told as that."""
    for before, node in changed:
        same = before is not None and _well(before) == _well(node)
        yield NodeHealth(now, node.name, node.health, node.because) if same else NodeSeen(now, node)


def _well(node: Node) -> Node:
    return msgspec.structs.replace(node, health=Health.UP, because="")
