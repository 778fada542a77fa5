"""A real browser: Debian's chromium, with no way out of this machine, and worlds for it to look at.

Each world is a real server. What a page asks for elsewhere is refused and noted, and so is whatever the page
complains of; a test that does not expect any fails by it.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright
from worlds import World, world

CHROMIUM = "/usr/bin/chromium"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not os.path.exists(CHROMIUM):
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def worlds() -> Iterator[Callable[[str], World]]:
    """Started when they are first looked at, and kept."""
    with ExitStack() as stack:
        made: dict[str, World] = {}

        def find(name: str) -> World:
            if name not in made:
                made[name] = stack.enter_context(world(name))
            return made[name]

        yield find


class Looking:
    """A window of somebody who is signed in."""

    def __init__(self, context: BrowserContext, world: World) -> None:
        self.world, self.page = world, context.new_page()
        self.complaints: list[str] = []
        self.refused: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("dialog", lambda dialog: dialog.accept())
        context.route("**/*", self._only_here)
        self.page.goto(world.link())
        self.page.get_by_role("button", name=re.compile("^Sign in as")).click()

    def _hear(self, message: object) -> None:
        if getattr(message, "type", "") == "error":
            self.complaints.append(str(getattr(message, "text", "")))

    def _only_here(self, route: Route) -> None:
        if urlsplit(route.request.url).netloc == urlsplit(self.world.url).netloc:
            return route.continue_()
        self.refused.append(route.request.url)
        return route.abort()

    def at(self, path: str) -> Page:
        """The page, when its script has run and the stream is there."""
        answer = self.page.goto(self.world.url + path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        self.page.wait_for_selector("html[data-stream=live]")
        return self.page

    def check(self) -> None:
        assert not self.complaints, self.complaints
        assert not self.refused, self.refused

    def violations(self) -> list[str]:
        """What axe finds that is serious."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {node['html'][:160]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


Look = Callable[..., Looking]


@pytest.fixture
def look(browser: Browser, worlds: Callable[[str], World]) -> Iterator[Look]:
    """``look("delta", width=380)``: a window on a world; options are those of a browser's context."""
    contexts: list[BrowserContext] = []

    def opened(name: str, *, width: int = 1280, height: int = 900, **options: object) -> Looking:
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, **options)  # type: ignore[arg-type]
        contexts.append(context)
        return Looking(context, worlds(name))

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where screenshots go that somebody may want to look at."""
    folder = Path(os.environ.get("MUSTER_PICTURES", "/tmp/muster-pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
