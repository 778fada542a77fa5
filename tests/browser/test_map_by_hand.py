"""The map in a browser: keys, the legend, what stands out, colours, and that what is live is what is true."""

import re

import pytest
from looking import Look
from playwright.sync_api import Page
from sights import HERE

from muster.layout.geometry import gpu_id

PATIENCE_MS = 20_000
CIRCLE = (("ArrowUp", 2, -1), ("ArrowRight", 1, 1), ("ArrowDown", 2, 1), ("ArrowLeft", 1, -1))
MIDDLE = """() => {
  const box = document.activeElement.getBoundingClientRect();
  return [document.activeElement.id, box.x + box.width / 2, box.y + box.height / 2];
}"""
# All that a tick may change of each mark, by tick: of two pages those are compared that both have heard.
WATCH = """() => {
  window.seen = {};
  const shown = (mark) => [
    mark.dataset.n, mark.dataset.state, mark.dataset.k, mark.dataset.c, mark.hasAttribute("data-undefended"),
    ...[...mark.querySelectorAll(":scope > .unused, :scope > .bar > rect")].map(
      (piece) => [piece.getAttribute("class"), Math.round(piece.getAttribute("width")),
                  Math.round(10 * piece.getAttribute("height")) / 10]),
  ].join(" ");
  const count = (key) => `${key.dataset.count} ${key.textContent}`;
  document.addEventListener("muster:tick", ({ detail }) => setTimeout(() => {
    const marks = [...document.querySelectorAll("#map [data-n]")].map(shown);
    window.seen[detail.at] = [...marks, ...[...document.querySelectorAll("[data-count]")].map(count)];
  }));
}"""


def counts(page: Page) -> dict[str, int]:
    """By the legend."""
    found = page.eval_on_selector_all(
        "[data-count]", "all => all.map((one) => [one.dataset.count, one.textContent])"
    )
    return {state: int(text.replace(",", "")) for state, text in found}


def drawn(page: Page) -> dict[str, int]:
    """By the marks."""
    states: list[str] = page.eval_on_selector_all("#map .gpu", "all => all.map((one) => one.dataset.state)")
    return {state: states.count(state) for state in counts(page)}


