"""The site: finds the page, knows who looks, and turns whatever goes wrong into one sentence.

Pages ask the API for everything, in the same process and as the person who looks, so that nobody sees or does
on a page what they could not by the command line. Forms are posted below ``/do`` and become the same calls.
"""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from muster.model.errors import BadInput, MusterError
from muster.server.errors import NotFound, NotIdentified, WrongMethod, status_of
from muster.server.http import App, Call, Receive, Route, Scope, Send, read_body
from muster.server.pages import Ground
from muster.server.people import AGENT, Person
from muster.web.assets import Assets
from muster.web.desk import Desk
from muster.web.door import CODE_SECONDS, Door, check_form, cookie, session_of
from muster.web.live import Live
from muster.web.pages.table import pages_of
from muster.web.render import Renderer
from muster.web.replies import HTML, JSON, TEXT, Reply, deliver, is_local, redirect
from muster.web.sheet import Page, Sheet, Visit, twin

log = logging.getLogger("muster")

_TWINS = ("json", "csv", "txt")
_DOABLE = ("jobs", "efforts", "nodes", "messages", "review")  # what forms may act on
_NOT_SAID = ("word", "back")  # of a form's fields, those that are ours


class WebBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class WebLink(msgspec.Struct):
    """Where a browser signs in as whoever asked: once, and until then."""

    urls: list[str]  # one for each address; empty: pages are not served over TCP
    expires_at: float


class Site:
    """Everything that a browser sees."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._door = Door(ground.service)
        self._assets = Assets()
        self._live = Live(ground.service, ground.seeing)

    def routes(self) -> list[Route]:
        summary = "A link that signs a browser in as you; good once, for minutes."
        return [
            Route(
                "POST", "/api/v1/web", self._link, WebLink, summary, body=WebBody, status=201, errors=(403,)
            )
        ]

    def over(self, api: App) -> "Site":
        self._api = api
        self._desk = Desk(api, self._ground, self._live)
        self._pages = pages_of(self._desk)
        self._renderer = Renderer(self._assets, self._pages, self._ground.service.wall)
        return self

    def close(self) -> None:
        self._live.close()

    async def _link(self, call: Call) -> WebLink:
        code, expires_at = self._door.new_code(call.person)
        return WebLink([f"{url}/sign-in?code={code}" for url in self._ground.addresses()], expires_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await self._answer(_Request(scope, receive))
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            reply = self._trouble(500, "something went wrong inside Muster; its log says what")
        await deliver(send, reply)

    async def _answer(self, request: "_Request") -> Reply:
        try:
            if request.path.startswith("/static/"):
                return self._assets.reply(request.path)
            if request.path == "/sign-in":
                return await self._sign_in(request)
            return await self._to_somebody(request)
        except NotIdentified as error:
            return self._stranger(request, str(error))
        except MusterError as error:
            return self._refusal(request, status_of(error), str(error))

    # --- Signing in ---------------------------------------------------------------------------------

    async def _sign_in(self, request: "_Request") -> Reply:
        """First the question, then the button."""
        code = request.query.get("code", "")
        if request.method == "POST":
            form = await request.form()
            session = await self._door.come_in(form.get("code", ""))
            return redirect("/", cookie(session, request.headers))
        person = self._door.behind(code)
        minutes = int(CODE_SECONDS // 60)
        return Reply(HTML, self._renderer.plain("sign-in.html", name=person.name, code=code, minutes=minutes))

    def _stranger(self, request: "_Request", sentence: str) -> Reply:
        if request.wants_json:
            return _error(401, sentence)
        return Reply(HTML, self._renderer.plain("stranger.html", sentence=sentence), 401)

    def _whom(self, request: "_Request") -> tuple[Person, str]:
        session = session_of(request.headers)
        if session is None:
            raise NotIdentified("you are not signed in")
        try:
            person = self._ground.identity.by_token(session)
        except NotIdentified:
            raise NotIdentified("you were signed in, and no longer are") from None
        if person.role == AGENT:
            raise NotIdentified("this is a token of an agent's, and pages are for people")
        return person, session

    # --- For those who are known --------------------------------------------------------------------

    async def _to_somebody(self, request: "_Request") -> Reply:
        person, session = self._whom(request)
        if request.method == "POST":
            return await self._do(request, person, session)
        if request.method not in ("GET", "HEAD"):
            raise WrongMethod(f"pages are read and forms are posted; there is no {request.method}")
        if request.path == "/live":
            return self._live.reply(request.query, request.headers)
        log_of = request.path.removeprefix("/log/")
        if log_of != request.path:
            return await self._log(person, log_of, request.query)
        page, ending, values, path = self._found(request.path)
        visit = Visit(person, session, path, values, request.query, request.headers)
        sheet = await page.make(visit)
        return twin(sheet, ending) if ending else await self._drawn(sheet, visit)

    async def _drawn(self, sheet: Sheet, visit: Visit) -> Reply:
        about = await self._desk.about(visit.person)
        return Reply(HTML, self._renderer.page(sheet, visit, about))

    async def _log(self, person: Person, job_id: str, query: Mapping[str, str]) -> Reply:
        """As text, as it comes; a browser never takes it for anything else."""
        streamed = await self._api.ask(person, "GET", f"/api/v1/jobs/{quote(job_id, safe='')}/log", query)
        return Reply(TEXT, streamed.pieces)

    def _found(self, path: str) -> tuple[Page, str, tuple[str, ...], str]:
        """The page, the ending of a twin, and what stands in the variable's place."""
        stem, dot, ending = path.rpartition(".")
        tries = [(path, "")]
        if dot and ending in _TWINS:
            tries.insert(0, (stem or "/", ending))
            tries.insert(1, ("/", ending) if stem == "/index" else tries[0])
        for tried, found_ending in tries:
            for page in self._pages:
                values = _values(page.path, tried)
                if values is not None:
                    return page, found_ending, values, tried
        raise NotFound(f"there is no page {path}; the menu has those that there are")

    async def _do(self, request: "_Request", person: Person, session: str) -> Reply:
        form = await request.form()
        check_form(form, session, request.headers)
        back = form.get("back", "/")
        if request.path == "/sign-out":
            await self._door.leave(session, person)
            return redirect("/", cookie("", request.headers, 0))
        what = request.path.removeprefix("/do/")
        if what == request.path or what.split("/")[0] not in _DOABLE:
            raise NotFound(f"there is nothing to do at {request.path}")
        await self._api.ask(person, "POST", f"/api/v1/{what}", body=_said(form))
        if request.wants_json:
            return Reply(JSON, b"{}")
        return redirect(back if is_local(back) else "/")

    # --- What goes wrong ----------------------------------------------------------------------------

    def _refusal(self, request: "_Request", status: int, sentence: str) -> Reply:
        return _error(status, sentence) if request.wants_json else self._trouble(status, sentence)

    def _trouble(self, status: int, sentence: str) -> Reply:
        return Reply(HTML, self._renderer.plain("trouble.html", sentence=sentence, status=status), status)


