"""The pieces of the map's picture: a GPU's cell, the bar of many, what has only cpus, names and patterns."""

from collections.abc import Sequence
from html import escape

import msgspec

from muster.layout.geometry import HEAD, LABEL, PAD, UNIT, Box, Level
from muster.layout.states import HUES, LOOKS, UNDEFENDED, Doing, Look, State
from muster.layout.words import printable

_STROKE = "#222222"
_TEXT = 'font-family="system-ui, sans-serif" fill="currentColor"'
_LINE = 'class="lines" stroke="#222222" stroke-width="1" fill="none"'
_PATTERNS = {
    "": "",
    "hatched": f'<path d="M-1 1l2-2M0 6l6-6M5 7l2-2" {_LINE}/>',
    "crossed": f'<path d="M0 0l6 6M6 0l-6 6" {_LINE}/>',
    "dotted": '<circle class="dots" cx="3" cy="3" r="1" fill="#222222"/>',
    "back": f'<path d="M-1 5l2 2M0 0l6 6M5-1l2 2" {_LINE}/>',
    "level": f'<path d="M0 3h6" {_LINE}/>',
    "upright": f'<path d="M3 0v6" {_LINE}/>',
    "checked": '<path class="dots" d="M0 0h3v3h-3zM3 3h3v3h-3z" fill="#222222" fill-opacity="0.45"/>',
}
# The mark of what nobody defends, at the upper right corner of a cell.
_CORNER = (
    f'<g id="corner"><path class="corner-fill" d="M-9 0H0V9Z" fill="{UNDEFENDED}"/>'
    f'<text x="-2.8" y="5.4" font-size="6" font-weight="700" text-anchor="middle" fill="{_STROKE}">?</text>'
    "</g>"
)
# A question mark in the middle of a cell of the usual size.
_ASK = (
    '<pattern id="fill-unknown" width="1" height="1"><text class="ask" x="7" y="10" font-size="9"'
    f' text-anchor="middle" {_TEXT}>?</text></pattern>'
)
_VEIL = 'class="unused" fill="#FFFFFF" fill-opacity="0.7"'
_HUES = [(f"hue-{at}", look) for at, look in enumerate(HUES)]
_WORKS = State.WORKING.name.lower()
_LETTER = 0.52  # about the width of one, for names that are cut
_THINNEST = 1 / 12  # of a bar


class Load(msgspec.Struct, frozen=True):
    """What has no GPUs: how much of its cpus is held, and how much of all is used. None: not known."""

    state: State
    held: float | None
    used: float | None
    cpus: float | None = None

    def __str__(self) -> str:
        if self.held is None:
            return f"no GPUs, {self.state.value}"
        used = "" if self.used is None else f", {self.used:.0%} used"
        many = "" if self.cpus is None else f"{self.cpus:g} cpus, "
        return f"{many}{self.held:.0%} held{used}"


def definitions(*, hues: bool = False) -> str:
    """A pattern for each state that has one, its lines over its colour; the mark of what nobody defends."""
    return f"<defs>{_patterns(hues=hues)}{_ASK}{_CORNER}</defs>"


def far_definitions(scale: float) -> str:
    """The same patterns, larger, by the names of a picture that is seen from far away."""
    return f"<defs>{_patterns(hues=True, prefix='far-', scale=scale)}</defs>"


def hue_definitions() -> str:
    """Those of people and efforts alone, for other pictures than the map."""
    return f"<defs>{_drawn(_HUES)}</defs>"


def _patterns(*, hues: bool, prefix: str = "", scale: float = 1.0) -> str:
    looks = [(fill_id(state), look) for state, look in LOOKS.items() if look.pattern]
    return _drawn(looks + _HUES * hues, prefix, scale)


def _drawn(looks: Sequence[tuple[str, Look]], prefix: str = "", scale: float = 1.0) -> str:
    larger = "" if scale == 1 else f' patternTransform="scale({n(scale)})"'
    size = f'width="6" height="6" patternUnits="userSpaceOnUse"{larger}'
    return "".join(
        f'<pattern id="{prefix}{name}" {size}>'
        f'<rect class="{name}" width="6" height="6" fill="{look.colour}"/>'
        f"{_PATTERNS[look.pattern]}</pattern>"
        for name, look in looks
    )


def fill_id(state: State) -> str:
    return f"fill-{state.name.lower()}"


def _fill_of(state: State) -> str:
    look = LOOKS[state]
    filled = f"url(#{fill_id(state)})" if look.pattern or state is State.UNKNOWN else look.colour
    return f'fill="{filled}" stroke="{_STROKE}"' + (' stroke-dasharray="2 2"' if look.dashed else "")


_FILLS = {state.name.lower(): _fill_of(state) for state in State} | {
    f"c{at}": f'fill="url(#hue-{at})" stroke="{_STROKE}"' for at in range(len(HUES))
}
_PLAIN_FILL = f'fill="none" stroke="{_STROKE}"'


