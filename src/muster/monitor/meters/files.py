"""Files of the kernel that are read again and again.

Opening one costs five times what reading it does, so they are kept open, as many as there is room for: the
server needs descriptors for other things, too. One of a process that is kept open never shows another that
was given the same number: it says that its own is gone.
"""

import errno
import os
import resource
from collections.abc import Iterator

_GONE = (errno.ENOENT, errno.ESRCH, errno.ENODEV)
_CHUNK_BYTES = 1 << 14  # the texts of one look fit in here; only lists are longer
SHORT_BYTES = os.sysconf("SC_PAGE_SIZE") // 2  # lists are given by the page: what is less is the end of one
_MOST_KEPT = 2048


class Gone(Exception):
    """The process or group that the file shows has ended."""


class Room:
    """How many descriptors may be kept."""

    def __init__(self, most: int | None = None) -> None:
        self.left = _share() if most is None else most


def _share() -> int:
    """A quarter of what this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_KEPT if soft == resource.RLIM_INFINITY else min(_MOST_KEPT, soft // 4)


class File:
    """A file that is kept open if there is room, and otherwise opened whenever it is read."""

    __slots__ = ("_descriptor", "_path", "_room")

    def __init__(self, path: str, room: Room) -> None:
        self._path, self._room = path, room
        self._descriptor = -1

    def read(self) -> bytes | None:
        """Its text; None if we can't have it. ``Gone`` if there is no such thing any more."""
        try:
            if self._descriptor >= 0:
                return os.pread(self._descriptor, _CHUNK_BYTES, 0)
            return self._first_read()
        except OSError as error:
            self.close()
            if error.errno in _GONE:
                raise Gone from None
            return None

    def _first_read(self) -> bytes:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        if self._room.left > 0:
            self._room.left -= 1
            self._descriptor = descriptor
            return os.pread(descriptor, _CHUNK_BYTES, 0)
        try:
            return os.read(descriptor, _CHUNK_BYTES)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._room.left += 1


def whole(path: str) -> bytes:
    """The whole of a file that may be long, read at one go and not kept. ``Gone`` as above."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return b"".join(_chunks(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _GONE:
            raise Gone from None
        raise


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        yield chunk
        if len(chunk) < SHORT_BYTES:
            return
