"""The engine for this machine, as the server sees it: orders go to the keeper, facts come back.

It starts a keeper if none answers, and finds the one that is there. Orders are sent together, with the next
``observe`` or ``flush``. What it has ordered and was not answered
yet is ordered again when a keeper had to be replaced; what it was told already is not told twice.
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec

from muster.engines.base import Capabilities, Grant, Key
from muster.engines.local import inventory, wire
from muster.engines.local.clock import Clock
from muster.engines.local.grants import grants_here, grants_of
from muster.engines.local.keeper import ANOTHER_IS_RUNNING, NO_CGROUPS
from muster.engines.local.orders import start_order
from muster.engines.local.wire import Channel, Message
from muster.home import Home
from muster.model.errors import BadInput, MusterError
from muster.model.events import Event, Exited, Outcome, Resumed, Started, StoodDown, Suspended, Vacated
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.plan import Action, Evict, Limit, Start, Stop
from muster.model.usage import AtEnd

_ANSWER_SECONDS = 10.0
_TRIES = 5


class LocalEngine:
    """Runs jobs as processes here. ``find`` knows the jobs, ``environment`` the variables kept for them.

    ``since`` is the last time that was written down: none before it is told.
    """

    name = "local"
    capabilities = Capabilities(lines_up=True)

    def __init__(
        self,
        home: Home,
        find: Callable[[JobId], Job],
        environment: Callable[[str], dict[str, str]],
        *,
        node: Node | None = None,
        cgroups: bool = True,
        since: float = 0.0,
    ) -> None:
        home.make()
        self._home = Home(home.path.resolve())
        self._find, self._environment = find, environment
        self._cgroups = cgroups
        found = inventory.here(home.path)
        self._machine = found if node is None else found.told(node)
        self._clock = Clock(str(self._home.clock), since)
        self._told_at = since
        self._facts: list[Event] = []
        self._running: set[Key] = set()  # and known to have started
        self._in_line: set[Key] = set()  # the keeper had them lined up when we came
        self._over: set[Key] = set()  # have ended, and were told
        self._settling: set[Key] = set()  # of these, the keeper is to forget
        self._orders: dict[Key, list[Message]] = {}  # not answered yet
        self._told: set[str] = set()  # which environments the keeper knows
        self._where: dict[Key, list[Message]] = {}
        self.means: dict[str, str] = {}  # controller → what enforces it, as the keeper tells
        self.keeper_pid = 0
        self._readable = select.epoll()
        self._waiting = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._readable.register(self._waiting, select.EPOLLIN)
        self._channel = self._connect()

    # --- The protocol -----------------------------------------------------------------------------

    def now(self) -> float:
        return self._clock.now()

    def wall_ahead_seconds(self) -> float:
        """By how much the wall's clock, which people may set, is ahead of ours."""
        return self._clock.wall_ahead_seconds()

    def nodes(self) -> Sequence[Node]:
        return (self._machine.node,)

    def observe(self, until: float | None = None) -> Sequence[Event]:
        while True:
            self._pump()
            if self._facts:
                return self._drained()
            if until is None and not (self._running or self._orders):
                return ()
            left = None if until is None else until - self.now()
            if left is not None and left <= 0:
                return ()
            self._readable.poll(left)

    def act(self, action: Action) -> None:
        try:
            job = self._find(action.job)
        except KeyError:
            raise BadInput(f"the engine knows no job {action.job}") from None
        key = (action.job, action.attempt)
        if isinstance(action, Start):
            if key not in self._running and key not in self._orders:
                order = start_order(job, action, self._home, self._machine, self._environment)
                self._orders[key] = [order]
                self._let_know(self._channel, order["environment"])
                self._channel.send(order)
        elif isinstance(action, Limit):
            self._channel.send(_order(action))
        elif key in self.running():
            order = _order(action)
            self._orders.setdefault(key, []).append(order)
            self._channel.send(order)

    # --- Beyond the protocol ----------------------------------------------------------------------

    def fileno(self) -> int:
        """Readable when ``observe`` has something to do at once."""
        return self._readable.fileno()

    def settle(self, attempts: Sequence[Key]) -> None:
        """The ends of these attempts are safe in the journal: they need not be told again."""
        self._settling.update(attempts)
        self._channel.send(_settle(attempts))

    def locate(self, attempts: Sequence[Key]) -> dict[Key, list[Message]]:
        """Where the parts of these attempts are: their groups and processes. Of the others we ask."""
        unknown = [key for key in attempts if key not in self._where]
        if unknown:
            self._channel.send({"do": "where", "attempts": unknown})
            self.flush()
        return {key: self._where[key] for key in attempts if key in self._where}

    def running(self) -> set[Key]:
        """The attempts that the keeper has, or was ordered to have."""
        return self._running | self._in_line | self._orders.keys()

    def grants(self, job: Job) -> tuple[Grant, ...]:
        """What of its limits is enforced here, and what is advisory."""
        return grants_of(job, self.means)

    def grants_here(self) -> tuple[Grant, ...]:
        return grants_here(self.means)

    def close(self, *, end_jobs: bool = False) -> None:
        """Leave; jobs go on, unless they are to end. Then this returns when nothing of them is left."""
        if end_jobs:
            self._channel.send({"do": "end"})
            self._channel.flush()
            while not self._channel.closed:
                self._wait_for(self._channel)
                self._channel.receive()
                self._channel.flush()
        self._channel.close()
        self._readable.close()
        os.close(self._waiting)

    # --- To the keeper ----------------------------------------------------------------------------

    def flush(self) -> None:
        """Send the orders. What does not go at once goes with the next ``observe``, which is then due."""
        self._channel.flush()
        self._expect_room()

    def _let_know(self, channel: Channel, key: str) -> None:
        """An environment is long, and most jobs share one: each is told once."""
        if key not in self._told:
            if len(self._told) >= wire.MOST_ENVIRONMENTS:
                self._told.clear()
            self._told.add(key)
            channel.send({"do": "know", "key": key, "environment": self._environment(key)})

    def _expect_room(self) -> None:
        if not self._channel.closed:
            room = select.EPOLLOUT if self._channel.unsent else 0
            self._readable.modify(self._channel, select.EPOLLIN | room)

    # --- From the keeper --------------------------------------------------------------------------

    def _pump(self) -> None:
        """Take in what has come; find or start another keeper if ours is gone."""
        self._channel.flush()
        self._take(self._channel.receive())
        if self._channel.closed:
            self._channel.close()
            self._channel = self._connect()
        self._expect_room()

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            what = message["tell"]
            if what == "settled":
                self._has_settled({(job, attempt) for job, attempt in message["attempts"]})
                continue
            if what == "where":
                self._where |= {(job, attempt): parts for job, attempt, parts in message["attempts"]}
                continue
            key = (message["job"], message["attempt"])
            if what == "started":
                self._has_started(key, message)
            elif what == "stood down":
                self._in_line.discard(key)
                self._orders.pop(key, None)
                self._facts.append(StoodDown(self._at(message), *key))
            elif what in ("exited", "vacated"):
                self._has_ended(key, message)
            elif what == "refused":
                self._orders.pop(key, None)
            else:
                self._answered(key, "suspend" if what == "suspended" else "resume")
                kind = Suspended if what == "suspended" else Resumed
                self._facts.append(kind(self._at(message), *key))

    def _has_settled(self, keys: set[Key]) -> None:
        self._settling -= keys
        self._over -= keys

    def _has_started(self, key: Key, message: Message) -> None:
        self._in_line.discard(key)
        self._answered(key, "start", "recall")
        if key not in self._running:
            self._running.add(key)
            self._facts.append(Started(self._at(message), *key))

    def _has_ended(self, key: Key, message: Message) -> None:
        self._running.discard(key)
        self._in_line.discard(key)
        self._where.pop(key, None)
        self._orders.pop(key, None)
        if key in self._over:
            return
        self._over.add(key)
        at, told = self._at(message), message.get("spent")
        spent = None if told is None else AtEnd(*told)
        if message["tell"] == "vacated":
            self._facts.append(Vacated(at, *key, message["because"], message["lost_seconds"], spent))
        else:
            code, by_signal = message.get("exit_code"), message.get("signal")
            self._facts.append(Exited(at, *key, Outcome(message["outcome"]), code, by_signal, spent))

    def _answered(self, key: Key, *what: str) -> None:
        orders = [order for order in self._orders.pop(key, ()) if order["do"] not in what]
        if orders:
            self._orders[key] = orders

    def _drained(self) -> list[Event]:
        facts, self._facts = self._facts, []
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._waiting)
        return facts

    def _at(self, message: Message) -> float:
        """Facts come in time order, and not from the future, whatever clocks do."""
        self._told_at = max(self._told_at, min(float(message["at"]), self.now()))
        return self._told_at

    # --- Finding the keeper -----------------------------------------------------------------------

    def _connect(self) -> Channel:
        """The keeper that answers, or a new one."""
        for _ in range(_TRIES):
            try:
                connection = wire.connect(str(self._home.keeper_socket))
            except OSError:
                self._start_keeper()
                continue
            channel = Channel(connection, msgspec.json.encode, msgspec.json.decode)
            if self._is_greeted(channel):
                return channel
            channel.close()
        raise MusterError(f"the keeper in {self._home.path} does not answer; see keeper/errors.log there")

    def _is_greeted(self, channel: Channel) -> bool:
        """Whether the keeper says hello, and what else it says with it. One that is just going does not."""
        messages: list[Message] = []
        while not messages or len(messages) <= messages[0]["follow"]:  # and the story so far
            if channel.closed or not self._wait_for(channel):
                return False
            messages += channel.receive()
        hello, *others = messages
        self.means, self.keeper_pid = hello["means"], hello["pid"]
        self._readable.register(channel, select.EPOLLIN)
        known = {(job, attempt) for job, attempt in hello["running"]}
        self._in_line = known - self._running
        self._take(others)
        if self._facts:
            os.eventfd_write(self._waiting, 1)
        self._order_again(channel, known)
        return True

    def _order_again(self, channel: Channel, known: set[Key]) -> None:
        """What a keeper that is gone has not carried out; orders do no harm when they are given twice."""
        self._told.clear()
        self._where.clear()
        for key, orders in self._orders.items():
            for order in orders:
                if order["do"] != "start":
                    channel.send(order)
                elif key not in known:
                    self._let_know(channel, order["environment"])
                    channel.send(order)
        if self._settling:
            channel.send(_settle(list(self._settling)))
        channel.flush()

    def _wait_for(self, channel: Channel) -> bool:
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        return bool(poll.poll(_ANSWER_SECONDS * 1000))

    def _start_keeper(self) -> None:
        """It returns when it can be connected to; from then on it is nobody's child."""
        command = [sys.executable, "-P", "-m", "muster.engines.local.keeper", str(self._home.path)]
        command += [] if self._cgroups else [NO_CGROUPS]
        scope = _scope()
        if scope and self._cgroups and _ran([*scope, *command]) is None:
            return
        complaint = _ran(command)
        if complaint is not None:
            raise MusterError(f"the keeper can't be started: {complaint}")


def _ran(command: Sequence[str]) -> str | None:
    """What it complains of; None if it has started, or another one has."""
    done = subprocess.run(
        command,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode in (0, ANOTHER_IS_RUNNING):
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"


def _scope() -> list[str]:
    """Under systemd the keeper gets a scope that is delegated to it: its groups are its own to divide."""
    systemd_run = shutil.which("systemd-run")
    if systemd_run is None or not os.path.isdir("/run/systemd/system"):
        return []
    user = [] if os.geteuid() == 0 else ["--user"]
    return [systemd_run, *user, "--scope", "--quiet", "--property=Delegate=yes"]


def _settle(attempts: Sequence[Key]) -> Message:
    return {"do": "settle", "attempts": attempts}


def _order(action: Action) -> Message:
    order: Message = {"job": action.job, "attempt": action.attempt}
    if isinstance(action, Stop):
        return order | {"do": "stop", "because": action.because, "grace_seconds": action.grace_seconds}
    if isinstance(action, Evict):
        return order | {"do": "evict", "because": action.because}
    if isinstance(action, Limit):
        return order | {"do": "limit", "seconds": action.seconds}
    return order | {"do": type(action).__name__.lower()}
