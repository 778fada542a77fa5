"""Reading what TensorBoard reads: files of records, each an ``Event`` in protobuf's wire format.

A record is its length, the length's checksum, the data, and the data's checksum. Whoever writes appends, so
the last record may be there in part only; nobody can tell that from one that will never be whole. A checksum
that is wrong is another matter: from there on nothing in the file can be trusted, not even where records
begin. A whole record that is no event says nothing about the next.

The files are the job's, and may hold anything. Only those few fields are entered that lead to a number, so
nesting is as deep as this code and no deeper; every length is held against what is there; and a record that
is longer than any with numbers in it (a graph, an image, audio) is stepped over unread.
"""

import math
import struct
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from muster.monitor.reports.crc32c import masked

MOST_RECORD_BYTES = 1 << 18  # a thousand scalars are a quarter of this
MOST_VALUES = 1024  # of one event
_MOST_TAG_BYTES = 512
_MOST_DIMENSIONS = 32
_MOST_FIELDS = 1 << 14  # of one message

_HEAD = struct.Struct("<QI")  # the length and its checksum
_TAIL = struct.Struct("<I")
FRAME_BYTES = _HEAD.size + _TAIL.size

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # kinds on the wire; what else there was is long out of use
_MOST_VARINT_BYTES = 10


class Corrupt(Exception):
    """What can't be a record, however long one waits."""


class Malformed(Exception):
    """What can't be an event."""


class Scalar(NamedTuple):
    """A number under a name. ``wall``: by the clock of whoever wrote it."""

    wall: float
    step: int
    tag: str
    value: float


# --- Records --------------------------------------------------------------------------------------


class Frame(NamedTuple):
    """Where a record's data begins, and where the next record does, from the piece's begin."""

    data: int
    end: int


def frame_at(piece: bytes, at: int) -> Frame | None:
    """The record that begins there; None if its length is not there yet."""
    if len(piece) - at < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack_from(piece, at)
    if masked(piece[at : at + 8]) != checksum:
        raise Corrupt("the checksum of a record's length is wrong")
    data = at + _HEAD.size
    return Frame(data, data + length + _TAIL.size)


def data_of(piece: bytes, frame: Frame) -> bytes:
    """The data of a record that is there as a whole."""
    data = piece[frame.data : frame.end - _TAIL.size]
    if masked(data) != _TAIL.unpack_from(piece, frame.end - _TAIL.size)[0]:
        raise Corrupt("the checksum of a record's data is wrong")
    return data


# --- The wire format ------------------------------------------------------------------------------


class Field(NamedTuple):
    """``data``: of a varint the number itself, of the others the bytes."""

    number: int
    kind: int
    data: bytes
    varint: int = 0


def fields(message: bytes) -> Iterator[Field]:
    """One after the other; what is nested in them stays bytes."""
    at = 0
    for _ in range(_MOST_FIELDS):
        if at == len(message):
            return
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield Field(number, kind, b"", value)
            continue
        size, at = _size(message, at, kind)
        if size > len(message) - at:
            raise Malformed("a field is longer than its message")
        yield Field(number, kind, message[at : at + size])
        at += size
    raise Malformed(f"a message has more than {_MOST_FIELDS} fields")


