"""The scene as glyphs, one for each GPU, node or rack: what a terminal can show of ten thousand GPUs.

A node or a rack is as high as the mean use of what is held in it, and is what most of its GPUs are; but one
that is down in it is told in any case, since exceptions have to survive.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from muster.layout.geometry import gpu_id, node_id, rack_id
from muster.layout.parts import Rack, Spot
from muster.layout.states import LOOKS, Doing, State, use_glyph
from muster.model.units import MILLI
from muster.server.answers_top import CpuStrip, Grain, Strip
from muster.server.seeing.places import Map
from muster.server.seeing.scene import STATES, NodeNow, Scene, Tally

_HELD = (State.WORKING, State.IDLE)


class Strips:
    """Racks and nodes in the order in which they are drawn, found once for each map."""

    def __init__(self, here: Map) -> None:
        self.map = here
        by_rack = here.layout.by_rack()
        with_gpus = ((rack, _upwards(by_rack.get(rack.name, ()))) for rack in here.layout.racks)
        self._racks = [(rack, spots) for rack, spots in with_gpus if spots]
        self._plain = [node_id(spot.name) for spot in here.layout.spots if not spot.gpus]

    def of(self, scene: Scene, by: Grain) -> list[Strip]:
        makers: dict[Grain, Callable[[Scene], Iterator[Strip]]] = {
            Grain.GPU: self._gpus,
            Grain.NODE: self._nodes,
            Grain.RACK: self._rows,
        }
        return list(makers[by](scene)) if by in makers else []

    def _gpus(self, scene: Scene) -> Iterator[Strip]:
        for rack, spots in self._racks:
            words = [[scene.gpus[gpu_id(spot.name, gpu.number)] for gpu in spot.gpus] for spot in spots]
            states = ["".join(LOOKS[gpu.state].glyph for gpu in word) for word in words]
            yield Strip(rack.name, ["".join(map(use_glyph, word)) for word in words], states)

    def _nodes(self, scene: Scene) -> Iterator[Strip]:
        for rack, spots in self._racks:
            yield _strip(rack.name, (scene.nodes[node_id(spot.name)].tally for spot in spots))

    def _rows(self, scene: Scene) -> Iterator[Strip]:
        for name, racks in groupby(self._racks, key=lambda one: _row(one[0])):
            yield _strip(name, (scene.racks[rack_id(rack.name)] for rack, _ in racks))

    def cpus(self, scene: Scene) -> CpuStrip | None:
        """Of nodes without GPUs; one of which nothing is known adds nothing."""
        nodes = [scene.nodes[box] for box in self._plain]
        if not nodes:
            return None
        total = sum(node.cpus_milli or 0 for node in nodes) / MILLI
        held = sum(node.cpus_held_milli for node in nodes) / MILLI
        used = [_used(node) for node in nodes if node.cpus_milli is not None]
        known = [one for one in used if one is not None]
        name = nodes[0].name if len(nodes) == 1 else None
        is_known = bool(used) and len(known) == len(used)
        return CpuStrip(len(nodes), name, total, held, sum(known) if is_known else None)


def _upwards(spots: Iterable[Spot]) -> list[Spot]:
    """Those that have GPUs, from the lowest unit up."""
    with_gpus = (spot for spot in spots if spot.gpus)
    return sorted(with_gpus, key=lambda spot: (spot.at_u is None, spot.at_u or 0, spot.column))


def _row(rack: Rack) -> str:
    return f"row {rack.row}" if rack.row else "racks"


def _strip(name: str, tallies: Iterable[Tally]) -> Strip:
    cells = [doing(tally) for tally in tallies]
    use = "".join(glyph for glyph, _ in cells)
    return Strip(name, [use], ["".join(LOOKS[state].glyph for _, state in cells)])


def doing(tally: Tally) -> tuple[str, State]:
    """How high several GPUs are together, and what they are."""
    most = max(STATES, key=tally.of)
    state = next((one for one in _HELD if tally.of(one)), most) if tally.share is not None else most
    glyph = use_glyph(Doing(state, tally.share))
    return glyph, State.DOWN if tally.of(State.DOWN) else most


def _used(node: NodeNow) -> float | None:
    return None if node.cpu_share is None else node.cpu_share * (node.cpus_milli or 0) / MILLI
