"""The Markdown of minutes as plain values, from which a template makes HTML: nothing in it can become markup.

Only what minutes are made of: headings, lists of two levels, tables, paragraphs; bold and code within a line.
A backslash takes the meaning from the sign behind it, as people's words are written there.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

_SIGN = re.compile(r"\\(.)|(\*\*)|(`)|([^\\*`]+|[\\*])", re.DOTALL)
_CELL = re.compile(r"((?:\\.|[^|\\])*)\|")
_RULE = re.compile(r"\|[-:| ]+\|")


class Text(msgspec.Struct, frozen=True):
    """A piece of a line; ``kind`` is empty, ``bold`` or ``code``."""

    text: str
    kind: str = ""


Line = tuple[Text, ...]


class Block(msgspec.Struct, frozen=True):
    """``kind`` is heading, list, table or text. A list's level and a heading's is a number from 1."""

    kind: str
    level: int = 1
    lines: tuple[Line, ...] = ()
    rows: tuple[tuple[Line, ...], ...] = ()  # of a table, the first is its head


def blocks_of(markdown: str) -> list[Block]:
    found: list[Block] = []
    for kind, level, some in _groups(markdown.splitlines()):
        if kind == "table":
            rows = tuple(tuple(map(line_of, _cells(one))) for one in some if not _RULE.fullmatch(one.strip()))
            found.append(Block(kind, rows=rows))
        elif kind == "text":
            found.append(Block(kind, lines=(line_of(" ".join(some)),)))
        else:
            found.append(Block(kind, level, tuple(map(line_of, some))))
    return found


def line_of(text: str) -> Line:
    pieces: list[Text] = []
    kind, said = "", ""
    for escaped, bold, code, plain in _SIGN.findall(text):
        wanted = "bold" if bold else "code" if code else ""
        if wanted and kind in ("", wanted):
            pieces.append(Text(said, kind))
            kind, said = "" if kind else wanted, ""
        else:
            said += escaped or plain or bold or code
    return tuple(one for one in (*pieces, Text(said, kind)) if one.text)


def _groups(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Lines that belong together, with what they are; an empty one separates."""
    before: tuple[str, int] | None = None
    some: list[str] = []
    for line in (*lines, ""):
        kind, level, text = _kind(line)
        now = (kind, level) if kind else None
        if some and (now != before or kind == "heading"):
            assert before is not None
            yield (*before, some)
            some = []
        before = now
        if now is not None:
            some.append(text)


def _kind(line: str) -> tuple[str, int, str]:
    text = line.strip()
    if text.startswith("#"):
        level = len(text) - len(text.lstrip("#"))
        return "heading", level, text[level:].strip()
    if text.startswith("- "):
        return "list", 1 if line[:1] == "-" else 2, text[2:]
    if text.startswith("|") and text.endswith("|"):
        return "table", 1, text
    return ("text", 1, text) if text else ("", 0, "")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _CELL.findall(row.strip()[1:])]
