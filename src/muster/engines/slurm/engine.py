"""The engine for a cluster that runs Slurm: Muster decides and governs, Slurm executes.

Nothing here waits for Slurm. An action becomes an entry in the books and a word to a thread; what comes of it
is observed. Four parts share the work: the *desk* hands jobs over; the *follower* asks Slurm what became of
them, and says to it what attempts are told; *adopting* makes jobs of what others submitted; and this, which
the server talks to. In ``govern`` a start names no seats: Slurm finds them, and they are told when it has. In
``place`` it names nodes; which GPUs it is there, Slurm decides, and that is told as well. An engine that only
observes takes no jobs, and its client gives no order to Slurm, whoever asks.
"""

import logging
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from muster.engines.base import Capabilities, Grant, Key, Known
from muster.engines.slurm.adopting import Adopting
from muster.engines.slurm.books import Books, own_user
from muster.engines.slurm.components import why_no_shape
from muster.engines.slurm.connecting import connect
from muster.engines.slurm.desk import Desk, Order
from muster.engines.slurm.errands import leave
from muster.engines.slurm.errors import Denied
from muster.engines.slurm.finding import Finder
from muster.engines.slurm.fleet import Stand
from muster.engines.slurm.follow import Follower
from muster.engines.slurm.life import EVICT, STOP, Life
from muster.engines.slurm.moves import Reading
from muster.engines.slurm.naming import Used
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
    """``find`` knows the jobs, ``environment`` their variables; no time before ``since`` is told.

    Without Slurm's commands, or with a wrong SLURM_CONF, there is none; without a controller there is.
    """

    name = "slurm"

    def __init__(
        self,
        home: Home,
        find: Callable[[JobId], Job],
        environment: Callable[[str], dict[str, str]],
        settings: SlurmSettings | None = None,
        reading: Reading | None = None,
        *,
        since: float = 0.0,
        limit_seconds: float = _LIMIT_SECONDS,
    ) -> None:
        home.make()
        home = Home(home.path.resolve())
        self.settings = settings or SlurmSettings()
        self.capabilities = _capabilities(self.settings)
        self._find = find
        self._books = books = Books(home, find, since)
        self.slurm = slurm = connect(self.settings, limit_seconds=limit_seconds, kept_open=(books.lock_file,))
        slurm.ready()
        marks = Marks(books.home_id)
        self._handover = Handover(home, self.settings, marks, environment)
        self._desk = Desk(books, slurm, home, self._written, self._handed_over)
        finder = Finder(books, slurm, self._desk, marks)
        reading = replace(reading or Reading(), is_own=finder.is_own, notices=slurm.notices)
        self._adopting = Adopting(slurm, reading, since or self.now())
        self._follower = Follower(books, slurm, self._desk, finder, self._adopting, self.settings, home)

    # --- The protocol -----------------------------------------------------------------------------

    def now(self) -> float:
        return self._books.clock.now()

    def wall_ahead_seconds(self) -> float:
        return self._books.clock.wall_ahead_seconds()

    def nodes(self) -> Sequence[Node]:
        """As they were found last; the rest is told as it is found: nobody waits for a controller."""
        return tuple(self._adopting.fleet.nodes.values())

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
        if job.adopted is not None:
            self._act_on_others(action)
            return
        if self.settings.observe:
            log.warning("job %s stays as it is: this Muster only observes Slurm", job.id)
            return
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
        """Its meters ask Slurm by number: it is enough to say of which there is one. No part is here."""
        return {key: [{"pid": 0}] * self._parts_of(key) for key in self.numbers(attempts)}

    def _parts_of(self, key: Key) -> int:
        life = self._books.lives.get(key)
        return 1 if life is None or life.job is None else life.job.gang.size

    def numbers(self, attempts: Sequence[Key]) -> dict[Key, tuple[int, ...]]:
        """Under which Slurm knows them, of those that it has begun."""
        with self._books.lock:
            found = ((key, self._numbers_of(key)) for key in attempts)
            return {key: numbers for key, numbers in found if numbers}

    def _numbers_of(self, key: Key) -> tuple[int, ...]:
        life = self._books.lives.get(key)
        if life is None:
            return self._adopting.numbers(key[0])
        return life.numbers

    def stand(self, stands: Mapping[str, Stand]) -> None:
        """Where nodes stand by another layout."""
        self._adopting.fleet.stands = stands
        self._follower.look_at_nodes_soon()

    def is_measured(self, key: Key) -> bool:
        """Whether Slurm lets us see what it measures of an attempt."""
        return key in self._books.lives or self._adopting.is_measured(key[0])

    def grants(self, job: Job) -> tuple[Grant, ...]:
        return (*_of_shape(job.gang.parts[0].shape), *_of_run(job))

    def grants_here(self) -> tuple[Grant, ...]:
        return tuple(_of_shape(Shape(cpus_milli=MILLI, memory_bytes=1, gpus=1, disk_bytes=1)))

    def close(self) -> None:
        self._follower.close()
        self._desk.close()
        self.slurm.close()
        self._books.close()

    # --- A host that is shared --------------------------------------------------------------------

    def knows(self, jobs: Sequence[Known], nodes: Sequence[Node], used: Used = lambda _: ()) -> None:
        self._adopting.knows(jobs, nodes, used)
        self._follower.start()

    def takes_jobs(self) -> str | None:
        if not self.settings.observe:
            return None
        return (
            "this Muster only observes Slurm, and hands it no jobs: submit it with sbatch, "
            "or have Muster started without --observe and without observe = true in [slurm]"
        )

    def cant_run(self, job: Job) -> str | None:
        return why_no_shape(job, len(self._adopting.fleet.nodes), places=self.capabilities.places)

    def waits_because(self, job: JobId) -> str | None:
        """Of one that was handed over and has not begun, or of others': Slurm's own reason as a sentence."""
        life = self._books.newest.get(job)
        if life is None:
            return self._adopting.waits_because(job)
        waits = life.waits
        return None if waits is None else str(why(waits, self.slurm.notices))

    def out_of_reach(self, job: Job) -> str | None:
        """Of our own, those that were handed over before, while we only observe."""
        if job.adopted is not None:
            return self._adopting.out_of_reach(job)
        if not self.settings.observe:
            return None
        return f"job {job.id} is in Slurm, which this Muster only observes: start Muster without --observe"

    def drain(self, node: str, because: str) -> None:
        self._adopting.drain(node, because)
        self._follower.look_at_nodes_soon()

    def undrain(self, node: str) -> None:
        self._adopting.undrain(node)
        self._follower.look_at_nodes_soon()

    # --- Actions ----------------------------------------------------------------------------------

    def _start(self, job: Job, start: Start, life: Life | None) -> None:
        """Hand it over, unless it was. A job has one attempt at a time."""
        if life is not None and (life.id is not None or life.is_over or life.key in self._desk.orders):
            return
        if self._is_beyond(start):
            return
        if life is None:
            assert job.run is not None
            life = self._books.enter((job.id, start.attempt), job, job.run.user or own_user())
        life.job, life.seats = job, start.seats
        self._desk.order(Order(life, job, start, max(1, self._follower.passes)))

    def _written(self, job: Job, start: Start) -> tuple[tuple[str, ...], str]:
        nodes = self._adopting.fleet.nodes
        options = self._handover.options(job, start, nodes, self._follower.partitions.best)
        return options, self._handover.script(job, start)

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

    def _act_on_others(self, action: Action) -> None:
        """Stopping is all that is done to the jobs of others."""
        if not isinstance(action, Stop):
            raise Denied(f"nothing but a stop is ordered for job {action.job}, which is Slurm's")
        self._adopting.stop(action.job, action.because)
        self._follower.hurry(0.0)

    def _handed_over(self) -> None:
        self._follower.hurry()


def _capabilities(settings: SlurmSettings) -> Capabilities:
    if settings.observe:
        return Capabilities(evicts=False, shares_gpus=False, starts=False)
    return Capabilities(shares_gpus=False, places=settings.mode == PLACE)


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
