"""Where pages meet the server: what they are given, and what they add to the API.

Pages stand above the server and are handed to it when it is put together, so that it runs without them, too.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from muster.home import Home
from muster.server.config_tables import Config
from muster.server.http import App, Receive, Route, Scope, Send
from muster.server.identity import Identity
from muster.server.seeing.seeing import Seeing
from muster.server.service import Service

_API = ("/api/", "/metrics")


class Ground(msgspec.Struct, frozen=True):
    """What pages stand on. ``addresses``: where the server is reached by a browser, as URLs."""

    service: Service
    seeing: Seeing
    home: Home
    identity: Identity
    config: Callable[[], Config]
    addresses: Callable[[], Sequence[str]]


class Pages(Protocol):
    """Everything that is not the API."""

    def routes(self) -> Sequence[Route]:
        """What they add to the API."""
        ...

    def over(self, api: App) -> "Asgi":
        """They ask the API, as everybody does."""
        ...

    def close(self) -> None:
        """Let those who watch go."""
        ...


class NoPages:
    """The API alone."""

    def __init__(self, ground: Ground) -> None:
        """Nothing stands on it."""

    def routes(self) -> Sequence[Route]:
        return ()

    def over(self, api: App) -> "Asgi":
        return api

    def close(self) -> None:
        """Nobody watches."""


class Asgi(Protocol):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Front:
    """One door: the API below its prefix, pages everywhere else."""

    def __init__(self, api: App, pages: Asgi) -> None:
        self._api, self._pages = api, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        to_api = scope["type"] != "http" or scope["path"].startswith(_API)
        await (self._api if to_api else self._pages)(scope, receive, send)
