"""Who is asking: on the Unix socket the kernel says so, over TCP a token does.

uvicorn hides the socket from the application, so its protocol is taught to put the peer's uid into the scope.
"""

import os
import pwd
import socket
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muster.server.errors import NotIdentified
from muster.server.http import Scope
from muster.server.people import Person, token_hash

PEER = "muster.peer_uid"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class PeerProtocol(HttpToolsProtocol):
    """HTTP that knows the uid at the other end of a Unix socket."""

    _uid: int | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._uid = _peer_uid(transport.get_extra_info("socket"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[PEER] = self._uid  # type: ignore[literal-required]


def _peer_uid(connection: Any) -> int | None:
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(raw)[1]
    return uid


class Identity:
    """Turns a connection into a person. ``person`` knows teams and roles; ``user_of`` knows tokens."""

    def __init__(
        self,
        person: Callable[[str, int | None, str | None], Person],
        user_of: Callable[[str], tuple[str, str] | None],
    ) -> None:
        self._person, self._user_of = person, user_of

    def __call__(self, scope: Scope) -> Person:
        uid = scope.get(PEER)
        if uid is not None:
            return self._person(_name_of(uid), uid, None)
        return self.by_token(_bearer(scope))

    def by_token(self, token: str | None) -> Person:
        if token is None:
            raise NotIdentified("a token is needed here: send it as 'Authorization: Bearer TOKEN'")
        found = self._user_of(token_hash(token))
        if found is None:
            raise NotIdentified(
                "this token is not known, or has expired; an admin makes one with: muster token"
            )
        name, role = found
        return self._person(name, _uid_of(name), role)


def _bearer(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            text: str = value[7:].decode("latin-1").strip()
            return text
    return None


@lru_cache(maxsize=1024)
def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid{uid}"


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def own_name() -> str:
    """The user that this server runs as."""
    return _name_of(os.geteuid())
