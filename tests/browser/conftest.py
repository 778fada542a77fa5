"""A real browser: Debian's chromium, with no way out of this machine, and worlds for it to look at.

Each world is a real server. What a page asks for elsewhere is refused and noted, and so is whatever the page
complains of; a test that does not expect any fails by it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from looking import Look, Looking
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright
from sights import World, shared_folder, world

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
