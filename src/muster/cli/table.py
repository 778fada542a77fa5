"""Aligned columns: plain for programs and files, fitted and coloured on a terminal.

Plain ANSI, since a library for it would cost more than the whole answer.
"""

import os
import sys

from muster.cli.text import one_line

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING = "–"  # where nothing is known
COLOURS = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "dim": "2", "bold": "1", "": ""}
_AMOUNTS = frozenset({"GPU", "CPUS", "MEM", "JOBS", "WEIGHT", "RUNNING", "WAITING", "GPUh", "CPUh", "GiBh"})
_PARTS = frozenset(
    {"USED", "HELD", "COVERED", "GPU COVERED", "CPU COVERED", "MEMORY COVERED", "JUDGED", "LATE"}
)
_RIGHT = _AMOUNTS | _PARTS | {"ID", "TIME", "AFTER"}


class Cell:
    """A text, and the colour a terminal gives it."""

    __slots__ = ("colour", "text")

    def __init__(self, text: object, colour: str = "") -> None:
        self.text = NOTHING if text is None or text == "" else one_line(str(text))
        self.colour = colour


def coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(headings: "Sequence[str]", rows: "Sequence[Sequence[Cell]]") -> str:
    """Lines with their columns aligned. On a terminal no line is longer than it is wide."""
    columns = list(zip(*[[Cell(h) for h in headings], *rows], strict=True))
    widths = [max(len(cell.text) for cell in column) for column in columns]
    most = (os.get_terminal_size(sys.stdout.fileno()).columns or None) if sys.stdout.isatty() else None
    heads = [Cell(heading, "bold") for heading in headings]
    return "\n".join(_line(row, headings, widths, most) for row in [heads, *rows])


def _line(row: "Sequence[Cell]", headings: "Sequence[str]", widths: "Sequence[int]", most: int | None) -> str:
    pieces, used = [], 0
    for cell, heading, width in zip(row, headings, widths, strict=True):
        text = cell.text.rjust(width) if heading in _RIGHT else cell.text.ljust(width)
        if most is not None and used + len(text) > most:
            text = shortened(text.rstrip(), max(0, most - used))
        used += len(text) + 2
        pieces.append(painted(text, cell.colour))
    return "  ".join(pieces).rstrip()


def painted(text: str, colour: str) -> str:
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and coloured() else text


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(0, most - 1)] + "…" * (most > 0)


def properties(pairs: "Sequence[tuple[str, object]]") -> str:
    """What is known of one thing, a line each; what is not is left out."""
    said = [(name, one_line(str(value))) for name, value in pairs if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in said), default=0)
    return "\n".join(f"{painted(name.ljust(width), 'dim')}  {text}" for name, text in said)
