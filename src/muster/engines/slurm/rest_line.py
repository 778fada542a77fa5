"""The line to slurmrestd: HTTP over a socket in the file system or TCP, each call with a time limit.

A question goes over a connection that is kept, and is asked once more on a new one if slurmrestd had hung up
meanwhile. An order goes over a connection of its own, once: whether one that broke off was heard is not
known. An answer has a most that it may be long, and one that breaks off is none.
"""

import http.client
import io
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec

from muster.engines.slurm.errors import BadAnswer, NotAuthenticated, TooSlow, Unreachable
from muster.engines.slurm.rest_token import Tokens, claims
from muster.model.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MOST_BYTES = 1 << 30  # of an answer: ten thousand jobs are a tenth of it
_CHUNK_BYTES = 1 << 20
_KEPT = 2  # connections that wait for the next question
_PORT = 6820
_PLACE = re.compile(r"(https?)://([\w.-]+|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?/?", re.ASCII)
_LONGEST_SOCKET = 107  # bytes of a path that Linux takes
_NO = (401, 403)
_WRONG = 400


class Place(msgspec.Struct, frozen=True):
    """Where slurmrestd listens."""

    scheme: str  # unix, http or https
    host: str  # or the path of the socket
    port: int = 0

    def __str__(self) -> str:
        return f"unix:{self.host}" if self.scheme == "unix" else f"{self.scheme}://{self.host}:{self.port}"


def parse_place(text: str) -> Place:
    """``unix:/run/slurmrestd.sock`` or ``http://host:6820``."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/") or "\0" in path or len(path.encode()) > _LONGEST_SOCKET:
            raise BadInput(f"{text!r} is no path of a socket; write it like unix:/run/slurmrestd.sock")
        return Place("unix", path)
    match = _PLACE.fullmatch(text)
    port = int(match[3] or _PORT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise BadInput(
            f"{text!r} is no place of slurmrestd; write unix:/run/slurmrestd.sock or http://127.0.0.1:6820"
        )
    return Place(match[1], match[2].strip("[]"), port)


class Answer(NamedTuple):
    status: int
    body: bytes


class Line:
    def __init__(
        self, place: Place, tokens: Tokens, *, limit_seconds: float, most_bytes: int = MOST_BYTES
    ) -> None:
        self.place, self.tokens = place, tokens
        self._limit_seconds, self._most_bytes = limit_seconds, most_bytes
        self._kept: list[_Connection] = []
        self._lock = threading.Lock()

    def ask(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        with self._lock:
            kept = self._kept.pop() if self._kept else None
        try:
            return self._said(kept or self._connected(), "GET", path, query, None, None)
        except _HungUp:
            if kept is None:
                raise self._hung_up() from None
        try:
            return self._said(self._connected(), "GET", path, query, None, None)
        except _HungUp:
            raise self._hung_up() from None

    def order(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        *,
        user: str | None = None,
    ) -> Answer:
        """``user``: in whose name, if the token's user may speak for others."""
        try:
            return self._said(self._connected(), method, path, query, body, user)
        except _HungUp:
            raise self._hung_up() from None

    def user_id(self) -> int | None:
        """As whom slurmrestd acts for who shows no token: itself. None: that can't be seen from here."""
        if self.place.scheme != "unix":
            return None
        connection = self._connected()
        try:
            return connection.peer_id() or None  # root may have opened it for another
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    # --- Within ---

    def _connected(self) -> "_Connection":
        connection = _Connection(self.place, self._limit_seconds)
        try:
            connection.connect()
        except TimeoutError:
            raise self._too_slow() from None
        except ssl.SSLError as wrong:
            raise Unreachable(
                f"no safe connection to slurmrestd at {self.place} ({wrong.reason}): have its certificate "
                "signed by who this machine trusts, or name them in SSL_CERT_FILE"
            ) from None
        except OSError as wrong:
            raise Unreachable(
                f"slurmrestd does not answer at {self.place} ({wrong.strerror}): start it there, or set rest "
                "in [slurm] to where it is"
            ) from None
        return connection

    def _said(
        self,
        connection: "_Connection",
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: object,
        user: str | None,
    ) -> Answer:
        """Told and answered; the connection is kept if it can be."""
        keeps = False
        connection.give(self._limit_seconds)
        try:
            whole = f"{path}?{urlencode(query)}" if query else path
            connection.request(method, whole, *self._written(body, user))
            response = connection.getresponse()
            found = self._read(response)
            keeps = method == "GET" and not response.will_close
        except TimeoutError:
            raise self._too_slow() from None
        except http.client.IncompleteRead:
            raise BadAnswer("slurmrestd", "it breaks off") from None
        except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
            raise _HungUp from None
        except (http.client.HTTPException, OSError) as wrong:
            raise BadAnswer("slurmrestd", f"it is no HTTP: {type(wrong).__name__}") from None
        finally:
            if not keeps or not self._kept_for_later(connection):
                connection.close()
        return self._checked(found)

    def _written(self, body: object, user: str | None) -> tuple[bytes | None, dict[str, str]]:
        headers = {"Accept": "application/json"}
        token = self.tokens.read()
        name = user or (claims(token).sun if token else None)
        if token:
            headers["X-SLURM-USER-TOKEN"] = token
        if name:
            headers["X-SLURM-USER-NAME"] = name
        if body is None:
            return None, headers
        return msgspec.json.encode(body), {**headers, "Content-Type": "application/json"}

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        expected = response.length
        if expected is not None and expected > self._most_bytes:
            raise BadAnswer("slurmrestd", f"it has {expected:,} bytes; {self._most_bytes:,} is the most")
        found = bytearray()
        while some := response.read(_CHUNK_BYTES):
            found += some
            if len(found) > self._most_bytes:
                raise BadAnswer("slurmrestd", f"it has more than {self._most_bytes:,} bytes")
        if expected is not None and len(found) < expected:
            raise BadAnswer("slurmrestd", "it breaks off")
        return Answer(response.status, bytes(found))

    def _kept_for_later(self, connection: "_Connection") -> bool:
        with self._lock:
            if len(self._kept) >= _KEPT:
                return False
            self._kept.append(connection)
            return True

    def _checked(self, found: Answer) -> Answer:
        if found.status in _NO or (found.status >= _WRONG and self.has_expired()):
            raise self.not_believed()
        return found

    def has_expired(self) -> bool:
        """Whether it is known that the token is over: 22.05 says hardly more of it than that it failed."""
        token = self.tokens.read()
        over = None if token is None else claims(token).exp
        return over is not None and over <= time.time()

    def not_believed(self) -> NotAuthenticated:
        if self.tokens.read() is None:
            return NotAuthenticated(
                f"slurmrestd at {self.place} does not know who is asking: name a file with a token in "
                "rest_token of [slurm], or run slurmrestd on a socket as the user of this Muster"
            )
        why = "it has expired" if self.has_expired() else "it is not of this cluster, or has expired"
        return NotAuthenticated(
            f"slurmrestd at {self.place} does not take the token of {self.tokens.source} ({why}): renew it "
            "with `scontrol token lifespan=86400`"
        )

    def _too_slow(self) -> TooSlow:
        return TooSlow(
            f"slurmrestd at {self.place} gave no answer within {self._limit_seconds:g} s, and whether it did "
            "what it was to do is not known: see `scontrol ping` and slurmrestd's log"
        )

    def _hung_up(self) -> Unreachable:
        return Unreachable(
            f"slurmrestd at {self.place} hung up without an answer, and whether it did what it was to do is "
            "not known: see its log"
        )


