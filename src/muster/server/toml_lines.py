"""Which line of a TOML text says what.

The standard library reads TOML and forgets where it stood. This scanner finds that out again: for text that
``tomllib`` has read already, the line of every table, key and item of an array. So it checks nothing, and it
never recurses deeper than ``tomllib`` did.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

Path = tuple[str | int, ...]  # keys, and positions in arrays

_TOKEN = re.compile(
    r"""
      (?P<skip> [^\S\n]+ | \#[^\n]* )
    | (?P<string> \"{3}(?:\\.|[^\\])*?\"{3}(?!\") | '{3}.*?'{3}(?!')  # may end in quotes of its own
                | \"(?:\\.|[^\"\\])*\" | '[^']*' )
    | (?P<mark> [\[\]{}=,.\n] )
    | (?P<word> [^\s\[\]{}=,.\#"']+ )
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


_END = _Token("mark", "", 0)


class Lines:
    """Where each thing stands, by its path: ``("team", "vision", "users", 2)``."""

    def __init__(self, text: str) -> None:
        self._line: dict[Path, int] = {}
        self._tokens = _tokens(text)
        self._token = next(self._tokens)
        self._document()

    def of(self, path: Path) -> int:
        """The line of the thing, or of the nearest thing around it that is written down."""
        while path and path not in self._line:
            path = path[:-1]
        return self._line.get(path, 1)

    def _step(self) -> _Token:
        token, self._token = self._token, next(self._tokens, _END)
        return token

    def _document(self) -> None:
        table: Path = ()
        while self._token.text:
            if self._token.text == "\n":
                self._step()
            elif self._token.text == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        """``[a.b]`` and ``[[a.b]]``; the tables of an array of tables are not told apart."""
        while self._token.text == "[":
            self._step()
        table = self._key(())
        while self._token.text == "]":
            self._step()
        return table

    def _pair(self, table: Path) -> None:
        path = self._key(table)
        self._step()  # the equals sign
        self._value(path)

    def _key(self, table: Path) -> Path:
        """A dotted key; tables that it implies stand where they are first spoken of."""
        path, line = table, self._token.line
        while self._token.kind != "mark" or self._token.text == ".":
            token = self._step()
            if token.kind != "mark":
                path = (*path, _plain(token))
                self._line.setdefault(path, line)
        self._line[path] = line
        return path

    def _value(self, path: Path) -> None:
        if self._token.text == "[":
            self._array(path)
        elif self._token.text == "{":
            self._inline_table(path)
        else:
            while self._token.kind != "mark" or self._token.text == ".":
                self._step()

    def _array(self, path: Path) -> None:
        self._step()
        position = 0
        while self._token.text not in ("]", ""):
            if self._token.text in (",", "\n"):
                self._step()
                continue
            self._line[*path, position] = self._token.line
            self._value((*path, position))
            position += 1
        self._step()

    def _inline_table(self, path: Path) -> None:
        self._step()
        while self._token.text not in ("}", ""):
            if self._token.text in (",", "\n"):
                self._step()
            else:
                self._pair(path)
        self._step()


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text.replace("\r\n", "\n")):
        kind = match.lastgroup or ""
        if kind != "skip":
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")
    yield _END


def _plain(token: _Token) -> str:
    """A key without its quotes."""
    if token.kind == "word":
        return token.text
    return str(tomllib.loads(f"key = {token.text}")["key"])
