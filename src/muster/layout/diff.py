"""Two layouts: what was added, removed, moved or changed from one to the other."""

from collections.abc import Iterator

import msgspec

from muster.layout.parts import KIND, RACK, SWITCH, Fact, Layout, Rack, Spot, Switch
from muster.layout.ranges import fold
from muster.layout.words import printable

ADDED, REMOVED, MOVED, CHANGED = "added", "removed", "moved", "changed"


class Change(msgspec.Struct, frozen=True):
    """The same change of things that are alike. ``before`` and ``after`` None: there was or is nothing."""

    verb: str
    what: str  # rack, node, switch
    names: tuple[str, ...]
    about: str = ""
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        said = f"{self.verb} {self.what} {printable(fold(self.names))}"
        if self.before is None and self.after is None:
            return said
        about = f"{self.about} " if self.about else ""
        return f"{said}: {about}{printable(self.before or 'nothing')} → {printable(self.after or 'nothing')}"


def diff(old: Layout, new: Layout) -> list[Change]:
    """Changes in the order in which the map is read: site, racks, nodes, switches."""
    found: dict[tuple[str, str, str, str | None, str | None], list[str]] = {}
    for one in (*_site(old, new), *_racks(old, new), *_nodes(old, new), *_switches(old, new)):
        key = one.verb, one.what, one.about, one.before, one.after
        found.setdefault(key, []).extend(one.names)
    return [Change(v, w, tuple(names), a, before, after) for (v, w, a, before, after), names in found.items()]


def _site(old: Layout, new: Layout) -> Iterator[Change]:
    if old.site != new.site:
        yield Change(CHANGED, "site", (old.site,), "name", old.site, new.site)


def _racks(old: Layout, new: Layout) -> Iterator[Change]:
    before, after = {r.name: r for r in old.racks}, {r.name: r for r in new.racks}
    yield from _comings("rack", [*before], [*after])
    for name in [name for name in before if name in after]:
        yield from _rack(before[name], after[name])


def _rack(old: Rack, new: Rack) -> Iterator[Change]:
    if (old.room, old.row) != (new.room, new.row):
        yield Change(MOVED, "rack", (old.name,), "", _around(old), _around(new))
    if old.units != new.units:
        yield Change(CHANGED, "rack", (old.name,), "units", str(old.units), str(new.units))


def _around(rack: Rack) -> str | None:
    return ", ".join(filter(None, (rack.room, f"row {rack.row}" if rack.row else None))) or None


def _nodes(old: Layout, new: Layout) -> Iterator[Change]:
    before, after = {s.name: s for s in old.spots}, {s.name: s for s in new.spots}
    yield from _comings("node", [*before], [*after])
    for name in [name for name in before if name in after]:
        yield from _node(before[name], after[name])


def _node(old: Spot, new: Spot) -> Iterator[Change]:
    if old.rack != new.rack:
        yield Change(MOVED, "node", (old.name,), "", f"rack {old.rack}", f"rack {new.rack}")
    elif (old.at_u, old.column) != (new.at_u, new.column):
        yield Change(MOVED, "node", (old.name,), "", _unit(old), _unit(new))
    yield from _facts(old, new)


def _unit(spot: Spot) -> str | None:
    return (
        None
        if spot.at_u is None
        else f"U{spot.at_u}" + (f" column {spot.column + 1}" if spot.across > 1 else "")
    )


def _facts(old: Spot, new: Spot) -> Iterator[Change]:
    """Those that hold. The rack is where it stands, and was told."""
    before, after = _holding(old), _holding(new)
    for about in dict.fromkeys((*before, *after)):
        a, b = before.get(about), after.get(about)
        if (a and a.value) != (b and b.value):
            said = (None if fact is None else str(fact) for fact in (a, b))
            yield Change(CHANGED, "node", (old.name,), about, *said)


def _holding(spot: Spot) -> dict[str, Fact]:
    found: dict[str, Fact] = {}
    for fact in spot.facts:
        if fact.about != RACK:
            found.setdefault(fact.about, fact)
    return dict(sorted(found.items(), key=lambda item: (item[0] not in (KIND, SWITCH), item[0])))


def _switches(old: Layout, new: Layout) -> Iterator[Change]:
    before, after = {s.name: s for s in old.switches}, {s.name: s for s in new.switches}
    yield from _comings("switch", [*before], [*after])
    for name in [name for name in before if name in after]:
        yield from _switch(before[name], after[name])


def _switch(old: Switch, new: Switch) -> Iterator[Change]:
    if old.up != new.up:
        yield Change(CHANGED, "switch", (old.name,), "up", old.up, new.up)


def _comings(what: str, before: list[str], after: list[str]) -> Iterator[Change]:
    gone, come = set(before) - set(after), set(after) - set(before)
    if gone:
        yield Change(REMOVED, what, tuple(name for name in before if name in gone))
    if come:
        yield Change(ADDED, what, tuple(name for name in after if name in come))
