"""Slurm's folded lists: ``gpu[001-003,7],login1`` → names, ``2-4,9%2`` → numbers.

A list of a few letters can stand for a great many names (``n[0-999999999]``), so whoever unfolds says
how many are too many: a list beyond that is refused before it is built.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from muster.model.errors import BadInput

MOST_NAMES = 100_000
_DIGITS = 9  # of one number: more than any cluster has nodes
_RUN = re.compile(rf"([0-9]{{1,{_DIGITS}}})(?:-([0-9]{{1,{_DIGITS}}})(?::([0-9]{{1,{_DIGITS}}}))?)?")
_NAME = re.compile(r"[\w.\-]*(?:\[[0-9,\-]+\][\w.\-]*)*")
_BRACKETS = re.compile(r"\[([0-9,\-]+)\]")
_MOST_LETTERS = 1_000_000


@lru_cache(maxsize=16384)  # the jobs of a cluster sit on the same few sets of nodes
def unfolded(text: str, most: int = MOST_NAMES) -> tuple[str, ...]:
    """``a[1-2],b`` → ``a1 a2 b``. Raises ``BadInput`` for what is no such list, or stands for too many."""
    if len(text) > _MOST_LETTERS:
        raise BadInput(f"a list of nodes with {len(text):,} letters is too long to be one")
    names: list[str] = []
    for piece in _pieces(text):
        names += _names(piece, most - len(names))
    return tuple(names)


def numbers(text: str, most: int = MOST_NAMES) -> tuple[int, ...]:
    """``2-4,9%2`` → 2 3 4 9: after ``%`` is how many may run at a time. ``0-8:4`` → 0 4 8."""
    found: list[int] = []
    for run in _runs(text.partition("%")[0], most):
        found += run
    return tuple(found)


def _pieces(text: str) -> Iterator[str]:
    """Split at the commas that stand outside of brackets."""
    start = depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text:
        yield text[start:]


def _names(piece: str, most: int) -> list[str]:
    if not piece or _NAME.fullmatch(piece) is None:
        raise BadInput(f"can't read {piece[:80]!r} as names of nodes, like node[1-3,7]")
    fixed_and_runs = _BRACKETS.split(piece)
    choices = [_padded(part, most) if place % 2 else [part] for place, part in enumerate(fixed_and_runs)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > most:
        raise _too_many(piece)
    return ["".join(parts) for parts in product(*choices)]


def _padded(text: str, most: int) -> list[str]:
    """The numbers of a bracket with the width that their first was written in: ``08-10`` → 08 09 10."""
    found: list[str] = []
    for part, run in zip(text.split(","), _runs(text, most), strict=True):
        width = len(part.partition("-")[0])
        found += (f"{number:0{width}}" for number in run)
    return found


def _runs(text: str, most: int) -> Iterator[range]:
    count = 0
    for part in text.split(","):
        match = _RUN.fullmatch(part)
        if match is None:
            raise BadInput(f"can't read {part[:80]!r} as a run of numbers, like 2-4")
        first, step = int(match[1]), int(match[3] or 1)
        last = int(match[2] or match[1])
        if last < first or step < 1:
            raise BadInput(f"{part!r} counts backwards")
        run = range(first, last + 1, step)
        count += len(run)
        if count > most:
            raise _too_many(text)
        yield run


def _too_many(text: str) -> BadInput:
    return BadInput(f"{text[:80]!r} stands for more names than a cluster has")
