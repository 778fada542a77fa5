"""Reading a job's log while it is being written.

The folder belongs to the job's owner, who may put anything there: so only a regular file is read, and no
link is followed.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from muster.server.errors import NotFound

_CHUNK_BYTES = 1 << 16
_LOOK_SECONDS = 0.05  # how often a log that is followed is looked at


def open_log(path: Path) -> int:
    """A descriptor. Refuses links, devices, and anything that is not a plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound("there is no log yet: the job has not started") from None
    except OSError:
        raise NotFound(f"{path} is not a log that Muster wrote") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotFound(f"{path} is not a log that Muster wrote")
    return descriptor


async def lines_of(path: Path, offset: int) -> AsyncIterator[bytes]:
    """What is there now."""
    descriptor = open_log(path)
    try:
        while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
            offset += len(chunk)
            yield chunk
            await asyncio.sleep(0)
    finally:
        os.close(descriptor)


async def followed(
    log_of: Callable[[], Path | None], is_over: Callable[[], bool], offset: int
) -> AsyncIterator[bytes]:
    """What is there and what comes, until the job has ended. Another attempt has a log of its own."""
    path: Path | None = None
    descriptor = -1
    try:
        while True:
            over = is_over()  # before looking: what was written until then will be seen
            now = log_of()
            if now != path and now is not None and now.exists():
                if descriptor >= 0:
                    os.close(descriptor)
                    offset = 0
                path, descriptor = now, open_log(now)
            if descriptor >= 0:
                while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
                    offset += len(chunk)
                    yield chunk
            if over:
                return
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        if descriptor >= 0:
            os.close(descriptor)
