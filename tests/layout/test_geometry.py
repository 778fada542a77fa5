"""Boxes: each inside its parent, none over another, always the same; and what is drawn from them."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

import yaml
from hypothesis import given, settings
from sites import delta, documents, stress

from muster.layout.file import parse_layout
from muster.layout.geometry import (
    HEAD,
    PAD,
    UNIT,
    Box,
    Level,
    Zoom,
    geometry,
    gpu_id,
    node_id,
    rack_id,
    seen_from,
    within,
)
from muster.layout.merge import merge
from muster.layout.parts import Fact, Found, Gpu, Layout
from muster.layout.states import Doing, State, use_glyph
from muster.layout.svg import More, svg
from muster.layout.svg_marks import Load
from muster.layout.terminal import bare, draw, strip
from muster.layout.words import sentence
from muster.model.errors import BadInput

GOLDEN = Path(__file__).parent / "delta.txt"
_TINY = 1e-6


def sound(boxes: tuple[Box, ...]) -> None:
    """Ids are unique, parents come first and hold their children, and children leave each other room."""
    known: dict[str | None, Box] = {}
    inside: dict[str | None, list[Box]] = defaultdict(list)
    for box in boxes:
        assert box.id not in known
        assert box.w > 0
        assert box.h > 0
        if box.parent is not None:
            outer = known[box.parent]
            assert outer.x - _TINY <= box.x
            assert outer.y - _TINY <= box.y
            assert box.x + box.w <= outer.x + outer.w + _TINY
            assert box.y + box.h <= outer.y + outer.h + _TINY
        known[box.id] = box
        inside[box.parent].append(box)
    for siblings in inside.values():
        _apart(siblings)


def _apart(boxes: list[Box]) -> None:
    boxes = sorted(boxes, key=lambda box: box.x)
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            if other.x >= one.x + one.w - _TINY:
                break
            assert one.y + one.h <= other.y + _TINY or other.y + other.h <= one.y + _TINY


@settings(max_examples=80)
@given(documents)
def test_boxes_are_sound_and_the_same_each_time(document: dict[str, object]) -> None:
    try:
        file = parse_layout(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
    except BadInput:
        return
    layout = merge(file)
    boxes = geometry(layout)
    sound(boxes)
    assert geometry(merge(file)) == boxes
    assert sum(box.level is Level.GPU for box in boxes) == layout.gpu_count
    assert sum(box.level is Level.NODE for box in boxes) == len(layout.spots)


def test_delta_and_the_stress_site_are_sound() -> None:
    for file, gpus in ((delta(), 400), (stress(), 10_000)):
        boxes = geometry(merge(file))
        sound(boxes)
        assert sum(box.level is Level.GPU for box in boxes) == gpus


def test_units_count_from_below() -> None:
    boxes = {box.id: box for box in geometry(merge(delta()))}
    low, high = boxes[node_id("gpub001")], boxes[node_id("gpub002")]
    assert high.y + high.h == low.y
    assert boxes[node_id("gpub011")].y == low.y


def test_how_near_one_looks_changes_what_is_drawn_and_not_where() -> None:
    boxes = geometry(merge(delta()))
    counts = [len(seen_from(boxes, zoom)) for zoom in Zoom]
    assert counts == [1 + 1 + 10, 1 + 1 + 10 + 100, 512]
    assert set(seen_from(boxes, Zoom.SITE)) <= set(boxes)
    assert len(within(boxes, rack_id("R04"))) == 1 + 10 + 40


def test_a_node_that_comes_last_moves_nobody() -> None:
    before = {box.id: box for box in geometry(merge(delta()))}
    after = {box.id: box for box in geometry(merge(delta(), (Found("new"),)))}
    assert all(after[id_] == box for id_, box in before.items() if box.level is not Level.SITE)


def test_names_of_any_kind_have_ids_of_their_own() -> None:
    names = ["a b", "a~20~b", "a.0", "a", '"><script>', "é", "ع"]
    ids = [*map(node_id, names), *(gpu_id(name, 0) for name in names)]
    assert len(set(ids)) == len(ids)
    assert all(letter.isascii() and (letter.isalnum() or letter in "~._-") for id_ in ids for letter in id_)


def test_two_thousand_nodes_without_a_place_stand_in_columns() -> None:
    boxes = geometry(merge(None, tuple(Found(f"n{i}", gpus=(Gpu(0),)) for i in range(2000))))
    sound(boxes)
    rack = next(box for box in boxes if box.level is Level.RACK)
    assert rack.h < 600 < rack.w


# --- As text --------------------------------------------------------------------------------------------


def picture(layout: Layout, columns: int = 120) -> str:
    return "\n".join([sentence(layout), "", *draw(layout, bare(layout), columns)]) + "\n"


def test_delta_is_drawn_as_it_always_was() -> None:
    assert picture(merge(delta())) == GOLDEN.read_text()


def test_no_line_is_wider_than_the_terminal() -> None:
    layout = merge(delta())
    for columns in (20, 48, 100):
        assert max(map(len, draw(layout, bare(layout), columns))) <= columns
        assert max(map(len, strip(layout, bare(layout), columns))) <= columns


def test_one_laptop_is_one_box_with_its_name() -> None:
    layout = merge(None, (Found("laptop", (Fact("gpus", 1, "NVML"),), (Gpu(0, seen=True),)),))
    assert draw(layout, bare(layout)) == [
        "without a place",
        " unplaced",
        "┌────────┐",
        "│▪ laptop│",
        "└────────┘",
    ]


def test_a_missing_gpu_is_crossed_out() -> None:
    layout = merge(delta(), (Found("gpub001", (), (Gpu(0, numa=3), Gpu(1, numa=2), Gpu(2, numa=0))),))
    assert any("▪▪✕▪ 001" in line for line in draw(layout, bare(layout)))


def test_top_has_a_word_of_glyphs_for_each_node() -> None:
    doing = {("gpub001", 0): Doing(State.WORKING, 0.97), ("gpub001", 1): Doing(State.IDLE, 0.0)}
    doing[("gpub001", 2)] = Doing(State.FREE)
    lines = strip(merge(delta()), lambda node, n: use_glyph(doing.get((node, n), Doing())), 60)
    assert lines[0] == "R01 █▁·? ???? ???? ???? ???? ???? ???? ???? ???? ????"


# --- As SVG ---------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


class Links(More):
    def link(self, box: Box) -> str | None:
        return f"/where/{box.name}" if box.level is Level.NODE else None


def test_the_svg_has_a_group_with_words_for_everything_and_no_scripts() -> None:
    layout = merge(delta())
    text = svg(geometry(layout), {gpu_id("gpub001", 0): Doing(State.WORKING, 0.5)}, title=sentence(layout))
    root = ET.fromstring(text)
    assert root.attrib["role"] == "group"
    assert root.findtext(f"{SVG}title") == "delta: 400 GPUs in 100 nodes, 10 racks."
    assert root.findtext(f"{SVG}desc") == "1 working, 399 unknown"
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(set(ids)) == len(ids)
    assert {box.id for box in geometry(layout)} <= set(ids)
    assert not {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}style"}
    cell = next(e for e in root.iter(f"{SVG}g") if e.attrib.get("id") == "gpu-gpub001.0")
    assert cell.findtext(f"{SVG}title") == "GPU 0, working, 50% used"


def test_from_far_away_a_single_gpu_that_is_down_still_shows() -> None:
    boxes = geometry(merge(delta()))
    doings = {box.id: Doing(State.FREE) for box in boxes if box.level is Level.GPU}
    doings[gpu_id("gpub017", 2)] = Doing(State.DOWN)
    root = ET.fromstring(svg(boxes, doings, zoom=Zoom.SITE))
    down = [element for element in root.iter(f"{SVG}rect") if element.attrib.get("class") == "down"]
    assert len(down) == 1
    assert float(down[0].attrib["width"]) >= 5


def test_nothing_that_anybody_wrote_is_markup() -> None:
    name = "</title><script>alert(1)</script>\x07\"'&"
    layout = merge(None, (Found(name, gpus=(Gpu(0),)),))
    doing = {gpu_id(name, 0): Doing(words="<b onload='x'>")}
    text = svg(geometry(layout), doing, title=name, more=Links())
    root = ET.fromstring(text)
    assert "<script" not in text
    assert "\x07" not in text
    assert [element.tag for element in root.iter() if element.tag.endswith("script")] == []


def test_nodes_are_links_where_they_lead_somewhere() -> None:
    text = svg(geometry(merge(delta())), {}, more=Links())
    links = list(ET.fromstring(text).iter(f"{SVG}a"))
    assert len(links) == 100
    assert links[0].attrib["aria-label"] == "node gpub001: 4 GPUs, 4 unknown"
    assert links[0].attrib["href"] == "/where/gpub001"


def test_a_large_site_is_about_as_wide_as_what_people_look_at() -> None:
    site = geometry(merge(stress()))[0]
    assert 1.0 < site.w / site.h < 2.0


def test_racks_are_drawn_up_to_the_highest_unit_that_is_taken_in_their_row() -> None:
    boxes = {box.id: box for box in geometry(merge(delta()))}
    rack, top = boxes[rack_id("R01")], boxes[node_id("gpub010")]
    assert rack.h == HEAD + 22 * UNIT + PAD
    assert top.y == rack.y + HEAD + UNIT


class Page(More):
    """As a page draws: every piece is there, shown or not."""

    live = True

    def __init__(self, loads: dict[str, Load], used: float | None = None) -> None:
        self.loads, self._used = loads, used

    def used(self, _: Box) -> float | None:
        return self._used


def pieces(text: str, kind: str) -> list[dict[str, str]]:
    return [one.attrib for one in ET.fromstring(text).iter() if kind in one.attrib.get("class", "").split()]


def test_what_is_not_used_is_veiled_from_above() -> None:
    boxes = within(geometry(merge(delta())), node_id("gpub001"))
    doings: dict[str, Doing] = {gpu_id("gpub001", n): Doing(State.WORKING, 0.75) for n in range(4)}
    high = float(pieces(svg(boxes, doings), "cell")[0]["height"])
    assert [float(veil["height"]) for veil in pieces(svg(boxes, doings), "unused")] == [high / 4] * 4
    (one,) = pieces(svg(boxes, doings, zoom=Zoom.RACK, more=Page({}, 0.75)), "unused")
    assert float(one["height"]) == high / 4


def test_a_page_has_every_piece_of_a_mark_so_that_only_attributes_change() -> None:
    boxes = within(geometry(merge(delta())), node_id("gpub001"))
    doings = {gpu_id("gpub001", 0): Doing(State.FREE), gpu_id("gpub001", 1): Doing(undefended=True)}
    text = svg(boxes, doings, more=Page({}))
    assert len(pieces(text, "unused")) == len(pieces(text, "corner")) == 4
    assert sum("display" not in corner for corner in pieces(text, "corner")) == 1
    assert not pieces(svg(boxes, {}), "corner")


def test_a_node_without_gpus_is_drawn_by_its_cpus() -> None:
    boxes = geometry(merge(None, (Found("cn1", gpus=()),)))
    text = svg(boxes, {}, more=Page({node_id("cn1"): Load(State.WORKING, 0.5, 0.25, 64)}))
    (ground,), (held,), (unused,) = (pieces(text, kind) for kind in ("ground", "held", "unused"))
    assert float(held["width"]) == float(ground["width"]) / 2
    assert float(unused["height"]) == float(ground["height"]) / 2
    assert "node cn1: 64 cpus, 50% held, 25% used" in text
