"""What stands on what as bands, hardware at the bottom. Pure.

Of many nodes each band is a strip: what stands on something is drawn right above it, and no wider. Of few,
each thing is a card with all that is known of it. Either way bands come from the top down, so that a list of
them reads as it looks.
"""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from muster.model.units import show_bytes, show_seconds
from muster.server.answers import Amounts, Grant
from muster.server.seeing.stack_answers import Layer
from muster.web.loads import Load, Loads, added
from muster.web.words import shorten

MOST_CARDS = 8  # nodes of which all is told
_HEIGHTS = {"job": 180, "node": 80, "rack": 66, "site": 58}
_IN_BYTES = ("memory", "disk", "log")  # limits
_NARROWEST = 960  # pixels that a strip has at least
_LETTER = 6.6
WORDS = {
    "site": ("site", "sites"),
    "rack": ("rack", "racks"),
    "node": ("node", "nodes"),
    "group": ("group", "groups"),
    "attempt": ("attempt", "attempts"),
    "job": ("job", "jobs"),
    "process": ("process", "processes"),
}
_ABOVE = {"site": "rack", "rack": "node", "node": "job", "job": "process"}  # what is left out of each


class Block(msgspec.Struct, frozen=True):
    """A thing, and what it stands on, from the bottom up; across, where it is drawn, in percent."""

    layer: Layer
    below: tuple[Layer, ...]
    x: float
    wide: float
    load: Load | None
    places: int = 1  # that it is on, if it is drawn once for all

    @property
    def title(self) -> str:
        layer = self.layer
        if layer.layer == "job":
            return f"{layer.id} {layer.name}".strip()
        if layer.layer == "attempt":
            return f"{layer.name} of {layer.id.rpartition('.')[0]}"
        if layer.layer == "group" and layer.children:
            return f"{layer.name} of {layer.children[0].id.rpartition('.')[0]}"
        return layer.name or layer.id

    @property
    def url(self) -> str:
        """Nearer to it; of what can't be looked at nearer, where it stands."""
        layer = self.layer
        if layer.layer in ("node", "job"):
            return f"/stack?{urlencode({layer.layer: layer.id})}"
        return self.where

    @property
    def where(self) -> str:
        """The same thing in the other tree; empty: it is not on the map."""
        layer = self.layer
        if layer.layer == "site":
            return "/where"
        known = layer.layer in ("rack", "node", "job")
        return f"/where?{urlencode({layer.layer: layer.id})}" if known else ""

    @property
    def job_url(self) -> str:
        return f"/job/{quote(self.layer.id, safe='')}" if self.layer.layer == "job" else ""

    @property
    def on(self) -> str:
        """What it stands on, as far as that tells it from others."""
        if self.places > 1:
            return f"{self.places} places"
        node = next((one.id for one in self.below if one.layer == "node"), "")
        return shorten(node, 60) if self.layer.layer in ("group", "job") else ""

    @property
    def limits(self) -> list[str]:
        """``cpus 4, memory 16G, enforced by cgroup``."""
        by_whom: dict[str, list[str]] = {}
        for grant in self.layer.limits:
            whose = f"{grant.how}{f' by {grant.by}' if grant.by else ''}"
            by_whom.setdefault(whose, []).append(f"{grant.what} {_limit(grant)}")
        return [f"{', '.join(what)}: {whose}" for whose, what in by_whom.items()]


def _limit(grant: Grant) -> str:
    if grant.what in _IN_BYTES:
        return show_bytes(int(grant.amount))
    return show_seconds(grant.amount) if grant.what == "time" else f"{grant.amount:g}"


class Band(msgspec.Struct, frozen=True):
    """All of one layer. ``left_out``: that are there and not told."""

    layer: str
    words: str
    load: Load | None
    blocks: list[Block]
    left_out: int
    strip: Markup


