"""The logs of a job; and its folder: its script, what it is told when it must end, its checkpoints.

The folder is made when it is needed. It belongs to the job's user, who may put anything there. So all is done
by way of the opened folder, never through a link, and a file is always made new: whatever has its name
already is removed, not written to. Logs lie beside the folders, one file for each part of an attempt.

The log is a file, not a pipe: it costs nothing while it is written, and a job writes on when the keeper is
gone. That it stays within its limit is seen to from outside. It is opened to append, so the keeper, which
holds it open, can cut it back while the job writes: what came up to the limit stays, then a line says that
the rest is dropped, and it is. A log is looked at once a second, and twenty times as often while it grows
so fast that it would be past its limit before.

To make a file is the dearest part of starting a short job. So a log that stayed empty is handed on to the
next job of its line: no file is an empty log.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from muster.engines.local.spawn import CANT_EXECUTE, NotStarted, Person

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def is_safe(name: str) -> bool:
    """Whether a name can be a file's without being a path."""
    return _NAME.fullmatch(name) is not None


def log_name(job: str, attempt: int, part: int, parts: int) -> str:
    return f"{job}.{attempt}.{part}.log" if parts > 1 else f"{job}.{attempt}.log"


def full_notice(most_bytes: int) -> str:
    """The last line of a log that was cut back to its limit."""
    return f"\nmuster: the log is full; beyond {most_bytes} bytes all is dropped\n"


class Folder:
    """What belongs to one job, below the folder of all logs."""

    def __init__(self, logs: str, job: str, owner: Person | None) -> None:
        self.path = f"{logs}/{job}"
        self._owner = owner

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Make the folder, or find it, and open it."""
        try:
            os.mkdir(self.path, 0o700)
            if self._owner is not None:
                os.chown(self.path, self._owner.uid, self._owner.gid, follow_symlinks=False)
        except FileExistsError:
            pass
        descriptor = os.open(self.path, _FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def write(self, name: str, text: str, mode: int) -> None:
        with self.opened() as folder:
            descriptor = _created(name, _NEW, mode, self._owner, folder)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def make(self, name: str) -> None:
        """A folder in it; one that is there stays as it is."""
        with self.opened() as folder, contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            if self._owner is not None:
                os.chown(name, self._owner.uid, self._owner.gid, dir_fd=folder, follow_symlinks=False)

    def tell_stop(self, attempt: int, reason: str, deadline: float) -> None:
        """What MUSTER_STOP_FILE names. A job that reads it finds it whole, or not there."""
        text = json.dumps({"reason": reason, "deadline": deadline})
        with contextlib.suppress(OSError, NotStarted):
            self.write(f"{attempt}.stop.new", text, 0o600)
            with self.opened() as folder:
                os.rename(f"{attempt}.stop.new", f"{attempt}.stop", src_dir_fd=folder, dst_dir_fd=folder)


class Log(NamedTuple):
    """A log that is being written, held open."""

    descriptor: int
    path: str
    most_bytes: int

    @property
    def identity(self) -> tuple[int, int]:
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def handed_on(self, path: str, most_bytes: int) -> "Log":
        """As the log of another attempt of the same user. This one has stayed empty, and is no more."""
        os.rename(self.path, path)
        return Log(self.descriptor, path, most_bytes)

    def say(self, sentence: str) -> None:
        """A line from Muster. A full disk is no reason to fail."""
        with contextlib.suppress(OSError):
            os.write(self.descriptor, f"muster: {sentence}\n".encode())

    def bound(self) -> bool:
        """Cut it back if it is past its limit; whether it was."""
        notice = full_notice(self.most_bytes).encode()
        if self.size() <= self.most_bytes + len(notice):
            return False
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, self.most_bytes)
            os.write(self.descriptor, notice)
        return True


def new(path: str, most_bytes: int, owner: Person | None) -> Log:
    """A log of this user's."""
    return Log(_created(path, _NEW | os.O_APPEND, 0o600, owner, None), path, most_bytes)


def _created(name: str, flags: int, mode: int, owner: Person | None, folder: int | None) -> int:
    """A new file, opened."""
    try:
        descriptor = os.open(name, flags, mode, dir_fd=folder)
    except FileExistsError:
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            raise NotStarted(CANT_EXECUTE, f"there is a folder where {name} should be") from None
        descriptor = os.open(name, flags, mode, dir_fd=folder)
    if owner is not None:
        os.fchown(descriptor, owner.uid, owner.gid)
    return descriptor


def reopen(path: str, most_bytes: int, identity: tuple[int, int]) -> Log | None:
    """The log of a process that was started by another keeper, if it is the one that it made."""
    try:
        log = Log(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK), path, most_bytes)
    except OSError:
        return None
    if log.identity == identity:
        return log
    os.close(log.descriptor)
    return None


def cut(path: str, most_bytes: int) -> None:
    """Cut back the log of who is over, if there is one and it is past its limit."""
    with contextlib.suppress(OSError):
        log = Log(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK), path, most_bytes)
        try:
            log.bound()
        finally:
            os.close(log.descriptor)
