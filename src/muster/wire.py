"""HTTP/1.1 as a client needs it: one question at a time on a connection that is kept.

The standard library's http.client would cost as much to import as all of the command line.
"""

import os
import socket

from muster.model.errors import BadInput, MusterError

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

BASE = "/api/v1"
_CONNECT_SECONDS = 10.0
_MOST_HEADER_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


class NoServer(MusterError):
    """Nobody answers, or no longer."""


class Refused(MusterError):
    """The server's own sentence, and the exit code that it means."""

    def __init__(self, sentence: str, status: int, exit_code: int) -> None:
        super().__init__(sentence)
        self.status, self.exit_code = status, exit_code


class Address:
    """A Unix socket's path, or a host and a port, with or without TLS."""

    def __init__(
        self, text: str, path: str = "", host: str = "", port: int = 0, *, tls: bool = False
    ) -> None:
        self.text, self.path, self.host, self.port, self.tls = text, path, host, port, tls

    def __str__(self) -> str:
        return self.text


def address(url: str | None, home: "str | os.PathLike[str] | None" = None) -> Address:
    """Where the server is: ``http://host:port``, ``unix:/path``, or else the socket in Muster's home."""
    if url is None:
        from muster.home import socket_of  # noqa: PLC0415 - not needed with a URL

        path = socket_of(home)
        return Address(path, path)
    scheme, colon, rest = url.partition(":")
    if scheme == "unix" and rest:
        path = "/" + rest.lstrip("/")
        return Address(path, path)
    host, _, port = rest.removeprefix("//").rstrip("/").rpartition(":")
    if not colon or scheme not in ("http", "https") or not host or not port.isdecimal() or int(port) > 65535:
        raise BadInput(
            f"{url!r} is not a server's address; write it like http://host:7777 or unix:/path/muster.sock"
        )
    return Address(url, host=host.strip("[]"), port=int(port), tls=scheme == "https")


def query(given: "Mapping[str, object]") -> str:
    """``?a=1&b=true`` of what is said; lists are joined with commas."""
    said = {key: _plain(value) for key, value in given.items() if value is not None and value is not False}
    return "?" + "&".join(f"{key}={_quoted(text)}" for key, text in said.items()) if said else ""


def _plain(value: object) -> str:
    if value is True:
        return "true"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _quoted(text: str) -> str:
    return "".join(chr(b) if b in _SAFE else f"%{b:02X}" for b in text.encode(errors="replace"))


class Answer:
    """A status, and a body that is read as it arrives."""

    def __init__(self, status: int, headers: dict[str, str], stream: "BinaryIO") -> None:
        self.status = status
        self._headers = headers
        self._stream = stream

    @property
    def questions(self) -> int:
        """How many wait for whoever asked."""
        said = self._headers.get("muster-questions", "")
        return int(said) if said.isdecimal() and len(said) < 7 else 0

    def chunks(self) -> "Iterator[bytes]":
        """The body, piece by piece; it has to be read to the end before the next question."""
        try:
            yield from self._pieces()
        except TimeoutError:
            raise
        except OSError:
            raise NoServer("the Muster server went away in the middle of its answer; try again") from None

    def _pieces(self) -> "Iterator[bytes]":
        if self._headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunked()
        elif "content-length" in self._headers:
            yield from self._counted(_number(self._headers["content-length"], 10))
        elif self.status != 204:
            while piece := self._stream.read1(_PIECE_BYTES):  # type: ignore[attr-defined]
                yield piece

    @property
    def keeps(self) -> bool:
        """Whether another question may follow on the same connection."""
        told = "content-length" in self._headers or "transfer-encoding" in self._headers or self.status == 204
        return told and self._headers.get("connection", "").lower() != "close"

    def _counted(self, left: int) -> "Iterator[bytes]":
        while left:
            piece = self._stream.read1(min(left, _PIECE_BYTES))  # type: ignore[attr-defined]
            if not piece:
                raise ConnectionAbortedError
            left -= len(piece)
            yield piece

    def _chunked(self) -> "Iterator[bytes]":
        while size := _number(_line(self._stream).partition(b";")[0].decode("latin-1"), 16):
            yield from self._counted(size)
            _line(self._stream)
        while _line(self._stream):
            pass


class Connection:
    """Opened at the first question, and again when the server has closed it."""

    def __init__(self, where: Address, token: str | None) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise BadInput("the token has characters that no token has; look at MUSTER_TOKEN")
        self._where = where
        self._token = token
        self._socket: socket.socket | None = None
        self._stream: BinaryIO | None = None
        self._answer: Answer | None = None

    def ask(self, method: str, path: str, body: bytes | None, timeout_seconds: float | None) -> Answer:
        """Sends a question, and reads the answer's head."""
        if self._answer is not None and (not self._answer.keeps or self._is_stale()):
            self.close()
        try:
            if self._socket is None:
                self._open()
            assert self._stream is not None
            self.be_patient(timeout_seconds)
            self._send(self._head(method, path, body) + (body or b""))
            self._answer = _read_head(self._stream)
        except TimeoutError:
            raise
        except OSError as error:
            self.close()
            raise self._nobody(error) from None
        return self._answer

    def be_patient(self, timeout_seconds: float | None) -> None:
        """How long the server may be silent from now on."""
        assert self._socket is not None
        self._socket.settimeout(timeout_seconds)

    def _send(self, question: bytes) -> None:
        assert self._socket is not None
        try:  # noqa: SIM105 - contextlib costs milliseconds to import
            self._socket.sendall(question)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have refused before it read everything, and its answer says why

    def close(self) -> None:
        for opened in (self._stream, self._socket):
            if opened is not None:
                opened.close()
        self._socket = self._stream = self._answer = None

    def _open(self) -> None:
        where = self._where
        if where.path:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(_CONNECT_SECONDS)
            self._socket.connect(where.path)
        else:
            self._socket = socket.create_connection((where.host, where.port), _CONNECT_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if where.tls:
            import ssl  # noqa: PLC0415 - few need it, and it is not quick

            self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=where.host)
        self._stream = self._socket.makefile("rb")

    def _is_stale(self) -> bool:
        """Whether the server has closed a connection that was kept: nothing is sent twice to find out."""
        assert self._socket is not None
        self._socket.settimeout(0)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            return True

    def _head(self, method: str, path: str, body: bytes | None) -> bytes:
        host = f"{self._where.host}:{self._where.port}" if self._where.host else "muster"
        lines = [f"{method} {BASE}{path} HTTP/1.1", f"Host: {host}"]
        if self._token:
            lines.append(f"Authorization: Bearer {self._token}")
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def _nobody(self, error: OSError) -> MusterError:
        if isinstance(error, PermissionError):
            return MusterError(f"{self._where} may not be used by you: {error.strerror}")
        return NoServer(f"no Muster server answers at {self._where}; start one with: muster up")


def _read_head(stream: "BinaryIO") -> Answer:
    first = _line(stream)
    if not first.startswith(b"HTTP/1."):
        raise ConnectionAbortedError
    headers: dict[str, str] = {}
    while line := _line(stream):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Answer(_number(first[9:12].decode("latin-1"), 10), headers, stream)


def _line(stream: "BinaryIO") -> bytes:
    line = stream.readline(_MOST_HEADER_BYTES)
    if not line.endswith(b"\n"):
        raise ConnectionAbortedError  # the server is gone, or is none
    return line.rstrip(b"\r\n")


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise ConnectionAbortedError from None
