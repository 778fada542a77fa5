"""What NetBox's API answers, in one JSON file → a layout.

Read are ``devices``, ``racks`` and ``device_types``, each a list or a page with ``results``, of one site; an
answer about devices alone will do, and then a device is one unit high and a rack has 42. NetBox does not
know GPUs, so kinds come without; and it knows everything that stands in a rack, so a role says which devices
are nodes.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from muster.application.located import located
from muster.application.names import parse_name
from muster.layout.file import MOST_NODES, MOST_RACKS, MOST_UNITS, File, PlaceLine, RackLine
from muster.layout.parts import USUAL_UNITS, Kind, Rack
from muster.layout.ranges import is_plain
from muster.model.errors import BadInput

Entry = dict[str, Any]
_IN_A_LINE = 50
_Where = tuple[str | None, int | None, str]  # rack, unit, kind


def from_netbox(text: str, name: str, role: str | None = None) -> File:
    """The layout of the devices of this role, or of all that have a name."""
    with located(name, None):
        try:
            value = msgspec.json.decode(text.encode())
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            raise BadInput("this is not JSON") from None
        return _file(value, role)


def _file(value: object, role: str | None) -> File:
    answers = value if isinstance(value, dict) and "devices" in value else {"devices": value}
    devices = [one for one in _entries(answers, "devices") if role is None or role in _called(_role(one))]
    devices = [one for one in devices if isinstance(one.get("name"), str) and one["name"].strip()]
    if not devices:
        raise BadInput("there is no device with a name" + (f" and the role {role!r}" if role else ""))
    if len(devices) > MOST_NODES:
        raise BadInput(f"{len(devices):,} devices are too many; {MOST_NODES:,} are the most")
    sites = sorted({_text(one.get("site")) or "site" for one in devices})
    if len(sites) > 1:
        raise BadInput(f"these are devices of {len(sites)} sites; export one, like {sites[0]!r}")
    kinds = _kinds(devices, _entries(answers, "device_types"))
    places = {_plain(one["name"]): _where(one) for one in devices}
    racks = _racks(_entries(answers, "racks"), places)
    return File(site=sites[0], kinds=kinds, racks=racks, place=tuple(_place(places)))


def _role(device: Entry) -> object:
    """It was called ``device_role`` once."""
    return device.get("role") or device.get("device_role")


def _kinds(devices: list[Entry], types: list[Entry]) -> tuple[Kind, ...]:
    heights = {one.get("slug"): one.get("u_height") for one in types}
    found: dict[str, Kind] = {}
    for device in devices:
        kind = device.get("device_type")
        own = kind.get("u_height") if isinstance(kind, dict) else None
        name = _kind_name(device)
        found.setdefault(name, Kind(name, _units(own if own is not None else heights.get(name), 1)))
    return tuple(found.values())


def _kind_name(device: Entry) -> str:
    kind = device.get("device_type")
    slug = kind.get("slug") if isinstance(kind, dict) else None
    return _plain(slug if isinstance(slug, str) and slug else _text(kind) or "device")


def _racks(entries: list[Entry], places: dict[str, _Where]) -> tuple[RackLine, ...]:
    """Those in which something stands, those alike in one line."""
    named = {_plain(name): one for one in entries if (name := _text(one))}
    used = dict.fromkeys(rack for rack, _, _ in places.values() if rack is not None)
    alike: dict[tuple[str | None, int], list[str]] = {}
    for rack in used:
        one = named.get(rack, {})
        room = _text(one.get("location"))
        alike.setdefault((room, _units(one.get("u_height"), USUAL_UNITS)), []).append(rack)
    if len(used) > MOST_RACKS:
        raise BadInput(f"{len(used):,} racks are too many; {MOST_RACKS:,} are the most")
    return tuple(
        RackLine(tuple(Rack(name, room, None, units) for name in some))
        for (room, units), names in alike.items()
        for some in _few(names)
    )


def _where(device: Entry) -> _Where:
    rack = _text(device.get("rack"))
    unit = device.get("position")
    at_u = int(unit) if isinstance(unit, int | float) and 1 <= unit <= MOST_UNITS else None
    return (None if rack is None else _plain(rack), at_u, _kind_name(device))


def _place(places: dict[str, _Where]) -> Iterator[PlaceLine]:
    """A line for each that stands in a rack; one for all of a kind that do not."""
    loose: dict[str, list[str]] = {}
    for node, (rack, at_u, kind) in places.items():
        if rack is None:
            loose.setdefault(kind, []).append(node)
        else:
            yield PlaceLine((node,), kind, (rack,), None, at_u)
    for kind, nodes in loose.items():
        yield from (PlaceLine(some, kind) for some in _few(nodes))


def _few(names: list[str]) -> Iterator[tuple[str, ...]]:
    """As many as a line can hold, whatever they are called."""
    return (tuple(names[start : start + _IN_A_LINE]) for start in range(0, len(names), _IN_A_LINE))


def _entries(answers: dict[str, Any], key: str) -> list[Entry]:
    found = answers.get(key) or []
    found = found.get("results") if isinstance(found, dict) else found
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadInput(f"{key} is neither a list nor a page with results")
    return found


def _called(value: object) -> set[str]:
    """All that it is called by."""
    if isinstance(value, dict):
        return {str(value[key]) for key in ("slug", "name", "display") if value.get(key)}
    return {value} if isinstance(value, str) else set()


def _text(value: object) -> str | None:
    """The name of what an answer refers to, by itself or as an object."""
    if isinstance(value, dict):
        value = value.get("name") or value.get("display")
    return value if isinstance(value, str) and value.strip() else None


def _plain(name: str) -> str:
    """NetBox allows what means several names here; that is written otherwise."""
    name = name if is_plain(name) else name.translate(str.maketrans("[],", "();"))
    return parse_name(name.replace("/", "-").replace("\\", "-"))


def _units(value: object, usual: int) -> int:
    """Whole units, and one at least: some devices are half a unit high, some none."""
    if not isinstance(value, int | float) or not 0 <= value <= MOST_UNITS:
        return usual
    return max(1, -int(-value // 1))
