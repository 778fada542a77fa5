"""Signing in: a link that the command line prints, good once and for minutes, becomes a cookie.

The link carries a code, not a token: it stays in a browser's history and on a screen, and is worth nothing
there. Opening it shows who one is about to become; only the button signs in, so that neither a preview of the
link nor another site does. The cookie holds a token of the usual kind, of which the store keeps the hash, so
sessions outlive the server's restarts and end like any token.

A form carries a word that follows from the session and that no other site can know.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

import msgspec

from muster.model.units import DAY, MINUTE
from muster.server.errors import Forbidden, NotIdentified
from muster.server.people import Person, new_token, token_hash
from muster.server.service import Service
from muster.store.rows import Token
from muster.web.replies import Header

COOKIE = "muster"
CODE_SECONDS = 10 * MINUTE
SESSION_SECONDS = 7 * DAY
_MOST_CODES = 1000
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Code(msgspec.Struct, frozen=True):
    """Who may come in with it, and until when."""

    person: Person
    expires_at: float


class Door:
    """Codes that wait to be used, and the sessions that they become."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._codes: dict[str, Code] = {}  # by hash, oldest first

    def new_code(self, person: Person) -> tuple[str, float]:
        """A code for this person, and when it expires."""
        now = self._service.now()
        self._forget(now)
        code = secrets.token_urlsafe(24)
        self._codes[token_hash(code)] = Code(person, now + CODE_SECONDS)
        return code, self._service.wall() + CODE_SECONDS

    def behind(self, code: str) -> Person:
        """Whom the code would let in; it stays good."""
        self._forget(self._service.now())
        found = self._codes.get(token_hash(code))
        if found is None:
            raise NotIdentified("this link was used or is too old; run this again: muster web")
        return found.person

    async def come_in(self, code: str) -> str:
        """Use the code up; the session's token."""
        person = self.behind(code)
        del self._codes[token_hash(code)]
        token, now = new_token(), self._service.now()
        kept = Token(token_hash(token), person.name, person.role, now, now + SESSION_SECONDS)
        self._service.keep_token(kept)
        await self._service.durable()
        return token

    async def leave(self, session: str, person: Person) -> None:
        """The session ends here and now, wherever its cookie still is."""
        now = self._service.now()
        self._service.keep_token(Token(token_hash(session), person.name, person.role, now, now))
        await self._service.durable()

    def _forget(self, now: float) -> None:
        self._codes = {key: code for key, code in self._codes.items() if code.expires_at > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]


def form_word(session: str) -> str:
    """What every form of this session carries."""
    return hmac.new(session.encode(), b"a form of this session", hashlib.sha256).hexdigest()


def check_form(form: Mapping[str, str], session: str, headers: Mapping[bytes, bytes]) -> None:
    """Refuses what another site made the browser send."""
    from_elsewhere = headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
    word = form.get("word", "").encode("utf-8", "replace")
    if from_elsewhere or not hmac.compare_digest(word, form_word(session).encode()):
        raise Forbidden("this form is not one of this page's; load the page again and retry")


def session_of(headers: Mapping[bytes, bytes]) -> str | None:
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value or None


def cookie(session: str, headers: Mapping[bytes, bytes], seconds: float = SESSION_SECONDS) -> Header:
    """Out of reach for scripts and other sites; for encrypted connections only, where that is possible."""
    marks = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={int(seconds)}{_secure(headers)}"
    return b"set-cookie", f"{COOKIE}={session}; {marks}".encode()


def _secure(headers: Mapping[bytes, bytes]) -> str:
    """Browsers take such a cookie over https, and from this very machine; elsewhere it would be lost."""
    host = headers.get(b"host", b"").decode("latin-1").rpartition(":")[0]
    encrypted = headers.get(b"x-forwarded-proto", b"") == b"https"
    return "; Secure" if encrypted or host in _LOOPBACK else ""
