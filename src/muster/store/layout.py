"""What an image of a fold holds, and how it is sealed.

Most waiting jobs differ in a few words only: they are kept as rows over a few templates. Before the content
stand a fingerprint of its layout and a checksum: an image that another version wrote, or that was damaged, is
known as such without being read. The events are all still there to fold instead.
"""

import functools
import struct
import zlib

import msgspec

from muster.model.errors import MusterError
from muster.model.events import Found, Outcome
from muster.model.history import PastRun
from muster.model.job import ArrayPlace, Dependency, Gang, Job, JobId, Shape
from muster.model.lives import Ended, Mates
from muster.model.node import Node
from muster.model.run import Run
from muster.model.snapshot import Account, Running
from muster.model.tenancy import Team
from muster.store.mailbox import Mailboxes
from muster.store.records import ArrayRecord
from muster.store.stewardship import Stewardship

_HEAD = struct.Struct(">6sII")
_MAGIC = b"muster"


class BrokenImage(MusterError):
    """An image was damaged, or another version wrote it."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A waiting job: in what it differs from its template, and what it has had so far."""

    id: JobId
    template: int
    run: int | None
    submitted_at: float
    name: str
    begin_at: float | None
    after: tuple[Dependency, ...]
    array: ArrayPlace | None
    params: tuple[tuple[str, str], ...]
    attempt: int
    queued_at: float
    attained_seconds: float
    done_seconds: float
    vacated_at: float | None
    mended: str | None
    held_because: str


Runs = tuple[tuple[int, tuple[str, ...]], ...]  # which shell, and the arguments
Live = tuple[Row | JobId, ...]  # a bare id is that of a running job


class KeptHistory(msgspec.Struct, frozen=True):
    runs: dict[str, tuple[PastRun, ...]]
    lately: tuple[float, ...]
    typical_seconds: float | None


class KeptLives(msgspec.Struct, frozen=True):
    deaths: tuple[tuple[Gang, tuple[float, ...]], ...]
    exposure: tuple[tuple[Gang, tuple[float, ...]], ...]
    mates: dict[JobId, Mates]
    ended: dict[JobId, Ended]
    latest: tuple[tuple[str, Gang, list[tuple[float, JobId]]], ...]


class KeptMix(msgspec.Struct, frozen=True):
    counts: tuple[tuple[Shape, int], ...]
    seen: int
    show_next: int
    classes: tuple[tuple[Shape, int], ...]
    version: int


class Image(msgspec.Struct, frozen=True):
    """Everything about a fold that does not follow from the rest."""

    now: float
    generation: int
    submissions: int
    templates: tuple[Job, ...]
    shells: tuple[Run, ...]  # runs without their arguments
    runs: tuple[memoryview, ...]  # these two by the thousand, so that they never are in memory twice
    live: tuple[memoryview, ...]  # in the order of arrival
    lanes: tuple[JobId, ...]  # their heads, in the lanes' order
    ineligible: tuple[JobId, ...]
    running: tuple[tuple[Running, int | None], ...]  # likewise
    ended: tuple[tuple[JobId, Outcome], ...]
    ended_ever: tuple[tuple[str, Outcome, int], ...]
    nodes: tuple[Node, ...]
    teams: tuple[Team, ...]
    accounts: tuple[tuple[str, str | None, Account], ...]
    active: tuple[tuple[str, str | None, int], ...]
    unmet: dict[JobId, tuple[JobId, ...]]
    doomed: dict[JobId, Outcome]
    arrays: tuple[tuple[ArrayRecord, int | None], ...]  # each with the number of its run
    promised: dict[JobId, tuple[bool, tuple[str, ...]]]
    evicting: dict[JobId, tuple[JobId, ...]]
    findings: dict[JobId, tuple[Found, ...]]
    history: KeptHistory
    lives: KeptLives
    mix: KeptMix
    stewardship: Stewardship
    mailboxes: Mailboxes


encode = msgspec.msgpack.Encoder().encode
decode_runs = msgspec.msgpack.Decoder(Runs).decode
decode_live = msgspec.msgpack.Decoder(Live).decode
_decode_image = msgspec.msgpack.Decoder(Image).decode


def sealed(image: Image) -> bytes:
    body = encode(image)
    return _HEAD.pack(_MAGIC, _layout(), zlib.crc32(body)) + body


def is_usable(image: bytes) -> bool:
    """Whether it is whole, and of a layout that this version reads."""
    if len(image) < _HEAD.size:
        return False
    checksum = zlib.crc32(memoryview(image)[_HEAD.size :])
    return _HEAD.unpack_from(image) == (_MAGIC, _layout(), checksum)


def unsealed(image: bytes) -> Image:
    if not is_usable(image):
        raise BrokenImage("an image of the state is damaged, or another version of Muster wrote it")
    return _decode_image(memoryview(image)[_HEAD.size :])


@functools.cache
def _layout() -> int:
    """A fingerprint of every type in an image: it changes when one of them does."""
    _, schemas = msgspec.json.schema_components((Image, Runs, Live))
    return zlib.crc32(msgspec.json.encode(schemas, order="deterministic"))