class _HungUp(Exception):
    """The other side closed the connection before it said anything."""


class _Connection(http.client.HTTPConnection):
    """To a place of any kind, with one deadline for all that is said and heard."""

    def __init__(self, place: Place, limit_seconds: float) -> None:
        super().__init__("localhost" if place.scheme == "unix" else place.host, place.port or None)
        self._place, self._limit_seconds = place, limit_seconds
        self._clocked: _Clocked | None = None

    def connect(self) -> None:
        if self._place.scheme == "unix":
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(self._limit_seconds)
            try:
                plain.connect(self._place.host)
            except BaseException:
                plain.close()
                raise
        else:
            plain = socket.create_connection((self._place.host, self._place.port), self._limit_seconds)
        if self._place.scheme == "https":
            plain = ssl.create_default_context().wrap_socket(plain, server_hostname=self._place.host)
        self._clocked = _Clocked(plain)
        self.sock = self._clocked  # all that is asked of a socket here

    def give(self, seconds: float) -> None:
        assert self._clocked is not None
        self._clocked.deadline = time.monotonic() + seconds

    def peer_id(self) -> int:
        assert self._clocked is not None
        found = self._clocked.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", found)[1])


class _Clocked:
    """A socket that is read until a deadline, however slowly the other side speaks."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket, self.deadline = plain, 0.0

    def _set(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)

    def sendall(self, data: "ReadableBuffer") -> None:
        self._set()
        self.socket.sendall(data)

    def recv_into(self, buffer: "WriteableBuffer") -> int:
        self._set()
        return self.socket.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Reading(self), _CHUNK_BYTES)

    def close(self) -> None:
        self.socket.close()


class _Reading(io.RawIOBase):
    def __init__(self, clocked: _Clocked) -> None:
        self._clocked = clocked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        return self._clocked.recv_into(buffer)
