"""Scratch: a folder for what a job writes and does not keep, and a watchdog that counts what is in it.

A file system rarely limits how large a folder may grow, so somebody has to look. To count means to walk
through it, and it may hold a million files: so it is done in slices of some milliseconds, and the longer it
took the later it is done again. What lies in it belongs to the job's user, who may put anything there: no
link is followed, and whatever can't be looked at counts nothing.

It goes with the attempt: what a job holds of the disk is free only when that is done. A program removes it,
and nobody waits for it but this attempt.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator

from muster.engines.local import processes
from muster.engines.local.logs import Folder

_SLICE_SECONDS = 0.005
_LEAST_SECONDS = 1.0  # between the end of a count and the next
_TIMES_AS_LONG = 20  # as the count took
_BLOCK_BYTES = 512  # of st_blocks, whatever those of the disk are


def name(attempt: int, part: int, parts: int) -> str:
    """In the folder of the job."""
    return f"{attempt}.{part}.scratch" if parts > 1 else f"{attempt}.scratch"


class Scratches:
    """Those of an attempt: where each is, and how much it may hold."""

    def __init__(self, kept: Iterable[tuple[str, int]]) -> None:
        self._each = [_Scratch(path, most_bytes) for path, most_bytes in kept]

    def make(self, folder: Folder) -> None:
        for scratch in self._each:
            folder.make(os.path.basename(scratch.path))

    def beyond(self) -> str | None:
        """Count on, for a moment. Why the job must leave, if there is more than it asked for."""
        for scratch in self._each:
            if scratch.is_full():
                return f"there is more in its scratch folder than the {scratch.most_bytes} bytes it asked for"
        return None

    @property
    def is_counting(self) -> bool:
        return any(scratch.is_counting for scratch in self._each)

    def is_gone(self) -> bool:
        """Have them removed; whether that is done. What can't be removed stays."""
        left = [scratch for scratch in self._each if not scratch.is_gone()]
        return not left


class _Scratch:
    """The folder of one part."""

    def __init__(self, path: str, most_bytes: int) -> None:
        self.path, self.most_bytes = path, most_bytes
        self._sizes: Iterator[int] | None = None  # of what is left to be counted
        self._counted_bytes = 0
        self._cost_seconds = 0.0
        self._next_at = 0.0
        self._remover = 0

    @property
    def is_counting(self) -> bool:
        return self._sizes is not None

    def is_full(self) -> bool:
        begun = time.monotonic()
        if self._sizes is None:
            if begun < self._next_at:
                return False
            self._sizes, self._counted_bytes, self._cost_seconds = _sizes(self.path), 0, 0.0
        for size in self._sizes:
            self._counted_bytes += size
            if self._counted_bytes > self.most_bytes:
                return True
            if time.monotonic() > begun + _SLICE_SECONDS:
                self._cost_seconds += time.monotonic() - begun
                return False
        self._cost_seconds += time.monotonic() - begun
        self._sizes = None
        self._next_at = time.monotonic() + max(_LEAST_SECONDS, _TIMES_AS_LONG * self._cost_seconds)
        return False

    def is_gone(self) -> bool:
        if self._remover:
            process = processes.look(self._remover)
            return process is None or process.state == "Z"
        if os.path.lexists(self.path):
            with contextlib.suppress(OSError):
                self._remover = _remove(self.path)
        return not self._remover


def _sizes(path: str) -> Iterator[int]:
    """Of all that is below, and of the folders themselves. A file with several names counts once."""
    several: set[int] = set()
    folders = [path]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif status.st_nlink > 1:
                        if status.st_ino in several:
                            continue
                        several.add(status.st_ino)
                    yield status.st_blocks * _BLOCK_BYTES


def _remove(path: str) -> int:
    null = ((os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in (0, 1, 2))
    command = ["rm", "--recursive", "--force", "--one-file-system", "--", path]
    return os.posix_spawnp("rm", command, {"PATH": os.defpath}, file_actions=tuple(null))