def bands_of(bottom: Layer, layers: Sequence[str], loads: Loads, *, as_strips: bool) -> list[Band]:
    """From the top down; also those of which there is nothing to draw."""
    found: dict[str, list[Block]] = {layer: [] for layer in layers}
    left_out: dict[str, int] = {}
    for block in _blocks(bottom, (), (0.0, 100.0), loads):
        found.setdefault(block.layer.layer, []).append(block)
        above = _ABOVE.get(block.layer.layer)
        if block.layer.left_out and above is not None:
            left_out[above] = left_out.get(above, 0) + block.layer.left_out
    names = [*(layer for layer in left_out if layer not in found), *reversed(found)]
    return [_band(layer, found.get(layer, []), left_out.get(layer, 0), as_strips) for layer in names]


def _band(layer: str, blocks: list[Block], left_out: int, as_strips: bool) -> Band:
    joined = list(_joined(blocks)) if as_strips else list(_each_once(blocks))
    count = len({block.layer.id for block in blocks}) + left_out
    strip = _strip(layer, joined) if as_strips and joined else Markup()
    return Band(layer, counted(layer, count), added(one.load for one in blocks), joined, left_out, strip)


def counted(layer: str, count: int) -> str:
    one, many = WORDS.get(layer, (layer, layer))
    return f"{count:,} {one if count == 1 else many}"


# --- Where things are -----------------------------------------------------------------------------------


def _blocks(
    layer: Layer, below: tuple[Layer, ...], across: tuple[float, float], loads: Loads
) -> Iterator[Block]:
    node = next((one for one in (*below, layer) if one.layer == "node"), None)
    yield Block(layer, below, *across, loads.of(layer, node))
    x, wide = across
    parts = [_weight(child, layer) for child in layer.children]
    whole = max(sum(parts), 1.0) if layer.layer == "node" else sum(parts) or 1.0
    for child, part in zip(layer.children, parts, strict=True):
        yield from _blocks(child, (*below, layer), (x, wide * part / whole), loads)
        x += wide * part / whole


def _weight(child: Layer, on: Layer) -> float:
    """A rack is as wide as its nodes are many; a job, as the largest part of its node that it holds."""
    if child.layer == "rack":
        return float(len(child.children) or child.left_out or 1)
    if on.layer != "node" or on.has is None or child.held is None:
        return 1.0
    return max(_part(child.held, on.has), 0.02)


def _part(held: Amounts, has: Amounts) -> float:
    pairs = ((held.gpus, has.gpus), (held.cpus, has.cpus))
    return max(min(1.0, one / all_of_it) if all_of_it else 0.0 for one, all_of_it in pairs)


def _joined(blocks: Sequence[Block]) -> Iterator[Block]:
    """A job on nodes that stand side by side is one block."""
    last: Block | None = None
    for block in blocks:
        is_same = last is not None and last.layer.id == block.layer.id
        if last is not None and is_same and abs(last.x + last.wide - block.x) < 0.01:
            load = added((last.load, block.load))
            last = msgspec.structs.replace(last, wide=block.x + block.wide - last.x, load=load)
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last


def _each_once(blocks: Sequence[Block]) -> Iterator[Block]:
    """A job that is on several nodes is one card, with what it holds in all."""
    by_id: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        by_id.setdefault((block.layer.layer, block.layer.id), []).append(block)
    for (layer, _), some in by_id.items():
        if len(some) == 1 or layer not in ("job", "attempt"):
            yield from some
        else:
            held = _summed([one.layer.held for one in some])
            whole = msgspec.structs.replace(some[0].layer, held=held, used=None, unknown=[], children=[])
            load = added(one.load for one in some)
            yield msgspec.structs.replace(some[0], layer=whole, load=load, places=len(some))


def _summed(some: Sequence[Amounts | None]) -> Amounts | None:
    known = [one for one in some if one is not None]
    if not known:
        return None
    return Amounts(
        sum(one.cpus for one in known), sum(one.memory_bytes for one in known), sum(one.gpus for one in known)
    )


# --- Strips ---------------------------------------------------------------------------------------------


