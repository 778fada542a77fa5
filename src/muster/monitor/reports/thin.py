"""Fewer points that tell the same: of what is kept, and of what is shown.

What is dropped lies evenly between what stays. The least and the greatest value of each name stay, since they
are what people look for and what exits go by; so do the first that is no number, and the last.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

MOST_KEPT = 5000  # reports of an attempt, about


def to_drop(values: Sequence[Mapping[str, float]], most: int = MOST_KEPT) -> list[int]:
    """Which reports of an attempt go, by their place: of the older ones every second, until few enough stay.

    The newer half stays as it is. So what is long ago grows coarser and coarser.
    """
    recent = most // 2
    older = list(range(max(0, len(values) - recent)))
    telling = _telling(values)
    while len(older) > most - recent:
        kept = [place for i, place in enumerate(older) if i % 2 == 0 or place in telling]
        if len(kept) == len(older):
            break
        older = kept
    stay = set(older)
    return [place for place in range(len(values) - recent) if place not in stay]


def _telling(values: Iterable[Mapping[str, float]]) -> set[int]:
    """Where each name is least, greatest, and first no number."""
    least: dict[str, tuple[float, int]] = {}
    greatest: dict[str, tuple[float, int]] = {}
    odd: dict[str, int] = {}
    for place, some in enumerate(values):
        for name, value in some.items():
            if not math.isfinite(value):
                odd.setdefault(name, place)
                continue
            if name not in least or value < least[name][0]:
                least[name] = (value, place)
            if name not in greatest or value > greatest[name][0]:
                greatest[name] = (value, place)
    places = {place for found in (least, greatest) for _, place in found.values()}
    return places | set(odd.values())


def shown(values: Sequence[float], most: int) -> list[int]:
    """Which of a series to show, by their place, in order: so many, or a few more."""
    if len(values) <= most:
        return list(range(len(values)))
    stride = len(values) / max(1, most)
    even = {int(i * stride) for i in range(most)}
    return sorted(even | {len(values) - 1} | _telling([{"": value} for value in values]))
