"""How the map looks: drawn of a site and of states that are always the same, it is compared with pictures.

Names are left out, as every machine has other letters. A pixel differs if one of its colours does by a fifth
of all there is. Few may, as browsers round otherwise; nowhere may most of a place the size of a GPU.

``MUSTER_PICTURES=new`` takes the pictures anew, for somebody to look at.
"""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from muster.demo.sites import read_site
from muster.layout.geometry import Box, Level, Zoom, geometry
from muster.layout.merge import merge
from muster.layout.states import Doing, State
from muster.layout.svg import More, svg
from muster.layout.svg_marks import definitions
from muster.web import assets

STATIC = Path(assets.__file__).parent / "static"
MOST_SHARE, MOST_OF_A_TILE = 0.01, 0.6
# How many pixels differ: of all, and of that square of so many pixels that differs most.
COMPARED = """async ([one, other]) => {
  const TILE = 8, NOTICED = 51;
  const [a, b] = await Promise.all([one, other].map(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  }));
  if (a.width !== b.width || a.height !== b.height) return { share: 1, worst: 1 };
  const across = Math.ceil(a.width / TILE);
  const tiles = new Uint16Array(across * Math.ceil(a.height / TILE));
  let differ = 0;
  for (let at = 0; at < a.data.length; at += 4) {
    if (![0, 1, 2].some((colour) => Math.abs(a.data[at + colour] - b.data[at + colour]) > NOTICED)) continue;
    const x = (at / 4) % a.width, y = Math.floor(at / 4 / a.width);
    differ += 1;
    tiles[Math.floor(y / TILE) * across + Math.floor(x / TILE)] += 1;
  }
  return { share: differ / (a.width * a.height), worst: Math.max(...tiles) / TILE ** 2 };
}"""


class Live(More):
    """As the page draws it, with all pieces of every mark."""

    live = True

    def attributes(self, box: Box) -> str:
        return ' data-undefended=""' if box.level is Level.GPU and undefended(box) else ""

    def used(self, _: Box) -> float | None:
        return 0.6


def nth(box: Box) -> int:
    return int("".join(filter(str.isdigit, box.name)) or 0) * 4 + (box.number or 0)


def undefended(box: Box) -> bool:
    return nth(box) % 11 == 0


def doing(box: Box) -> Doing:
    """Every state, beside every other."""
    states = list(State)
    state = states[(nth(box) * nth(box) // 3) % len(states)] if nth(box) % 3 else State.WORKING
    share = (nth(box) * 37 % 101) / 100 if state is State.WORKING else None
    return Doing(state, share, undefended(box))


def drawing(zoom: Zoom, *, changed: str = "") -> str:
    """The page around it has the same rules as the real one, and no letters."""
    boxes = geometry(merge(read_site("delta")))
    doings = {box.id: doing(box) for box in boxes if box.level is Level.GPU}
    if changed:
        doings[changed] = Doing(State.DOWN)
    style = "".join((STATIC / name).read_text() for name in ("muster.css", "where.css"))
    drawn = svg(boxes, doings, zoom=zoom, more=Live())
    return f"""<!doctype html><html lang="en"><meta name="color-scheme" content="light dark">
<style>{style}
text {{ display: none; }} body {{ margin: 0; }} .map {{ width: 1000px; }} .map svg {{ width: 990px; }}</style>
<svg class="defs">{definitions(hues=True)}</svg>
<section id="map" class="map by-state zoom-{zoom.value}"><div class="scroll">{drawn}</div></section></html>"""


def taken(browser: Browser, content: str, scheme: Any) -> bytes:
    context = browser.new_context(viewport={"width": 1000, "height": 700}, color_scheme=scheme)
    page = context.new_page()
    page.set_content(content)
    picture = page.screenshot(clip={"x": 0, "y": 0, "width": 500, "height": 280})  # half of it says enough
    context.close()
    return picture


def compared(browser: Browser, one: bytes, other: bytes) -> dict[str, float]:
    page = browser.new_page()
    urls = [f"data:image/png;base64,{base64.b64encode(picture).decode()}" for picture in (one, other)]
    found: dict[str, float] = page.evaluate(COMPARED, urls)
    page.close()
    return found


def is_alike(found: dict[str, float]) -> bool:
    return found["share"] <= MOST_SHARE and found["worst"] <= MOST_OF_A_TILE


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [Zoom.NODE, Zoom.RACK])
def test_the_map_looks_as_it_did(browser: Browser, pictures: Path, zoom: Zoom, scheme: str) -> None:
    known = pictures / f"map-{zoom.value}-{scheme}.png"
    now = taken(browser, drawing(zoom), scheme)
    if os.environ.get("MUSTER_PICTURES") == "new":
        known.write_bytes(now)
    found = compared(browser, now, known.read_bytes())
    assert is_alike(found), f"{known.name} looks otherwise: {found}"


def test_a_single_gpu_that_looks_otherwise_is_noticed(browser: Browser, pictures: Path) -> None:
    known = (pictures / "map-node-light.png").read_bytes()
    box = next(
        box
        for box in geometry(merge(read_site("delta")))
        if box.level is Level.GPU and doing(box).state is State.FREE
    )
    changed = compared(browser, taken(browser, drawing(Zoom.NODE, changed=box.id), "light"), known)
    assert changed["share"] < MOST_SHARE
    assert not is_alike(changed)


def test_a_map_in_other_colours_is_noticed(browser: Browser, pictures: Path) -> None:
    light, dark = ((pictures / f"map-node-{scheme}.png").read_bytes() for scheme in ("light", "dark"))
    assert not is_alike(compared(browser, light, dark))
