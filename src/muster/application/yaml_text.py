"""YAML, the safe and simple part of it: mappings, lists and text.

Scalars stay as they were written, since whoever reads a key knows what it means: ``time: 8:00:00`` is no
number to the base of sixty, and ``until: 2026-12-01`` is no object. Only plain ``true``, ``false`` and
``null`` are words. Aliases, tags, several documents and keys written twice are refused. The tree is built
from the parser's events with a stack of our own, so depth costs a sentence and never the process.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from muster.application.located import located
from muster.application.request import MOST_TEXT_BYTES
from muster.model.errors import BadInput

MOST_DEPTH = 20
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}

Path = tuple[str | int, ...]


class Written(msgspec.Struct, frozen=True):
    """What was read, and the line on which each value begins (each key, in a mapping)."""

    value: Any
    lines: dict[Path, int]


def read_yaml(text: str, name: str) -> Written:
    """One document, or a sentence with the file and the line."""
    with located(name, None):
        encoded = _encoded(text)
    builder = _Builder(name)
    try:
        for event in yaml.parse(encoded, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        with located(name, mark.line + 1 if mark else None):
            raise BadInput(
                f"this is not YAML: {error.problem or error.context or 'it ends too early'}"
            ) from None
    except yaml.YAMLError:
        with located(name, None):
            raise BadInput("this is not YAML: it has characters that no text has") from None
    return Written(builder.value, builder.lines)


def _encoded(text: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise BadInput("this is not YAML: it has characters that no text has") from None
    if len(encoded) > MOST_TEXT_BYTES:
        raise BadInput("the file is larger than a megabyte, which no description is")
    return encoded


class _Builder:
    """Events in, a tree out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None
        self.lines: dict[Path, int] = {}
        self._documents = 0
        self._open: list[dict[str, Any] | list[Any]] = []
        self._path: list[str | int] = []  # of the value that comes next, below what is open
        self._awaits_key: list[bool] = []

    def take(self, event: Any) -> None:
        with located(self.name, event.start_mark.line + 1 if event.start_mark else None):
            self._check(event)
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._end()

    def _check(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput("anchors and aliases (& and *) are not read here; write the value out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise BadInput("tags (!) are not read here; write the plain value")
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise BadInput("a second document begins here; a file has one")

    def _scalar(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if self._awaits_key and self._awaits_key[-1]:
            self._key(event.value, line)
        else:
            plain = event.implicit[0] and event.value in _WORDS
            self._put(_WORDS[event.value] if plain else event.value, line)

    def _key(self, key: str, line: int) -> None:
        if key in self._open[-1]:
            raise BadInput(f"{key[:80]!r} is written twice; keep one of them")
        self._path[-1] = key
        self._awaits_key[-1] = False
        self.lines[tuple(self._path)] = line

    def _put(self, value: Any, line: int) -> None:
        """A finished or just opened value takes its place in what is open."""
        if not self._open:
            self.value = value
            self.lines[()] = line
            return
        inner = self._open[-1]
        if isinstance(inner, dict):
            inner[str(self._path[-1])] = value
            self._awaits_key[-1] = True
        else:
            self._path[-1] = len(inner)
            self.lines[tuple(self._path)] = line
            inner.append(value)

    def _begin(self, container: dict[str, Any] | list[Any], event: Any) -> None:
        if self._awaits_key and self._awaits_key[-1]:
            raise BadInput("a key must be a plain word")
        if len(self._open) >= MOST_DEPTH:
            raise BadInput(f"more than {MOST_DEPTH} levels of nesting; a description is flat")
        self._put(container, event.start_mark.line + 1)
        self._open.append(container)
        self._path.append(0)
        self._awaits_key.append(isinstance(container, dict))

    def _end(self) -> None:
        for stack in (self._open, self._path, self._awaits_key):
            stack.pop()


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a value, or of the nearest one that it is part of."""
    return next((lines[p] for p in _outwards(path) if p in lines), None)


def _outwards(path: Path) -> Iterator[Path]:
    return (path[:length] for length in range(len(path), -1, -1))
