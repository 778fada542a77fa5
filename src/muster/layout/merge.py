"""The file laid over what was found, by the name of each node.

What people wrote holds, since nobody but them knows where things stand; what instruments saw is kept beside
it, and where the two differ that is shown. A GPU that the file has and nobody sees keeps its place on the
map. Whoever has no place goes to a rack that says so, and a switch is never taken for a rack.
"""

from collections.abc import Iterator

import msgspec

from muster.layout.file import File, GroupLine
from muster.layout.parts import (
    CORES,
    GPU_LINK,
    GPU_MEMORY,
    GPU_MODEL,
    GPU_NUMA,
    GPUS,
    KIND,
    RACK,
    RAM,
    SWITCH,
    UNPLACED,
    Contradiction,
    Fact,
    Found,
    Gpu,
    Kind,
    Layout,
    Rack,
    Spot,
    Switch,
    Value,
)
from muster.layout.stand import Standing, standing

_ROUGHLY = 0.1  # firmware keeps some memory for itself, and vendors count in thousands


def merge(file: File | None, found: tuple[Found, ...] = ()) -> Layout:
    """One map of both. Without a file, what was found is where its engine says, or has no place."""
    file = file or File()
    stands, racks = standing(file)
    kinds = {kind.name: kind for kind in file.kinds}
    switches = _switches(file, stands)
    switch_of = _switch_facts(file, switches)
    seen = {one.name: one for one in found}
    facts_of = _WrittenFacts(file, kinds)
    spots = [
        _spot(
            stand,
            facts_of(stand),
            kinds.get(stand.kind or ""),
            switch_of.get(stand.name),
            seen.get(stand.name),
        )
        for stand in stands
    ]
    written = {stand.name for stand in stands}
    spots += [_unwritten(one, switch_of.get(one.name)) for one in found if one.name not in written]
    contradictions = tuple(c for spot in spots if spot.name in seen for c in _contradictions(spot))
    return Layout(file.site, _all_racks(racks, spots), tuple(spots), switches, contradictions)


def _all_racks(racks: dict[str, Rack], spots: list[Spot]) -> tuple[Rack, ...]:
    """Also those that only an engine names, and at the end the one for nodes without a place."""
    named = dict(racks)
    for spot in spots:
        if spot.rack not in named and spot.rack != UNPLACED:
            named[spot.rack] = Rack(spot.rack)
    unplaced = [Rack(UNPLACED)] if any(spot.rack == UNPLACED for spot in spots) else []
    return (*named.values(), *unplaced)


# --- Facts of the file ----------------------------------------------------------------------------------


class _WrittenFacts:
    """What a file says of the nodes of a line, made once for all of them."""

    def __init__(self, file: File, kinds: dict[str, Kind]) -> None:
        self._file, self._kinds = file, kinds
        self._made: dict[tuple[str | None, str, int | None], tuple[Fact, ...]] = {}

    def __call__(self, stand: Standing) -> tuple[Fact, ...]:
        key = stand.kind, stand.rack, stand.line
        if key not in self._made:
            self._made[key] = self._facts(stand)
        return self._made[key]

    def _facts(self, stand: Standing) -> tuple[Fact, ...]:
        source = self._file.source(stand.line)
        place = [Fact(RACK, stand.rack, source)] if stand.rack != UNPLACED else []
        if stand.kind is None:
            return tuple(place)
        kind = self._kinds.get(stand.kind)
        named = Fact(KIND, stand.kind, source)
        return (*place, named, *(kind_facts(kind, self._file.source(kind.line)) if kind else ()))


def kind_facts(kind: Kind, source: str) -> tuple[Fact, ...]:
    said: dict[str, Value | None] = {CORES: kind.cores, RAM: kind.ram_bytes}
    if kind.gpus is not None:
        said |= {
            GPUS: kind.gpus.count,
            GPU_MODEL: kind.gpus.model,
            GPU_MEMORY: kind.gpus.memory_bytes,
            GPU_NUMA: ",".join(map(str, kind.gpus.numa)) or None,
            GPU_LINK: kind.gpus.link,
        }
    return tuple(Fact(about, value, source) for about, value in said.items() if value is not None)


def _switches(file: File, stands: tuple[Standing, ...]) -> tuple[Switch, ...]:
    in_rack: dict[str, list[str]] = {rack.name: [] for line in file.racks for rack in line.racks}
    for stand in stands:
        in_rack.setdefault(stand.rack, []).append(stand.name)
    in_rack.pop(UNPLACED, None)
    found: dict[str, Switch] = {}
    for group in file.groups:
        for name, nodes in _members(group, in_rack):
            found.setdefault(name, Switch(name, nodes, group.up))
    return tuple(found.values())


