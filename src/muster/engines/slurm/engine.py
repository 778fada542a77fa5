"""The engine for a cluster that runs Slurm: Muster decides and governs, Slurm executes.

Nothing here waits for Slurm. An action becomes an entry in the books and a word to a thread; what comes of it
is observed. Three parts share the books: the *desk* hands jobs over, the *follower* asks Slurm what became of
them and says to it what attempts are told, and this, which the server talks to. In ``govern`` a start names
no seats: Slurm finds them, and they are told when it has. In ``place`` it names nodes; which GPUs it is
there, Slurm decides, and that is told as well.
"""

import logging
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from muster.engines.base import Capabilities, Grant, Key
from muster.engines.slurm.books import Books, own_user
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.desk import Desk, Order
from muster.engines.slurm.errands import leave
from muster.engines.slurm.follow import Follower
from muster.engines.slurm.life import EVICT, STOP, Life
from muster.engines.slurm.reasons import why
from muster.engines.slurm.script import Handover, Marks
from muster.engines.slurm.settings import PLACE, SlurmSettings
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Event
from muster.model.job import Job, JobId, Shape
from muster.model.node import Node
from muster.model.plan import Action, Evict, Limit, Resume, Start, Stop, Suspend
from muster.model.units import MILLI

log = logging.getLogger("muster")

_LIMIT_SECONDS = 30.0  # of one command
_KILL_WAIT_SECONDS = 30.0  # as Slurm has it where nobody has set it


