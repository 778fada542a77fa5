"""HTTP as plain values: a route is a row in a table, from which requests are served and the API is described.

A handler takes a ``Call`` and returns a struct, which becomes JSON, or a ``Streamed`` answer. Everything that
goes wrong is a ``MusterError`` with one sentence; nothing else reaches a client.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

import msgspec

from muster.model.errors import BadInput, MusterError
from muster.server.answers import Error
from muster.server.errors import Forbidden, NotFound, TooMuch, WrongMethod, status_of
from muster.server.people import AGENT, Person

log = logging.getLogger("muster")

MOST_BYTES = 4 << 20
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Identify = Callable[[Scope], Person]

_MISSING = re.compile(r"Object missing required field `(\w+)`")
_JSON = ((b"content-type", b"application/json"),)
_encode = msgspec.json.Encoder().encode


class Streamed:
    """An answer that comes in pieces."""

    def __init__(self, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        self.content_type, self.pieces = content_type, pieces


class Answered(msgspec.Struct):
    """An answer with another status than the route's usual one."""

    status: int
    body: Any


class Call(msgspec.Struct):
    """A request, understood."""

    person: Person
    path: tuple[str, ...]  # what stood in the place of ``{…}``
    query: Any
    body: Any


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing can be asked."""


Handler = Callable[[Call], Awaitable[Any]]


class Route(msgspec.Struct, frozen=True):
    """One thing that the API can do."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    answer: Any  # its type, or the content type of a stream
    summary: str
    query: type[msgspec.Struct] = NoQuery
    body: type[msgspec.Struct] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    besides: tuple[tuple[int, Any], ...] = ()  # other good answers: status and type
    for_agents: bool = False  # what an agent may do, and no word of the person whose it is


class App:
    """An ASGI application over a table of routes."""

    def __init__(
        self,
        routes: Sequence[Route],
        identify: Identify,
        questions_for: Callable[[Person], int] = lambda _: 0,
    ) -> None:
        self._identify, self._questions_for = identify, questions_for
        self.heard_of: Callable[[Person, Route], None] = lambda *_: None  # everybody who calls
        self._routes: dict[tuple[str, ...], dict[str, Route]] = {}
        self._decoders: dict[type, msgspec.json.Decoder[Any]] = {}
        for route in routes:
            self._routes.setdefault(_pattern(route.path), {})[route.method] = route
            if route.body is not None:
                self._decoders[route.body] = msgspec.json.Decoder(route.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        try:
            route, values = self._found(scope["method"], scope["raw_path"].decode("latin-1"))
            call = await self._understood(route, values, scope, receive)
            if not route.for_agents:
                self.heard_of(call.person, route)
            answer = await route.handler(call)
            more = self._questions(call.person)
            if isinstance(answer, Streamed):
                return await _send_stream(send, answer, more)
            if not isinstance(answer, Answered):
                answer = Answered(route.status, answer)
            await _send(send, answer.status, _encode(answer.body), more)
        except MusterError as error:
            await _send(
                send, status_of(error), _encode(Error(str(error), error.exit_code)), _challenge(error)
            )
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            sentence = "something went wrong inside Muster; its log says what"
            await _send(send, 500, _encode(Error(sentence)))

    async def ask(
        self,
        person: Person,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Any:
        """The same from inside, for whoever shows it to people: the answer before it becomes JSON."""
        route, values = self._found(method, path)
        asked = _asked(route, {} if query is None else query)
        said = None if route.body is None else _told(route.body, {} if body is None else body)
        answer = await route.handler(Call(person, values, asked, said))
        return answer.body if isinstance(answer, Answered) else answer

    def questions_of(self, person: Person) -> int:
        """How many wait for an answer of this person's."""
        return self._questions_for(person)

    def _questions(self, person: Person) -> tuple[tuple[bytes, bytes], ...]:
        """How many wait for this person, if any: so that a command line can say so without asking."""
        count = self._questions_for(person)
        return ((b"muster-questions", str(count).encode()),) if count else ()

    def _found(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        segments = tuple(path.strip("/").split("/"))
        for pattern, values in _candidates(segments):
            by_method = self._routes.get(pattern)
            if by_method is not None:
                route = by_method.get(method)
                if route is None:
                    raise WrongMethod(f"{path} answers to {' and '.join(by_method)}, not to {method}")
                return route, values
        raise NotFound(f"there is no {path}; /api/v1/openapi.json tells what there is")

    async def _understood(
        self, route: Route, values: tuple[str, ...], scope: Scope, receive: Receive
    ) -> Call:
        person = self._identify(scope)
        if person.role == AGENT and not route.for_agents:
            raise Forbidden(
                "this token is an agent's: it tells what is used on a node, and does nothing else"
            )
        query = _query(route, scope["query_string"])
        body = None
        if route.body is not None:
            body = self._decoded(route.body, await read_body(scope, receive))
        return Call(person, values, query, body)

    def _decoded(self, kind: type[msgspec.Struct], raw: bytes) -> Any:
        try:
            return self._decoders[kind].decode(raw or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"the request's JSON is not as expected: {error}") from None


def _pattern(path: str) -> tuple[str, ...]:
    return tuple("{}" if part.startswith("{") else part for part in path.strip("/").split("/"))


def _candidates(segments: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """As it is, and with the one variable that a path may have: ``api/v1/jobs/{id}/…``."""
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = [(segments, ())]
    if len(segments) > 3:
        found.append(((*segments[:3], "{}", *segments[4:]), (unquote(segments[3]),)))
    return found


def _query(route: Route, raw: bytes) -> Any:
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    given = dict(pairs)
    if len(given) < len(pairs):
        raise BadInput("the query says something twice; say it once")
    return _asked(route, given)


def _told(kind: type[msgspec.Struct], given: Mapping[str, object]) -> Any:
    """What a form says: all of it text."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        missing = _MISSING.match(str(error))
        if missing is not None:
            raise BadInput(f"{missing[1]}: say something here; it can't be left empty") from None
        raise BadInput(f"this is not as expected: {error}") from None


def _asked(route: Route, given: Mapping[str, object]) -> Any:
    try:
        return msgspec.convert(given, route.query, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(route.query.__struct_fields__) or "nothing"
        raise BadInput(f"the query is not as expected: {error}; what can be asked: {known}") from None


async def read_body(scope: Scope, receive: Receive) -> bytes:
    raw = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadInput("the connection was closed before all had been sent")
        raw += bytes(message.get("body", b""))
        if len(raw) > MOST_BYTES:
            raise TooMuch(f"at most {MOST_BYTES >> 20} MiB are read; {scope['path']} was sent more")
        if not message.get("more_body"):
            return raw


def _challenge(error: MusterError) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"www-authenticate", b"Bearer"),) if status_of(error) == 401 else ()


async def _send(send: Send, status: int, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [*_JSON, (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_stream(send: Send, answer: Streamed, more: Sequence[tuple[bytes, bytes]]) -> None:
    headers = [(b"content-type", answer.content_type.encode()), (b"cache-control", b"no-store"), *more]
    begun = False
    try:
        async for piece in answer.pieces:
            if not begun:  # an error before the first piece still has a status of its own
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except MusterError:
        if not begun:
            raise
        log.exception("an answer was broken off")
    if not begun:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
