"""Takes the pictures of the documentation from the demonstration: ``make pictures``.

The demonstration has a seed, so the same pictures come again but for what moves. They show what the pages
are, not how they were on one good day.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from muster.client import Client

_HERE = Path(__file__).parent
_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb")
_PAGES = {
    "mine": "/",
    "where": "/where",
    "use": "/use",
    "queue": "/queue",
    "review": "/review",
    "time": "/time",
    "stack": "/stack",
}
_STARTS_WITHIN_SECONDS = 60.0


@contextmanager
def demonstration() -> Iterator[str]:
    """A link that signs in there."""
    with tempfile.NamedTemporaryFile("w+b") as log:
        command = [sys.executable, "-m", "muster", "demo", "--http", "127.0.0.1:0"]
        running = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        try:
            with Client(home=_home(Path(log.name))) as client:
                yield str(client.web_link()["urls"][0])
        finally:
            running.terminate()
            running.wait()


def _home(log: Path) -> str:
    until = time.monotonic() + _STARTS_WITHIN_SECONDS
    while time.monotonic() < until:
        found = re.search(r"MUSTER_HOME=([^\s;]+)", log.read_text())
        if found is not None:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"the demonstration did not start: {log.read_text()}")


def take(page: Page, name: str, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("html[data-stream=live]")
    page.wait_for_timeout(2500)  # what comes after the page is there, too
    page.screenshot(path=_HERE / f"{name}.png")


def main() -> None:
    with demonstration() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_FLAGS))
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.goto(link)
        page.get_by_role("button", name=re.compile("^Sign in as")).click()
        base = link.partition("/sign-in")[0]
        for name, path in _PAGES.items():
            take(page, name, base + path)
        for kind, name in (("job", "lens-ablation"), ("effort", "")):
            page.goto(f"{base}/")
            linked = page.locator(f"main a[href^='/{kind}/']", has_text=name).first.get_attribute("href")
            take(page, kind, f"{base}{linked}")
        browser.close()


if __name__ == "__main__":
    main()