def _members(group: GroupLine, in_rack: dict[str, list[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each switch of a line, and the nodes below it."""
    if group.each_rack:
        yield from zip(group.names, map(tuple, in_rack.values()), strict=False)
    else:
        below = [name for rack in group.racks for name in in_rack.get(rack, ())]
        yield group.names[0], tuple(dict.fromkeys((*below, *group.nodes)))


def _switch_facts(file: File, switches: tuple[Switch, ...]) -> dict[str, Fact]:
    """The switch of each node; the first that names it."""
    source = {name: file.source(group.line) for group in file.groups for name in group.names}
    found: dict[str, Fact] = {}
    for switch in switches:
        fact = Fact(SWITCH, switch.name, source[switch.name])
        for node in switch.nodes:
            found.setdefault(node, fact)
    return found


# --- One node -------------------------------------------------------------------------------------------


def _spot(
    stand: Standing, written: tuple[Fact, ...], kind: Kind | None, switch: Fact | None, found: Found | None
) -> Spot:
    facts = written if switch is None else (*written, switch)
    if found is not None:
        facts = (*facts, *found.facts)
    spot = Spot(
        stand.name,
        stand.rack,
        stand.at_u,
        stand.column,
        stand.u,
        stand.across,
        None if switch is None else str(switch.value),
        stand.kind,
        _gpus(kind, found),
        facts,
    )
    return spot if found is None else _with_engine(spot)


def _unwritten(found: Found, switch: Fact | None) -> Spot:
    """A node that no place of the file names."""
    facts = found.facts if switch is None else (switch, *found.facts)
    return _with_engine(Spot(found.name, UNPLACED, gpus=found.gpus or (), facts=facts))


def _with_engine(spot: Spot) -> Spot:
    """What the engine knows of its rack and switch, where the file is silent."""
    rack, switch = spot.fact(RACK), spot.fact(SWITCH)
    return msgspec.structs.replace(
        spot,
        rack=str(rack.value) if rack is not None else UNPLACED,
        switch=str(switch.value) if switch is not None else None,
    )


def _gpus(kind: Kind | None, found: Found | None) -> tuple[Gpu, ...]:
    """Those that the file has, each with the one seen in its place; then those that were only seen."""
    written = () if kind is None else kind.each_gpu
    if found is None or found.gpus is None:
        return written
    matched = _matched(written, found.gpus)
    known = [_one(mine, theirs) for mine, theirs in zip(written, matched, strict=True)]
    taken = {theirs.number for theirs in matched if theirs is not None}
    further = [gpu for gpu in found.gpus if gpu.number not in taken]
    return (*known, *(_numbered(gpu, len(known) + at) for at, gpu in enumerate(further)))


def _numbered(gpu: Gpu, number: int) -> Gpu:
    """Under its number on the map; the one that it was found by stays known, if it is another."""
    found_as = gpu.number if gpu.number != number else None
    return msgspec.structs.replace(gpu, number=number, found_as=found_as)


def _matched(written: tuple[Gpu, ...], seen: tuple[Gpu, ...]) -> list[Gpu | None]:
    """Which was seen in whose place. If some are missing, the memory nodes tell which, where they can."""
    left = list(seen)
    numas = [gpu.numa for gpu in written]
    if len(seen) < len(written) and None not in numas and all(gpu.numa in numas for gpu in seen):
        found: list[Gpu | None] = []
        for mine in written:
            match = next((gpu for gpu in left if gpu.numa == mine.numa), None)
            found.append(match)
            left = [gpu for gpu in left if gpu is not match]
        return found if not left else _in_order(written, seen)
    return _in_order(written, seen)


def _in_order(written: tuple[Gpu, ...], seen: tuple[Gpu, ...]) -> list[Gpu | None]:
    return [seen[at] if at < len(seen) else None for at in range(len(written))]


def _one(written: Gpu, seen: Gpu | None) -> Gpu:
    if seen is None:
        return msgspec.structs.replace(written, seen=False)
    return Gpu(
        written.number,
        written.model or seen.model,
        written.memory_bytes or seen.memory_bytes,
        written.numa if written.numa is not None else seen.numa,
        seen.bus,
        seen=True,
        found_as=seen.number if seen.number != written.number else None,
    )


# --- Where sources differ -------------------------------------------------------------------------------


def _contradictions(spot: Spot) -> list[Contradiction]:
    believed: dict[str, Fact] = {}
    found = []
    for fact in spot.facts:
        first = believed.setdefault(fact.about, fact)
        if not agree(first, fact):
            found.append(Contradiction(spot.name, first, fact))
    return found


def agree(one: Fact, other: Fact) -> bool:
    """Whether two facts about the same can both be true."""
    a, b = one.value, other.value
    if a == b:
        return True
    if one.about in (RAM, GPU_MEMORY) and isinstance(a, int) and isinstance(b, int):
        return abs(a - b) <= _ROUGHLY * max(a, b)
    if one.about == GPU_NUMA:  # of as many; if some are missing, that is said by their count
        return str(a).count(",") != str(b).count(",")
    if one.about == GPU_MODEL:  # "A40" is what people write for "NVIDIA A40-48Q"
        short, long = sorted((str(a).casefold(), str(b).casefold()), key=len)
        return set(short.split()) <= set(long.replace("-", " ").split()) or short in long.split()
    return False
