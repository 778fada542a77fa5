"""A real browser: Debian's chromium, with no way out of this machine, and worlds for it to look at.

Each world is a real server. What a page asks for elsewhere is refused and noted, and so is whatever the page
complains of; a test that does not expect any fails by it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright
from worlds import World, shared_folder, world

CHROMIUM = "/usr/bin/chromium"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no way out
)
# Only what is serious comes back: the whole of what axe says of a map is megabytes.
_AXE = """async (rules) => {
  const options = { resultTypes: ["violations"], elementRef: false, ...(rules && { runOnly: rules }) };
  const { violations } = await axe.run(document, options);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}"""
COLOURS = ["color-contrast", "link-in-text-block"]  # what may be otherwise in the dark


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not os.path.exists(CHROMIUM):
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """Started when they are first looked at, and kept."""
    with ExitStack() as stack:
        made: dict[str, World] = {}
        folder = shared_folder(tmp_path_factory.getbasetemp())

        def find(name: str) -> World:
            if name not in made:
                made[name] = stack.enter_context(world(name, folder))
            return made[name]

        yield find


class Looking:
    """A window of somebody who is signed in, unless ``cookie`` is empty."""

    def __init__(self, context: BrowserContext, world: World, cookie: str) -> None:
        self.world, self.context, self.page = world, context, context.new_page()
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        if cookie:
            name, _, value = cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": world.url}])
        self._host = urlsplit(world.url).netloc
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("dialog", lambda dialog: dialog.accept())
        context.on("request", self._note)

    def _hear(self, message: object) -> None:
        if getattr(message, "type", "") == "error":
            self.complaints.append(str(getattr(message, "text", "")))

    def _note(self, request: object) -> None:
        url = str(getattr(request, "url", ""))
        if urlsplit(url).netloc != self._host and not url.startswith(("data:", "blob:")):
            self.elsewhere.append(url)

    def at(self, path: str, *, live: bool = True) -> Page:
        """The page; when its script has run and the stream is there, unless nobody waits for that."""
        answer = self.page.goto(self.world.url + path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        if live:
            self.page.wait_for_selector("html[data-stream=live]")
        return self.page

    def check(self) -> None:
        assert not self.complaints, self.complaints
        assert not self.elsewhere, self.elsewhere

    def violations(self, rules: list[str] | None = None) -> list[str]:
        """What axe finds that is serious."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(Axe().axe_script)
        found: list[str] = self.page.evaluate(_AXE, rules)
        return found


Look = Callable[..., Looking]


@pytest.fixture
def look(browser: Browser, worlds: Callable[[str], World]) -> Iterator[Look]:
    """``look("delta", width=380)``: a window on a world; options are those of a browser's context.

    ``as_user``: somebody else than whoever runs the server. ``signed_in``: whether the cookie is there.
    """
    contexts: list[BrowserContext] = []

    def opened(
        at: str | World,
        *,
        width: int = 1280,
        height: int = 900,
        as_user: str = "",
        signed_in: bool = True,
        **options: object,
    ) -> Looking:
        place = worlds(at) if isinstance(at, str) else at
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, **options)  # type: ignore[arg-type]
        contexts.append(context)
        return Looking(context, place, place.cookie(as_user) if signed_in else "")

    yield opened
    for context in contexts:
        _leave(context)


def _leave(context: BrowserContext) -> None:
    """A context that is closed while a page of it goes elsewhere may wait forever: first all go nowhere."""
    for page in context.pages:
        with suppress(Error):
            page.goto("about:blank", wait_until="commit", timeout=5_000)
    context.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The map as it looked when somebody looked at it and found it good."""
    return Path(__file__).parent / "pictures"
