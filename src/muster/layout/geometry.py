"""Boxes: where everything is on the map, as plain data.

Site › row › rack › node › GPU, parents before their children, each inside its parent and none over another.
What draws (the page, the terminal, a canvas) takes the boxes as they are. A place depends on the layout
alone and not on what runs, so nothing ever jumps. How near one looks decides which boxes are drawn, not
where they are: one mark for a rack from far away, one for a node from nearer, one for each GPU at the end.

Lengths are in points of no size: a rack's unit is 12 high. Units count from below, as they do in racks; those
of a row are drawn up to the highest that is taken, and one more. Many rows stand beside each other, so that a
large site is about as wide as what people look at.
"""

import enum
import functools
import math
import re
from collections.abc import Iterator

import msgspec

from muster.layout.parts import UNPLACED, Layout, Rack, Spot

UNIT = 12.0  # the height of one rack unit
CELL = 14.0  # the width of a GPU
LABEL = 44.0  # room for a node's name beside its GPUs
PAD, HEAD, GAP = 2.0, 18.0, 16.0  # inside a box; above what is in it, for its name; between racks and rows
MOST_ABREAST = 8  # GPUs of a node side by side
_LOOSE_ABREAST = 16  # racks side by side, of which nobody has said in which row they stand
_LOOSE_UNITS = 42  # in a column of nodes without a place
_MANY_ROWS, _LARGE_HEAD = 4, 44.0  # of a site that is seen from so far that names have to be large
_SHAPE = 1.6  # how much wider than high a site would best be
_LOOSE = f"row-{UNPLACED}"  # the row of nodes without a place
_ODD = re.compile(r"[^A-Za-z0-9_.-]")


class Level(enum.StrEnum):
    SITE = "site"
    ROW = "row"
    RACK = "rack"
    NODE = "node"
    GPU = "gpu"


class Zoom(enum.StrEnum):
    """How near one looks: the whole site, its racks, or its nodes."""

    SITE = "site"
    RACK = "rack"
    NODE = "node"


_DRAWN = {
    Zoom.SITE: frozenset({Level.SITE, Level.ROW, Level.RACK}),
    Zoom.RACK: frozenset({Level.SITE, Level.ROW, Level.RACK, Level.NODE}),
    Zoom.NODE: frozenset(Level),
}


class Box(msgspec.Struct, frozen=True, gc=False):
    """One thing on the map. ``name`` is what it is called, ``number`` a GPU's."""

    id: str
    x: float
    y: float
    w: float
    h: float
    parent: str | None
    level: Level
    name: str
    number: int | None = None


def geometry(layout: Layout) -> tuple[Box, ...]:
    """All boxes, parents first."""
    return tuple(_Drawing(layout).boxes())


def seen_from(boxes: tuple[Box, ...], zoom: Zoom) -> tuple[Box, ...]:
    """Those that are drawn from so near; they stay where they are."""
    drawn = _DRAWN[zoom]
    return boxes if len(drawn) == len(Level) else tuple(box for box in boxes if box.level in drawn)


def within(boxes: tuple[Box, ...], root: str) -> tuple[Box, ...]:
    """A box and everything in it, for a map of one row, rack or node."""
    found: dict[str, Box] = {}
    for box in boxes:
        if box.id == root or box.parent in found:
            found[box.id] = box
    return tuple(found.values())


def row_id(room: str | None, row: str | None) -> str:
    return f"row-{_safe(room or '')}:{_safe(row or '')}"


def rack_id(rack: str) -> str:
    return f"rack-{_safe(rack)}"


def node_id(node: str) -> str:
    return f"node-{_safe(node)}"


def gpu_id(node: str, number: int) -> str:
    return f"gpu-{_safe(node)}.{number}"


@functools.lru_cache(maxsize=100_000)
def _safe(name: str) -> str:
    """Fit for an attribute and a selector, and another for every name."""
    return _ODD.sub(lambda odd: f"~{ord(odd[0]):x}~", name)


class _Line(msgspec.Struct, frozen=True):
    """A row, and how many of its racks stand side by side."""

    id: str
    name: str
    racks: tuple[Rack, ...]
    abreast: int


