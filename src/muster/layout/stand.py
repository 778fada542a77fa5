"""Where the nodes of a file stand: a line of ``place`` taken apart, node by node.

Racks are filled in the order of the line, each from the left, then upwards. Where two nodes would stand in
the same place, or one would stick out of its rack, the first keeps it and the other is in that rack without
a unit of its own: placement still knows its rack, the map draws it where there is room, and ``check`` says
what is wrong.
"""

from collections.abc import Callable, Iterator

import msgspec

from muster.layout.file import File, PlaceLine
from muster.layout.parts import UNPLACED, Kind, Rack

Trouble = Callable[["Standing", str], None]  # told of each that can't stand there, and why


class Standing(msgspec.Struct, frozen=True):
    """A node of the file, in its place."""

    name: str
    rack: str
    at_u: int | None = None
    column: int = 0
    u: int = 1
    across: int = 1
    kind: str | None = None
    line: int | None = None


def standing(
    file: File, trouble: Trouble = lambda _, __: None
) -> tuple[tuple[Standing, ...], dict[str, Rack]]:
    """Every node of the file once, and the racks: those of the file, then those that only a place names."""
    racks: dict[str, Rack] = {}
    for line in file.racks:
        for rack in line.racks:
            racks.setdefault(rack.name, rack)
    kinds = {kind.name: kind for kind in file.kinds}
    floor = _Floor(racks)
    found: dict[str, Standing] = {}
    for place in file.place:
        for one in _spread(place, kinds.get(place.kind or "", Kind(""))):
            if one.name in found:
                trouble(one, f"{one.name!r} has a place already, at line {found[one.name].line}")
                continue
            found[one.name] = floor.stood(one, trouble)
    return tuple(found.values()), racks


def _spread(place: PlaceLine, kind: Kind) -> Iterator[Standing]:
    """Where the line says that each stands, whether that can be or not."""
    many = place.per_rack or -(-len(place.nodes) // max(1, len(place.racks)))
    from_u = place.from_u or 1
    for number, name in enumerate(place.nodes):
        index, within = divmod(number, many)
        shelf, column = divmod(within, kind.across)
        if index >= len(place.racks):
            yield Standing(name, UNPLACED, None, 0, kind.u, kind.across, place.kind, place.line)
        else:
            at_u = from_u + shelf * kind.u
            yield Standing(
                name, place.racks[index], at_u, column, kind.u, kind.across, place.kind, place.line
            )


class _Floor:
    """The racks, as they fill up."""

    def __init__(self, racks: dict[str, Rack]) -> None:
        self._racks = racks
        self._taken: dict[tuple[str, int], list[Standing]] = {}  # by rack and unit

    def stood(self, one: Standing, trouble: Trouble) -> Standing:
        if one.rack == UNPLACED or one.at_u is None:
            return one
        rack = self._racks.setdefault(one.rack, Rack(one.rack))
        units = range(one.at_u, one.at_u + one.u)
        if units[-1] > rack.units:
            trouble(
                one, f"{one.name!r} would reach U{units[-1]} of rack {rack.name!r}, which has {rack.units}"
            )
            return msgspec.structs.replace(one, at_u=None, column=0)
        other = next((o for u in units for o in self._taken.get((one.rack, u), ()) if overlap(one, o)), None)
        if other is not None:
            trouble(
                one, f"{one.name!r} would stand where {other.name!r} is, in rack {rack.name!r} at U{one.at_u}"
            )
            return msgspec.structs.replace(one, at_u=None, column=0)
        for u in units:
            self._taken.setdefault((one.rack, u), []).append(one)
        return one


def overlap(one: Standing, other: Standing) -> bool:
    """Whether two at the same height overlap sideways."""
    starts = one.column * other.across < (other.column + 1) * one.across
    return starts and other.column * one.across < (one.column + 1) * other.across
