"""One attempt of a job, from the order to start it to the word of how it ended.

A part ends with its main process: what is left of its tree is killed, except while the attempt is
*leaving*. Then everybody was sent SIGTERM and has until the deadline; a shell that dies at once does not
take from its program the time to save its work. An attempt is over when all of its parts are, and nothing
of them is left.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from muster.engines.local import leaving, logs
from muster.engines.local.cgroups import Cgroups, Group, Limits
from muster.engines.local.clock import Clock
from muster.engines.local.leaving import EVICT, STOP
from muster.engines.local.part import UNKNOWN, Part, recalled
from muster.engines.local.records import Entry, Key, Records
from muster.engines.local.scratch import Scratches
from muster.engines.local.spawn import CANT_EXECUTE, NotStarted, Person, Program, person, start
from muster.engines.local.timers import Timer, Timers
from muster.engines.local.wire import Message

TIME, MEMORY, PIDS, DISK, FAILED = "time", "memory", "pids", "disk", "failed"
_OUTCOMES = {STOP: "STOPPED", TIME: "TIMEOUT", MEMORY: "OUT_OF_MEMORY", PIDS: "FAILED", DISK: "FAILED"}
_AGAIN_SECONDS = 0.02  # between looks at a tree that is to be gone
_KILL_AGAIN_SECONDS = 1.0
# Of an order: of no use once it is carried out.
_NOT_KEPT = frozenset({"do", "argv", "script", "environment", "variables", "parts", "behind"})


class Host(Protocol):
    """What an attempt needs of the keeper."""

    cgroups: Cgroups
    records: Records
    timers: Timers
    clock: Clock
    logs: str

    def tell(self, message: Message) -> None: ...

    def expect(self, attempt: "Attempt", part: Part) -> None:
        """Let the attempt know when the process of this part has ended."""
        ...

    def has_orphans(self) -> bool:
        """Whether there may be processes whose part has ended."""
        ...

    def is_followed(self, attempt: "Attempt") -> bool:
        """Whether another is lined up behind it."""
        ...

    def over(self, attempt: "Attempt", message: Message) -> None: ...


class Told(NamedTuple):
    """Why the attempt is leaving, and until when, in monotonic time."""

    kind: str
    because: str
    deadline: float


class Attempt:
    """A gang of processes and what they are told."""

    def __init__(self, host: Host, terms: Entry) -> None:
        self._host = host
        self._terms = terms
        self.key: Key = (terms["job"], terms["attempt"])
        self.is_over = False
        self._parts: list[Part] = []
        self._scratch = Scratches(terms.get("scratch", ()))
        self._told: Told | None = None
        self._at = 0.0  # when it started, by the wall
        self._since = time.monotonic()
        self._ask_at: float | None = None  # when SIGTERM is to follow the warning that was given
        self._suspended_since: float | None = None
        self._paused_seconds = 0.0
        self._timers: dict[str, Timer] = {}

    # --- Starting ---------------------------------------------------------------------------------

    @classmethod
    def begin(cls, host: Host, order: Message, before: "Attempt | None" = None) -> "Attempt":
        """Carry out an order. Whatever goes wrong is told as the attempt's end.

        ``before``: the one behind which it was lined up, and which is over.
        """
        attempt = cls(host, {k: v for k, v in order.items() if k not in _NOT_KEPT})
        try:
            owner = person(order["user"])
            attempt._prepare(order, owner, before)
        except (OSError, NotStarted) as error:
            attempt._end(
                {"tell": "exited", "outcome": "FAILED", "exit_code": CANT_EXECUTE, "why": str(error)}
            )
            return attempt
        attempt._launch(order, owner)
        return attempt

    def _prepare(self, order: Message, owner: Person | None, before: "Attempt | None") -> None:
        """Its folder, logs and groups; and what is to be remembered before anything runs."""
        self._fill_folder(order, owner)
        opened = self._open_logs(order, owner, before)
        for index, asked in enumerate(order["parts"]):
            limits = Limits(
                asked["cpus_milli"],
                asked["memory_bytes"],
                order["pids"],
                order["cpu_cap"],
                tuple(asked["denied_devices"]),
            )
            part = Part(self._mark(index, len(opened)), limits, None, opened[index])
            spare = None if before is None else before.spare_group(limits)
            if spare is None:
                part.group = self._host.cgroups.make(self._name(index), limits)
            else:
                part.go_on_with(spare)
            self._parts.append(part)
        self._at = self._host.clock.now()
        self._host.records.note(
            self.key,
            terms=self._terms,
            at=self._at,
            since=self._since,
            limits=[part.limits for part in self._parts],
            groups=[part.kept_group for part in self._parts],
            logs=[(log.path, *log.identity) for log in opened],
        )

    def _fill_folder(self, order: Message, owner: Person | None) -> None:
        folder = logs.Folder(self._host.logs, self.key[0], owner)
        if order["script"] is not None:
            folder.write(f"{self.key[1]}.script", order["script"], 0o700)
        if order["checkpoint"] is not None:
            whose = order.get("checkpoint_of", self.key[0])  # a server of an older version does not say
            logs.Folder(self._host.logs, whose, owner).make("checkpoint")
        self._scratch.make(folder)

    def _open_logs(self, order: Message, owner: Person | None, before: "Attempt | None") -> list[logs.Log]:
        count, most_bytes = len(order["parts"]), order["log_bytes"]
        paths = [f"{self._host.logs}/{logs.log_name(*self.key, index, count)}" for index in range(count)]
        spare = None if before is None else before.spare_log(order)
        if spare is not None:
            return [spare.handed_on(paths[0], most_bytes)]
        return [logs.new(path, most_bytes, owner) for path in paths]

    def spare_log(self, order: Message) -> logs.Log | None:
        """Our log, if it is over and has stayed empty, and the order is for one of the same user's."""
        [*others, part] = self._parts
        alike = len(order["parts"]) == 1 and order["user"] == self._terms["user"]
        if others or not alike or self._terms["output"] is not None or part.log is None or part.log.size():
            return None
        log, part.log = part.log, None
        return log

    def spare_group(self, limits: Limits) -> Group | None:
        """Likewise, our group."""
        alone = len(self._parts) == 1 and self._told is None
        return self._parts[0].spare_group(limits) if alone else None

    def _launch(self, order: Message, owner: Person | None) -> None:
        argv = tuple(order["argv"])
        if order["script"] is not None:
            argv = (f"{self._host.logs}/{self.key[0]}/{self.key[1]}.script", *argv)
        for part, asked in zip(self._parts, order["parts"], strict=True):
            environment = order["environment"] | order["variables"] | asked["environment"]
            self._start(
                part, Program(argv, environment, order["cwd"], order["umask"], order["output"]), owner
            )
        self._note_processes()
        if any(part.pid for part in self._parts):
            self._host.tell(self._message("started", self._at))
            self._set_time_limit()
        self._look_after()

    def _start(self, part: Part, program: Program, owner: Person | None) -> None:
        """Born into its group; then the group's limits are set."""
        assert part.log is not None
        try:
            with self._host.cgroups.inside(part.group):
                part.pid = start(program, owner, part.log.descriptor, part.log.path)
        except (NotStarted, OSError) as error:
            part.say(str(error))
            part.status = (error.exit_code if isinstance(error, NotStarted) else CANT_EXECUTE) << 8
            return
        self._host.expect(self, part)
        part.settle_in()

    @classmethod
    def adopt(cls, host: Host, entry: Entry) -> "Attempt":
        """What another keeper has started, and was killed before it ended."""
        attempt = cls(host, entry["terms"])
        attempt._at, attempt._since = entry["at"], entry["since"]
        attempt._suspended_since, attempt._paused_seconds = entry.get("suspended"), entry.get("paused", 0.0)
        count = len(entry["groups"])
        for index, (pid, started) in enumerate(entry.get("pids") or [(0, None)] * count):
            part = recalled(entry, index, attempt._mark(index, count))
            attempt._parts.append(part)
            if part.recognise(pid, started):
                host.expect(attempt, part)
        if entry.get("told") is not None:
            attempt._told = Told(*entry["told"])
            attempt._set("deadline", attempt._told.deadline, attempt._kill)
            if entry.get("ask_at") is not None:
                attempt._ask_later(entry["ask_at"])
        attempt._set_time_limit()
        attempt._look_after()
        return attempt

    # --- Being told -------------------------------------------------------------------------------

    def leave(self, kind: str, because: str, grace_seconds: float | None = None) -> None:
        """Everybody is asked to end, and killed at the deadline. A stop overrules an eviction."""
        grace = leaving.grace_seconds(self._terms, kind) if grace_seconds is None else grace_seconds
        deadline, first = time.monotonic() + grace, self._told is None
        if self._told is not None:
            if kind != STOP:
                return
            deadline = min(deadline, self._told.deadline)
            kind = STOP if self._told.kind == EVICT else self._told.kind
        self._told = Told(kind, because, deadline)
        self._host.records.note(self.key, told=self._told)
        if first and grace > 0:
            self._tell_stop(because, grace)
            warning = leaving.warning_seconds(self._terms, kind, grace)
            if warning:
                leaving.warn(self._running(), self._terms)
            self._ask_later(time.monotonic() + warning)
            if self._suspended_since is not None:
                self._wake()
        elif self._ask_at is not None:
            self._ask()
        self._set("deadline", deadline, self._kill)

    def _ask_later(self, at: float) -> None:
        """SIGTERM to everybody, after the warning if there was one."""
        if at <= time.monotonic():
            self._signal(signal.SIGTERM)
            return
        self._ask_at = at
        self._host.records.note(self.key, ask_at=at)
        self._set("ask", at, self._ask)

    def _ask(self) -> None:
        """The warning has had its time, or there is none left for it."""
        if self._ask_at is not None:
            self._ask_at = None
            self._host.records.note(self.key, ask_at=None)
            self._signal(signal.SIGTERM)

    def suspend(self) -> None:
        if self._told is not None or self._suspended_since is not None:
            return
        for index, part in enumerate(self._parts):
            freezer = self._host.cgroups.freezer_of(self._name(index))
            if part.group is None or not part.group.freeze(freezer):
                part.signal(signal.SIGSTOP)
        self._suspended_since = time.monotonic()
        groups = [part.kept_group for part in self._parts]
        self._host.records.note(self.key, suspended=self._suspended_since, groups=groups)
        self._host.tell(self._message("suspended", self._host.clock.now()))

    def resume(self) -> None:
        if self._told is not None or self._suspended_since is None:
            return
        self._paused_seconds += time.monotonic() - self._suspended_since
        self._wake()
        self._set_time_limit()
        self._host.records.note(self.key, suspended=None, paused=self._paused_seconds)
        self._host.tell(self._message("resumed", self._host.clock.now()))

    def _wake(self) -> None:
        self._suspended_since = None
        for part in self._parts:
            if part.group is not None:
                part.group.thaw()
        self._signal(signal.SIGCONT)

    def limit(self, seconds: float | None) -> None:
        """Another time limit, or none any more. It may have passed already."""
        if seconds == self._terms["time_limit_seconds"] or self._told is not None:
            return
        self._terms["time_limit_seconds"] = seconds
        self._host.records.note(self.key, terms=self._terms)
        for name in ("limit", "notice"):
            if name in self._timers:
                self._timers.pop(name).cancel()
        self._set_time_limit()

    def _set_time_limit(self) -> None:
        """The limit is one of running: time that it was suspended is not counted."""
        limit, notice = self._terms["time_limit_seconds"], self._terms["notice"]
        if limit is None or self._told is not None:
            return
        due = self._since + limit + self._paused_seconds
        self._set("limit", due, self._time_is_up)
        if notice is not None:
            self._set("notice", due - notice["before_seconds"], self._give_notice)

    def _time_is_up(self) -> None:
        if self._suspended_since is None:
            self.leave(TIME, "its time limit is reached")

    def _give_notice(self) -> None:
        if self._suspended_since is None and self._told is None:
            self._tell_stop("its time limit is near", self._terms["notice"]["before_seconds"])
            leaving.warn(self._running(), self._terms)

    def _tell_stop(self, because: str, seconds: float) -> None:
        with contextlib.suppress(NotStarted):
            folder = logs.Folder(self._host.logs, self.key[0], person(self._terms["user"]))
            folder.tell_stop(self.key[1], because, self._host.clock.wall() + seconds)

    # --- Ending -----------------------------------------------------------------------------------

    def ended(self, part: Part, status: int | None) -> None:
        """The main process of a part has ended; None: nobody knows how."""
        part.status = UNKNOWN if status is None else status
        part.close_pidfd()
        self._look_after()

    def _look_after(self) -> None:
        """See to what is left of parts that have ended. Once nothing is, the attempt is over."""
        if any(part.failed for part in self._parts) and self._running() and self._told is None:
            self.leave(FAILED, "another part of the gang has failed")
        patient = self._told is not None and time.monotonic() < self._told.deadline
        for part in self._parts:
            if not part.runs and not part.gone:
                part.sweep(self._host.has_orphans, is_followed=self._host.is_followed(self))
                if not part.gone and not patient:
                    part.kill()
        gone = all(part.gone for part in self._parts)
        if gone and self._scratch.is_gone():
            self._finish()
        elif gone or any(not (part.runs or part.gone) for part in self._parts):
            self._set("sweep", time.monotonic() + _AGAIN_SECONDS, self._look_after)

    def _kill(self) -> None:
        """Again and again, until nothing is left."""
        for part in self._parts:
            if not part.gone:
                part.kill()
        self._set("deadline", time.monotonic() + _KILL_AGAIN_SECONDS, self._kill)

    def _finish(self) -> None:
        code, by_signal = self._how_it_ended()
        exited = {"tell": "exited", "exit_code": code, "signal": by_signal}
        if self._told is not None and self._told.kind == EVICT:
            lost = self._lost_seconds(self._told)
            self._end({"tell": "vacated", "because": self._told.because, "lost_seconds": lost})
        else:
            self._end(exited | {"outcome": self._outcome()})

    def _outcome(self) -> str:
        if self._told is not None and self._told.kind in _OUTCOMES:
            return _OUTCOMES[self._told.kind]
        if not any(part.failed for part in self._parts):
            return "SUCCEEDED"
        return "OUT_OF_MEMORY" if any(part.out_of_memory for part in self._parts) else "FAILED"

    def _how_it_ended(self) -> tuple[int | None, int | None]:
        """Exit code and signal: of the first part that failed by itself, if one did."""
        statuses = [part.status for part in self._parts if part.status]
        by_itself = [status for status in statuses if not os.WIFSIGNALED(status)]
        status = (by_itself or statuses or [0])[0]
        if status == UNKNOWN:
            return None, None
        if os.WIFSIGNALED(status):
            return None, os.WTERMSIG(status)
        return os.WEXITSTATUS(status), None

    def _lost_seconds(self, told: Told) -> float:
        """What the next attempt has to do again. Who had to be killed did not save."""
        now = time.monotonic()
        lasted, kept = now - self._since, self._terms["checkpoint"]
        if kept is None:
            return lasted
        if kept["on_signal"] and now < told.deadline:
            return 0.0
        return lasted % kept["every_seconds"] if kept["every_seconds"] else lasted

    def _end(self, message: Message) -> None:
        self.is_over = True
        for timer in self._timers.values():
            timer.cancel()
        told = message | self._message(message["tell"], self._host.clock.now())
        self._host.over(self, told | {"spent": self._spent()})
        for part in self._parts:
            part.close()

    # --- Watching ---------------------------------------------------------------------------------

    def watch(self, seconds: float) -> bool:
        """Keep logs within bounds, and trees where no group does it. Whether to look again soon."""
        news = soon = False
        for part in self._parts:
            soon |= part.bound_log(seconds)
            if part.runs:
                news |= part.watch()
                self._watch_tree(part)
        if news:
            self._note_processes()
        beyond = self._scratch.beyond() if self._told is None else None
        if beyond is not None:
            self._parts[0].say(beyond)
            self.leave(DISK, beyond)
        return soon or self._scratch.is_counting

    def _watch_tree(self, part: Part) -> None:
        memory_bytes, pids = part.limits.memory_bytes, part.limits.pids if self._terms["asks_pids"] else 0
        if part.group is not None or self._told is not None or not (memory_bytes or pids):
            return
        found = part.tree()
        if memory_bytes and sum(process.resident_bytes for process in found) > memory_bytes:
            self.leave(MEMORY, "it uses more memory than it asked for", 0.0)
        elif pids and len(found) > pids:
            self.leave(PIDS, "it has more processes than it asked for", 0.0)

    # --- Small things -----------------------------------------------------------------------------

    def whereabouts(self) -> list[Message]:
        return [part.whereabouts for part in self._parts]

    def _spent(self) -> tuple[float, int] | None:
        """By all parts together; None if that is not known of one."""
        known = [part.spent for part in self._parts if part.spent is not None]
        if len(known) < len(self._parts) or not known:
            return None
        return sum(cpu_seconds for cpu_seconds, _ in known), max(largest for _, largest in known)

    def story(self) -> list[Message]:
        """What whoever was not there has missed."""
        started = [self._message("started", self._at)]
        suspended = [self._message("suspended", self._host.clock.now())]
        return started + (suspended if self._suspended_since is not None else [])

    def _message(self, what: str, at: float) -> Message:
        return {"tell": what, "at": at, "job": self.key[0], "attempt": self.key[1]}

    def _note_processes(self) -> None:
        self._host.records.note(self.key, pids=[(part.pid, part.started) for part in self._parts])

    def _running(self) -> list[Part]:
        return [part for part in self._parts if part.runs]

    def _signal(self, signal_: int) -> None:
        for part in self._parts:
            part.signal(signal_)

    def _mark(self, index: int, count: int) -> tuple[bytes, ...]:
        """By which a process that has left its tree is found in /proc; other homes have the same ids."""
        home = os.path.dirname(self._host.logs)
        mark = [f"MUSTER_HOME={home}", f"MUSTER_JOB_ID={self.key[0]}", f"MUSTER_ATTEMPT={self.key[1]}"]
        return tuple(os.fsencode(m) for m in mark + [f"RANK={index}"] * (count > 1))

    def _name(self, index: int) -> str:
        return f"{self.key[0]}.{self.key[1]}.{index}"

    def _set(self, name: str, due: float, call: Callable[[], None]) -> None:
        """One timer of each name."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self._host.timers.at(due, call)