def _size(message: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind == _BYTES:
        return _varint(message, at)
    if kind not in (_FIXED64, _FIXED32):
        raise Malformed(f"there is no kind of field {kind}")
    return (8 if kind == _FIXED64 else 4), at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:  # as nearly all are
        return message[at], at + 1
    value = 0
    for i, byte in enumerate(message[at : at + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + i + 1
    raise Malformed("a number has no end")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


# --- Events ---------------------------------------------------------------------------------------


def scalars(event: bytes) -> list[Scalar]:
    """The numbers of an event: ``wall_time``, ``step`` and ``summary`` are its fields 1, 2 and 5."""
    wall, step, found = 0.0, 0, list[tuple[str, float]]()
    for field in fields(event):
        match field.number, field.kind:
            case 1, 1:
                [wall] = struct.unpack("<d", field.data)
            case 2, 0:
                step = _signed(field.varint)
            case 5, 2:
                found += _summary(field.data, MOST_VALUES - len(found))
    if not math.isfinite(wall):
        raise Malformed("an event is of no time")
    return [Scalar(wall, step, tag, value) for tag, value in found]


def _summary(message: bytes, most: int) -> list[tuple[str, float]]:
    """Field 1 is a value, and may come again."""
    values = (field.data for field in fields(message) if (field.number, field.kind) == (1, _BYTES))
    named = map(_named, islice(values, most))
    return [value for value in named if value is not None]


def _named(message: bytes) -> tuple[str, float] | None:
    """``tag``, ``simple_value`` and ``tensor`` are fields 1, 2 and 8; None if it is no number with a name."""
    tag, value = "", None
    for field in fields(message):
        match field.number, field.kind:
            case 1, 2 if len(field.data) <= _MOST_TAG_BYTES:
                tag = field.data.decode(errors="replace")
            case 2, 5:
                [value] = struct.unpack("<f", field.data)
            case 8, 2:
                value = _tensor(field.data)
    return (tag, value) if tag and value is not None else None


# Of each type of tensor: how its bytes are read, and in which field its values stand otherwise.
_CONTENT = {1: "<f", 2: "<d", 3: "<i", 4: "<B", 5: "<h", 6: "<b", 9: "<q", 10: "<?", 14: "<H", 17: "<H"}
_CONTENT |= {19: "<e", 22: "<I", 23: "<Q"}
_LISTED = {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 14: 13, 17: 7, 19: 13, 22: 16, 23: 17}
_FLOAT, _DOUBLE, _BFLOAT16, _HALF = 1, 2, 14, 19
_UNSIGNED = (4, 17, 22, 23)


def _tensor(message: bytes) -> float | None:
    """``dtype``, ``tensor_shape`` and ``tensor_content`` are fields 1, 2, 4; None: it is not one number."""
    dtype, shape, content = 0, b"", b""
    for field in fields(message):
        match field.number, field.kind:
            case 1, 0:
                dtype = field.varint
            case 2, 2:
                shape = field.data
            case 4, 2:
                content = field.data
    if dtype not in _CONTENT or not _is_one(shape):
        return None
    return _from_content(dtype, content) if content else _from_list(dtype, message)


def _is_one(shape: bytes) -> bool:
    """Whether a tensor has one element: no dimension (field 2), or only such as have the size 1."""
    dimensions = [field.data for field in fields(shape) if (field.number, field.kind) == (2, _BYTES)]
    if len(dimensions) > _MOST_DIMENSIONS:
        return False
    sizes = [[f.varint for f in fields(one) if (f.number, f.kind) == (1, _VARINT)] for one in dimensions]
    return all(size == [1] for size in sizes)


def _from_content(dtype: int, content: bytes) -> float | None:
    layout = _CONTENT[dtype]
    if len(content) != struct.calcsize(layout):
        return None
    [value] = struct.unpack(layout, content)
    return _bfloat16(value) if dtype == _BFLOAT16 else float(value)


def _from_list(dtype: int, message: bytes) -> float | None:
    """Packed or not, a list of one element. A zero may be left out, and is then an empty one."""
    listed = [field for field in fields(message) if field.number == _LISTED[dtype]]
    if not listed:
        return 0.0
    if len(listed) > 1:
        return None
    [field] = listed
    if dtype in (_FLOAT, _DOUBLE):
        return _from_content(dtype, field.data)
    raw, end = (field.varint, 0) if field.kind == _VARINT else _varint(field.data, 0)
    if end != len(field.data):
        return None
    return _whole(dtype, raw)


def _whole(dtype: int, raw: int) -> float:
    """Of a half or a bfloat16, the number is its bits."""
    if dtype == _BFLOAT16:
        return _bfloat16(raw & 0xFFFF)
    if dtype == _HALF:
        return float(struct.unpack("<e", struct.pack("<H", raw & 0xFFFF))[0])
    return float(raw if dtype in _UNSIGNED else _signed(raw))


def _bfloat16(bits: int) -> float:
    """The upper half of a float."""
    return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
