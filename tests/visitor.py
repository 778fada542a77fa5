"""Somebody with a browser that has no window: a cookie, pages, forms."""

import http.client
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

from muster.client import Client
from servers import PATIENCE_SECONDS, Server

_WORD = re.compile(r'name="word" value="([0-9a-f]{64})"')


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.raw = response.status, response.headers, response.read()

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def words(self) -> str:
        """What a reader sees of it: no tags, and each gap as one space."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        """Every tag that the page opens, with its attributes."""
        found: list[tuple[str, dict[str, str | None]]] = []

        class Reader(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                found.append((tag, dict(attrs)))

        Reader().feed(self.text)
        return found


class Visitor:
    """Signed in through a link, unless ``signed_in`` says otherwise."""

    def __init__(self, server: Server, client: Client | None = None, *, signed_in: bool = True) -> None:
        self.host = urlsplit(server.url).netloc
        self.cookie = ""
        self._word = ""
        if signed_in:
            with client or server.client() as asking:
                self.sign_in(asking.web_link()["urls"][0])

    def sign_in(self, link: str) -> Answer:
        parts = urlsplit(link)
        answer = self.post("/sign-in", parts.query, word=False)
        self.cookie = answer.headers.get("set-cookie", "").split(";")[0]
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: str | dict[str, str], *, word: bool = True, **headers: str) -> Answer:
        """A form, with the word that pages put into it."""
        body = form if isinstance(form, str) else urlencode({"word": self.word if word else "", **form})
        return self._ask("POST", path, body, {"content-type": "application/x-www-form-urlencoded", **headers})

    @property
    def word(self) -> str:
        if not self._word:
            found = _WORD.search(self.get("/").text)
            assert found is not None, "every page has a form, to sign out"
            self._word = found[1]
        return self._word

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, {"cookie": self.cookie, **headers})
            return Answer(connection.getresponse())
        finally:
            connection.close()
