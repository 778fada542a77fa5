"""A window on a world: what the page complains of, what it asks for elsewhere, what axe says of it."""

from collections.abc import Callable
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page
from sights import World

# Only what is serious comes back: the whole of what axe says of a map is megabytes.
_AXE = """async (rules) => {
  const options = { resultTypes: ["violations"], elementRef: false, ...(rules && { runOnly: rules }) };
  const { violations } = await axe.run(document, options);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}"""
COLOURS = ["color-contrast", "link-in-text-block"]  # what may be otherwise in the dark


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
