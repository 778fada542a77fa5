"""What a page is made of: one sentence, a picture, and the same as data and as a table.

A page's function returns a ``Sheet``. The address with ``.json``, ``.csv`` or ``.txt`` behind it gives the
twin: the data as the API has it, or the table, for those who would rather read, compute or not look.
"""

import csv
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from muster.server.people import Person
from muster.web.replies import CSV, JSON, TEXT, Reply

Cell = str | float | int | None


class Table(msgspec.Struct, frozen=True):
    """The picture in words and numbers. Unknown is None, and empty in a file."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


class Sheet(msgspec.Struct, frozen=True):
    """A page before it is drawn. ``sentence`` says what the picture shows."""

    template: str
    title: str
    sentence: str
    data: Any  # what ``.json`` answers; a function, if it is made only then
    table: Table
    more: Mapping[str, Any] = {}  # what else the template needs
    scripts: tuple[str, ...] = ()  # besides the one that all pages have


class Visit(msgspec.Struct, frozen=True):
    """Somebody looks at a page."""

    person: Person
    session: str
    path: str  # without the twin's ending
    values: tuple[str, ...]  # what stood in the place of ``{…}``
    query: Mapping[str, str]
    headers: Mapping[bytes, bytes]


class Page(msgspec.Struct, frozen=True):
    """A row of the table of pages. ``name`` is the word in the menu; none: it is not in it."""

    path: str
    make: Callable[[Visit], Awaitable[Sheet]]
    name: str = ""
    key: str = ""  # after g, on the keyboard


def twin(sheet: Sheet, ending: str) -> Reply:
    if ending == "json":
        return Reply(JSON, msgspec.json.encode(sheet.data() if callable(sheet.data) else sheet.data))
    if ending == "csv":
        return Reply(CSV, _csv(sheet.table).encode())
    return Reply(TEXT, f"{sheet.sentence}\n\n{_columns(sheet.table)}".encode())


def _csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    writer.writerows([_harmless(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def _harmless(cell: Cell) -> Cell:
    """A spreadsheet takes a text that begins like a formula for one."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell


def _columns(table: Table) -> str:
    lines = [table.columns, *([_plain(cell) for cell in row] for row in table.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.columns))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "".join(f"{line.rstrip()}\n" for line in padded)


def _plain(cell: Cell) -> str:
    if cell is None:
        return "–"
    text = f"{cell:g}" if isinstance(cell, float) else str(cell)
    return "".join(letter if letter.isprintable() else " " for letter in text)