class SlurmEngine:
    """``find`` knows the jobs, ``environment`` their variables; no time before ``since`` is told."""

    name = "slurm"

    def __init__(
        self,
        home: Home,
        find: Callable[[JobId], Job],
        environment: Callable[[str], dict[str, str]],
        settings: SlurmSettings | None = None,
        *,
        since: float = 0.0,
        limit_seconds: float = _LIMIT_SECONDS,
    ) -> None:
        home.make()
        home = Home(home.path.resolve())
        self.settings = settings or SlurmSettings()
        self.capabilities = Capabilities(shares_gpus=False, places=self.settings.mode == PLACE)
        self._find = find
        self._books = books = Books(home, find, since)
        self.slurm = Slurm(
            self.settings.conf or None, limit_seconds=limit_seconds, kept_open=(books.lock_file,)
        )
        marks = Marks(books.home_id)
        self._handover = Handover(home, self.settings, marks, environment)
        self._desk = Desk(books, self.slurm, home, self._handed_over)
        self._follower = Follower(books, self.slurm, self._desk, marks, self.settings, home)
        self._follower.look_at_nodes_once()
        self._follower.start()

    # --- The protocol -----------------------------------------------------------------------------

    def now(self) -> float:
        return self._books.clock.now()

    def wall_ahead_seconds(self) -> float:
        return self._books.clock.wall_ahead_seconds()

    def nodes(self) -> Sequence[Node]:
        with self._books.lock:
            return tuple(self._follower.inventory.nodes.values())

    def observe(self, until: float | None = None) -> Sequence[Event]:
        poll = select.poll()
        poll.register(self._books.news, select.POLLIN)
        while not (facts := self._books.fetched()):
            if until is None and not self.running():
                return ()
            left = None if until is None else until - self.now()
            if left is not None and left <= 0:
                return ()
            poll.poll(None if left is None else left * 1000)
        return facts

    def act(self, action: Action) -> None:
        try:
            job = self._find(action.job)
        except KeyError:
            raise BadInput(f"the engine knows no job {action.job}") from None
        with self._books.lock:
            life = self._books.lives.get((action.job, action.attempt))
            if isinstance(action, Start):
                self._start(job, action, life)
            elif life is not None and not life.is_over:
                life.job = job
                self._act_on(life, action)
        self._follower.wake()

    # --- Beyond the protocol ----------------------------------------------------------------------

    def fileno(self) -> int:
        return self._books.news

    def running(self) -> set[Key]:
        with self._books.lock:
            return {key for key, life in self._books.lives.items() if not life.is_over}

    def settle(self, attempts: Sequence[Key]) -> None:
        with self._books.lock:
            self._books.drop(attempts)

    def flush(self) -> None:
        """Orders go when they are given."""

    def locate(self, attempts: Sequence[Key]) -> Mapping[Key, list[dict[str, Any]]]:
        """Its meters ask Slurm by number: it is enough to say of which there is one."""
        with self._books.lock:
            found = ((key, self._books.lives.get(key)) for key in attempts)
            return {key: _somewhere(life) for key, life in found if life is not None}

    def numbers(self, attempts: Sequence[Key]) -> dict[Key, int]:
        """Under which Slurm knows them."""
        with self._books.lock:
            found = ((key, self._books.lives.get(key)) for key in attempts)
            return {key: life.id for key, life in found if life is not None and life.id is not None}

    def waits(self) -> dict[Key, str]:
        """Why those that were handed over have not begun, in Slurm's own reasons as sentences."""
        with self._books.lock:
            waiting = {key: life.waits for key, life in self._books.lives.items() if life.waits is not None}
            return {key: str(why(job, self.slurm.notices)) for key, job in waiting.items()}

    def grants(self, job: Job) -> tuple[Grant, ...]:
        return (*_of_shape(job.gang.parts[0].shape), *_of_run(job))

    def grants_here(self) -> tuple[Grant, ...]:
        return tuple(_of_shape(Shape(cpus_milli=MILLI, memory_bytes=1, gpus=1, disk_bytes=1)))

    def close(self) -> None:
        self._follower.close()
        self._desk.close()
        self._books.close()

    # --- Actions ----------------------------------------------------------------------------------

    def _start(self, job: Job, start: Start, life: Life | None) -> None:
        """Hand it over, unless it was. A job has one attempt at a time."""
        if life is not None and (life.id is not None or life.is_over or life.key in self._desk.orders):
            return
        if self._is_beyond(start):
            return
        partition = self.settings.partition or self._follower.inventory.partition(job, start.seats)
        options = self._handover.options(job, start, self._follower.inventory.nodes, partition)
        script = self._handover.script(job, start)
        if life is None:
            assert job.run is not None
            life = self._books.enter((job.id, start.attempt), job, job.run.user or own_user())
        life.job, life.seats = job, start.seats
        self._desk.order(Order(life, job, options, script, max(1, self._follower.passes)))

    def _is_beyond(self, start: Start) -> bool:
        """Whether another attempt of the job is not over, or the job is."""
        others = [life for life in self._books.lives.values() if life.key[0] == start.job]
        return any(life.has_exited or not (life.is_over or life.key[1] == start.attempt) for life in others)

    def _act_on(self, life: Life, action: Action) -> None:
        kill_wait = self._follower.kill_wait_seconds
        wait = _KILL_WAIT_SECONDS if kill_wait is None else kill_wait
        if isinstance(action, Stop):
            leave(life, self._books, STOP, action.because, action.grace_seconds, wait)
        elif isinstance(action, Evict):
            leave(life, self._books, EVICT, action.because, None, wait)
        elif life.id is None or (isinstance(action, Limit) and action.seconds == life.limit_seconds):
            return
        elif isinstance(action, Suspend | Resume | Limit):
            if isinstance(action, Limit):
                self._books.has_limit(life, action.seconds)
            self._follower.request(life.id, action)

    def _handed_over(self) -> None:
        self._follower.hurry()


def _somewhere(life: Life) -> list[dict[str, Any]]:
    """So many parts, none of them here."""
    return [{"pid": 0}] * (1 if life.job is None else life.job.gang.size)


def _of_shape(shape: Shape) -> Iterator[Grant]:
    """What Slurm holds a job to is the cluster's configuration: it is the one who does."""
    amounts = {
        "cpus": shape.cpus_milli / MILLI,
        "memory": shape.memory_bytes,
        "gpus": shape.gpus,
        "disk": shape.disk_bytes,
    }
    for what, amount in amounts.items():
        if amount:
            by = ("advisory", "nothing") if what == "disk" else ("enforced", "slurm")
            yield Grant(what, amount, *by)


def _of_run(job: Job) -> Iterator[Grant]:
    if job.time_limit_seconds is not None:
        yield Grant("time", job.time_limit_seconds, "enforced", "slurm")
