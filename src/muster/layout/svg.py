"""The map as SVG, made on the server: stable ids, groups that say what they are, no scripts.

What a GPU does is told by colour, pattern and word at once. From far away a rack, and from nearer a node, is
one mark: a bar of all its states in the order of the legend, so that a single one that is down still shows.
What has no GPUs is drawn by its cpus.

A file of it stands alone: how things look is written at each. A page has rules of its own for the same
classes, so that it can be dark, and changes attributes as time goes on; for that every mark it draws has all
its pieces, shown or not.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from muster.layout.geometry import HEAD, LABEL, PAD, Box, Level, Zoom, seen_from
from muster.layout.states import Doing, State
from muster.layout.svg_marks import Load, bar, cell, definitions, e, frame, label, n, plain
from muster.model.units import show_count

_UNKNOWN = Doing()
_WIDE = 2000.0  # a picture that is shown so small that its names have to be larger

Doings = Mapping[str, Doing]  # by the id of the GPU's box; whoever is not in it is unknown
Counts = Callable[[Box], Sequence[int]]  # GPUs in a box, in the order of ``State``
Link = Callable[[Box], str | None]  # where a box leads
Segments = Callable[[Box], Sequence[tuple[str, int]]]  # the bar of a box: kinds of GPUs, and how many


class More:
    """What a page adds. By default nothing."""

    live = False  # whether marks have all their pieces
    size: tuple[float, float] | None = None  # at most, in pixels
    loads: Mapping[str, Load] = {}  # of racks and nodes without GPUs, by box
    counts: Counts | None = None  # if they are known without counting
    segments: Segments | None = None  # if bars tell something else than states

    def used(self, _: Box) -> float | None:
        """Of what works in a box, how much is truly used."""
        return None

    def definitions(self, _: Box) -> str:
        """What is drawn with, in the picture of this box."""
        return definitions()

    def link(self, _: Box) -> str | None:
        return None

    def attributes(self, _: Box) -> str:
        """Further ones, with a blank before each."""
        return ""

    def words(self, _: Box) -> str:
        """More about a box, for its title."""
        return ""


def svg(
    boxes: tuple[Box, ...],
    doings: Doings,
    *,
    zoom: Zoom = Zoom.NODE,
    title: str = "",
    more: More | None = None,
) -> str:
    """The picture of these boxes, of which the first is around all; ``title``: its sentence."""
    root, more = boxes[0], more or More()
    drawing = _Drawing(boxes, doings, zoom, more)
    size = f'viewBox="{n(root.x)} {n(root.y)} {n(root.w)} {n(root.h)}"'
    if more.size is not None:
        size += f' width="{more.size[0]:.0f}" height="{more.size[1]:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="group" aria-labelledby="map-title map-desc">'
    )
    said = f'<title id="map-title">{e(title)}</title><desc id="map-desc">{e(drawing.told(root))}</desc>'
    return "".join([head, said, more.definitions(root), *drawing.box(root), "</svg>"])


class _Drawing:
    def __init__(self, boxes: tuple[Box, ...], doings: Doings, zoom: Zoom, more: More) -> None:
        self._doings, self._more, self._zoom = doings, more, zoom
        self._is_wide = boxes[0].w > _WIDE
        self._inside: dict[str | None, list[Box]] = {}
        for box in seen_from(boxes, zoom):
            self._inside.setdefault(box.parent, []).append(box)
        self._count = more.counts or _Counted(boxes, doings).of

    def told(self, box: Box) -> str:
        """How many GPUs below it are in each state, in the order of the legend."""
        counts = zip(State, self._count(box), strict=True)
        return ", ".join(f"{count:,} {state.value}" for state, count in counts if count)

    def box(self, box: Box) -> Iterator[str]:
        if box.level is Level.GPU:
            doing = self._doings.get(box.id, _UNKNOWN)
            yield cell(box, doing, self._more.attributes(box), live=self._more.live)
            return
        inside, leads_to = self._inside.get(box.id, ()), self._more.link(box)
        is_mark = box.level is Level.NODE or (box.level is Level.RACK and self._zoom is Zoom.SITE)
        tag, words = "a" if is_mark and leads_to else "g", self._words(box)
        named = (
            f'id="{e(box.id)}" class="{box.level.value}" aria-label="{e(words)}"{self._more.attributes(box)}'
        )
        yield (
            f'<{tag} {named} href="{e(leads_to)}">'
            if tag == "a" and leads_to
            else f'<g {named} role="group">'
        )
        yield f"<title>{e(words)}</title>{frame(box)}"
        yield self._label(box) if is_mark or not leads_to else _linked(self._label(box), leads_to, box)
        if is_mark and not inside:
            yield self._mark(box)
        for child in inside:
            yield from self.box(child)
        yield f"</{tag}>"

    def _label(self, box: Box) -> str:
        if box.level is Level.NODE:
            return "" if self._is_wide and self._zoom is not Zoom.NODE else label(box, 8.0)
        large = 34.0 if box.level is Level.ROW else 30.0 if self._zoom is Zoom.SITE else 18.0
        return label(box, large if self._is_wide else 11.0)

    def _words(self, box: Box) -> str:
        load = self._more.loads.get(box.id)
        said = str(load) if load is not None else show_count(sum(self._count(box)), "GPU")
        parts = (f"{box.level.value} {box.name}: {said}", self.told(box), self._more.words(box))
        return ", ".join(filter(None, parts))

    def _mark(self, box: Box) -> str:
        """A node without GPUs is drawn by its cpus, everything else by the states of its GPUs."""
        load, area = self._more.loads.get(box.id), self._area(box)
        if load is not None and not any(self._count(box)):
            return plain(area, load)
        return bar(area, self._segments(box), self._more.used(box))

    def _segments(self, box: Box) -> Sequence[tuple[str, int]]:
        if self._more.segments is not None:
            return self._more.segments(box)
        return [(state.name.lower(), count) for state, count in zip(State, self._count(box), strict=True)]

    def _area(self, box: Box) -> Box:
        """Where the mark is: below the name of a rack, beside that of a node."""
        is_rack = box.level is Level.RACK
        head = (HEAD + 26.0 if self._is_wide else HEAD) if is_rack else 0.0
        beside = 0.0 if is_rack or (self._is_wide and not self._inside.get(box.id)) else min(LABEL, box.w / 2)
        return Box(
            box.id,
            box.x + PAD,
            box.y + head + PAD / 2,
            box.w - 2 * PAD - beside,
            box.h - head - PAD,
            box.parent,
            box.level,
            box.name,
        )


class _Counted:
    """Of every box, the GPUs anywhere inside it."""

    def __init__(self, boxes: tuple[Box, ...], doings: Doings) -> None:
        parent = {box.id: box.parent for box in boxes}
        self._found: dict[str, Counter[State]] = {}
        for box in boxes:
            above = box.parent if box.level is Level.GPU else None
            while above is not None:
                self._found.setdefault(above, Counter())[doings.get(box.id, _UNKNOWN).state] += 1
                above = parent.get(above)

    def of(self, box: Box) -> list[int]:
        found = self._found.get(box.id, Counter())
        return [found[state] for state in State]


def _linked(text: str, leads_to: str, box: Box) -> str:
    """The name of what has marks inside leads there."""
    return (
        f'<a class="into" href="{e(leads_to)}" aria-label="{e(f"{box.level.value} {box.name}")}">{text}</a>'
    )
