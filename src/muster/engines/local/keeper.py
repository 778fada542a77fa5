"""The keeper: a small process that starts jobs, waits for them, and remembers how they ended.

It outlives the server. It has one thread, the standard library, and a loop that sleeps until a child ends,
the server says something, or a time has come; once a second it looks after what runs, if anything does.
There is one for each home. With nobody connected and nothing running it goes.

The server says: ``start``, ``recall``, ``stop``, ``evict``, ``suspend``, ``resume``, ``limit`` (another time
limit), ``settle`` (the ends of these attempts are in the journal), ``know`` (an environment, by its key),
``where`` (which groups and processes are theirs) and ``end`` (kill everything and go). The keeper tells:
``hello``, ``started``, ``stood down``, ``suspended``, ``resumed``, ``exited``, ``vacated``, ``settled``,
``where``, and ``refused`` of a start that comes too late or too early. Who connects is told of all that is
not settled, again.

A start may name an attempt that it comes *behind* (see ``line``): it waits until that one is over, and
follows without a word from the server. Of such changes the server hears a few at a time, unless a line gets
short.
"""

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from muster.engines.local import cgroups, processes, wire
from muster.engines.local.attempt import Attempt
from muster.engines.local.clock import Clock
from muster.engines.local.leaving import EVICT, STOP
from muster.engines.local.line import Line
from muster.engines.local.logs import is_safe
from muster.engines.local.part import Part
from muster.engines.local.records import Key, Records
from muster.engines.local.timers import Timer, Timers
from muster.engines.local.wire import Channel, Message
from muster.home import Home

ANOTHER_IS_RUNNING = 3  # the exit code
NO_CGROUPS = "--no-cgroups"

_WATCH_SECONDS, _SOON_SECONDS = 1.0, 0.05
_GATHER_SECONDS = 0.008  # for which news that nobody waits for is kept back, to be told together
_SHORT_LINE = 8  # behind which more should come
_LINGER_SECONDS = 10.0
_PRIORITY = -10
_NODE_LOST = "node lost"


