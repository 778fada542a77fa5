"""A layout written down: the file that ``file`` reads, with the sources of what was found as remarks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml
from msgspec.structs import replace

from muster.layout.file import EACH_RACK, VERSION, File, GroupLine, PlaceLine, RackLine
from muster.layout.parts import (
    CORES,
    CPUS,
    GPU_MEMORY,
    GPU_MODEL,
    GPUS,
    MEMORY,
    RAM,
    SWITCH,
    Found,
    Gpus,
    Kind,
)
from muster.layout.ranges import fold, unfold
from muster.layout.words import printable
from muster.model.units import GIB, KIB, MIB, TIB

_WIDTH = 110


def to_yaml(file: File, remarks: Iterable[str] = ()) -> str:
    """Text that ``parse_layout`` reads as the same again."""
    written: dict[str, Any] = {"muster_layout": VERSION, "site": file.site}
    written |= {"kinds": {kind.name: _kind(kind) for kind in file.kinds}} if file.kinds else {}
    written |= {"racks": [_racks(line) for line in file.racks]} if file.racks else {}
    written |= {"place": [_place(line) for line in file.place]} if file.place else {}
    written |= {"groups": [_group(line) for line in file.groups]} if file.groups else {}
    text = yaml.safe_dump(written, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH)
    return "".join(f"# {printable(' '.join(line.split()))}\n" for line in remarks) + text


def as_file(found: Found, site: str) -> File:
    """What was found of a node, as somebody would have written it, who does not know yet where it stands."""
    values = {fact.about: fact.value for fact in reversed(found.facts)}
    gpus = None
    if found.gpus:
        numa = tuple(gpu.numa for gpu in found.gpus if gpu.numa is not None)
        gpus = Gpus(
            len(found.gpus),
            _text(values.get(GPU_MODEL)),
            _whole(values.get(GPU_MEMORY)),
            numa if len(numa) == len(found.gpus) else (),
        )
    cores, ram = values.get(CORES, values.get(CPUS)), values.get(RAM, values.get(MEMORY))
    kind = Kind(found.name, cores=_whole(cores), ram_bytes=_whole(ram), gpus=gpus)
    return File(site=site, kinds=(kind,), place=(PlaceLine((found.name,), kind.name),))


def as_one_file(found: Sequence[Found], site: str) -> File:
    """Many nodes, those alike under one kind, below the switches that they are said to be below."""
    kinds: dict[Kind, list[str]] = {}
    below: dict[str, list[str]] = {}
    for one in found:
        (kind,) = as_file(one, site).kinds
        kinds.setdefault(replace(kind, name=""), []).append(one.name)
        switch = next((fact.value for fact in one.facts if fact.about == SWITCH), None)
        if isinstance(switch, str):
            below.setdefault(switch, []).append(one.name)
    named = [
        (replace(kind, name=f"kind-{number}"), nodes) for number, (kind, nodes) in enumerate(kinds.items(), 1)
    ]
    return File(
        site=site,
        kinds=tuple(kind for kind, _ in named),
        place=tuple(PlaceLine(tuple(nodes), kind.name) for kind, nodes in named),
        groups=tuple(GroupLine((switch,), nodes=tuple(nodes)) for switch, nodes in below.items()),
    )


def sources(found: Found) -> Iterator[str]:
    """A remark for each fact: what it is, and who says so."""
    for fact in found.facts:
        yield f"{fact.about}: {fact}  ({fact.source})"
    if found.gpus is None:
        yield f"{GPUS}: not known (nobody here can tell)"
    for gpu in found.gpus or ():
        if gpu.bus is not None:
            yield f"GPU {gpu.number}: {gpu.bus}" + ("" if gpu.numa is None else f", NUMA node {gpu.numa}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _kind(kind: Kind) -> dict[str, Any]:
    said: dict[str, Any] = {"u": kind.u}
    said |= {"across": kind.across} if kind.across > 1 else {}
    said |= _known(cores=kind.cores, ram=_size(kind.ram_bytes))
    if kind.gpus is not None:
        gpus = kind.gpus
        memory, numa = _size(gpus.memory_bytes), [*gpus.numa] or None
        said["gpus"] = _known(model=gpus.model, count=gpus.count, mem=memory, numa=numa, link=gpus.link)
    return said


def _racks(line: RackLine) -> dict[str, Any]:
    first = line.racks[0]
    name = _folded([rack.name for rack in line.racks])
    return _known(name=name, room=first.room, row=first.row, units=first.units)


def _place(line: PlaceLine) -> dict[str, Any]:
    racks = _folded(line.racks) or None
    return _known(
        nodes=_folded(line.nodes), kind=line.kind, racks=racks, per_rack=line.per_rack, from_u=line.from_u
    )


def _group(line: GroupLine) -> dict[str, Any]:
    below = f"@{_folded(line.racks)}" if line.racks else _folded(line.nodes)
    members = EACH_RACK if line.each_rack else below
    return _known(type="switch", name=_folded(line.names), members=members, up=line.up)


def _folded(names: Sequence[str]) -> str:
    """Folded if that keeps their order, which says where they stand."""
    said = fold(names)
    return said if not names or unfold(said, len(names)) == [*names] else ",".join(names)


def _known(**values: object) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _size(value: int | None) -> str | None:
    """Bytes in the largest unit that says them exactly."""
    if value is None:
        return None
    for unit, size in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
