"""Reading a job's log while it is being written.

Whoever owns the folder may put anything there: so only a regular file is read, and no link is followed. A log
that stayed empty is handed on to another job when its own has ended (see ``engines.local.logs``): so what was
read counts only if the file still has the name under which it was opened.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from muster.server.errors import NotFound

_CHUNK_BYTES = 1 << 16
_LOOK_SECONDS = 0.05  # how often a log that is followed is looked at


class Log:
    """A log, opened. Refuses links, devices, and anything that is not a plain file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError:
            raise NotFound(f"{path} is not a log that Muster wrote") from None
        self._status = os.fstat(self._descriptor)
        if not stat.S_ISREG(self._status.st_mode):
            self.close()
            raise NotFound(f"{path} is not a log that Muster wrote")

    def read(self, offset: int) -> bytes:
        chunk = os.pread(self._descriptor, _CHUNK_BYTES, offset)
        return chunk if self._is_ours() else b""

    def tail(self, most_bytes: int) -> bytes:
        end = os.fstat(self._descriptor).st_size
        return os.pread(self._descriptor, most_bytes, max(0, end - most_bytes))

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(self._status, os.stat(self.path, follow_symlinks=False))
        except OSError:
            return False

    def close(self) -> None:
        os.close(self._descriptor)


def tail_of(path: Path, most_bytes: int) -> bytes:
    """The end of a log; nothing where there is none, or what is there is no log."""
    try:
        log = _opened(path)
    except NotFound:
        return b""
    if log is None:
        return b""
    try:
        return log.tail(most_bytes)
    finally:
        log.close()


def _opened(path: Path) -> Log | None:
    """Where there is no file, nothing was written."""
    try:
        return Log(path)
    except FileNotFoundError:
        return None


async def lines_of(path: Path, offset: int) -> AsyncIterator[bytes]:
    """What is there now."""
    log = _opened(path)
    if log is None:
        return
    try:
        while chunk := log.read(offset):
            offset += len(chunk)
            yield chunk
            await asyncio.sleep(0)
    finally:
        log.close()


async def followed(
    log_of: Callable[[], Path | None], is_over: Callable[[], bool], offset: int
) -> AsyncIterator[bytes]:
    """What is there and what comes, until the job has ended. Another attempt has a log of its own."""
    log: Log | None = None
    try:
        while True:
            over = is_over()  # before looking: what was written until then will be seen
            now = log_of()
            if log is not None and log.path != now:
                log.close()
                log, offset = None, 0
            if log is None and now is not None:
                log = _opened(now)
            while log is not None and (chunk := log.read(offset)):
                offset += len(chunk)
                yield chunk
            if over:
                return
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        if log is not None:
            log.close()