def _said(form: Mapping[str, str]) -> dict[str, Any]:
    """A form's fields as a body: ``charter.budget`` lies in ``charter``, of ``success[]`` each line is one.

    What was left empty was not said.
    """
    said: dict[str, Any] = {}
    for name, text in form.items():
        if name in _NOT_SAID or not text.strip():
            continue
        outer, dot, inner = name.partition(".")
        target, key = (said.setdefault(outer, {}), inner) if dot else (said, name)
        if not isinstance(target, dict):
            raise BadInput(f"{outer[:40]!r} stands twice in this form; load the page again and retry")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        target[key.removesuffix("[]")] = lines if key.endswith("[]") else text
    return said


def _error(status: int, sentence: str) -> Reply:
    return Reply(JSON, msgspec.json.encode({"error": sentence}), status)


def _values(pattern: str, path: str) -> tuple[str, ...] | None:
    """What stands in the place of ``{…}``, if the path fits: the last segment, slashes and all."""
    stem, brace, _ = pattern.partition("{")
    if not brace:
        return () if path == pattern else None
    rest = path.removeprefix(stem)
    return (unquote(rest),) if rest and rest != path else None


class _Request:
    """What a browser asks."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self.method: str = scope["method"]
        self.path: str = urlsplit(scope["raw_path"].decode("latin-1")).path
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))

    @property
    def wants_json(self) -> bool:
        return self.path.endswith(".json") or self.headers.get(b"accept", b"").startswith(b"application/json")

    async def form(self) -> dict[str, str]:
        kind = self.headers.get(b"content-type", b"").split(b";")[0].strip()
        if kind != b"application/x-www-form-urlencoded":
            raise BadInput("a form is sent as application/x-www-form-urlencoded")
        body: Any = await read_body(self._scope, self._receive)
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
