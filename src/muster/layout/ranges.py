"""Folded names: ``gpub[001-100]`` for a hundred of them.

A number in brackets has as many digits as it was written with if it begins with a zero, and as many as it
needs otherwise. Whoever unfolds says how many names there may be, which is looked at before any of them is
made: a few letters can mean more names than there is memory. Nothing heavy is imported here, since every
listing folds.
"""

import re

from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_DIGITS = 15
MOST_LETTERS = 10_000  # of a folded text
_MOST_BRACKETS = 4
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_SPECIAL = "[],"


def fold(names: "Iterable[str]") -> str:
    """``gpu031 gpu032 gpu035`` → ``gpu[031-032,035]``. What has no number at its end comes first."""
    plain: dict[str, None] = {}
    found: dict[str, list[str]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if 0 < len(digits) <= MOST_DIGITS:
            found.setdefault(stem, []).append(digits)
        else:
            plain[name] = None
    said = [*plain]
    for stem, digits_of in found.items():
        said += (_stretch(stem, width, numbers) for width, numbers in _by_width(digits_of).items())
    return ",".join(said)


def fold_numbers(numbers: "Iterable[int]", width: int = 1) -> str:
    """``1-3,7``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs)


def _by_width(digits_of: list[str]) -> dict[int, list[int]]:
    """Numbers by how many digits they are written with; those without zeros in front together, at 1."""
    padded = {len(digits) for digits in digits_of if len(digits) > 1 and digits[0] == "0"}
    found: dict[int, list[int]] = {}
    for digits in digits_of:
        found.setdefault(len(digits) if len(digits) in padded else 1, []).append(int(digits))
    return found


def _stretch(stem: str, width: int, numbers: list[int]) -> str:
    said = fold_numbers(numbers, width)
    return stem + (f"[{said}]" if len(set(numbers)) > 1 else said)


# --- Unfolding ------------------------------------------------------------------------------------------


def unfold(text: str, most: int) -> list[str]:
    """All names, in the order in which they were written; none twice, and not more than ``most``."""
    if len(text) > MOST_LETTERS:
        raise BadInput(f"{_short(text)} is longer than {MOST_LETTERS:,} letters; write it in several lines")
    names: dict[str, None] = {}
    for word in _words(text):
        pieces = _pieces(word, most)
        if len(names) + _count(pieces) > most:
            raise BadInput(f"{_short(text)} means too many names; {most:,} are the most")
        for name in _product(pieces):
            if name in names:
                raise BadInput(f"{_short(text)} names {_short(name)} twice; keep one of them")
            names[name] = None
    return [*names]


def _words(text: str) -> "Iterable[str]":
    """Divided at the commas that are in no brackets."""
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise BadInput(f"{_short(text)} has brackets that don't close; write it like gpu[01-10]")
        if letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if depth:
        raise BadInput(f"{_short(text)} has brackets that don't close; write it like gpu[01-10]")
    yield text[start:].strip()


def _pieces(word: str, most: int) -> "list[Sequence[str]]":
    """What can stand at each place of a name: a fixed text, or one of several numbers."""
    if not word:
        raise BadInput("a name is empty; write it like gpu[01-10],login1")
    fixed = re.split(r"\[([^\]]*)\]", word)
    if len(fixed) // 2 > _MOST_BRACKETS:
        raise BadInput(f"{_short(word)} has more than {_MOST_BRACKETS} pairs of brackets")
    return [_numbers(piece, word, most) if at % 2 else (piece,) for at, piece in enumerate(fixed)]


def _numbers(inside: str, word: str, most: int) -> list[str]:
    found: list[str] = []
    for stretch in inside.split(","):
        match = _RANGE.fullmatch(stretch.strip())
        if match is None:
            raise BadInput(
                f"{_short(stretch)} in {_short(word)} is no range of numbers; write it like [01-10,12]"
            )
        first, last = match[1], match[2] or match[1]
        if max(len(first), len(last)) > MOST_DIGITS:
            raise BadInput(f"{_short(stretch)} in {_short(word)} has more than {MOST_DIGITS} digits")
        found += _between(first, last, word, most - len(found))
    return found


def _between(first: str, last: str, word: str, room: int) -> list[str]:
    low, high = int(first), int(last)
    if high < low:
        raise BadInput(f"{first}-{last} in {_short(word)} goes backwards; write {last}-{first}")
    if first[0] == "0" and len(first) > len(last):
        raise BadInput(f"{first}-{last} in {_short(word)} loses digits; write both ends with as many")
    if high - low >= room:
        raise BadInput(f"{first}-{last} in {_short(word)} are too many names: {high - low + 1:,}")
    width = len(first) if first[0] == "0" else 1
    return [f"{number:0{width}}" for number in range(low, high + 1)]


def _count(pieces: "list[Sequence[str]]") -> int:
    count = 1
    for each in pieces:
        count *= len(each)
    return count


def _product(pieces: "list[Sequence[str]]") -> list[str]:
    names = [""]
    for each in pieces:
        names = [name + piece for name in names for piece in each]
    return names


def is_plain(name: str) -> bool:
    """Whether it means itself alone, and not several."""
    return not any(letter in _SPECIAL for letter in name)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
