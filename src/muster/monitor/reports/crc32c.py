"""CRC-32C, the checksum of record files, of as many bytes as one likes.

The sum is linear: what a byte adds to it depends on the byte and on how many follow, and on nothing else. So
a block is one look-up for each byte, in a table with a row for each distance from the block's end, and the
look-ups are combined at once, by numpy. What came before goes into a block's first four bytes. Byte by byte,
in plain Python, a megabyte takes fifteen times as long.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, with the bits in the order in which they are sent
_BLOCK = 1024  # the table then has a megabyte
_SHORT = 32  # up to here plain Python is as quick
_ALL = 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    state, at = _ALL, 0
    if len(data) > _SHORT:
        while len(data) - at >= 4:
            state = _block(state, data[at : at + _BLOCK])
            at += _BLOCK
    return _plain(state, data[at:]) ^ _ALL


def masked(data: bytes) -> int:
    """As it stands in record files: turned and shifted, since a sum over data that has sums in it is weak."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ALL


def _block(state: int, block: bytes) -> int:
    entering = int.from_bytes(block[:4], "little") ^ state
    values = np.frombuffer(entering.to_bytes(4, "little") + block[4:], np.uint8)
    return int(np.bitwise_xor.reduce(_rows().take(_begins()[-len(block) :] + values)))


def _plain(state: int, data: bytes) -> int:
    table = _table()
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state


@cache
def _table() -> tuple[int, ...]:
    return tuple(map(_of_byte, range(256)))


def _of_byte(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


@cache
def _rows() -> NDArray[np.uint32]:
    """One after the other; the last is of the block's last byte."""
    last = np.array(_table(), np.uint32)
    rows = np.empty((_BLOCK, 256), np.uint32)
    rows[-1] = last
    for i in range(_BLOCK - 2, -1, -1):
        rows[i] = rows[i + 1] >> 8 ^ last[rows[i + 1] & 0xFF]
    return rows.ravel()


@cache
def _begins() -> NDArray[np.intp]:
    return np.arange(_BLOCK) * 256
