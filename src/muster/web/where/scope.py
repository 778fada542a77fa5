"""What of the map is in view: all of it, a row or a rack; from how near; and the way there."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from muster.layout.geometry import Box, Level, Zoom, rack_id, within
from muster.layout.parts import UNPLACED, Contradiction, Spot
from muster.server.config_values import nearest, shown
from muster.server.errors import NotFound
from muster.server.seeing.places import Map
from muster.server.seeing.scene import NodeNow, Scene, Tally
from muster.web.where.asked import Asked

NEAR, FAR = 1500, 8000  # of so many GPUs each is drawn; of so many, each node
_HIGH, _HIGH_RACK, _WIDE, _LARGEST = 1000.0, 800.0, 2600.0, 2.4  # a picture in pixels, at most; its scale
_ROW = "row-"
T = TypeVar("T")


class Crumb(msgspec.Struct, frozen=True):
    """A step on the way. ``url`` None: one is there."""

    name: str
    url: str | None


class Scope:
    """The boxes in view. ``spot``: the node that somebody looks at."""

    def __init__(self, here: Map, scene: Scene, asked: Asked) -> None:
        self.map, self.scene, self.asked = here, scene, asked
        self.spot = _named(here.spots, "node", asked.node)
        self._by_id = {box.id: box for box in here.boxes if box.level in (Level.SITE, Level.ROW, Level.RACK)}
        self.root = self._root()
        self.is_whole, self.is_rack = self.root.level is Level.SITE, self.root.level is Level.RACK
        self.boxes = here.boxes if self.is_whole else within(here.boxes, self.root.id)
        self.tallies = self._tallies()
        self.tally = self.tallies[self.root.id]
        self.zoom = asked.zoom or self._fitting()

    # --- Where ----------------------------------------------------------------------------------------

    def _root(self) -> Box:
        """A node is shown among the others where that can be drawn, and in its rack otherwise."""
        asked = self.asked
        if asked.rack is not None:
            _named(self.map.racks, "rack", asked.rack)
            return self._by_id[rack_id(asked.rack)]
        if asked.row is not None:
            rows = {box.id.removeprefix(_ROW): box for box in self._by_id.values() if box.level is Level.ROW}
            return _named(rows, "row", asked.row) or self.map.boxes[0]
        if self.spot is not None and self.scene.tally.total + len(self.scene.nodes) > NEAR:
            return self._by_id[rack_id(self.spot.rack)]
        return self.map.boxes[0]

    def _tallies(self) -> dict[str, Tally]:
        """Of every box in view that is no GPU."""
        found: dict[str, Tally] = {self.root.id: self.scene.tally} if self.is_whole else {}
        rows: dict[str, list[Tally]] = {}
        for box in self.boxes:
            if box.level is Level.NODE:
                found[box.id] = self.scene.nodes[box.id].tally
            elif box.level is Level.RACK:
                found[box.id] = self.scene.racks[box.id]
                rows.setdefault(box.parent or "", []).append(found[box.id])
        for row, tallies in rows.items():
            if self._by_id[row].level is Level.ROW and (self.is_whole or row == self.root.id):
                found[row] = sum(tallies, Tally())
        for box in self.boxes[:2]:  # a row or a site without racks
            found.setdefault(box.id, Tally())
        return found

    def _fitting(self) -> Zoom:
        many = self.tally.total + sum(not now.tally.total for now in self.nodes())
        return Zoom.NODE if many <= NEAR else Zoom.RACK if many <= FAR else Zoom.SITE

    @property
    def level(self) -> str:
        """What of the stream this needs."""
        return {Zoom.NODE: "gpus", Zoom.RACK: "nodes", Zoom.SITE: "racks"}[self.zoom]

    @property
    def size(self) -> tuple[float, float]:
        """In pixels, at most; narrower screens make it smaller."""
        high = _HIGH_RACK if self.is_rack else _HIGH
        scale = min(_LARGEST, high / self.root.h, _WIDE / self.root.w)
        if self.root.w > _WIDE:  # a large site is as wide as the screen, however high it is
            scale = _WIDE / self.root.w
        return self.root.w * scale, self.root.h * scale

    # --- What -----------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[NodeNow]:
        return (self.scene.nodes[box.id] for box in self.boxes if box.level is Level.NODE)

    def spots(self) -> Iterator[Spot]:
        return (self.map.spots[box.name] for box in self.boxes if box.level is Level.NODE)

    def loose(self) -> int:
        """How many nodes are there of which nobody has said where they stand; one machine stands alone."""
        count = sum(1 for spot in self.map.layout.spots if spot.rack == UNPLACED)
        return 0 if self.one_machine is not None else count

    def contradictions(self) -> list[Contradiction]:
        names = {box.name for box in self.boxes if box.level is Level.NODE}
        return [one for one in self.map.layout.contradictions if one.node in names]

    # --- The way --------------------------------------------------------------------------------------

    def crumbs(self) -> list[Crumb]:
        """Site, row, rack, node: as far as one has gone."""
        rack = self.asked.rack or (self.spot.rack if self.spot else None)
        row = self._by_id[(self._by_id[rack_id(rack)].parent or "") if rack else self.root.id]
        crumbs = [Crumb(self.map.layout.site or "site", self._url())]
        if row.level is Level.ROW and row.name:
            crumbs.append(Crumb(row.name, self._url(row=row.id.removeprefix(_ROW))))
        if rack and rack != UNPLACED:
            crumbs.append(Crumb(f"rack {rack}", self._url(rack=rack)))
        if self.spot is not None:
            crumbs.append(Crumb(self.spot.name, None))
        return [*crumbs[:-1], Crumb(crumbs[-1].name, None)]

    def _url(self, **where: str) -> str:
        return self.asked.url(**{"row": None, "rack": None, "node": None, "zoom": None, **where})

    def link(self, box: Box) -> str | None:
        """Into a rack or a node; what else was chosen stays."""
        if box.level is Level.NODE:
            return self.asked.url(node=box.name)
        if box.level is Level.RACK and box.id != self.root.id:
            return self._url(rack=box.name)
        if box.level is Level.ROW and box.id != self.root.id and box.name:
            return self._url(row=box.id.removeprefix(_ROW))
        return None

    @property
    def out(self) -> str:
        """One step back."""
        urls = [crumb.url for crumb in self.crumbs() if crumb.url]
        if self.spot is not None:
            return self.asked.url(node=None)
        return urls[-1] if urls else "/where"

    @property
    def one_machine(self) -> Spot | None:
        """Where there is only one, it is shown large and not on a map."""
        spots = self.map.layout.spots
        return spots[0] if len(spots) == 1 and spots[0].rack == UNPLACED else None


def _named(known: Mapping[str, T], what: str, name: str | None) -> T | None:
    if name is None:
        return None
    if name not in known:
        raise NotFound(f"there is no {what} {shown(name)} on the map; {nearest(name, list(known))}")
    return known[name]
