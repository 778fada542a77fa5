"""What holds for every page, in every world: nothing from elsewhere, nothing executed, readable by all."""

import pytest

from conftest import Look, Looking  # type: ignore[import-not-found]

WORLDS = ("empty", "laptop", "malice", "delta", "stress")
WIDTHS = (380, 2560)


def paths(looking: Looking) -> list[str]:
    """All of the menu, and one page of each kind that is linked from there."""
    page = looking.at("/")
    menu = page.eval_on_selector_all("nav[aria-label=Pages] a", "all => all.map(a => a.getAttribute('href'))")
    found = list(menu)
    for kind in ("/job/", "/effort/"):
        for start in menu:
            looking.at(start)
            one = looking.page.query_selector(f"main a[href^='{kind}']")
            if one is not None:
                found.append(one.get_attribute("href") or "")
                break
    return found


@pytest.mark.parametrize("name", WORLDS)
def test_every_page_is_whole_accessible_and_loads_nothing_from_elsewhere(look: Look, name: str) -> None:
    looking = look(name)
    for path in paths(looking):
        page = looking.at(path)
        assert page.locator("h1").count() == 1, path
        assert page.locator("#sentence").inner_text().strip(), path
        assert not looking.violations(), path
        assert "owned" not in page.title()
        looking.check()


@pytest.mark.parametrize("name", ["laptop", "malice", "delta"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window(look: Look, name: str, width: int) -> None:
    looking = look(name, width=width)
    for path in paths(looking):
        page = looking.at(path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} px too wide at {width} px"
        looking.check()


@pytest.mark.parametrize(
    "options",
    [{"color_scheme": "dark"}, {"forced_colors": "active"}, {"reduced_motion": "reduce"}],
    ids=["dark", "forced-colours", "reduced-motion"],
)
def test_every_page_is_accessible_however_it_is_looked_at(look: Look, options: dict[str, str]) -> None:
    looking = look("delta", **options)
    for path in paths(looking):
        looking.at(path)
        assert not looking.violations(), path
        looking.check()


def test_nothing_moves_for_those_who_want_no_motion(look: Look) -> None:
    looking = look("delta", reduced_motion="reduce")
    for path in paths(looking):
        page = looking.at(path)
        moving = page.evaluate("document.getAnimations().length")
        assert not moving, path


def test_every_page_works_without_script(look: Look, browser: object) -> None:
    looking = look("delta")
    there = paths(looking)
    cookies = looking.page.context.cookies()
    context = browser.new_context(java_script_enabled=False)  # type: ignore[attr-defined]
    context.add_cookies(cookies)
    page = context.new_page()
    for path in there:
        answer = page.goto(looking.world.url + path)
        assert answer.status == 200
        assert page.locator("#sentence").inner_text().strip(), path
    context.close()


def test_every_page_is_reached_by_keys_alone(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/")
    keys = page.eval_on_selector_all(
        "nav[aria-label=Pages] a", "all => all.map(a => [a.dataset.key, a.getAttribute('href')])"
    )
    for key, path in keys:
        looking.at("/find")
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(looking.world.url + path)
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    looking.check()


def test_the_skip_link_is_the_first_thing_that_tab_finds(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("ending", ["json", "csv", "txt"])
def test_every_page_has_its_twins(look: Look, ending: str) -> None:
    looking = look("delta")
    for path in paths(looking):
        looking.at(path)
        href = looking.page.locator(f"a.twin:text-is('{ending}')").get_attribute("href")
        answer = looking.page.request.get(looking.world.url + (href or ""))
        assert answer.status == 200, href
        assert answer.text().strip(), href
