"""The map as text: one glyph for each GPU, at the places that ``geometry`` gives.

Only how high things are is left out: a rack in a terminal has a line for each shelf that is taken, the
highest first, and none for empty units.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby

from muster.layout.geometry import Box, Level, geometry
from muster.layout.parts import Layout
from muster.layout.words import filled, fitted, printable, width_of

Glyph = Callable[[str, int], str]  # of a node's GPU, by the node's name and its number there
PRESENT, MISSING, MARK = "▪", "✕", " ◀"
_MOST_LABEL = 12
_BETWEEN = "  "


def bare(layout: Layout) -> Glyph:
    """Glyphs for a map on which nothing is known but what there is."""
    missing = {(s.name, g.number) for s in layout.spots for g in s.gpus if g.seen is False}
    return lambda node, number: MISSING if (node, number) in missing else PRESENT


def draw(
    layout: Layout, glyph: Glyph, columns: int = 100, marked: Collection[str] = frozenset()
) -> list[str]:
    """Racks as boxes side by side, as many as fit; rows below each other. ``marked`` nodes have an arrow."""
    drawing = _Drawing(layout, glyph, marked)
    lines: list[str] = []
    for row, racks in drawing.rows():
        lines += [printable(row.name)] if row.name else []
        for abreast in _fitting([drawing.rack(rack) for rack in racks], columns):
            lines += [*_side_by_side(abreast), ""]
    return lines[:-1]


def strip(layout: Layout, glyph: Glyph, columns: int = 100) -> list[str]:
    """Racks one after another, ``R01 ▇▇▇▇ ▇▇▁· …``, as ``muster top`` has them."""
    drawing = _Drawing(layout, glyph)
    racks = [drawing.short(rack) for _, members in drawing.rows() for rack in members]
    return [line for rack in racks for line in _wrapped(rack, columns)]


class _Drawing:
    def __init__(self, layout: Layout, glyph: Glyph, marked: Collection[str] = frozenset()) -> None:
        self._glyph = glyph
        self._inside: dict[str | None, list[Box]] = {}
        for box in geometry(layout):
            self._inside.setdefault(box.parent, []).append(box)
        labels = _labels([spot.name for spot in layout.spots])
        self._labels = {name: label + MARK * (name in marked) for name, label in labels.items()}

    def rows(self) -> Iterator[tuple[Box, list[Box]]]:
        for row in self._inside.get(Level.SITE.value, []):
            yield row, self._inside.get(row.id, [])

    def rack(self, box: Box) -> list[str]:
        """A frame with a line for each shelf, all equally wide."""
        shelves = [" ".join(self._node(node) for node in shelf) for shelf in self._shelves(box)]
        title = fitted(printable(box.name), _MOST_LABEL)
        width = max([*map(width_of, shelves), width_of(title), 4])
        lines = [f"│{filled(shelf, width)}│" for shelf in shelves]
        return [f" {filled(title, width)} ", f"┌{'─' * width}┐", *lines, f"└{'─' * width}┘"]

    def short(self, box: Box) -> list[str]:
        """Its name, then a word of glyphs for each node, upwards."""
        nodes = [node for shelf in reversed(list(self._shelves(box))) for node in shelf]
        return [fitted(printable(box.name), _MOST_LABEL), *map(self._glyphs, nodes)]

    def _shelves(self, rack: Box) -> Iterator[list[Box]]:
        """The nodes at the same height together, from the top."""
        nodes = sorted(self._inside.get(rack.id, []), key=lambda node: (node.y, node.x))
        for _, shelf in groupby(nodes, key=lambda node: node.y):
            yield list(shelf)

    def _node(self, node: Box) -> str:
        glyphs = self._glyphs(node)
        return f"{glyphs} {self._labels[node.name]}" if glyphs else self._labels[node.name]

    def _glyphs(self, node: Box) -> str:
        return "".join(self._glyph(gpu.name, gpu.number or 0) for gpu in self._inside.get(node.id, ()))


def _labels(names: list[str]) -> dict[str, str]:
    """The number alone where all names differ in nothing else; otherwise the name, as much as fits."""
    stems = {name.rstrip("0123456789") for name in names}
    if len(names) > 1 and len(stems) == 1:
        return {name: name[len(min(stems)) :] for name in names}
    return {name: fitted(printable(name), _MOST_LABEL) for name in names}


def _fitting(racks: list[list[str]], columns: int) -> Iterator[list[list[str]]]:
    """As many side by side as there is room for, and one at least."""
    line: list[list[str]] = []
    used = 0
    for rack in racks:
        width = width_of(rack[0]) + len(_BETWEEN)
        if line and used + width > columns + len(_BETWEEN):
            yield line
            line, used = [], 0
        line.append(rack)
        used += width
    if line:
        yield line


def _side_by_side(racks: list[list[str]]) -> Iterator[str]:
    """On one floor: a smaller rack has blanks above."""
    tallest = max(map(len, racks))
    standing = [[" " * width_of(rack[0])] * (tallest - len(rack)) + rack for rack in racks]
    for parts in zip(*standing, strict=True):
        yield _BETWEEN.join(parts).rstrip()


def _wrapped(words: Sequence[str], columns: int) -> Iterator[str]:
    """In lines that begin with the first word, or with as many blanks."""
    first, *rest = words
    line = first
    for word in rest:
        if width_of(line) + 1 + width_of(word) > columns and line.strip() and line != first:
            yield line
            line = " " * width_of(first)
        line += f" {word}"
    yield line
