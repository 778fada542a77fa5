"""RacksDB's database in one YAML file → a layout.

Taken over: types of nodes with their height, width, processors, memory and GPUs; rooms, rows and racks; and
where the nodes of each infrastructure stand. Its nodes fill a rack from the left and then upwards, as ours
do. Left out: storage, network and other equipment, which have no jobs; positions in a room; tags.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from muster.application.located import located
from muster.application.names import parse_name
from muster.application.yaml_text import read_yaml
from muster.layout.file import (
    MOST_GPUS_OF_A_NODE,
    MOST_NODES,
    MOST_RACKS,
    MOST_UNITS,
    File,
    PlaceLine,
    RackLine,
)
from muster.layout.parts import USUAL_UNITS, Gpus, Kind, Rack
from muster.layout.ranges import unfold
from muster.model.errors import BadInput
from muster.model.units import parse_bytes

_MOST_ACROSS = 16
_UNITS = re.compile(r"([0-9]{1,4})u?", re.IGNORECASE)
_WIDTH = re.compile(r"[0-9]{1,4}(?:/[0-9]{1,4}|\.[0-9]{1,4})?")


def is_racksdb(value: object) -> bool:
    return isinstance(value, dict) and "infrastructures" in value


def from_racksdb(text: str, name: str) -> File:
    """The layout of all infrastructures in the file, or one sentence why there is none."""
    value = read_yaml(text, name).value
    with located(name, None):
        if not is_racksdb(value):
            raise BadInput("this is no database of RacksDB: it has no infrastructures")
        return _Database(value).file()


class _Database:
    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        types = _table(value, "types")
        self._slots = {_name(one, "id"): one for one in _tables(types, "racks")}
        self._nodes_left, self._racks_left = MOST_NODES, MOST_RACKS
        self._first: dict[str, int] = {}  # of each rack, how its lowest unit is counted

    def file(self) -> File:
        kinds = tuple(_kind(one) for one in _tables(_table(self._value, "types"), "nodes"))
        centers = _tables(self._value, "datacenters")
        site = _name(centers[0], "name") if centers else "site"
        racks = tuple(line for center in centers for line in self._racks(center))
        parts = [p for infra in _tables(self._value, "infrastructures") for p in _tables(infra, "layout")]
        place = tuple(line for part in parts for line in self._place(part))
        return File(site=site, kinds=kinds, racks=racks, place=place)

    def _racks(self, center: dict[str, Any]) -> Iterator[RackLine]:
        for room in _tables(center, "rooms"):
            for row in _tables(room, "rows"):
                for one in _tables(row, "racks"):
                    names = self._unfolded(one, "_racks_left")
                    kind = self._slots.get(str(one.get("type")), {})
                    units = _units(kind.get("slots", USUAL_UNITS))
                    self._first |= dict.fromkeys(names, _number(kind.get("initial", "1")))
                    where = _name(room, "name"), _name(row, "name")
                    yield RackLine(tuple(Rack(name, *where, units) for name in names))

    def _place(self, part: dict[str, Any]) -> Iterator[PlaceLine]:
        rack = _name(part, "rack")
        for one in _tables(part, "nodes"):
            nodes = self._unfolded(one, "_nodes_left")
            from_u = _number(one.get("slot", "1")) - self._first.get(rack, 1) + 1
            yield PlaceLine(nodes, _name(one, "type"), (rack,), len(nodes), max(1, from_u))

    def _unfolded(self, one: dict[str, Any], budget: str) -> tuple[str, ...]:
        names = unfold(_name(one, "name"), getattr(self, budget))
        setattr(self, budget, getattr(self, budget) - len(names))
        return tuple(names)


def _kind(one: dict[str, Any]) -> Kind:
    cpu = _table(one, "cpu") or _table(one, "cpus")
    ram = _table(one, "ram")
    return Kind(
        _name(one, "id"),
        _units(one.get("height", "1")),
        _across(one.get("width", "full")),
        _number(cpu.get("sockets", "1")) * _number(cpu["cores"]) if "cores" in cpu else None,
        _number(ram.get("dimm", "1")) * parse_bytes(str(ram["size"])) if "size" in ram else None,
        _gpus(_tables(one, "gpu")),
    )


def _gpus(devices: list[dict[str, Any]]) -> Gpus | None:
    """One line for each; what differs between them is not said."""
    if not devices:
        return None
    if len(devices) > MOST_GPUS_OF_A_NODE:
        raise BadInput(f"{len(devices)} GPUs are more than any node has")
    models, sizes = {str(d.get("model", "")) for d in devices}, {str(d.get("memory", "")) for d in devices}
    model, size = min(models), min(sizes)
    memory_bytes = parse_bytes(size) if len(sizes) == 1 and size else None
    return Gpus(len(devices), parse_name(model) if len(models) == 1 and model else None, memory_bytes)


def _units(value: object) -> int:
    match = _UNITS.fullmatch(str(value).strip())
    if match is None or not 1 <= int(match[1]) <= MOST_UNITS:
        raise BadInput(f"{str(value)[:40]!r} is not a height from 1u to {MOST_UNITS}u")
    return int(match[1])


def _across(value: object) -> int:
    """How many fit side by side: ``full``, ``1/2``, ``0.5``."""
    text = str(value).strip()
    if text == "full":
        return 1
    width = Fraction(text) if _WIDTH.fullmatch(text) and not text.endswith("/0") else Fraction(0)
    if not 0 < width <= 1 or round(1 / width) > _MOST_ACROSS:
        raise BadInput(f"{text[:40]!r} is not a width like full, 1/2 or 0.25")
    return round(1 / width)


def _number(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise BadInput(f"{text[:40]!r} is not a whole number")
    return int(text)


def _table(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key) or {}
    if not isinstance(found, dict):
        raise BadInput(f"{key} has something else than keys and values")
    return found


def _tables(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = value.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadInput(f"{key} is no list of keys and values")
    return found


def _name(one: dict[str, Any], key: str) -> str:
    if not isinstance(one.get(key), str):
        raise BadInput(f"something has no {key}, which should name it")
    return parse_name(one[key])
