"""Reports from TensorBoard's event files, in a folder into which the job writes them.

Files come while the job runs; of each is known how far it was read. In one folder there may be several runs,
as TensorBoard calls subfolders (``train`` and ``validation`` of Keras), with the same tags. Two curves under
one name would be a muddle, and a name that nobody foresees is of no use in a condition. So a tag is the name
of a value as it is, for the run from which it first came; for the others the run's name goes before it,
``validation/epoch_loss``.

A folder is often used again. What was written before the attempt began is not its own, and is passed over.
"""

import contextlib
import os
import posixpath
import time
from collections.abc import Iterator

import msgspec

from muster.model.job import JobId
from muster.monitor.reports.folder import Found, Walk, reading
from muster.monitor.reports.points import Point, reports_of, short
from muster.monitor.reports.report import Report
from muster.monitor.reports.tfevents import (
    FRAME_BYTES,
    MOST_RECORD_BYTES,
    Corrupt,
    Malformed,
    Scalar,
    data_of,
    frame_at,
    scalars,
)
from muster.monitor.reports.trouble import Trouble

_PREFIX = "events.out.tfevents."
_MOST_FILES, _MOST_TAGS = 64, 128  # that are followed: what is kept of them stays small
_POLL_BYTES, _POLL_SECONDS = 4 << 20, 0.25
_PIECE_BYTES = 2 * (MOST_RECORD_BYTES + FRAME_BYTES)
_SLACK_SECONDS = 0.1  # files and events are stamped with clocks that tick less often
_LEFT = -1  # in place of an offset: there is no point in reading on


class _Position(msgspec.Struct):
    """What is kept of paths and tags is a hash: enough to know them again, and short."""

    files: dict[int, int] = {}  # path → the offset up to which it was read
    runs: dict[int, int] = {}  # tag → the run whose value goes by the tag alone


class TensorBoard:
    """Of one attempt. ``uid``: whose files are read; ``since``: its begin, by the clock that nobody sets."""

    may_block = True  # the folder may lie on a file server
    least_seconds = 2.0

    def __init__(
        self, job: JobId, attempt: int, folder: str, position: bytes = b"", *, uid: int, since: float
    ) -> None:
        self._job, self._attempt = job, attempt
        self._folder, self._uid, self._since = folder, uid, since
        self._at = _understood(position)
        self._behind = ""  # the file at which the last poll had to end
        self._trouble = Trouble(job, "TensorBoard")

    @property
    def position(self) -> bytes:
        return msgspec.msgpack.encode(self._at)

    @property
    def trouble(self) -> str | None:
        return self._trouble.now

    @property
    def is_behind(self) -> bool:
        return bool(self._behind)

    def poll(self, now: float, *, last: bool = False) -> list[Report]:  # noqa: ARG002 - half a record says nothing
        ahead_seconds = time.time() - now
        begins = self._since + ahead_seconds - _SLACK_SECONDS
        found = [(run, scalar) for run, scalar in self._news(begins) if scalar.wall >= begins]
        found.sort(key=lambda one: one[1].wall)
        points = [
            Point(
                min(max(scalar.wall - ahead_seconds, self._since), now),
                float(scalar.step),
                self._name(run, scalar.tag),
                scalar.value,
            )
            for run, scalar in found
        ]
        return reports_of(self._job, self._attempt, "tensorboard", points)

    def _name(self, run: str, tag: str) -> str:
        runs, key, own = self._at.runs, short(tag), short(run)
        if key not in runs and len(runs) < _MOST_TAGS:
            runs[key] = own
        return tag if runs.get(key, own) == own else f"{run or '.'}/{tag}"

    # --- Files ------------------------------------------------------------------------------------

    def _news(self, begins: float) -> list[tuple[str, Scalar]]:
        """What was added to the files, each with its run."""
        walk = Walk(self._folder, _PREFIX, lambda found: self._has_news(found, begins))
        try:
            missing = f"there is no folder {self._folder!r} that can be read"
            if not walk.is_there:
                self._trouble.say(missing)
            elif self._trouble.now == missing:
                self._trouble.now = None
            return self._read_all(walk.files)
        finally:
            walk.close()

    def _has_news(self, found: Found, begins: float) -> bool:
        """Whether it is to be read. A file that rests since before the attempt began is not of it."""
        if found.changed_at < begins:
            return False
        if found.uid != self._uid:
            self._trouble.say(f"{found.path!r} does not belong to the job's user, and is not read")
            return False
        key = short(found.path)
        if key not in self._at.files:
            if len(self._at.files) == _MOST_FILES:
                self._trouble.say(
                    f"{self._folder!r} has more than {_MOST_FILES} event files; the others are not read"
                )
                return False
            self._at.files[key] = 0
        return 0 <= self._at.files[key] < found.size

    def _read_all(self, files: list[Found]) -> list[tuple[str, Scalar]]:
        """As far as this poll may. The next begins with those that it did not come to."""
        budget = _Budget(_POLL_BYTES, time.monotonic() + _POLL_SECONDS)
        begin, self._behind = self._behind, ""
        found: list[tuple[str, Scalar]] = []
        for file in sorted(files, key=lambda file: file.path <= begin):
            run = posixpath.dirname(file.path)
            with reading(file) as descriptor:
                if descriptor is not None:
                    found += [(run, scalar) for scalar in self._read(file, descriptor, budget)]
            if budget.is_spent:
                self._behind = file.path
                break
        return found

    def _read(self, file: Found, descriptor: int, budget: "_Budget") -> Iterator[Scalar]:
        key = short(file.path)
        try:
            for record, end in _records(descriptor, self._at.files[key], file.size, budget):
                self._at.files[key] = end
                yield from self._scalars(record, file)
        except Corrupt as error:
            self._at.files[key] = _LEFT
            self._trouble.say(f"{file.path!r} is broken and not read on: {error}")
        except OSError as error:
            self._trouble.say(f"{file.path!r} can't be read: {error.strerror}")

    def _scalars(self, record: bytes, file: Found) -> list[Scalar]:
        try:
            return scalars(record)
        except Malformed as error:
            self._trouble.say(f"{file.path!r} has a record that is no event: {error}")
            return []


class _Budget:
    """What one poll may read, and for how long."""

    def __init__(self, left_bytes: int, until: float) -> None:
        self.left_bytes, self._until = left_bytes, until

    @property
    def is_spent(self) -> bool:
        return self.left_bytes <= 0 or time.monotonic() > self._until


def _records(descriptor: int, offset: int, size: int, budget: _Budget) -> Iterator[tuple[bytes, int]]:
    """The data of each record from there on, and where the next begins; one that is too long is empty."""
    while not budget.is_spent:
        piece = os.pread(descriptor, _PIECE_BYTES, offset)
        budget.left_bytes -= len(piece)
        at = 0
        while (frame := frame_at(piece, at)) is not None and offset + frame.end <= size:
            too_long = frame.end - at > MOST_RECORD_BYTES + FRAME_BYTES
            if not too_long and frame.end > len(piece):
                break
            yield b"" if too_long else data_of(piece, frame), offset + frame.end
            at = frame.end
            if at >= len(piece) or budget.is_spent:
                break
        if at == 0:
            return
        offset += at


def _understood(position: bytes) -> _Position:
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        return msgspec.msgpack.decode(position, type=_Position)
    return _Position()
