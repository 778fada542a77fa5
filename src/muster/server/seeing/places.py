"""What stands where: the layout's file laid over the nodes that the engine knows, and the boxes of both.

To merge and to measure out a large site takes a while, so it is done once, and again when the file or the
hardware has changed; what comes and goes (health, jobs) changes no place. Each map has a *generation*, by
which whoever has drawn the one before knows that it has to be drawn anew.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from muster.layout.file import File
from muster.layout.found import found_by
from muster.layout.geometry import Box, geometry, gpu_id
from muster.layout.merge import merge
from muster.layout.parts import Found, Layout, Rack, Spot
from muster.layout.read import read_layout
from muster.model.errors import BadInput
from muster.model.node import Node
from muster.server.standing import ENGINE

log = logging.getLogger("muster")


class GpuAt(NamedTuple):
    """A GPU on the map: its node, its number there for whoever grants it, and whether anybody sees it."""

    node: str
    device: int
    is_seen: bool


class Map(msgspec.Struct, frozen=True):
    """The place as it is drawn, and ways to find things on it."""

    layout: Layout
    boxes: tuple[Box, ...]
    generation: int
    spots: Mapping[str, Spot]  # by name
    racks: Mapping[str, Rack]
    gpus: Mapping[str, GpuAt]  # by the id of its box
    box_of: Mapping[tuple[str, int], str]  # of a GPU, by node and the number by which it is granted

    @classmethod
    def of(cls, layout: Layout, generation: int = 1) -> "Map":
        gpus = {
            gpu_id(spot.name, gpu.number): GpuAt(spot.name, gpu.device, gpu.seen is not False)
            for spot in layout.spots
            for gpu in spot.gpus
        }
        return cls(
            layout,
            geometry(layout),
            generation,
            spots={spot.name: spot for spot in layout.spots},
            racks={rack.name: rack for rack in layout.racks},
            gpus=gpus,
            box_of={(at.node, at.device): box for box, at in gpus.items() if at.is_seen},
        )


class Places:
    """The map, kept until the file or the hardware is another."""

    def __init__(self, find_file: Callable[[], Path | None]) -> None:
        self._find_file = find_file
        self._file: File | None = None
        self._stamp: tuple[object, ...] | None = None  # of the file that was read last
        self._nodes: dict[str, Node] = {}
        self._found: dict[str, Found] = {}
        self._map: Map | None = None

    def look(self, nodes: Mapping[str, Node]) -> Map:
        """The map of these nodes. What is wrong with the file is said once, and the one before stays."""
        is_new = self._look_at_file()
        if self._look_at(nodes) or is_new or self._map is None:
            generation = 1 if self._map is None else self._map.generation + 1
            self._map = Map.of(merge(self._file or self._nameless(), self._all_found()), generation)
        return self._map

    def _look_at(self, nodes: Mapping[str, Node]) -> bool:
        """Whether the hardware is another. Who is drained or down stands where it stood."""
        if len(nodes) == len(self._nodes) and all(self._nodes.get(n) is node for n, node in nodes.items()):
            return False
        found = {
            name: self._found[name] if self._nodes.get(name) is node else found_by(ENGINE, node)
            for name, node in nodes.items()
        }
        self._nodes = dict(nodes)
        before, self._found = self._found, found
        return found != before

    def _look_at_file(self) -> bool:
        path = self._find_file()
        stamp = _stamp(path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            file = None if path is None else read_layout(path)
        except BadInput as wrong:
            log.warning("%s; the map stays as it was", wrong)
            return False
        before, self._file = self._file, file
        return file != before

    def _all_found(self) -> tuple[Found, ...]:
        return tuple(self._found.values())

    def _nameless(self) -> File:
        """Where nobody wrote anything, one machine is its own site."""
        return File(site=next(iter(self._nodes))) if len(self._nodes) == 1 else File()


def _stamp(path: Path | None) -> tuple[object, ...]:
    """Differs between files and between versions of one; an error has its number."""
    if path is None:
        return ()
    try:
        found = path.stat()
    except OSError as error:
        return (path, error.errno)
    return (path, found.st_mtime_ns, found.st_size, found.st_ino)
