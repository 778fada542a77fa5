"""Lines of spans: texts with the name of a style each, before anybody has said how they are painted.

What people wrote comes in through ``said``, which leaves nothing in it that a terminal would obey.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from muster.layout.words import filled, fitted, printable, width_of

Span = tuple[str, str]
Line = list[Span]
NOTHING = "–"
PLAIN, DIM, BOLD = "", "dim", "bold"
BARS = "▁▂▃▄▅▆▇"  # no higher, or lines below each other would run together


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def said(text: object, style: str = PLAIN) -> Span:
    """Anybody's text, on one line; what is not known is a dash."""
    return (NOTHING if text is None or text == "" else one_line(str(text)), style)


def width(line: Iterable[Span]) -> int:
    return sum(width_of(text) for text, _ in line)


def padded(span: Span, columns: int, *, right: bool = False) -> Span:
    """Cut or filled to just so many columns."""
    text = fitted(span[0], columns)
    return (" " * (columns - width_of(text)) + text if right else filled(text, columns)), span[1]


def cut(line: Sequence[Span], columns: int) -> Line:
    """As much of it as there is room for."""
    kept: Line = []
    left = columns
    for text, style in line:
        if left <= 0:
            break
        text = fitted(text, left)
        kept.append((text, style))
        left -= width_of(text)
    return kept


def apart(left: Line, right: Line, columns: int) -> Line:
    """One at each end; the right one goes below nothing, and is cut last."""
    room = columns - width(right)
    if room <= 0:
        return cut(right, columns)
    left = cut(left, max(0, room - 2))
    return [*left, (" " * (room - width(left)), PLAIN), *right]


def greyed(lines: Iterable[Line]) -> list[Line]:
    return [[(text, DIM) for text, _ in line] for line in lines]


def runs(text: str, styles: Sequence[str]) -> Line:
    """A text of which each letter has a style."""
    pairs = groupby(zip(text, styles, strict=True), key=lambda pair: pair[1])
    return [("".join(letter for letter, _ in run), style) for style, run in pairs]


def bar(share: float, columns: int, beside: float = 0.0) -> str:
    """``██▒░``: a share, what is beside it, and the rest."""
    full = min(columns, round(max(0.0, share) * columns))
    half = min(columns - full, max(0, round((share + beside) * columns) - full))
    return "█" * full + "▒" * half + "░" * (columns - full - half)


def plain(lines: Iterable[Line]) -> str:
    """Without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)
