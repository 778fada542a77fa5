"""Signs of progress: reports, a log that grows, checkpoints that are written.

Reports come as facts. The others are looked for in the files of those that run, with each look of the meters,
in their thread; what was seen is handed out as values.
"""

import contextlib
import os
import threading
from collections.abc import Callable

from muster.engines.local.logs import log_name
from muster.home import Home
from muster.model.charter import Progress
from muster.model.job import JobId
from muster.monitor.meters.gather import Attended
from muster.steward.watch import Sign

_MOST_FILES = 1000  # of a checkpoint that are looked at

Key = tuple[JobId, int]


class Signs:
    """What each attempt has shown, by the clock that nobody sets. Two threads come here."""

    def __init__(self, home: Home, now: Callable[[], float]) -> None:
        self._logs, self._now = str(home.logs), now
        self._lock = threading.Lock()
        self._signs: dict[Key, dict[Progress, Sign]] = {}
        self._seen: dict[tuple[Key, Progress], float] = {}  # a size, or a time: what it was at the last look

    def of(self, key: Key) -> tuple[Sign, ...]:
        with self._lock:
            return tuple(self._signs.get(key, {}).values())

    def over(self, key: Key) -> None:
        with self._lock:
            self._signs.pop(key, None)
            for kind in ("log", "checkpoint"):
                self._seen.pop((key, kind), None)

    def reported(self, job: JobId, attempt: int, at: float) -> None:
        self._saw((job, attempt), "report", at)

    def look(self, attended: tuple[Attended, ...]) -> None:
        """Look at the files of those that run."""
        for one in attended:
            key, count = (one.job, one.attempt), len(one.parts)
            names = [log_name(*key, index, count) for index in range(count)]
            self._compare(key, "log", float(sum(_size(f"{self._logs}/{name}") for name in names)))
            self._compare(
                key, "checkpoint", _newest(f"{self._logs}/{one.checkpoint_of or one.job}/checkpoint")
            )

    def _compare(self, key: Key, kind: Progress, found: float) -> None:
        """Any change is a sign: a file that was written after the clock was set back looks older."""
        before = self._seen.get((key, kind))
        self._seen[key, kind] = found
        if before is None:
            self._watch(key, kind)
        elif found != before:
            self._saw(key, kind, self._now())

    def _watch(self, key: Key, kind: Progress) -> None:
        with self._lock:
            signs = self._signs.setdefault(key, {})
            signs.setdefault(kind, Sign(kind, self._now()))
            signs.setdefault("report", Sign("report", self._now()))

    def _saw(self, key: Key, kind: Progress, at: float) -> None:
        with self._lock:
            signs = self._signs.setdefault(key, {})
            signs[kind] = signs.get(kind, Sign(kind, at)).again(at)


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path, follow_symlinks=False).st_size
    return 0


def _newest(folder: str) -> float:
    """When something in it was last written."""
    newest = 0.0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        newest = os.stat(folder).st_mtime
        for _, entry in zip(range(_MOST_FILES), entries, strict=False):
            with contextlib.suppress(OSError):
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    return newest
