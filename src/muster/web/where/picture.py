"""The picture of what is in view, as the page draws it: with numbers by which the stream changes it."""

from collections.abc import Mapping, Sequence

from muster.layout.geometry import Box, Level, Zoom
from muster.layout.parts import Contradiction
from muster.layout.states import State
from muster.layout.svg import More, svg
from muster.layout.svg_marks import Load, far_definitions
from muster.model.units import MILLI
from muster.server.seeing.scene import NodeNow
from muster.web.where.asked import Colour
from muster.web.where.colour import Colouring
from muster.web.where.scope import Scope
from muster.web.where.search import Hits

USUAL, FAR = 1300.0, 2000.0  # as wide as pictures are often shown; those that are shown small
_MARKS = {Zoom.SITE: Level.RACK, Zoom.RACK: Level.NODE}  # whose bars stand for what is inside


def picture(
    scope: Scope, numbers: Mapping[str, int], colouring: Colouring, hits: Hits | None, title: str
) -> str:
    more = _Live(scope, numbers, colouring, hits)
    return svg(scope.boxes, scope.scene.gpus, zoom=scope.zoom, title=title, more=more)


def load_of(now: NodeNow) -> Load:
    cpus = None if now.cpus_milli is None else now.cpus_milli / MILLI
    held = now.cpus_held_milli / now.cpus_milli if now.cpus_milli else None
    return Load(now.state, held, now.cpu_share, cpus)


class _Live(More):
    live = True

    def __init__(
        self, scope: Scope, numbers: Mapping[str, int], colouring: Colouring, hits: Hits | None
    ) -> None:
        self._scope, self._numbers, self._colouring, self._hits = scope, numbers, colouring, hits
        self.size = scope.size
        self.counts = self._counts
        self.segments = None if colouring.colour is Colour.STATE else colouring.segments
        self.loads = self._loads()
        self._odd = _by_node(scope.contradictions())

    def definitions(self, root: Box) -> str:
        """The page has them for its legend, too; from far away they have to be larger."""
        return far_definitions(root.w / USUAL) if root.w > FAR else ""

    def _counts(self, box: Box) -> Sequence[int]:
        return self._scope.tallies[box.id].counts

    def _loads(self) -> dict[str, Load]:
        """Of nodes without GPUs; of racks of such, if they are what is drawn."""
        nodes = {
            box.id: (box.parent or "", now)
            for box in self._scope.boxes
            if box.level is Level.NODE and not (now := self._scope.scene.nodes[box.id]).tally.total
        }
        loads = {node: load_of(now) for node, (_, now) in nodes.items()}
        if self._scope.zoom is Zoom.SITE:
            racks: dict[str, list[NodeNow]] = {}
            for rack, now in nodes.values():
                racks.setdefault(rack, []).append(now)
            loads |= {rack: _together(nows) for rack, nows in racks.items() if self._has_none(rack)}
        return loads

    def _has_none(self, rack: str) -> bool:
        return not self._scope.scene.racks[rack].total

    def link(self, box: Box) -> str | None:
        return self._scope.link(box)

    def used(self, box: Box) -> float | None:
        """What idles is held and not used: all use is of those that work."""
        tally = self._scope.tallies[box.id]
        works, held = tally.of(State.WORKING), tally.of(State.WORKING) + tally.of(State.IDLE)
        return tally.share * held / works if works and tally.share is not None else None

    def attributes(self, box: Box) -> str:
        said = f' data-n="{self._numbers[box.id]}"'
        if box.level is Level.GPU:
            now = self._scope.scene.gpus[box.id]
            kind = self._colouring.kind(now)
            said += f' data-c="{kind}"' if kind else ""
            said += ' data-undefended=""' if now.undefended else ""
        elif box.level is not Level.SITE and box.level is not Level.ROW:
            said += self._of_many(box)
        if self._hits is not None and box.id in self._hits.boxes:
            said += ' data-hit=""'
        return said

    def _of_many(self, box: Box) -> str:
        tally, load = self._scope.tallies[box.id], self.loads.get(box.id)
        is_mark = box.level is _MARKS.get(self._scope.zoom)
        said = f' data-k="{",".join(map(str, tally.counts))}"' if is_mark else ""
        said += ' data-undefended=""' if tally.undefended and is_mark else ""
        kind = "" if load is None else self._colouring.load_kind(load)
        said += f' data-c="{kind}"' if kind else ""
        said += ' data-odd=""' if box.name in self._odd and box.level is Level.NODE else ""
        spot = self._scope.spot
        is_here = spot is not None and box.level is Level.NODE and box.name == spot.name
        return f'{said} aria-current="true"' if is_here else said

    def words(self, box: Box) -> str:
        if box.level is not Level.NODE:
            return ""
        now = self._scope.scene.nodes[box.id]
        return ", ".join(filter(None, (now.because, *self._odd.get(box.name, ()))))


def _by_node(contradictions: Sequence[Contradiction]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in contradictions:
        found.setdefault(one.node, []).append(str(one).removeprefix(f"{one.node}: "))
    return found


def _together(nodes: Sequence[NodeNow]) -> Load:
    """Of a rack: of all cpus that are known."""
    known = [now for now in nodes if now.cpus_milli]
    total = sum(now.cpus_milli or 0 for now in known)
    if not total:
        return Load(State.UNKNOWN, None, None)
    held = sum(now.cpus_held_milli for now in known) / total
    shares = [None if now.cpu_share is None else now.cpu_share * (now.cpus_milli or 0) for now in known]
    used = None if None in shares else sum(share or 0.0 for share in shares) / total
    states = {now.state for now in known}
    state = next(state for state in State if state in states)
    return Load(state, held, used, total / MILLI)
