"""The sentence about a condition that can't be read, and the line that points at the letter.

Three lines: what is wrong and what to do; the condition, or what is around the place; a caret under it.
"""

import difflib
from collections.abc import Iterable

from muster.model.errors import BadInput

_MOST_SHOWN = 60  # letters of a condition in one line
_INDENT = "  "


def wrong(text: str, at: int, expected: str) -> BadInput:
    """``expected``: what should have stood there, or what is the matter; ends in what to do."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    start = max(0, min(at - _MOST_SHOWN // 2, len(shown) - _MOST_SHOWN))
    window = shown[start : start + _MOST_SHOWN]
    head, tail = "…" * (start > 0), "…" * (start + _MOST_SHOWN < len(shown))
    caret = " " * (len(_INDENT) + len(head) + at - start) + "^"
    quoted = f"'{shown[:_MOST_SHOWN]}{'…' * (len(shown) > _MOST_SHOWN)}'"
    return BadInput(f"{quoted} is not a condition: {expected}\n{_INDENT}{head}{window}{tail}\n{caret}")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one resembles."""
    by_lower = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
