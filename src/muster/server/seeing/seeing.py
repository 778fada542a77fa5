"""One look at the place, for whoever draws it: the page, the stream of its changes, the command line."""

from collections.abc import Callable, Mapping

from muster.home import Home
from muster.layout.geometry import Box
from muster.layout.parts import Layout
from muster.model.usage import NodeReading
from muster.server.seeing.places import Map, Places
from muster.server.seeing.scene import Scene
from muster.server.seeing.tracking import Facts, Tracker
from muster.server.service import Service
from muster.server.standing import layout_path

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
        return self.now()[1]

    def now(self) -> tuple[Map, Scene]:
        """The scene, and the map that it is of."""
        here = self.map()
        if self._tracker is None or self._tracker.map is not here:
            self._tracker = Tracker(here)
        return here, self._tracker.look(self._facts())

    def _facts(self) -> Facts:
        service = self._service
        metering, watching, reviewing = service.metering, service.watching, service.reviewing
        assert metering is not None, "a server meters"
        assert watching is not None, "and watches"
        assert reviewing is not None, "and reviews"
        return Facts(
            at=service.wall(),
            wall_ahead_seconds=service.fold.wall_ahead_seconds,
            nodes=service.fold.nodes,
            running=service.fold.running,
            rules=watching.rules,
            lately=metering.lately,
            newest=metering.newest,
            speaks_from=metering.speaks_from(service.now()),
            marks=reviewing.marks(),
            findings=watching.findings,
            lost=_lost(metering.readings()),
        )


def _lost(readings: Mapping[str, NodeReading]) -> frozenset[tuple[str, int]]:
    """Devices that were there and no longer answer."""
    return frozenset((node, gpu.index) for node, read in readings.items() for gpu in read.gpus if gpu.lost)
