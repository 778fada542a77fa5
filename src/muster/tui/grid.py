"""A table in lines of spans, no wider than there is room: what can be shortened is, the widest first."""

from collections.abc import Sequence

import msgspec

from muster.layout.words import width_of
from muster.tui.spans import BOLD, PLAIN, Line, Span, padded

_LEAST = 6
_BETWEEN = "  "


class Column(msgspec.Struct, frozen=True):
    """``gives``: it can be shortened. ``most``: it is never wider."""

    heading: str
    right: bool = False
    gives: bool = False
    most: int = 60


def grid(columns: Sequence[Column], rows: Sequence[Sequence[Span]], room: int) -> list[Line]:
    """A line of headings, and one for each row."""
    heads = [(column.heading, BOLD) for column in columns]
    widths = _widths(columns, [heads, *rows], room)
    return [_line(columns, row, widths) for row in [heads, *rows]]


def _line(columns: Sequence[Column], row: Sequence[Span], widths: Sequence[int]) -> Line:
    line: Line = []
    for column, cell, width in zip(columns, row, widths, strict=True):
        line += [(_BETWEEN, PLAIN)] if line else []
        line.append(padded(cell, width, right=column.right))
    return line


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Span]], room: int) -> list[int]:
    natural = [
        min(column.most, max(width_of(row[at][0]) for row in rows)) for at, column in enumerate(columns)
    ]
    over = sum(natural) + len(_BETWEEN) * (len(columns) - 1) - room
    giving = [at for at, column in enumerate(columns) if column.gives]
    while over > 0 and giving:
        widest = max(giving, key=lambda at: natural[at])
        if natural[widest] <= _LEAST:
            break
        natural[widest] -= 1
        over -= 1
    return natural
