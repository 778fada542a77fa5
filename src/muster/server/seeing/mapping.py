"""The map as the API tells it, all of it or what was asked for."""

from collections.abc import Callable, Iterator

import msgspec

from muster.layout.geometry import gpu_id, node_id
from muster.layout.parts import Gpu, Spot
from muster.layout.states import State
from muster.model.units import MILLI
from muster.server.answers_map import GpuView, MapNode, MapView
from muster.server.config_values import nearest, shown
from muster.server.errors import NotFound
from muster.server.seeing.places import Map
from muster.server.seeing.scene import GpuNow, Holder, NodeNow, Scene, Tally, sentence, tally_of


class MapQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Only this rack, this node, what these people hold, what is in this state."""

    rack: str | None = None
    node: str | None = None
    owner: str | None = None
    state: State | None = None


class Narrowed:
    """A scene, and what of it was asked for. ``owners``: all names of the one that was named; None: all."""

    def __init__(self, here: Map, scene: Scene, query: MapQuery, owners: set[str] | None) -> None:
        self._map, self._scene, self._query, self._owners = here, scene, query, owners
        self._is_whole = query == MapQuery()
        _check(query, here)

    def view(self) -> MapView:
        nodes = list(self._nodes())
        tally = self._scene.tally if self._is_whole else _summed(nodes)
        shown_nodes = [self._scene.nodes[node_id(view.name)] for view in nodes]
        layout, names = self._map.layout, {view.name for view in nodes}
        racks = {view.rack for view in nodes}
        return MapView(
            site=layout.site,
            at=self._scene.at,
            generation=self._scene.generation,
            sentence=sentence(tally, shown_nodes),
            counts=tally.by_state(),
            share=tally.share,
            undefended=tally.undefended,
            racks=[rack for rack in layout.racks if self._is_whole or rack.name in racks],
            nodes=nodes,
            switches=[s for s in layout.switches if self._is_whole or not names.isdisjoint(s.nodes)],
            contradictions=[str(one) for one in layout.contradictions if one.node in names],
        )

    def _nodes(self) -> Iterator[MapNode]:
        """A node is told of if it, or a GPU of it, is what was asked for."""
        query = self._query
        for spot in self._map.layout.spots:
            if query.rack not in (None, spot.rack) or query.node not in (None, spot.name):
                continue
            now = self._scene.nodes[node_id(spot.name)]
            gpus = [one for one in self._gpus(spot) if self._is_asked_for(one[1].holders, one[1].state)]
            if gpus or (not spot.gpus and self._is_asked_for(now.holders, now.state)):
                yield _node(spot, now, [_gpu(gpu, doing) for gpu, doing in gpus])

    def _gpus(self, spot: Spot) -> Iterator[tuple[Gpu, GpuNow]]:
        return ((gpu, self._scene.gpus[gpu_id(spot.name, gpu.number)]) for gpu in spot.gpus)

    def _is_asked_for(self, holders: tuple[Holder, ...], state: State) -> bool:
        if self._query.state not in (None, state):
            return False
        owners = self._owners
        return owners is None or any(not owners.isdisjoint((h.owner, h.answers)) for h in holders)


def map_view(
    here: Map, scene: Scene, query: MapQuery, all_names: Callable[[str], tuple[str, ...]]
) -> MapView:
    owners = None if query.owner is None else set(all_names(query.owner))
    return Narrowed(here, scene, query, owners).view()


def _check(query: MapQuery, here: Map) -> None:
    """A rack or a node that does not exist is an error, and no empty map."""
    for what, name, known in (("rack", query.rack, here.racks), ("node", query.node, here.spots)):
        if name is not None and name not in known:
            raise NotFound(f"there is no {what} {shown(name)} on the map; {nearest(name, known)}")


def _summed(nodes: list[MapNode]) -> Tally:
    return tally_of(gpu for node in nodes for gpu in node.gpus)


def _node(spot: Spot, now: NodeNow, gpus: list[GpuView]) -> MapNode:
    return MapNode(
        name=spot.name,
        rack=spot.rack,
        at_u=spot.at_u,
        units=spot.u,
        column=spot.column,
        across=spot.across,
        switch=spot.switch,
        kind=spot.kind,
        state=now.state,
        health=now.health,
        reason=now.because or None,
        cpus=None if now.cpus_milli is None else now.cpus_milli / MILLI,
        cpus_held=now.cpus_held_milli / MILLI,
        cpu_share=now.cpu_share,
        memory_bytes=now.memory_bytes,
        memory_held_bytes=now.memory_held_bytes,
        memory_share=now.memory_share,
        jobs=[holder.id for holder in now.holders],
        gpus=gpus,
    )


def _gpu(gpu: Gpu, now: GpuNow) -> GpuView:
    view = GpuView(
        gpu.number,
        gpu.model,
        now.state,
        now.share,
        now.held_milli / MILLI,
        idle_since=now.idle_since,
        undefended=now.undefended,
        words=now.words,
        memory_bytes=gpu.memory_bytes,
        numa=gpu.numa,
    )
    if now.holders:
        first = now.holders[0]
        view.jobs = [holder.id for holder in now.holders]
        view.owner, view.team, view.effort = first.owner, first.team, first.effort
        view.purpose, view.since = first.purpose, first.since
    return view