def cell(box: Box, doing: Doing, attributes: str = "", *, live: bool = False) -> str:
    """A GPU. What is truly used fills it from below; of what is held and not used the pattern stays."""
    state = doing.state.name.lower()
    used = "" if doing.share is None else f"{doing.share:.0%} used"
    words = ", ".join(filter(None, (f"GPU {box.number}", doing.state.value, used, doing.words)))
    x, y, w, h = n(box.x), n(box.y), n(box.w), n(box.h)
    pieces = [
        f'<g id="{e(box.id)}" class="gpu" data-state="{state}"{attributes}><title>{e(words)}</title>'
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" class="cell" {_FILLS[state]}/>'
    ]
    share = doing.share if doing.state is State.WORKING else None
    unused = 0.0 if share is None else box.h * (1 - min(1.0, max(0.0, share)))
    if unused or live:
        pieces.append(f'<rect x="{x}" y="{y}" width="{w}" height="{n(unused)}" {_VEIL}/>')
    if doing.undefended or live:
        hidden = "" if doing.undefended else ' display="none"'
        pieces.append(f'<use href="#corner" x="{n(box.x + box.w)}" y="{y}" class="corner"{hidden}/>')
    pieces.append("</g>")
    return "".join(pieces)


def bar(area: Box, segments: Sequence[tuple[str, int]], used: float | None = None) -> str:
    """All kinds of what is inside, side by side, each at least so wide that it can be seen.

    ``used``: of those that work, which come first; the part that is not used is veiled, from above.
    """
    shown = [(kind, count) for kind, count in segments if count]
    left, made = area.x, []
    widths = _widths([count for _, count in shown], area.w)
    for (kind, _), wide in zip(shown, widths, strict=True):
        place = f'x="{n(left)}" y="{n(area.y)}" width="{n(wide)}" height="{n(area.h)}"'
        made.append(f'<rect {place} class="{kind}" {_FILLS.get(kind, _PLAIN_FILL)}/>')
        left += wide
    at = f'data-x="{n(area.x)}" data-w="{n(area.w)}"'
    unused = 0.0 if used is None or shown[0][0] != _WORKS else area.h * (1 - min(1.0, used))
    veil = f'x="{n(area.x)}" y="{n(area.y)}" width="{n(widths[0] if widths else 0.0)}" height="{n(unused)}"'
    return f'<g class="bar" {at}>{"".join(made)}</g><rect {veil} {_VEIL}/>'


def plain(area: Box, load: Load) -> str:
    """What is held of the cpus, from the left; what is used of those fills it from below."""
    state = load.state.name.lower()
    held = 0.0 if load.held is None else min(1.0, load.held) * area.w
    used = None if load.used is None or not load.held else min(1.0, load.used / load.held)
    unused = 0.0 if used is None else area.h * (1 - used)
    ground = load.state if load.state not in (State.WORKING, State.IDLE) else State.FREE
    place = f'x="{n(area.x)}" y="{n(area.y)}"'
    high = f'height="{n(area.h)}"'
    return (
        f'<g class="cpu" data-state="{state}">'
        f'<rect {place} width="{n(area.w)}" {high} class="ground" {_FILLS[ground.name.lower()]}/>'
        f'<rect {place} width="{n(held)}" {high} class="held" {_FILLS[state if held else "free"]}/>'
        f'<rect {place} width="{n(held)}" height="{n(unused)}" {_VEIL}/>'
        "</g>"
    )


def frame(box: Box) -> str:
    if box.level in (Level.SITE, Level.ROW):
        return ""
    ground = "#FFFFFF" if box.level is Level.NODE else "none"  # over the rack's lines
    framed = f'<rect {_xywh(box)} class="frame" fill="{ground}" stroke="{_STROKE}"/>'
    return framed + _units(box) if box.level is Level.RACK else framed


def _units(rack: Box) -> str:
    """A hairline at each unit, so that an empty one is seen as such: one broad line, mostly gaps."""
    middle, floor = rack.x + rack.w / 2, rack.y + rack.h - PAD
    dashes = f'stroke-width="{n(rack.w - 2 * PAD)}" stroke-dasharray="0.4 {n(UNIT - 0.4)}"'
    path = f"M{n(middle)} {n(floor)}V{n(rack.y + HEAD)}"
    return f'<path d="{path}" class="units" stroke="#DDDDDD" fill="none" {dashes}/>'


def label(box: Box, size: float) -> str:
    """The name, cut to the room there is; the whole is in the title."""
    if box.level is Level.NODE:
        at = f'x="{n(box.x + box.w - PAD)}" y="{n(box.y + box.h / 2 + 3)}" text-anchor="end"'
        room = min(LABEL, box.w / 2)
    else:
        at = f'x="{n(box.x + PAD)}" y="{n(box.y + max(HEAD - 4, size))}"'
        room = box.w
    name = _cut(box.name, room / (size * _LETTER))
    return f'<text {at} font-size="{n(size)}" {_TEXT}>{name}</text>' if name else ""


def _cut(name: str, letters: float) -> str:
    """Names of machines differ at the end."""
    most = max(1, int(letters))
    return e(name if len(name) <= most else "…" + name[len(name) - most + 1 :])


def _widths(counts: Sequence[int], width: float) -> list[float]:
    """In proportion, but none thinner than a twelfth."""
    wide = [max(width * _THINNEST, width * count / sum(counts)) for count in counts]
    return [one * width / sum(wide) for one in wide]


def _xywh(box: Box) -> str:
    return f'x="{n(box.x)}" y="{n(box.y)}" width="{n(box.w)}" height="{n(box.h)}"'


def n(value: float) -> str:
    return f"{value:.7g}"


def e(text: str) -> str:
    """Nothing that anybody wrote is ever markup."""
    return escape(printable(text), quote=True)