def _strip(layer: str, blocks: Sequence[Block]) -> Markup:
    high = _HEIGHTS.get(layer, 40)
    inside = "".join(_drawn(block, high) for block in blocks)
    many = WORDS.get(layer, (layer, layer))[1]
    named = f'role="group" aria-label="{escape(many)}: arrows go from one to the next, Enter opens it"'
    return Markup(f'<svg class="strip row" {named} height="{high}">{inside}</svg>')


def _drawn(block: Block, high: int) -> str:
    words = escape(words_of(block))
    box = f'x="{block.x:.5g}%" width="{block.wide:.5g}%"'
    inside = "".join(_levels(block.load, box, high)) + f'<rect class="frame" {box} y="0" height="{high}"/>'
    if block.layer.state in ("down", "drained"):
        inside += f'<rect class="gone" {box} y="0" height="{high}"/>'
    return (
        f'<a class="span" href="{escape(block.url)}" aria-label="{words}"><title>{words}</title>'
        f"{inside}</a>{_name(block, high)}"
    )


def _levels(load: Load | None, box: str, high: int) -> Iterator[str]:
    """From below: what is used, what is held and not used, and what is held and not measured."""
    if load is None or not load.whole:
        return
    done = 0.0
    steps = (
        ("used", load.used),
        ("idle", load.measured - load.used),
        ("unmeasured", load.held - load.measured),
    )
    for kind, amount in steps:
        tall = high * max(0.0, amount) / load.whole
        if tall > 0.05:
            done += tall
            yield f'<rect class="{kind}" {box} y="{max(0.0, high - done):.4g}" height="{tall:.4g}"/>'


def _name(block: Block, high: int) -> str:
    """Across if it fits, else downwards, else not at all. Beside the link, which says it in full."""
    pixels, middle = block.wide / 100 * _NARROWEST, block.x + block.wide / 2
    text = block.title
    if pixels >= _LETTER * min(len(text), 6) + 6:
        box = f'x="{block.x:.5g}%" width="{block.wide:.5g}%" y="0" height="{high}"'
        at = 'x="50%"' if pixels > _LETTER * len(text) else 'class="long" x="4"'
        words = escape(shorten(text, 60))
        return f'<svg aria-hidden="true" {box}><text {at} y="{high / 2:.4g}">{words}</text></svg>'
    if pixels >= 9 and high >= 70:
        shown = escape(shorten(text, int(high / 6)))
        return f'<text aria-hidden="true" class="down" x="{middle:.5g}%" y="5">{shown}</text>'
    return ""


def words_of(block: Block) -> str:
    layer = block.layer
    said = f"{_said(layer)}{f', {layer.state}' if layer.state else ''}"
    if block.load is not None:
        said += f": {block.load}"
    owner = layer.facts.get("owner")
    return f"{said}; of {shorten(owner, 60)}" if owner else said


def _said(layer: Layer) -> str:
    if layer.layer == "job":
        return f"job {layer.id} {shorten(layer.name, 80)}".strip()
    if layer.layer == "group":
        return layer.name
    return f"{layer.layer} {shorten(layer.name or layer.id, 80)}"


# --- Cards ----------------------------------------------------------------------------------------------


def load_bar(load: Load, label: str) -> Markup:
    scale = load.whole or 1.0
    inside, done = '<rect class="free" x="0" width="100%" y="1" height="14"/>', 0.0
    steps = (
        ("used", load.used),
        ("idle", load.measured - load.used),
        ("unmeasured", load.held - load.measured),
    )
    for kind, amount in steps:
        wide = 100 * max(0.0, amount) / scale
        if wide > 0.05:
            inside += f'<rect class="{kind}" x="{done:.4g}%" width="{wide:.4g}%" y="1" height="14"/>'
            done += wide
    words = escape(f"{label}: {load}", quote=True)
    return Markup(f'<svg class="usebar" role="img" aria-label="{words}" height="16">{inside}</svg>')