class Keeper:
    """Attempts by (job, attempt), a connection at most, and the loop."""

    def __init__(self, home: Home, groups: cgroups.Cgroups, listener: socket.socket) -> None:
        self._home, self.logs = home, str(home.logs)
        self.cgroups = groups
        self.clock, self.timers = Clock(str(home.clock)), Timers()
        self.records = Records(str(home.keeper), processes.boot_id())
        self._attempts: dict[Key, Attempt] = {}
        self._by_job: dict[str, int] = {}  # the latest attempt of each job that is remembered
        self._by_pid: dict[int, tuple[Attempt, Part]] = {}
        self._line = Line()
        self._environments: dict[str, dict[str, str]] = {}
        self._channel: Channel | None = None
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._watching: Timer | None = None
        self._lingering: Timer | None = None
        self._gathering: Timer | None = None
        self._pressing = False  # whether something that was told should be heard at once
        self._children = self._wake_on_children()
        self._going = False

    # --- What an attempt needs --------------------------------------------------------------------

    def tell(self, message: Message, *, pressing: bool = True) -> None:
        if self._channel is not None:
            self._channel.send(message)
            self._pressing |= pressing

    def expect(self, attempt: Attempt, part: Part) -> None:
        """By its child's exit or, of a process that another keeper has started, by its pidfd."""
        if part.pidfd is None:
            self._by_pid[part.pid] = (attempt, part)
        else:
            descriptor = part.pidfd

            def ended() -> None:
                self._selector.unregister(descriptor)
                attempt.ended(part, None)

            self._selector.register(descriptor, selectors.EVENT_READ, ended)

    def has_orphans(self) -> bool:
        """Without groups, orphans become our children: any that we have not started is one."""
        children = processes.own_children()
        return children is None or not children <= self._by_pid.keys()

    def is_followed(self, attempt: Attempt) -> bool:
        return self._line.is_followed(attempt.key)

    def over(self, attempt: Attempt, message: Message) -> None:
        self._attempts.pop(attempt.key, None)
        self.records.end(attempt.key, message)
        follower = self._line.next_after(attempt.key)
        pressing = follower is None or self._line.is_shorter(_SHORT_LINE, _key(follower))
        self.tell(message, pressing=pressing)
        if follower is not None:
            self._begin(follower, attempt)
        self._clear_out()

    def _clear_out(self) -> None:
        """Without groups, an orphan may hide whose it is; once nothing runs, that does not matter."""
        if not (self._attempts or self.cgroups.bases):
            processes.kill_all(processes.own_children() or ())

    # --- The loop ---------------------------------------------------------------------------------

    def run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._children, selectors.EVENT_READ, self._reap)
        if not self.cgroups.bases:
            processes.adopt_orphans()
        self._recall()
        while not (self._going and not self._attempts):
            self._say()  # which may find that nobody listens any more
            self._linger()
            ready = self._selector.select(self.timers.wait_seconds())
            for call in (*(key.data for key, _ in ready), self.timers.run):
                self._dare(call)
        self._close()

    def _dare(self, call: Callable[[], None]) -> None:
        """Whatever goes wrong with one attempt, the others are still to be kept."""
        try:
            call()
        except Exception:
            sys.excepthook(*sys.exc_info())

    def _recall(self) -> None:
        """Take over what another keeper has left; after a reboot nothing of it runs."""
        rebooted = self.records.boot != processes.boot_id()
        for key, entry in list(self.records.entries.items()):
            self._by_job[key[0]] = max(key[1], self._by_job.get(key[0], 0))
            if "end" in entry:
                continue
            if rebooted:
                lost = {"because": _NODE_LOST, "lost_seconds": 0.0}
                told = {"tell": "vacated", "at": self.clock.now(), "job": key[0], "attempt": key[1]}
                self.records.end(key, told | lost)
                continue
            self._keep(Attempt.adopt(self, entry))

    def _keep(self, attempt: Attempt) -> None:
        if attempt.is_over:
            return
        self._attempts[attempt.key] = attempt
        if self._watching is None:
            self._watching = self.timers.after(_WATCH_SECONDS, lambda: self._watch(_WATCH_SECONDS))

    def _watch(self, seconds: float) -> None:
        """Look after what runs, and again as long as something does."""
        soon = [attempt.watch(seconds) for attempt in list(self._attempts.values())]
        wait = _SOON_SECONDS if any(soon) else _WATCH_SECONDS
        self._watching = self.timers.after(wait, lambda: self._watch(wait)) if self._attempts else None

    def _wake_on_children(self) -> socket.socket:
        """A socket that has something to read when a child has ended."""
        ours, signalled = socket.socketpair()
        for end in (ours, signalled):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
        self._signalled = signalled
        return ours

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._children.recv(4096):
                pass
        while True:
            try:
                pid, status, spent = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                self._clear_out()
                return
            if pid in self._by_pid:
                attempt, part = self._by_pid.pop(pid)
                part.spent = (spent.ru_utime + spent.ru_stime, spent.ru_maxrss * 1024)
                attempt.ended(part, status)

    # --- The server -------------------------------------------------------------------------------

    def _accept(self) -> None:
        """Who comes last is the server: the one before is gone, or as good as."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        self._hang_up()
        self._environments.clear()  # it tells those that it needs
        self._channel = Channel(connection)
        self._selector.register(self._channel, selectors.EVENT_READ, self._hear)
        running = [list(key) for key in (*self._attempts, *self._line)]
        unsettled = [told for attempt in self._attempts.values() for told in attempt.story()]
        unsettled += [entry["end"] for entry in self.records.entries.values() if "end" in entry]
        hello = {"tell": "hello", "pid": os.getpid(), "running": running, "means": self._means()}
        self.tell({**hello, "follow": len(unsettled)})
        for message in sorted(unsettled, key=lambda message: float(message["at"])):
            self.tell(message)

    def _means(self) -> dict[str, str]:
        """Controller → what it is enforced by."""
        return dict.fromkeys(self.cgroups.bases, self.cgroups.by)

    def _hear(self) -> None:
        if self._channel is None:
            return
        self._reap()  # whoever has ended already is not told to
        for message in self._channel.receive():
            self._obey(message)

    def _say(self) -> None:
        """Send what there is to say; wait for room if there is none."""
        channel = self._channel
        if channel is None or self._has_time():
            return
        channel.flush()
        if channel.closed:
            self._hang_up()
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.unsent else 0)
        if self._selector.get_key(channel).events != wanted:
            self._selector.modify(channel, wanted, self._hear)

    def _has_time(self) -> bool:
        """Whether what there is to say can wait for more."""
        if self._channel is None or not self._channel.unsent or self._pressing:
            self._pressing = False
            return False
        if self._gathering is None:
            self._gathering = self.timers.after(_GATHER_SECONDS, self._press)
        return True

    def _press(self) -> None:
        self._gathering, self._pressing = None, True

    def _hang_up(self) -> None:
        """What was said before counts."""
        channel, self._channel = self._channel, None
        if channel is not None:
            for message in channel.receive():
                self._obey(message)
            self._selector.unregister(channel)
            channel.close()

    def _linger(self) -> None:
        """With nobody there and nothing that runs, go after a while. What is recorded, the next one tells."""
        idle = self._channel is None and not self._attempts
        if idle and self._lingering is None:
            self._lingering = self.timers.after(_LINGER_SECONDS, self._go)
        elif not idle and self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None

    def _go(self) -> None:
        self._going = True

    # --- Orders -----------------------------------------------------------------------------------

    def _obey(self, order: Message) -> None:
        what = order["do"]
        if what == "end":
            self._end_everything()
            return
        if what == "know":
            self._know(order["key"], order["environment"])
            return
        if what == "settle":
            self._settle(order["attempts"])
            return
        if what == "where":
            seen = [[*key, self._attempts[key].whereabouts()] for key in self._asked_for(order)]
            self.tell({"tell": "where", "attempts": seen})
            return
        key = (order["job"], order["attempt"])
        attempt = self._attempts.get(key)
        if what == "start":
            self._start(key, order)
        elif attempt is None:
            self._tell_one_in_line(key, order)
        elif what == "stop":
            attempt.leave(STOP, order["because"], order["grace_seconds"])
        elif what == "evict":
            attempt.leave(EVICT, order["because"])
        elif what == "suspend":
            attempt.suspend()
        elif what == "resume":
            attempt.resume()
        elif what == "limit":
            attempt.limit(order["seconds"])

    def _asked_for(self, order: Message) -> list[Key]:
        return [key for job, attempt in order["attempts"] if (key := (job, attempt)) in self._attempts]

    def _know(self, key: str, environment: dict[str, str]) -> None:
        if len(self._environments) >= wire.MOST_ENVIRONMENTS:
            self._environments.clear()
        self._environments[key] = environment

    def _start(self, key: Key, order: Message) -> None:
        """Once, and only if no other attempt of the job runs or has ended it."""
        job, number = key
        before = self._by_job.get(job, 0)
        if not is_safe(job) or number <= before or not self._has_left(job, before):
            self.tell({"tell": "refused", "job": job, "attempt": number})
            return
        self._by_job[job] = number
        order["environment"] = self._environments[order["environment"]]
        behind = tuple(order["behind"] or ())
        if behind in self._attempts or behind in self._line:
            self._line.append(behind, order)
        else:
            self._begin(order)

    def _begin(self, order: Message, before: Attempt | None = None) -> None:
        self._keep(Attempt.begin(self, order, before))

    def _tell_one_in_line(self, key: Key, order: Message) -> None:
        """Who is told to leave before it has started just does."""
        if order["do"] not in ("stop", "evict", "recall") or not self._line.strike(key):
            return
        told = {"at": self.clock.now(), "job": key[0], "attempt": key[1]}
        if order["do"] == "recall":
            del self._by_job[key[0]]  # it may well be started under the same number
            self.tell(told | {"tell": "stood down"})
            return
        if order["do"] == "stop":
            told |= {"tell": "exited", "outcome": "STOPPED"}
        else:
            told |= {"tell": "vacated", "because": order["because"], "lost_seconds": 0.0}
        self.records.end(key, told)
        self.tell(told)

    def _has_left(self, job: str, number: int) -> bool:
        """Whether the job can be started again: what it ended with, if with anything, was to vacate."""
        entry = self.records.entries.get((job, number))
        return entry is None or entry.get("end", {}).get("tell") == "vacated"

    def _settle(self, attempts: list[list[Any]]) -> None:
        keys = [key for job, attempt in attempts if (key := (job, attempt)) not in self._attempts]
        self.records.drop(keys)
        for job, number in keys:
            if self._by_job.get(job) == number:
                del self._by_job[job]
        self.tell({"tell": "settled", "attempts": keys}, pressing=False)

    def _end_everything(self) -> None:
        self._going = True
        self._line = Line()
        for attempt in list(self._attempts.values()):
            attempt.leave(STOP, "the keeper ends", 0.0)

    def _close(self) -> None:
        """Hang up last: who waits for that may take everything away."""
        self._listener.close()
        os.unlink(self._home.keeper_socket)
        self.cgroups.close()
        self.records.close()
        if self._channel is not None:
            self._channel.flush()
        self._hang_up()


def _key(order: Message) -> Key:
    return order["job"], order["attempt"]


def main(arguments: Sequence[str]) -> int:
    """Hold the lock, listen, and only then leave whoever has started us: who returns, can be connected to."""
    home = Home(arguments[0])
    lock = os.open(home.keeper / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"another keeper is running in {home.path}\n")
        return ANOTHER_IS_RUNNING
    listener = wire.listen(str(home.keeper_socket))
    if os.fork():
        os._exit(0)
    _detach(home)
    tag = f"{zlib.crc32(os.fsencode(home.path.resolve())):08x}"
    groups = cgroups.Cgroups(0, {}, {}) if NO_CGROUPS in arguments else cgroups.find(tag)
    Keeper(home, groups, listener).run()
    return 0


def _detach(home: Home) -> None:
    """A session of our own, and nothing held that is somebody else's."""
    os.setsid()
    os.chdir("/")
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(home.keeper / "errors.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(errors)
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    with contextlib.suppress(
        PermissionError
    ):  # first in line, however much jobs keep busy; they are as others
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
