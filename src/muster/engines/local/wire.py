"""JSON lines over a Unix socket, between the engine and its keeper.

Nobody waits for the other: what can't be sent yet stays in a buffer, what has come is given as whole
messages, and many go in one write.
"""

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

Message = dict[str, Any]

MOST_ENVIRONMENTS = 256  # that the keeper knows; with one more, both ends forget all before it

_CHUNK_BYTES = 1 << 18
_LONGEST_PATH = 100  # an address has 108 bytes for it


_encode_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode  # made once: not cheap


def encode(message: Message) -> bytes:
    return _encode_text(message).encode()


def line(message: Message) -> bytes:
    return encode(message) + b"\n"


class Channel:
    """One end of a connection. Once ``closed``, the other end is gone.

    Who has a quicker way to write and read JSON than the standard library may bring it.
    """

    def __init__(
        self,
        connection: socket.socket,
        encode: Callable[[Message], bytes] = encode,
        decode: Callable[[bytearray], Any] = json.loads,
    ) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._encode, self._decode = encode, decode
        self._out = bytearray()
        self._in = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        return bool(self._out)

    def send(self, message: Message) -> None:
        """Put into the buffer; ``flush`` sends it."""
        self._out += self._encode(message)
        self._out += b"\n"

    def flush(self) -> None:
        """Send what can be sent without waiting."""
        try:
            while self._out and not self.closed:
                sent = self._socket.send(self._out)
                del self._out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True

    def receive(self) -> list[Message]:
        """The whole messages that have come."""
        try:
            while data := self._socket.recv(_CHUNK_BYTES):
                self._in += data
            self.closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        *lines, rest = self._in.split(b"\n")
        self._in = rest
        return [self._decode(line) for line in lines]

    def close(self) -> None:
        self.closed = True
        self._socket.close()


def listen(path: str) -> socket.socket:
    """A socket at this path, for its owner only. One that is there is of somebody who is gone."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with _address(path) as address:
            server.bind(address)
    finally:
        os.umask(before)
    server.listen(16)
    server.setblocking(False)
    return server


def connect(path: str) -> socket.socket:
    """To whoever listens there; ``OSError`` if nobody does."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _address(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _address(path: str) -> Iterator[str]:
    """The path, by way of its opened folder if it is too long for an address."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
