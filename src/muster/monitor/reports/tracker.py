"""Asking an MLflow tracking server: HTTP, JSON, and no more patience than was given.

The server is one that a user names, and may be slow, absent, or something else altogether. So a round of
questions has a deadline, whatever the other side does: each read waits for what is left, not for so many
seconds since the last byte. An answer is of bounded length and of known types. Nothing is followed anywhere
else.

We ask on behalf of somebody, from where we stand, which may be inside of what keeps them outside. Hence only
hosts that were allowed are asked: this machine, on which a job could ask as well, and those that the
administrator names.
"""

import base64
import http.client
import io
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar, cast
from urllib.parse import urlencode, urlsplit

import msgspec

from muster.model.errors import BadInput

_API = "/api/2.0/mlflow/"
_CONNECT_SECONDS = 2.0
_MOST_ANSWER_BYTES = 4 << 20
_MOST_URL = 1000
_PLAIN = re.compile(r"[!-~]+")  # no spaces, nothing that a header could end with
_PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


class NoAnswer(Exception):
    """What is wrong with the server, in words that go after its address."""


class Refused(NoAnswer):
    """It answers, and does not want this question."""


class Address(NamedTuple):
    """``path`` is what stands before the API's own."""

    host: str
    port: int
    path: str
    tls: bool

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}{self.path}"


def address(url: str, hosts: Collection[str] = ()) -> Address:
    """Where the tracking server is, if it may be asked. ``hosts``: which may, besides this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        parts, host, port = urlsplit(""), "", 0
    if not host or not port or len(url) > _MOST_URL or not _PLAIN.fullmatch(url):
        raise BadInput(
            f"{url[:80]!r} is not a tracking server's address; write it like http://127.0.0.1:5000"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise BadInput(
            "the address of a tracking server has no password and no question in it; "
            "who is asking is said by MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    if not _is_here(host) and host not in {allowed.lower() for allowed in hosts}:
        raise BadInput(
            f"the tracking server at {host} may not be asked from here; "
            f'an administrator can allow it in muster.toml: [monitor] mlflow_hosts = ["{host}"]'
        )
    return Address(host, port, parts.path.rstrip("/"), parts.scheme == "https")


def _is_here(host: str) -> bool:
    """By its name alone: whoever runs a name server must not decide about it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def authorization(environment: Mapping[str, str]) -> str | None:
    """Who is asking, by the variables that MLflow's own client goes by, and in its order."""
    user, password = (environment.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    if user and password:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode(errors="replace")).decode()
    token = environment.get("MLFLOW_TRACKING_TOKEN", "")
    return f"Bearer {token}" if _PLAIN.fullmatch(token) else None


class Asking:
    """A round of questions, over one connection, that is over by ``until`` in monotonic time."""

    def __init__(self, where: Address, who: str | None, until: float) -> None:
        self._where, self._until = where, until
        self._headers = [f"Host: {where.host}:{where.port}", "Accept: application/json"]
        self._headers += [] if who is None else [f"Authorization: {who}"]
        self._link: socket.socket | None = None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def get(self, what: str, answer: type[T], **question: str | int) -> T:
        return self._ask("GET", f"{what}?{urlencode(question)}", None, answer)

    def post(self, what: str, answer: type[T], **question: object) -> T:
        return self._ask("POST", what, msgspec.json.encode(question), answer)

    def _ask(self, method: str, what: str, body: bytes | None, answer: type[T]) -> T:
        try:
            status, told = self._exchange(method, self._where.path + _API + what, body)
        except TimeoutError:
            raise NoAnswer("does not answer in time") from None
        except ssl.SSLError as error:
            raise NoAnswer(f"can't be trusted: {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"does not answer: {str(error)[:200] or type(error).__name__}") from None
        _check(status)
        try:
            return msgspec.json.decode(told, type=answer, strict=False)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise NoAnswer("answers something else than a tracking server does") from None

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        if self._link is None:
            self._link = self._connected()
        self._link.settimeout(self._left())
        self._link.sendall(self._head(method, path, body) + (body or b""))
        reply = http.client.HTTPResponse(
            cast(socket.socket, _Patient(self._link, self._until)), method=method
        )
        reply.begin()
        told = reply.read(_MOST_ANSWER_BYTES + 1)
        if reply.will_close or not reply.isclosed():
            self.close()
        if len(told) > _MOST_ANSWER_BYTES:
            raise NoAnswer(f"answers with more than {_MOST_ANSWER_BYTES >> 20} MB")
        return reply.status, told

    def _connected(self) -> socket.socket:
        where, patience_seconds = self._where, min(_CONNECT_SECONDS, self._left())
        link = socket.create_connection((where.host, where.port), patience_seconds)
        if not where.tls:
            return link
        try:
            return ssl.create_default_context().wrap_socket(link, server_hostname=where.host)
        except OSError:
            link.close()
            raise

    def _head(self, method: str, path: str, body: bytes | None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", *self._headers]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _check(status: int) -> None:
    if status in (401, 403):
        raise NoAnswer(
            f"does not let us in (status {status}); set MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD"
        )
    if 300 <= status < 400:
        raise NoAnswer("sends us elsewhere, where we don't go; give the address to which it leads")
    if 400 <= status < 500:
        raise Refused(f"refuses the question (status {status})")
    if status != 200:
        raise NoAnswer(f"fails with status {status}")


class _Patient(io.RawIOBase):
    """A socket to read from, until a deadline. Of a socket, a reply needs nothing but ``makefile``."""

    def __init__(self, link: socket.socket, until: float) -> None:
        self._link, self._until = link, until

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - it is always "rb"
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._link.settimeout(left)
        return self._link.recv_into(buffer)
