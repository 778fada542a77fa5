"""What the threads of the engine share: the attempts, and the facts that nobody has fetched yet.

Whoever touches either holds ``lock``, and never while waiting for Slurm. What a server that is started again
must know is in a file: each attempt's number in Slurm, and what it was told. The rest Slurm knows.
"""

import contextlib
import os
import pwd
import secrets
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from muster.engines.base import Key
from muster.engines.local.clock import Clock
from muster.engines.local.records import Records
from muster.engines.slurm.life import Life, Told
from muster.home import Home
from muster.model.errors import MusterError
from muster.model.events import Event, Seated, Started
from muster.model.job import Job, JobId

_FIRST = (Seated, Started)  # of two facts of one second
_AT_ONCE = 500  # facts in one answer: whoever asks something meanwhile waits no longer than for these


class Books:
    def __init__(self, home: Home, find: Callable[[JobId], Job], since: float) -> None:
        folder = home.path / "slurm"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.home_id = _kept_id(folder / "id")
        self.lock_file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.lock = threading.RLock()
        self.clock = Clock(str(home.clock), since)
        self.lives: dict[Key, Life] = {}
        self.newest: dict[JobId, Life] = {}  # of each job
        self._records = Records(str(folder), self.home_id)
        self._find, self._told_at = find, since
        self._users: dict[Key, str] = {}  # of attempts that are over, as long as the queue lists them
        self._facts: deque[Event] = deque()
        self.news = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_open = True
        self._recall()

    # --- Attempts ---

    def find(self, job_id: JobId) -> Job | None:
        """None: nobody knows it, or it is over."""
        try:
            return self._find(job_id)
        except (KeyError, MusterError):
            return None

    def _recall(self) -> None:
        for key, entry in self._records.entries.items():
            life = self._new(Life(key, self.find(key[0]), entry["user"]))
            life.id, life.since, life.limit_seconds = entry.get("id"), entry["since"], entry["limit"]
            if entry.get("told") is not None:
                life.told = Told(*entry["told"])

    def enter(self, key: Key, job: Job | None, user: str) -> Life:
        """An attempt that is to be handed over: written down first, so that a crash leaves it to look for."""
        life = self._new(Life(key, job, user))
        life.since = self.clock.wall()
        life.limit_seconds = None if job is None else job.time_limit_seconds
        self._records.note(key, user=user, since=life.since, limit=life.limit_seconds)
        return life

    def _new(self, life: Life) -> Life:
        self.lives[life.key] = self.newest[life.key[0]] = life
        return life

    def has_limit(self, life: Life, seconds: float | None) -> None:
        life.limit_seconds = seconds
        self._records.note(life.key, limit=seconds)

    def has_id(self, life: Life, number: int) -> None:
        life.id = number
        self._records.note(life.key, id=number)

    def is_told(self, life: Life, told: Told) -> None:
        life.told, life.ended_wall = told, None
        life.has_asked = life.has_asked and told.ask_at > self.clock.wall()
        self._records.note(life.key, told=told)

    def drop(self, keys: Iterable[Key]) -> None:
        known = [life for key in keys if (life := self.lives.pop(key, None)) is not None]
        for life in known:
            self._users[life.key] = life.user
            if self.newest.get(life.key[0]) is life:
                del self.newest[life.key[0]]
        self._records.drop([life.key for life in known])

    def user_of(self, key: Key) -> str | None:
        """As whom it was handed over; None: it was not, as far as we know."""
        life = self.lives.get(key)
        return self._users.get(key) if life is None else life.user

    def forget_users(self, listed: Collection[Key]) -> None:
        """Who is over and not listed any more will not be asked for."""
        self._users = {key: user for key, user in self._users.items() if key in listed}

    # --- Facts ---

    def at(self, wall: float | None) -> float:
        """A time of Slurm's in ours; not known, it is now. Never of the future, whatever clocks do."""
        now = self.clock.now()
        return now if wall is None else min(now, wall - self.clock.wall_ahead_seconds())

    def tell(self, facts: Iterable[Event]) -> None:
        """In order of time; what was told before is never overtaken."""
        fresh = sorted(facts, key=lambda fact: (fact.at, not isinstance(fact, _FIRST)))
        for fact in fresh:
            self._told_at = max(self._told_at, fact.at)
            self._facts.append(_at(fact, self._told_at))
        self._ring()

    def pass_on(self, facts: Sequence[Event]) -> None:
        """Of others: they have their own times, and what we are told late happened all the same."""
        with self.lock:
            self._facts.extend(facts)
            self._ring()

    def _ring(self) -> None:
        if self._facts and self._is_open:
            os.eventfd_write(self.news, 1)

    def fetched(self) -> list[Event]:
        with self.lock:
            facts = [self._facts.popleft() for _ in range(min(_AT_ONCE, len(self._facts)))]
            if not self._facts:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self.news)
            return facts

    def close(self) -> None:
        with self.lock:
            self._is_open = False  # a number may be another file's afterwards
            self._records.close()
            os.close(self.lock_file)
            os.close(self.news)


def _at(fact: Event, at: float) -> Event:
    return fact if fact.at == at else msgspec.structs.replace(fact, at=at)


def _kept_id(path: Path) -> str:
    """By which this home's jobs are told from those of others, for as long as there is a home."""
    with contextlib.suppress(FileExistsError), open(path, "x", encoding="ascii") as file:
        file.write(secrets.token_hex(4))
    return path.read_text(encoding="ascii").strip()


def own_user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
