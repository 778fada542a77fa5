"""What a job prints, as it comes: reading on in a log that grows.

A log is open only while it is read, for there may be thousands; one that has not grown costs a look at its
size. A line counts when it is whole, so the position is always at the start of one. A carriage return ends a
line as well: progress bars print one after the other. A line that is too long to mean anything is passed over
whole.

Whoever owns the folder may put anything there, so only a plain file is read, and no link is followed. An
empty log is handed on to the next job of a line (see ``engines.local.logs``): what was read counts only if
the file still has the name under which it was opened. One that is shorter than what was read has been cut
back: to its limit by the keeper, where what follows is new; or by its owner, who begins again.
"""

import os
import stat

import msgspec

from muster.model.job import JobId
from muster.monitor.reports.lines import Understand
from muster.monitor.reports.report import Report

_MOST_BYTES = 1 << 20  # at a time
_MOST_REPORTS = 1000  # likewise
_DENSE_BYTES = (
    1 << 17
)  # at a time where nearly every line is a report: the rest would be read again and again
_MOST_LINE = 1 << 16
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

SOURCE = "output"


class _Place(msgspec.Struct, array_like=True):
    """How far a log has been read."""

    file: tuple[int, int] = (0, 0)  # its device and inode
    offset: int = 0
    in_long_line: bool = False


class Tail:
    """The log of an attempt, as a source of reports."""

    may_block = False
    least_seconds = 0.0

    def __init__(
        self,
        job: JobId,
        attempt: int,
        path: str,
        understand: Understand,
        *,
        log_bytes: int,
        position: bytes = b"",
    ) -> None:
        self._job, self._attempt, self._path, self._understand = job, attempt, path, understand
        self._log_bytes = log_bytes
        self._place = _placed(position)
        self._seen_bytes = -1  # its size when all of it had been read
        self._next_bytes = _MOST_BYTES
        self.is_behind = False

    @property
    def position(self) -> bytes:
        return msgspec.msgpack.encode(self._place)

    def is_quiet(self) -> bool:
        """Whether nothing was printed since the last look: what is asked ten thousand times as often."""
        try:
            return os.stat(self._path).st_size == self._seen_bytes
        except OSError:
            return True

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except OSError:  # it comes late, or is gone: an empty log is none
            self.is_behind = False
            return []
        if status.st_size == self._seen_bytes and not last:
            return []
        self._find_place(status)
        most = self._next_bytes
        chunk = self._read(status, most)
        if chunk is None:
            self.is_behind = False
            return []
        said = self._reports(chunk, now, last=last and len(chunk) < most)
        self.is_behind = self.is_behind or len(chunk) == most
        self._next_bytes = _DENSE_BYTES if len(said) == _MOST_REPORTS else _MOST_BYTES
        self._seen_bytes = -1 if self.is_behind else status.st_size
        return said

    def left_bytes(self) -> int:
        """How much there is to read."""
        try:
            return os.stat(self._path, follow_symlinks=False).st_size - self._place.offset
        except OSError:
            return 0

    def _find_place(self, status: os.stat_result) -> None:
        place, file = self._place, (status.st_dev, status.st_ino)
        if place.file != file:
            self._place = _Place(file)
        elif status.st_size < place.offset:
            offset = status.st_size if status.st_size >= self._log_bytes else 0
            self._place = _Place(file, offset)

    def _read(self, status: os.stat_result, most: int) -> bytes | None:
        """What follows; None: what is there is no log, or another one by now."""
        try:
            descriptor = os.open(self._path, _OPEN)
        except OSError:
            return None
        try:
            opened = os.fstat(descriptor)
            if not stat.S_ISREG(opened.st_mode) or not os.path.samestat(opened, status):
                return None
            chunk = os.pread(descriptor, most, self._place.offset)
            return chunk if os.path.samestat(opened, os.stat(self._path, follow_symlinks=False)) else None
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _reports(self, chunk: bytes, now: float, *, last: bool) -> list[Report]:
        """Those in the whole lines of it; the position goes with them."""
        lines, place = chunk.replace(b"\r", b"\n").split(b"\n"), self._place
        rest = lines.pop()
        found: list[Report] = []
        self.is_behind = False
        for line in lines:
            if len(found) == _MOST_REPORTS:
                self.is_behind = True
                return found
            place.offset += len(line) + 1
            self._add(line, found, now)
            place.in_long_line = False
        if last or len(rest) > _MOST_LINE:
            place.offset += len(rest)
            if last:
                self._add(rest, found, now)
            place.in_long_line = not last
        return found

    def _add(self, line: bytes, found: list[Report], now: float) -> None:
        if not line or self._place.in_long_line or len(line) > _MOST_LINE:
            return
        said = self._understand(line)
        if said is not None:
            found.append(Report(self._job, self._attempt, now, *said, SOURCE))


def _placed(position: bytes) -> _Place:
    """Where an earlier one stood; the beginning, if that can't be made out."""
    try:
        return msgspec.msgpack.decode(position, type=_Place) if position else _Place()
    except msgspec.MsgspecError:
        return _Place()
