"""The map as SVG, made on the server: stable ids, groups that say what they are, no scripts.

What a GPU does is told by colour, pattern and word at once. From far away a rack, and from nearer a node, is
one mark: a bar of all its states in the order of the legend, so that a single one that is down still shows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from muster.layout.geometry import HEAD, LABEL, PAD, Box, Level, Zoom, seen_from
from muster.layout.states import LOOKS, UNDEFENDED, Doing, Look, State
from muster.layout.words import printable
from muster.model.units import show_count

_STROKE = "#222222"
_TEXT = 'font-family="system-ui, sans-serif" fill="currentColor"'
_PATTERNS = {
    "hatched": '<path d="M-1 1l2-2M0 6l6-6M5 7l2-2" stroke="#222222" stroke-width="1"/>',
    "crossed": '<path d="M0 0l6 6M6 0l-6 6" stroke="#222222" stroke-width="1"/>',
    "dotted": '<circle cx="3" cy="3" r="1" fill="#222222"/>',
}
_UNKNOWN = Doing()
_LETTER = 5.5  # about the width of one, for names that are cut

Doings = Mapping[str, Doing]  # by the id of the GPU's box; whoever is not in it is unknown
Link = Callable[[Box], str | None]  # where a node leads


def svg(
    boxes: tuple[Box, ...],
    doings: Doings,
    *,
    zoom: Zoom = Zoom.NODE,
    title: str = "",
    link: Link = lambda _: None,
) -> str:
    """The picture of these boxes; ``title`` is the sentence that it opens with."""
    root = boxes[0]
    drawing = _Drawing(boxes, doings, zoom, link)
    size = f'viewBox="{_n(root.x)} {_n(root.y)} {_n(root.w)} {_n(root.h)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="group" aria-labelledby="map-title map-desc">'
    )
    counts = ", ".join(f"{count:,} {state}" for state, count in drawing.totals(root).items())
    said = f'<title id="map-title">{_e(title)}</title><desc id="map-desc">{_e(counts)}</desc>'
    return "".join([head, said, _definitions(), *drawing.box(root), "</svg>"])


def _definitions() -> str:
    """A pattern for each state that has one: its lines over its colour."""
    made = [_pattern(state, look) for state, look in LOOKS.items() if look.pattern]
    return f"<defs>{''.join(made)}</defs>"


def _pattern(state: State, look: Look) -> str:
    head = f'<pattern id="{_fill_id(state)}" width="6" height="6" patternUnits="userSpaceOnUse">'
    return f'{head}<rect width="6" height="6" fill="{look.colour}"/>{_PATTERNS[look.pattern]}</pattern>'


def _fill_id(state: State) -> str:
    return f"fill-{state.name.lower()}"


class _Drawing:
    def __init__(self, boxes: tuple[Box, ...], doings: Doings, zoom: Zoom, link: Link) -> None:
        self._doings, self._link = doings, link
        self._inside: dict[str | None, list[Box]] = {}
        for box in seen_from(boxes, zoom):
            self._inside.setdefault(box.parent, []).append(box)
        self._gpus = _gpus_below(boxes)

    def totals(self, box: Box) -> dict[str, int]:
        """How many GPUs below it are in each state, in the order of the legend."""
        found = Counter(self._doing(gpu).state for gpu in self._gpus.get(box.id, ()))
        return {state.value: found[state] for state in State if found[state]}

    def box(self, box: Box) -> Iterator[str]:
        if box.level is Level.GPU:
            yield self._gpu(box)
            return
        tag, opening = self._opening(box)
        yield f"<{tag} {opening}>"
        yield f"<title>{_e(self._words(box))}</title>{_frame(box)}{_label(box)}"
        inside = self._inside.get(box.id, [])
        if not inside and box.level in (Level.RACK, Level.NODE):
            yield from self._bar(box)
        for child in inside:
            yield from self.box(child)
        yield f"</{tag}>"

    def _opening(self, box: Box) -> tuple[str, str]:
        leads_to = self._link(box) if box.level is Level.NODE else None
        named = f'id="{_e(box.id)}" class="{box.level.value}" aria-label="{_e(self._words(box))}"'
        return ("a", f'{named} href="{_e(leads_to)}"') if leads_to else ("g", f'{named} role="group"')

    def _words(self, box: Box) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.totals(box).items())
        many = show_count(len(self._gpus.get(box.id, ())), "GPU")
        return f"{box.level.value} {box.name}: {many}" + (f", {counts}" if counts else "")

    def _doing(self, gpu: Box) -> Doing:
        return self._doings.get(gpu.id, _UNKNOWN)

    def _gpu(self, box: Box) -> str:
        """A cell. What is truly used fills it from below; of what is held and not used the pattern stays."""
        doing = self._doing(box)
        words = ", ".join(filter(None, (f"GPU {box.number}", doing.state.value, _share(doing), doing.words)))
        marks = [_rect(box, doing.state), *_used(box, doing), *_corner(box, doing)]
        head = f'<g id="{_e(box.id)}" class="gpu" data-state="{doing.state.name.lower()}">'
        return f"{head}<title>{_e(words)}</title>{''.join(marks)}</g>"

    def _bar(self, box: Box) -> Iterator[str]:
        """All states of what is inside, side by side, each at least so wide that it can be seen."""
        found = Counter(self._doing(gpu).state for gpu in self._gpus.get(box.id, ()))
        states = [state for state in State if found[state]]
        head = HEAD if box.level is Level.RACK else 0.0
        width = box.w - 2 * PAD - (LABEL if box.level is Level.NODE else 0.0)
        left = box.x + PAD
        for state, wide in zip(states, _widths([found[state] for state in states], width), strict=True):
            yield _rect(_at(box, left, box.y + head + PAD / 2, wide, box.h - head - PAD), state)
            left += wide


def _gpus_below(boxes: tuple[Box, ...]) -> dict[str, list[Box]]:
    """Of every box, the GPUs anywhere inside it."""
    parent = {box.id: box.parent for box in boxes}
    found: dict[str, list[Box]] = {}
    for box in boxes:
        above = box.parent if box.level is Level.GPU else None
        while above is not None:
            found.setdefault(above, []).append(box)
            above = parent.get(above)
    return found


def _widths(counts: Sequence[int], width: float) -> list[float]:
    """In proportion, but none thinner than a twelfth."""
    least = width / 12
    wide = [max(least, width * count / sum(counts)) for count in counts]
    return [one * width / sum(wide) for one in wide]


def _at(box: Box, x: float, y: float, w: float, h: float) -> Box:
    return Box(box.id, x, y, w, h, box.parent, box.level, box.name)


def _rect(box: Box, state: State) -> str:
    look = LOOKS[state]
    fill = f"url(#{_fill_id(state)})" if look.pattern else look.colour
    dashes = ' stroke-dasharray="2 2"' if look.dashed else ""
    mark = _question(box, "currentColor") if state is State.UNKNOWN else ""
    return f'<rect {_xywh(box)} class="{state.name.lower()}" fill="{fill}" stroke="{_STROKE}"{dashes}/>{mark}'


def _used(box: Box, doing: Doing) -> Iterator[str]:
    """The part that is not used is veiled, from above."""
    if doing.state is State.WORKING and doing.share is not None:
        unused = box.h * (1 - min(1.0, max(0.0, doing.share)))
        veil = _xywh(_at(box, box.x, box.y, box.w, unused))
        yield f'<rect {veil} class="unused" fill="#FFFFFF" fill-opacity="0.7"/>'


def _corner(box: Box, doing: Doing) -> Iterator[str]:
    if doing.undefended:
        x, y = box.x + box.w, box.y
        points = f"{_n(x - 5)},{_n(y)} {_n(x)},{_n(y)} {_n(x)},{_n(y + 5)}"
        yield f'<polygon class="undefended" points="{points}" fill="{UNDEFENDED}"/>'
        yield _question(box, _STROKE)


def _question(box: Box, colour: str) -> str:
    at = f'x="{_n(box.x + box.w / 2)}" y="{_n(box.y + box.h / 2 + 3)}" font-size="8" text-anchor="middle"'
    return f'<text {at} fill="{colour}" aria-hidden="true">?</text>'


def _share(doing: Doing) -> str:
    return "" if doing.share is None else f"{doing.share:.0%} used"


def _frame(box: Box) -> str:
    if box.level in (Level.SITE, Level.ROW):
        return ""
    return f'<rect {_xywh(box)} class="frame" fill="none" stroke="{_STROKE}"/>'


def _label(box: Box) -> str:
    """The name, cut to the room there is; the whole is in the title."""
    if box.level is Level.NODE:
        at = f'x="{_n(box.x + box.w - PAD)}" y="{_n(box.y + box.h / 2 + 3)}" text-anchor="end" font-size="8"'
        room = min(LABEL, box.w / 2)
    else:
        at = f'x="{_n(box.x + PAD)}" y="{_n(box.y + HEAD - 5)}" font-size="11"'
        room = box.w
    return f"<text {at} {_TEXT}>{_cut(box.name, room)}</text>"


def _cut(name: str, room: float) -> str:
    most = max(1, int(room / _LETTER))
    return _e(name if len(name) <= most else "…" + name[-(most - 1) :] if most > 1 else "…")


def _xywh(box: Box) -> str:
    return f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.w)}" height="{_n(box.h)}"'


def _n(value: float) -> str:
    return f"{value:.7g}"


def _e(text: str) -> str:
    """Nothing that anybody wrote is ever markup."""
    return escape(printable(text), quote=True)
