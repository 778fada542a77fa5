"""Arrays and sweeps: many jobs that are handled as one.

Sizes are reckoned before anything is laid out, so that ``0-999999999999`` costs nothing but a sentence.
"""

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from muster.model.errors import BadInput

MOST_MEMBERS = 100_000
_MOST_INDEX = 100_000_000
_MOST_VALUE_LETTERS = 1000
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?::([0-9]{1,12}))?)?", re.ASCII)
_PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_HINT = "write it like 1-100, 1-100%5, 0-30:10 or 1,3,7-9"

Sweep = tuple[tuple[str, tuple[str, ...]], ...]


class Indices(msgspec.Struct, frozen=True):
    """Which members an array has, and how many of them may run at once."""

    values: tuple[int, ...]  # empty: those of a sweep
    most_at_once: int | None = None


def parse_array(text: str) -> Indices:
    """``1-100%5``, ``0-30:10``, ``1,3,7-9``; ``%5`` alone limits a sweep."""
    ranges, percent, limit = text.replace(" ", "").partition("%")
    most_at_once = _most_at_once(limit) if percent else None
    if percent and not ranges:
        return Indices((), most_at_once)
    spans = [_span(part) for part in ranges.split(",")]
    if sum(map(len, spans)) > MOST_MEMBERS:
        raise BadInput(f"an array has at most {MOST_MEMBERS:,} members; this one would have more")
    return Indices(tuple(sorted({index for span in spans for index in span})), most_at_once)


def _span(text: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise BadInput(f"{text[:80]!r} is not a range of an array; {_HINT}")
    first = int(match[1])
    last, step = int(match[2] or first), int(match[3] or 1)
    if last < first or step < 1:
        raise BadInput(f"{text!r} has no members; {_HINT}")
    if last > _MOST_INDEX:
        raise BadInput(f"an array's indices end at {_MOST_INDEX:,}; {text!r} goes beyond")
    return range(first, last + 1, step)


def _most_at_once(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) == 0:
        raise BadInput(f"%{text[:20]} does not say how many may run at once; write it like 1-100%5")
    return int(text)


def parse_sweep(given: Sequence[str]) -> Sweep:
    """``["lr=1e-3,1e-4", "seed=1,2,3"]`` → every combination of these."""
    sweep = dict(_params(given))
    if len(sweep) != len(given):
        raise BadInput("a parameter is given twice; write all of its values in one, like lr=1e-3,1e-4")
    return within_bounds(sweep)


def within_bounds(sweep: dict[str, tuple[str, ...]]) -> Sweep:
    """A sweep that is not too many jobs."""
    if math.prod(map(len, sweep.values())) > MOST_MEMBERS:
        raise BadInput(f"a sweep has at most {MOST_MEMBERS:,} combinations; this one would have more")
    return tuple(sweep.items())


def _params(given: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise BadInput(f"{text[:80]!r} is not NAME=VALUES; write it like lr=1e-3,1e-4")
        yield parse_param(name.strip(), [value.strip() for value in values.split(",")])


def parse_param(name: str, values: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A parameter's name and the values to try."""
    if not _PARAM.fullmatch(name):
        raise BadInput(f"{name[:80]!r} can't be a parameter's name; use letters, digits and _ . -")
    for value in values:
        if not value or len(value) > _MOST_VALUE_LETTERS or not value.isprintable():
            raise BadInput(f"{name} has a value that is empty, too long or not printable")
    return name, tuple(values)
