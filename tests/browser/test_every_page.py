"""What holds for every page, in every world: nothing from elsewhere, nothing executed, readable by all.

A page is visited once for many questions: most of what a visit costs is the page.
"""

from collections.abc import Iterator

import pytest
from looking import COLOURS, Look, Looking
from playwright.sync_api import Page

WORLDS = ("empty", "laptop", "site", "malice", "delta", "stress")
WIDTHS = (380, 1280, 2560)
KINDS = ("/job/", "/effort/", "/where?rack=", "/where?node=")  # that the menu does not have
MENU = "nav[aria-label=Pages] a"
FIRST = """(kinds) => kinds.map((kind) =>
  document.querySelector(`main a[href^="${kind}"]`)?.getAttribute("href"))"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUTLINED = """() => {
  const { outlineStyle, boxShadow } = getComputedStyle(document.activeElement);
  return document.activeElement !== document.body && (outlineStyle !== "none" || boxShadow !== "none");
}"""


def tour(looking: Looking, *, live: bool = True) -> Iterator[tuple[str, Page]]:
    """All of the menu, and one page of each kind that is linked from there."""
    page = looking.at("/", live=live)
    ahead = page.eval_on_selector_all(MENU, "all => all.map(a => a.getAttribute('href'))")
    assert ahead, "the menu is empty"
    ahead += ["/find?q=a"]
    missing = list(KINDS)
    while ahead:
        path = ahead.pop(0)
        looking.at(path, live=live)
        firsts = page.evaluate(FIRST, missing)
        ahead += [first for first in firsts if first]
        missing = [kind for kind, first in zip(missing, firsts, strict=True) if not first]
        yield path, page


@pytest.mark.parametrize("name", WORLDS)
def test_every_page_is_whole_accessible_no_wider_than_its_window_and_all_from_here(
    look: Look, name: str
) -> None:
    looking = look(name)
    for path, page in tour(looking):
        assert page.locator("h1").count() == 1, path
        assert page.locator("#sentence").inner_text().strip(), path
        assert not looking.violations(), path
        assert "owned" not in page.title(), path
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate(TOO_WIDE)
            assert wide <= 0, f"{path} is {wide} px too wide at {width} px"
        page.set_viewport_size({"width": 1280, "height": 900})
        looking.check()


def test_every_page_is_legible_in_the_dark_and_in_forced_colours_and_lies_still_if_asked_to(
    look: Look,
) -> None:
    looking = look("delta", reduced_motion="reduce", color_scheme="dark")
    for path, page in tour(looking):
        assert not page.evaluate("document.getAnimations().length"), f"{path} moves"
        assert not looking.violations(COLOURS), f"{path} in the dark"
        page.emulate_media(forced_colors="active", color_scheme="light", reduced_motion="reduce")
        assert not looking.violations(COLOURS), f"{path} in forced colours"
        page.emulate_media(forced_colors="none", color_scheme="dark", reduced_motion="reduce")
        looking.check()


def test_every_page_works_without_script_and_has_its_twins(look: Look) -> None:
    looking = look("delta", java_script_enabled=False)
    seen = []
    for path, page in tour(looking, live=False):
        assert page.locator("#sentence").inner_text().strip(), path
        seen += page.eval_on_selector_all("a.twin", "all => all.map(a => a.getAttribute('href'))")
    assert {href.partition("?")[0].rpartition(".")[2] for href in seen} == {"json", "csv", "txt"}
    for href in seen:
        answer = looking.page.request.get(looking.world.url + href)
        assert answer.status == 200, href
        assert answer.text().strip(), href


def test_every_page_is_reached_by_keys_alone_and_shows_where_the_focus_is(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/")
    keys = page.eval_on_selector_all(MENU, "all => all.map(a => [a.dataset.key, a.getAttribute('href')])")
    assert len({key for key, _ in keys}) == len(keys)
    for key, path in keys:
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(looking.world.url + path)
        page.wait_for_selector("html[data-stream=live]")
        for _ in range(3):
            page.keyboard.press("Tab")
            assert page.evaluate(OUTLINED), f"{path}: {page.evaluate('document.activeElement.outerHTML')}"
    page.locator("body").press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('#find, #map-find')")
    looking.check()


def test_the_skip_link_is_the_first_thing_that_tab_finds(look: Look) -> None:
    page = look("delta").at("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
