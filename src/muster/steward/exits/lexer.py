"""A condition's text in pieces, each with the place where it stands."""

import enum
import re
from typing import NamedTuple

from muster.steward.exits.terms import PLAIN_NAME
from muster.steward.exits.wrong import wrong


class Kind(enum.Enum):
    WORD = enum.auto()  # a metric's name, or a word of the language
    QUOTED = enum.auto()
    SPAN = enum.auto()
    NUMBER = enum.auto()
    SIGN = enum.auto()
    OPEN = enum.auto()
    CLOSE = enum.auto()
    END = enum.auto()


class Token(NamedTuple):
    kind: Kind
    text: str
    at: int


_SPAN = (
    r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d|w))+(?![A-Za-z0-9_.])|(?:[0-9]+-)?(?:[0-9]+:)+[0-9]+(?:\.[0-9]+)?"
)
_PIECES = (
    (Kind.SPAN, re.compile(_SPAN, re.ASCII | re.IGNORECASE)),
    (
        Kind.NUMBER,
        re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?%?", re.ASCII | re.IGNORECASE),
    ),
    (Kind.NUMBER, re.compile(r"[-+]inf(?:inity)?(?![A-Za-z0-9_])", re.ASCII | re.IGNORECASE)),
    (Kind.WORD, PLAIN_NAME),
    (Kind.QUOTED, re.compile(r'"(?:[^"\\]|\\["\\])*"')),
    (Kind.SIGN, re.compile(r">=|<=|==|!=|>|<")),
    (Kind.OPEN, re.compile(r"\(")),
    (Kind.CLOSE, re.compile(r"\)")),
)
_BLANK = re.compile(r"\s*")
# What other languages write, and what it is here.
_ELSEWHERE = {"=": "==", "≥": ">=", "≤": "<=", "≠": "!=", "&": "and", "|": "or", "!": "!=", "'": '"'}
_ASIDE = ",;"  # between conditions, and there is only one in a text


def tokens(text: str) -> list[Token]:
    """The pieces, and the end as the last of them."""
    pieces: list[Token] = []
    at = _skip(text, 0)
    while at < len(text):
        pieces.append(_piece(text, at))
        at = _skip(text, at + len(pieces[-1].text))
    return [*pieces, Token(Kind.END, "", at)]


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _piece(text: str, at: int) -> Token:
    for kind, pattern in _PIECES:
        if found := pattern.match(text, at):
            return Token(kind, found[0], at)
    letter = text[at]
    if letter == '"':
        raise wrong(text, at, 'the name that begins here is never closed; add a " behind it')
    hint = 'put odd names in "quotes"'
    if letter in _ELSEWHERE:
        hint = f"write {_ELSEWHERE[letter]}"
    elif letter in _ASIDE:
        hint = "write 'and' or 'or', or give each condition by itself"
    raise wrong(text, at, f"{letter if letter.isprintable() else 'this'!r} means nothing here; {hint}")
