"""``layout.yaml``: what people say of what stands where.

The file has few kinds of lines, and names that are folded (``ranges``). What can't be read is refused here,
with the file, the line and what to write instead; what can be read and can't be right is for ``check``, so
that a map can be drawn of it all the same. How many racks, nodes and GPUs a file may mean is bounded while
it is read.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from muster.application.located import located
from muster.application.names import MOST_LETTERS, nearest, parse_name
from muster.application.yaml_text import Path, Written, line_of, read_yaml
from muster.layout.parts import UNPLACED, USUAL_UNITS, Gpus, Kind, Rack
from muster.layout.ranges import is_plain, unfold
from muster.model.errors import BadInput
from muster.model.units import parse_bytes

VERSION = 1
MOST_RACKS, MOST_NODES, MOST_GPUS = 10_000, 50_000, 500_000
MOST_MENTIONED = 200_000  # names of racks, nodes and switches, said again
MOST_GPUS_OF_A_NODE = 64
MOST_UNITS = 100
EACH_RACK = "@rack"
_MOST_CORES, _MOST_NUMA, _MOST_ACROSS = 100_000, 1024, 16
_TYPES = ["switch"]

T = TypeVar("T")
Reader = Callable[[object], T]


class RackLine(msgspec.Struct, frozen=True):
    """Racks that are alike."""

    racks: tuple[Rack, ...]
    line: int | None = None


class PlaceLine(msgspec.Struct, frozen=True):
    """Nodes, what they are, and where they stand: rack by rack, from the left and from below.

    ``per_rack`` None: spread evenly. No ``racks``: nobody has said where they stand.
    """

    nodes: tuple[str, ...]
    kind: str | None = None
    racks: tuple[str, ...] = ()
    per_rack: int | None = None
    from_u: int | None = None
    line: int | None = None


class GroupLine(msgspec.Struct, frozen=True):
    """Switches: one for each rack (``@rack``), or one with its racks (``@R[01-02]``) or its nodes."""

    names: tuple[str, ...]
    each_rack: bool = False
    racks: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    up: str | None = None
    line: int | None = None


class File(msgspec.Struct, frozen=True):
    """All that a file says. ``name`` is how it is called where it is a source."""

    name: str = "layout.yaml"
    site: str = "site"
    kinds: tuple[Kind, ...] = ()
    racks: tuple[RackLine, ...] = ()
    place: tuple[PlaceLine, ...] = ()
    groups: tuple[GroupLine, ...] = ()

    def source(self, line: int | None) -> str:
        return f"{self.name}, line {line}" if line else self.name


def parse_layout(text: str, name: str = "layout.yaml") -> File:
    """The layout that a text says, or one sentence with the line."""
    return _Reading(read_yaml(text, name), name).file()


class _Reading:
    """One file, being read. ``_left`` is how many more names it may mean."""

    def __init__(self, written: Written, name: str) -> None:
        self._written, self._name = written, name
        self._left = {"racks": MOST_RACKS, "nodes": MOST_NODES, "mentioned": MOST_MENTIONED}
        self._gpus_left = MOST_GPUS

    def file(self) -> File:
        top = self._table((), ["muster_layout", "site", "kinds", "racks", "place", "groups"])
        self._check_version(top)
        kinds = tuple(self._kind(("kinds", key)) for key in self._named(top.get("kinds"), "kinds"))
        site = self._get((), "site", top, _words)
        racks = tuple(self._racks(path) for path in self._list(top, "racks"))
        gpus_of = {kind.name: kind.gpus.count if kind.gpus else 0 for kind in kinds}
        place = tuple(self._place(path, gpus_of) for path in self._list(top, "place"))
        groups = tuple(self._group(path) for path in self._list(top, "groups"))
        return File(self._name, site or "site", kinds, racks, place, groups)

    def _check_version(self, top: dict[str, Any]) -> None:
        with self._at(()):
            if "muster_layout" not in top:
                raise BadInput("this does not say that it is a layout; begin it with 'muster_layout: 1'")
        with self._at(("muster_layout",)):
            if top["muster_layout"] != str(VERSION):
                raise BadInput(
                    f"layouts of version {VERSION} are read here; write 'muster_layout: {VERSION}'"
                )

    # --- The lines ----------------------------------------------------------------------------------

    def _kind(self, path: Path) -> Kind:
        with self._at(path):
            name = _plain_name(path[-1])
        given = self._table(path, ["u", "across", "cores", "ram", "gpus"])
        return Kind(
            name,
            self._get(path, "u", given, _whole(1, MOST_UNITS)) or 1,
            self._get(path, "across", given, _whole(1, _MOST_ACROSS)) or 1,
            self._get(path, "cores", given, _whole(1, _MOST_CORES)),
            self._get(path, "ram", given, _size),
            None if given.get("gpus") is None else self._gpus((*path, "gpus")),
            line_of(self._written.lines, path),
        )

    def _gpus(self, path: Path) -> Gpus:
        given = self._table(path, ["count", "model", "mem", "numa", "link"])
        count = self._need(path, "count", given, _whole(0, MOST_GPUS_OF_A_NODE), "count: 4")
        numa = self._get(path, "numa", given, _numbers) or ()
        with self._at((*path, "numa")):
            if numa and len(numa) != count:
                raise BadInput(f"numa has {len(numa)} numbers for {count} GPUs; write one for each, in order")
        return Gpus(
            count,
            self._get(path, "model", given, _words),
            self._get(path, "mem", given, _size),
            numa,
            self._get(path, "link", given, _words),
        )

    def _racks(self, path: Path) -> RackLine:
        given = self._table(path, ["name", "room", "row", "units"])
        names = self._need(path, "name", given, self._names("racks"), 'name: "R[01-10]"')
        room, row = self._get(path, "room", given, _words), self._get(path, "row", given, _words)
        units = self._get(path, "units", given, _whole(1, MOST_UNITS)) or USUAL_UNITS
        with self._at((*path, "name")):
            if UNPLACED in names:
                raise BadInput(f"{UNPLACED!r} is the rack of nodes without a place; call this one otherwise")
        racks = tuple(Rack(name, room, row, units) for name in names)
        return RackLine(racks, line_of(self._written.lines, path))

    def _place(self, path: Path, gpus_of: dict[str, int]) -> PlaceLine:
        given = self._table(path, ["nodes", "kind", "racks", "per_rack", "from_u"])
        nodes = self._need(path, "nodes", given, self._names("nodes"), 'nodes: "gpub[001-100]"')
        kind = self._get(path, "kind", given, _plain_name)
        self._gpus_left -= len(nodes) * gpus_of.get(kind or "", 0)
        with self._at(path):
            if self._gpus_left < 0:
                raise BadInput(f"up to here these are more than {MOST_GPUS:,} GPUs; divide the site")
        line = line_of(self._written.lines, path)
        racks = self._get(path, "racks", given, self._names("mentioned")) or ()
        per_rack = self._get(path, "per_rack", given, _whole(1, MOST_NODES))
        from_u = self._get(path, "from_u", given, _whole(1, MOST_UNITS))
        with self._at(path):
            if not racks and (per_rack or from_u):
                raise BadInput("per_rack and from_u say where in racks nodes stand; say which, with racks")
        return PlaceLine(nodes, kind, racks, per_rack, from_u, line)

    def _group(self, path: Path) -> GroupLine:
        given = self._table(path, ["type", "name", "members", "up"])
        self._need(path, "type", given, _type, "type: switch")
        names = self._need(path, "name", given, self._names("mentioned"), 'name: "leaf[01-10]"')
        members = self._need(path, "members", given, _text, 'members: "@rack"')
        up = self._get(path, "up", given, _plain_name)
        line = line_of(self._written.lines, path)
        if members == EACH_RACK:
            return GroupLine(names, each_rack=True, up=up, line=line)
        with self._at((*path, "members")):
            if len(names) > 1:
                raise BadInput(f"members of {len(names)} switches are '@rack'; of others write a line each")
            if members.startswith("@"):
                return GroupLine(names, racks=self._names("mentioned")(members[1:]), up=up, line=line)
            return GroupLine(names, nodes=self._names("mentioned")(members), up=up, line=line)

    # --- How values are taken -----------------------------------------------------------------------

    def _at(self, path: Path) -> Any:
        return located(self._name, line_of(self._written.lines, path))

    def _value(self, path: Path) -> Any:
        value = self._written.value
        for step in path:
            value = value[step]
        return value

    def _table(self, path: Path, known: list[str]) -> dict[str, Any]:
        value = self._value(path)
        with self._at(path):
            if not isinstance(value, dict):
                inside = f"{path[0]!r} has something else than" if path else "expected"
                raise BadInput(f"{inside} keys and values; known keys: {', '.join(known)}")
        unknown = next((key for key in value if key not in known), None)
        if unknown is not None:
            with self._at((*path, unknown)):
                raise BadInput(f"unknown key {unknown[:80]!r}; {nearest(unknown, known)}")
        return dict(value)

    def _named(self, value: object, key: str) -> list[str]:
        with self._at((key,)):
            if value is not None and not isinstance(value, dict):
                raise BadInput(f"{key} should be names with keys and values below each")
        return list(value or ())

    def _list(self, top: dict[str, Any], key: str) -> list[Path]:
        value = top.get(key)
        with self._at((key,)):
            if value is not None and not isinstance(value, list):
                raise BadInput(f"{key} should be a list; begin each of its lines with '-'")
        return [(key, index) for index in range(len(value or ()))]

    def _get(self, path: Path, key: str, given: dict[str, Any], read: Reader[T]) -> T | None:
        if given.get(key) is None:
            return None
        try:
            return read(given[key])
        except BadInput as error:
            with self._at((*path, key)):
                raise BadInput(f"{key}: {error}") from None

    def _need(self, path: Path, key: str, given: dict[str, Any], read: Reader[T], example: str) -> T:
        found = self._get(path, key, given, read)
        if found is None:
            with self._at(path):
                raise BadInput(f"{key} is missing; write it like {example}")
        return found

    def _names(self, budget: str) -> Reader[tuple[str, ...]]:
        def read(value: object) -> tuple[str, ...]:
            names = tuple(parse_name(name) for name in unfold(_text(value), self._left[budget]))
            self._left[budget] -= len(names)
            return names

        return read


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadInput("a text is expected")
    return value


def _words(value: object) -> str:
    """What something is called that nobody needs to name exactly: a model, a room."""
    text = " ".join(_text(value).split())
    if not text or len(text) > MOST_LETTERS or not text.isprintable():
        raise BadInput(f"{text[:80]!r} should be a few words, of {MOST_LETTERS} letters at most")
    return text


def _plain_name(value: object) -> str:
    name = parse_name(_text(value))
    if not is_plain(name):
        raise BadInput(f"{name[:80]!r} should be one name, without brackets and commas")
    return name


def _size(value: object) -> int:
    return parse_bytes(_text(value))


def _type(value: object) -> str:
    found = _text(value)
    if found not in _TYPES:
        raise BadInput(
            f"{found[:80]!r} is no type of group; {nearest(found, _TYPES)}. A rack is none: see racks"
        )
    return found


def _whole(least: int, most: int) -> Reader[int]:
    def read(value: object) -> int:
        if not isinstance(value, str) or not (value.isascii() and value.isdigit() and len(value) <= 9):
            raise BadInput(f"a whole number from {least} to {most:,} is expected")
        if not least <= int(value) <= most:
            raise BadInput(f"{int(value):,} is not from {least} to {most:,}")
        return int(value)

    return read


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MOST_GPUS_OF_A_NODE:
        raise BadInput("a list of numbers is expected, like [3, 2, 1, 0]")
    return tuple(map(_whole(0, _MOST_NUMA), value))
