"""What an address says of a page. What it can't mean is refused, with the words that there are."""

from collections.abc import Mapping, Sequence

from muster.model.errors import BadInput, UnknownChoice

_MOST_DIGITS = 9


def chosen(query: Mapping[str, str], name: str, words: Sequence[str], usual: str) -> str:
    """One of these words; the usual one if nothing is said."""
    word = query.get(name, "").strip()
    if word and word not in words:
        raise UnknownChoice(name, word[:80], list(words))
    return word or usual


def count(query: Mapping[str, str], name: str, few: int, many: int) -> int:
    """How many: ``few`` if nothing is said, and ``many`` at most."""
    word = query.get(name, "").strip()
    if not word:
        return few
    if not (word.isascii() and word.isdecimal()) or len(word) > _MOST_DIGITS:
        raise BadInput(f"{name} is {word[:80]!r}, and has to be a number from 1 to {many:,}")
    return min(many, max(1, int(word)))
