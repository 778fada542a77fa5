"""The map as a table, made when somebody asks for it: ten thousand GPUs are ten thousand rows."""

from collections.abc import Iterator, Sequence
from typing import overload

from muster.layout.geometry import gpu_id, node_id
from muster.layout.parts import Spot
from muster.server.answers_map import MapView
from muster.server.seeing.mapping import MapQuery, map_view
from muster.server.seeing.scene import GpuNow, Holder, NodeNow
from muster.web.sheet import Cell
from muster.web.where.scope import Scope
from muster.web.where.search import Hits

COLUMNS = ("node", "gpu", "model", "state", "share", "job", "owner", "effort", "purpose", "since")
Row = Sequence[Cell]


class Rows(Sequence[Row]):
    """What is in view, and shown, and found if something was looked for; a node without GPUs has one row."""

    def __init__(self, scope: Scope, hits: Hits | None) -> None:
        self._scope, self._hits = scope, hits
        self._made: list[Row] | None = None

    def _rows(self) -> list[Row]:
        if self._made is None:
            self._made = list(self._all())
        return self._made

    def _all(self) -> Iterator[Row]:
        scene = self._scope.scene
        for spot in self._scope.spots():
            node = node_id(spot.name)
            if not spot.gpus and self._is_meant(node, scene.nodes[node]):
                yield _of_node(spot, scene.nodes[node])
            for gpu in spot.gpus:
                box = gpu_id(spot.name, gpu.number)
                now = scene.gpus[box]
                if self._is_meant(box, now):
                    yield (spot.name, gpu.number, gpu.model, now.state.value, now.share, *_of(now.holders))

    def _is_meant(self, box: str, now: GpuNow | NodeNow) -> bool:
        show = self._scope.asked.show
        return (not show or now.state in show) and (self._hits is None or box in self._hits.boxes)

    def __len__(self) -> int:
        return len(self._rows())

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        return self._rows()[at]


def view(scope: Scope) -> MapView:
    """As the API tells it, of what is in view."""
    asked = scope.asked
    whole = map_view(scope.map, scope.scene, MapQuery(rack=asked.rack), lambda name: (name,))
    if asked.row is None:
        return whole
    names = {spot.name for spot in scope.spots()}
    whole.nodes = [node for node in whole.nodes if node.name in names]
    return whole


def _of_node(spot: Spot, now: NodeNow) -> Row:
    return (spot.name, None, None, now.state.value, now.cpu_share, *_of(now.holders))


def _of(holders: Sequence[Holder]) -> tuple[Cell, ...]:
    """Of the first job; the ids of all."""
    if not holders:
        return (None,) * 5
    first = holders[0]
    return " ".join(one.id for one in holders), first.owner, first.effort, first.purpose, first.since