class _Drawing:
    """One layout, becoming boxes."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._nodes = layout.by_rack()
        widest = max((min(len(spot.gpus), MOST_ABREAST) for spot in layout.spots), default=1)
        self._inner = (
            max(1, widest) * CELL + LABEL + 2 * PAD
        )  # the width of a node that has a shelf to itself

    def boxes(self) -> Iterator[Box]:
        named = list(_lines(self._layout))
        head = _LARGE_HEAD if len(named) > _MANY_ROWS else HEAD
        lines = list(_side_by_side([_Row(self, line, head) for line in named]))
        width = max((sum(row.w + GAP for row in rows) for rows in lines), default=CELL + GAP) + GAP
        height = HEAD + sum(max(row.h for row in rows) + GAP for rows in lines)
        yield Box(Level.SITE.value, 0.0, 0.0, width, height, None, Level.SITE, self._layout.site)
        y = HEAD
        for rows in lines:
            x = GAP
            for row in rows:
                yield from row.boxes(x, y)
                x += row.w + GAP
            y += max(row.h for row in rows) + GAP

    def arranged(self, rack: Rack) -> "_Arranged":
        return _Arranged(rack, self._nodes[rack.name], self._inner)


def _lines(layout: Layout) -> Iterator[_Line]:
    """By room and row, in the order in which they are first named; nodes without a place come last."""
    racks: dict[tuple[str | None, str | None], list[Rack]] = {}
    for rack in layout.racks:
        if rack.name != UNPLACED:
            racks.setdefault((rack.room, rack.row), []).append(rack)
    for (room, row), members in racks.items():
        name = " ".join(filter(None, (room, f"row {row}" if row else None)))
        yield _Line(row_id(room, row), name, tuple(members), len(members) if row else _LOOSE_ABREAST)
    for rack in layout.racks:
        if rack.name == UNPLACED:
            yield _Line(_LOOSE, "without a place", (rack,), 1)


def _side_by_side(rows: list["_Row"]) -> Iterator[list["_Row"]]:
    """As many as give the site its shape. Who has no place stands below, and moves nobody."""
    placed, loose = [row for row in rows if row.is_placed], [row for row in rows if not row.is_placed]
    abreast = _abreast(placed)
    for start in range(0, len(placed), abreast):
        yield placed[start : start + abreast]
    yield from ([row] for row in loose)


def _abreast(rows: list["_Row"]) -> int:
    many = len(rows)
    wide, high = max((row.w for row in rows), default=1.0), max((row.h for row in rows), default=1.0)

    def misshapen(abreast: int) -> float:
        return abs(math.log(abreast * wide / (-(-many // abreast) * high) / _SHAPE))

    return min(range(1, many + 1), key=misshapen, default=1)


class _Row:
    """A row: its racks from left to right, all on one floor; those that stand in no row, in several lines."""

    def __init__(self, drawing: _Drawing, line: _Line, head: float) -> None:
        self._line = line
        self.is_placed = line.id != _LOOSE
        self._racks: list[tuple[_Arranged, float, float]] = []
        self.w, self.h = 2 * GAP, head
        for start in range(0, len(line.racks), line.abreast):
            racks = [drawing.arranged(rack) for rack in line.racks[start : start + line.abreast]]
            top = max(rack.top for rack in racks) + 1
            for rack in racks:
                rack.cut(top)
            tallest = max(rack.h for rack in racks)
            x = GAP
            for rack in racks:
                self._racks.append((rack, x, self.h + tallest - rack.h))
                x += rack.w + GAP
            self.w = max(self.w, x)
            self.h += tallest + GAP

    def boxes(self, x: float, y: float) -> Iterator[Box]:
        line = self._line
        yield Box(line.id, x, y, self.w, self.h, Level.SITE.value, Level.ROW, line.name)
        for rack, right, down in self._racks:
            yield from rack.boxes(x + right, y + down, line.id)


class _Arranged:
    """A rack and what stands in it. Nodes without a unit are where there is room, on top if there is none."""

    def __init__(self, rack: Rack, spots: list[Spot], inner: float) -> None:
        self._rack, self._inner = rack, inner
        loose = rack.name == UNPLACED
        self._shelves = list(_columns(spots) if loose else _shelves(spots))
        columns = 1 + max((column for _, _, column in self._shelves), default=0)
        self.top = max((at_u + spot.u - 1 for spot, at_u, _ in self._shelves), default=0)
        self._units = self.top if loose else max(rack.units, self.top)
        self.w = columns * (inner + PAD) + PAD

    def cut(self, units: int) -> None:
        self._units = min(self._units, units)

    @property
    def h(self) -> float:
        return HEAD + self._units * UNIT + PAD

    def boxes(self, x: float, y: float, parent: str) -> Iterator[Box]:
        mine = rack_id(self._rack.name)
        yield Box(mine, x, y, self.w, self.h, parent, Level.RACK, self._rack.name)
        floor = y + HEAD + self._units * UNIT
        for spot, at_u, column in self._shelves:
            width = self._inner / spot.across
            left = x + PAD + column * (self._inner + PAD) + spot.column * width
            top, height = floor - (at_u - 1 + spot.u) * UNIT, spot.u * UNIT
            this = node_id(spot.name)
            yield Box(this, left, top, width, height, mine, Level.NODE, spot.name)
            yield from _gpu_boxes(spot, this, left, top, width, height)


def _gpu_boxes(spot: Spot, parent: str, x: float, y: float, w: float, h: float) -> Iterator[Box]:
    """In lines of eight at most; where a node is narrow, they are, too."""
    count = len(spot.gpus)
    if not count:
        return
    abreast = min(count, MOST_ABREAST)
    lines = -(-count // abreast)
    pad = PAD / spot.across
    width = min(CELL, (w - LABEL / spot.across - 2 * pad) / abreast)
    height = (h - PAD) / lines
    stem, name = f"gpu-{_safe(spot.name)}.", spot.name
    for at, gpu in enumerate(spot.gpus):
        line, column = divmod(at, abreast)
        left, top = x + pad + column * width, y + PAD / 2 + line * height
        number = gpu.number
        yield Box(f"{stem}{number}", left, top, width, height, parent, Level.GPU, name, number)


Shelf = tuple[Spot, int, int]  # a node, its unit, and its column of shelves


def _shelves(spots: list[Spot]) -> Iterator[Shelf]:
    taken: set[int] = set()
    loose = []
    for spot in spots:
        if spot.at_u is None:
            loose.append(spot)
        else:
            taken.update(range(spot.at_u, spot.at_u + spot.u))
            yield spot, spot.at_u, 0
    at_u = 1
    for spot in loose:  # in the order of the file, each above the one before
        alone = msgspec.structs.replace(spot, across=1, column=0)
        while not taken.isdisjoint(range(at_u, at_u + spot.u)):
            at_u += 1
        yield alone, at_u, 0
        at_u += spot.u


def _columns(spots: list[Spot]) -> Iterator[Shelf]:
    """One above the other, and beside that if they are many."""
    at_u, column = 1, 0
    for spot in spots:
        if at_u > 1 and at_u + spot.u - 1 > _LOOSE_UNITS:
            at_u, column = 1, column + 1
        yield msgspec.structs.replace(spot, across=1, column=0), at_u, column
        at_u += spot.u
