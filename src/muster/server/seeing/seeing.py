"""One look at the place, for whoever draws it: the page, the stream of its changes, the command line."""

from collections.abc import Callable

from muster.home import Home
from muster.layout.geometry import Box
from muster.layout.parts import Layout
from muster.server.seeing.places import Map, Places
from muster.server.seeing.scene import Scene
from muster.server.seeing.tracking import Facts, Tracker
from muster.server.service import Service
from muster.server.standing import layout_path
from muster.steward.rules import Rules

Named = Callable[[], str | None]  # the layout's file, as the configuration in force has it


class Seeing:
    """The map and the scene of one service. A scene costs what has changed since the last one."""

    def __init__(self, service: Service, home: Home, named: Named) -> None:
        self._service = service
        self._places = Places(lambda: layout_path(home, named()))
        self._tracker: Tracker | None = None

    def map(self) -> Map:
        return self._places.look(self._service.fold.nodes)

    def layout(self) -> Layout:
        return self.map().layout

    def boxes(self) -> tuple[Box, ...]:
        return self.map().boxes

    def scene(self) -> Scene:
        here = self.map()
        if self._tracker is None or self._tracker.map is not here:
            self._tracker = Tracker(here)
        return self._tracker.look(self._facts())

    def _facts(self) -> Facts:
        service, now = self._service, self._service.now()
        metering, watching = service.metering, service.watching
        return Facts(
            at=service.wall(),
            wall_ahead_seconds=service.fold.wall_ahead_seconds,
            nodes=service.fold.nodes,
            running=service.fold.running,
            rules=Rules() if watching is None else watching.rules,
            latest=lambda running: None if metering is None else metering.latest(running, now),
            used=service.views.used,
            mark=service.views.review,
            findings={} if watching is None else watching.findings,
            lost=self._lost(),
        )

    def _lost(self) -> frozenset[tuple[str, int]]:
        """Devices that were there and no longer answer. Who reads them reads one node."""
        metering, nodes = self._service.metering, self._service.fold.nodes
        if metering is None or metering.node is None or len(nodes) != 1:
            return frozenset()
        (name,) = nodes
        return frozenset((name, gpu.index) for gpu in metering.node.gpus if gpu.lost)
