"""Reading jobs' logs while they are being written.

Whoever owns the folder may put anything there: so only a regular file is read, and no link is followed. A log
that stayed empty is handed on to another job when its own has ended (see ``engines.local.logs``): so what was
read counts only if the file still has the name under which it was opened. Logs that are read
together come under headings, as ``tail`` writes them.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from muster.model.job import JobId
from muster.server.errors import NotFound

_CHUNK_BYTES = 1 << 16
_LOOK_SECONDS = 0.05  # how often a log that is followed is looked at
_LOOK_EACH_SECONDS = 0.0001  # and of many: so long for each, that looking at them stays cheap
_AT_A_TIME = 200  # logs that are looked at before others have their turn


class Source(NamedTuple):
    """Whose log, where it is (None: it has not started yet), and whether it is over."""

    job: JobId
    path: Callable[[], Path | None]
    is_over: Callable[[], bool]


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

    def begin_of_last(self, most_bytes: int) -> int:
        return max(0, os.fstat(self._descriptor).st_size - most_bytes)

    def tail(self, most_bytes: int) -> bytes:
        return os.pread(self._descriptor, most_bytes, self.begin_of_last(most_bytes))

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


def offset_of_last(path: Path | None, most_bytes: int) -> int:
    """Where the last bytes of a log begin; 0: it has no more than these, or is not there yet."""
    log = None if path is None else _opened(path)
    if log is None:
        return 0
    try:
        return log.begin_of_last(most_bytes)
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


async def followed(source: Source, offset: int) -> AsyncIterator[bytes]:
    """What is there and what comes, until the job has ended. Another attempt has a log of its own."""
    log: Log | None = None
    try:
        while True:
            over = source.is_over()  # before looking: what was written until then will be seen
            now = source.path()
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


# --- Several together -------------------------------------------------------------------------------


async def lines_together(sources: Sequence[Source]) -> AsyncIterator[bytes]:
    """What is in each now, one after the other."""
    first = True
    for source in sources:
        path, begun = source.path(), False
        if path is None:
            continue
        async for chunk in lines_of(path, 0):
            if not begun:
                yield _heading(source.job, first=first)
                first, begun = False, True
            yield chunk


async def followed_together(sources: Sequence[Source]) -> AsyncIterator[bytes]:
    """What is in each and what comes, until all have ended; a heading wherever another one speaks."""
    speaks: JobId | None = None
    left = [_Followed(source) for source in sources]
    while left:
        going_on: list[_Followed] = []
        for number, one in enumerate(left):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
            if not one.source.is_over():  # before looking, as above
                going_on.append(one)
            for chunk in one.news():
                if speaks != one.source.job:
                    yield _heading(one.source.job, first=speaks is None)
                    speaks = one.source.job
                yield chunk
        left = going_on
        await asyncio.sleep(max(_LOOK_SECONDS, _LOOK_EACH_SECONDS * len(left)))


class _Followed:
    """How far a log has been read. It is open only while it is read: there may be thousands."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._path: Path | None = None
        self._offset = 0

    def news(self) -> Iterator[bytes]:
        path = self.source.path()
        log = None if path is None else _opened(path)
        if log is None:
            return
        if path != self._path:
            self._path, self._offset = path, 0
        try:
            while chunk := log.read(self._offset):
                self._offset += len(chunk)
                yield chunk
        finally:
            log.close()


def _heading(job: JobId, *, first: bool) -> bytes:
    return f"{'' if first else chr(10)}==> {job} <==\n".encode()
