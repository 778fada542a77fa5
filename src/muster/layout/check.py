"""What is wrong or doubtful in a layout that could be read.

*Wrong* is what can't be: two nodes in one place, a kind that nobody described. *Doubtful* is what may be
meant, and is more often forgotten: a rack with nothing in it, a node of no kind.
"""

from collections import Counter
from collections.abc import Iterator, Set

import msgspec

from muster.application.names import nearest
from muster.layout.file import File, GroupLine, PlaceLine
from muster.layout.parts import UNPLACED
from muster.layout.ranges import fold
from muster.layout.stand import Standing, standing
from muster.model.units import show_count


class Flaw(msgspec.Struct, frozen=True):
    """``wrong``: it can't be so; otherwise it may be."""

    line: int | None
    said: str
    wrong: bool = True


_MOST_ALIKE = 3  # of one line, before the rest is counted
_DEEPEST = 16  # switches above each other


def check(file: File) -> list[Flaw]:
    """All that is to be said, by line; what is wrong first of those on one."""
    troubles: list[Flaw] = []

    def trouble(one: Standing, said: str) -> None:
        troubles.append(Flaw(one.line, said))

    stands, racks = standing(file, trouble)
    nodes = {stand.name for stand in stands}
    described = {rack.name for line in file.racks for rack in line.racks}
    kinds = [kind.name for kind in file.kinds]
    found = [
        *_few(troubles),
        *_racks(file),
        *(flaw for place in file.place for flaw in _place(place, kinds, described)),
        *_kinds(file),
        *_empty(file, {stand.rack for stand in stands}),
        *(flaw for group in file.groups for flaw in _group(group, nodes, racks.keys(), len(described))),
        *_switches(file),
    ]
    return sorted(found, key=lambda flaw: (flaw.line or 0, not flaw.wrong, flaw.said))


def _few(troubles: list[Flaw]) -> Iterator[Flaw]:
    """Whoever shifts a hundred nodes by one unit needs to read it three times, not a hundred."""
    told: Counter[int | None] = Counter()
    for flaw in troubles:
        told[flaw.line] += 1
        if told[flaw.line] <= _MOST_ALIKE:
            yield flaw
    for line, count in told.items():
        if count > _MOST_ALIKE:
            yield Flaw(line, f"and {count - _MOST_ALIKE} more of this line can't stand where it says")


def _racks(file: File) -> Iterator[Flaw]:
    seen: dict[str, int | None] = {}
    for line in file.racks:
        twice = [rack.name for rack in line.racks if rack.name in seen]
        if twice:
            yield Flaw(line.line, f"{_named('rack', twice)} was described before, at line {seen[twice[0]]}")
        seen |= {rack.name: line.line for rack in line.racks if rack.name not in seen}


def _place(place: PlaceLine, kinds: list[str], described: set[str]) -> Iterator[Flaw]:
    if place.kind is None:
        yield Flaw(
            place.line, f"of {_named('node', place.nodes)} nobody says the kind: add kind", wrong=False
        )
    elif place.kind not in kinds:
        hint = nearest(place.kind, kinds) if kinds else "describe it, under kinds"
        yield Flaw(place.line, f"there is no kind {place.kind!r}; {hint}")
    unknown = [rack for rack in place.racks if rack not in described]
    if unknown:
        yield Flaw(place.line, f"{_named('rack', unknown)} is not among racks; describe it there")
    if not place.racks:
        said = f"{_named('node', place.nodes)} has no rack, and is drawn in {UNPLACED!r}"
        yield Flaw(place.line, said, wrong=False)
    yield from _spread(place)


def _spread(place: PlaceLine) -> Iterator[Flaw]:
    if not place.racks or place.per_rack is None:
        return
    room, many = len(place.racks) * place.per_rack, len(place.nodes)
    if many > room:
        left = _named("node", place.nodes[room:])
        yield Flaw(place.line, f"{show_count(len(place.racks), 'rack')} of {place.per_rack} leave out {left}")
    elif many <= room - place.per_rack:
        unused = _named("rack", place.racks[-(-many // place.per_rack) :])
        yield Flaw(place.line, f"{show_count(many, 'node')} do not reach {unused}", wrong=False)


def _kinds(file: File) -> Iterator[Flaw]:
    used = {place.kind for place in file.place}
    for kind in file.kinds:
        if kind.name not in used:
            yield Flaw(kind.line, f"no node is of kind {kind.name!r}", wrong=False)


def _empty(file: File, taken: set[str]) -> Iterator[Flaw]:
    for line in file.racks:
        empty = [rack.name for rack in line.racks if rack.name not in taken]
        if empty:
            yield Flaw(line.line, f"nothing stands in {_named('rack', empty)}", wrong=False)


def _group(group: GroupLine, nodes: set[str], racks: Set[str], described: int) -> Iterator[Flaw]:
    if group.each_rack and len(group.names) != described:
        said = f"there are {len(group.names)} names for {show_count(described, 'rack')}"
        yield Flaw(group.line, f"{said}; '@rack' means one for each rack, in order")
    strangers = [name for name in group.nodes if name not in nodes]
    if strangers:
        yield Flaw(group.line, f"{_named('node', strangers)} has no line in place", wrong=False)
    unknown = [name for name in group.racks if name not in racks]
    if unknown:
        yield Flaw(group.line, f"there is no rack {fold(unknown)}")
    same = [name for name in group.names if name in racks]
    if same:
        said = f"a switch is called like rack {fold(same)}, and is not one; call it otherwise"
        yield Flaw(group.line, said, wrong=False)


def _switches(file: File) -> Iterator[Flaw]:
    """Each once, each node below one, and none above itself."""
    up = {name: group.up for group in file.groups for name in group.names}
    seen: dict[str, int | None] = {}
    below: dict[str, str] = {}
    for group in file.groups:
        for name in group.names:
            if name in seen:
                yield Flaw(group.line, f"switch {name!r} was described before, at line {seen[name]}")
            seen.setdefault(name, group.line)
            if _is_deep(name, up):
                yield Flaw(group.line, f"switch {name!r} is above itself, or below {_DEEPEST} others")
        for node in group.nodes:
            if node in below:
                yield Flaw(group.line, f"node {node!r} is below switch {below[node]!r} already")
            below.setdefault(node, group.names[0])


def _is_deep(name: str, up: dict[str, str | None]) -> bool:
    """Whether following the switches upwards does not come to an end soon."""
    at: str | None = name
    for _ in range(_DEEPEST):
        at = None if at is None else up.get(at)
    return at is not None


def _named(what: str, names: list[str] | tuple[str, ...]) -> str:
    folded = fold(names)
    return f"{what}{'s' * (len(names) > 1)} {folded if len(folded) <= 80 else folded[:77] + '…'}"