def test_the_map_is_one_stop_in_which_arrows_go_where_they_point(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/where")
    assert page.locator("#map [tabindex='0']").count() == 1
    page.locator("#map [tabindex='0']").focus()
    first, x, y = page.evaluate(MIDDLE)
    for key, axis, sign in CIRCLE:
        before = page.evaluate(MIDDLE)
        page.keyboard.press(key)
        after = page.evaluate(MIDDLE)
        assert after[0] != before[0], key
        assert sign * (after[axis] - before[axis]) > 0, key
        assert abs(after[3 - axis] - before[3 - axis]) < abs(after[axis] - before[axis]), key
        assert page.locator("#map [tabindex='0']").get_attribute("id") == after[0]
    assert page.evaluate(MIDDLE) == [first, x, y]
    looking.check()


def test_where_the_focus_is_on_the_map_can_be_seen(look: Look) -> None:
    page = look("delta").at("/where")
    frame = "document.querySelector('#map a.node[tabindex=\"0\"] > .frame')"
    plain = page.evaluate(f"getComputedStyle({frame}).strokeWidth")
    page.locator("#map a.node[tabindex='0']").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(f"getComputedStyle({frame}).strokeWidth") != plain


def test_enter_goes_in_and_escape_out_and_the_focus_comes_along(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/where")
    page.locator("#map a.node[tabindex='0']").focus()
    page.keyboard.press("ArrowUp")
    chosen = page.evaluate("document.activeElement.id")
    page.keyboard.press("Enter")
    page.wait_for_url("**/where?node=*")
    page.wait_for_selector("#machine")
    assert page.evaluate("document.activeElement.id") == chosen
    page.keyboard.press("Escape")
    page.wait_for_url(looking.world.url + "/where")
    page.wait_for_selector("#map a[tabindex='0']")
    assert page.evaluate("document.activeElement.closest('#map') !== null")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "map-find"
    looking.check()


def test_the_legend_counts_what_is_drawn_and_shows_only_what_is_chosen(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/where")
    assert sum(counts(page).values()) == 400
    assert counts(page) == drawn(page)
    page.locator("a[data-key-state=idle]").click()
    assert "show=idle" in page.url
    faint = "(one) => Number(getComputedStyle(one).opacity)"
    assert page.locator("#map .gpu[data-state=idle]").first.evaluate(faint) == 1
    assert page.locator("#map .gpu[data-state=working]").first.evaluate(faint) < 0.5
    page.reload()
    assert page.locator("a[data-key-state=idle]").get_attribute("aria-current") == "true"
    assert page.locator("#map .gpu[data-state=working]").first.evaluate(faint) < 0.5
    page.wait_for_selector("html[data-stream=live]")
    page.locator("a[data-key-state=idle]").click()
    assert page.url == looking.world.url + "/where"
    assert page.locator("#map .gpu[data-state=working]").first.evaluate(faint) == 1
    looking.check()


def test_what_is_found_stands_out_and_is_counted(look: Look) -> None:
    looking = look("delta")
    page = looking.at("/where")
    node = page.locator("#map a.node").nth(17)
    name = (node.get_attribute("aria-label") or "").split(":")[0].removeprefix("node ")
    page.fill("#map-find", name)
    page.keyboard.press("Enter")
    page.wait_for_url("**find=*")
    assert page.locator("#sentence").inner_text() == f"4 GPUs on 1 node match “{name}”."
    assert page.locator("#map .gpu[data-hit]").count() == 4
    assert page.locator("#map a.node[data-hit]").count() == 1
    looking.at("/where?find=there-is-no-such-thing")
    assert "Nothing in view is called" in page.locator("#sentence").inner_text()
    assert not page.locator("#map [data-hit]").count()
    looking.check()


@pytest.mark.parametrize("colour", ["owner", "effort", "use"])
def test_colours_tell_something_else_and_have_their_legend(look: Look, colour: str) -> None:
    looking = look("delta")
    page = looking.at(f"/where?colour={colour}")
    kinds = page.eval_on_selector_all(
        "#keys-of-colours [data-kind]", "all => all.map((one) => one.dataset.kind)"
    )
    coloured: list[str] = page.eval_on_selector_all(
        "#map .gpu[data-c]", "all => all.map((one) => one.dataset.c)"
    )
    assert coloured
    assert set(coloured) <= set(kinds)
    fills = {kind: _fill(page, f"#map .gpu[data-c={kind}] > .cell") for kind in set(coloured)}
    assert len(set(fills.values())) == len(fills)
    for kind, fill in fills.items():
        assert _fill(page, f"#keys-of-colours [data-kind={kind}] .swatch rect") == fill
    looking.check()


def _fill(page: Page, selector: str) -> str:
    return str(page.locator(selector).first.evaluate("(one) => getComputedStyle(one).fill"))


@pytest.mark.parametrize(("name", "level"), [("delta", "gpu"), ("stress", "rack")])
def test_there_are_as_many_marks_as_can_be_seen(look: Look, name: str, level: str) -> None:
    looking = look(name)
    page = looking.at("/where")
    assert page.locator(f"#map .{level}").count() > 200
    assert (page.locator("#map .gpu").count() > 0) == (level == "gpu")
    page.get_by_role("link", name="node", exact=True).click()
    page.wait_for_selector("#map.zoom-rack")
    assert page.locator("#map a.node .bar").count() == (100 if name == "delta" else 2500)
    looking.check()


def test_a_job_is_shown_where_it_runs(look: Look) -> None:
    looking = look("delta")
    with looking.world.client() as client:
        job = next(one for one in client.jobs(state="RUNNING") if one["gpus"] >= 4)
    page = looking.at(f"/where?job={job['id']}")
    assert page.locator("#map .gpu[data-hit]").count() == job["gpus"]
    assert job["id"] in page.locator("h1").inner_text()
    assert page.locator("#places tbody tr").count() == len(job["nodes"])
    looking.check()


def states(page: Page) -> dict[str, str]:
    found = page.eval_on_selector_all("#map .gpu", "all => all.map((one) => [one.id, one.dataset.state])")
    return dict(found)


def test_a_job_that_starts_and_stops_changes_its_marks_and_no_others(look: Look) -> None:
    looking = look("site")
    page = looking.at("/where")
    before = states(page)
    free = "(many) => document.querySelectorAll('#map [data-state=free]').length === many"
    many = list(before.values()).count("free")
    with looking.world.client() as client:
        job = client.submit(["sleep", "1000"], gpus=2, cpus=0.1)["id"]
        page.wait_for_function(free, arg=many - 2, timeout=PATIENCE_MS)
        changed = [gpu for gpu, state in states(page).items() if state != before[gpu]]
        assert sorted(changed) == [gpu_id(HERE, number) for number in client.job(job)["devices"]]
        assert counts(page) == drawn(page)
        client.stop(job, grace_seconds=0)
        page.wait_for_function(free, arg=many, timeout=PATIENCE_MS)
    assert states(page) == before
    looking.check()


@pytest.mark.parametrize("path", ["/where", "/where?zoom=rack", "/where?zoom=site", "/where?colour=use"])
def test_what_a_page_has_become_is_what_a_new_one_shows(look: Look, path: str) -> None:
    looking = look("delta")
    old = looking.at(path)
    old.evaluate(WATCH)
    several = "() => new Set(Object.values(window.seen).map(String)).size >= 3"
    old.wait_for_function(several, timeout=PATIENCE_MS)
    new = look("delta").at(path)
    new.evaluate(WATCH)
    new.wait_for_function("() => Object.keys(window.seen).length >= 2", timeout=PATIENCE_MS)
    was, now = old.evaluate("window.seen"), new.evaluate("window.seen")
    common = sorted(set(was) & set(now))
    assert common, "they heard no tick together"
    for at in common:
        assert [mark for pair in zip(was[at], now[at], strict=True) for mark in differing(*pair)] == []


def differing(old: str, new: str) -> list[tuple[str, str]]:
    """A tenth of a point, by which one rounds otherwise than the other, nobody sees."""
    one, other = (re.split(r"([\d.]+)", text) for text in (old, new))
    same = len(one) == len(other) and all(a == b or _near(a, b) for a, b in zip(one, other, strict=True))
    return [] if same else [(old, new)]


def _near(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) < 0.25
    except ValueError:
        return False
