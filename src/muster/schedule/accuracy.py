"""How far off were predictions? What was said before a run, beside what became of it."""

from collections.abc import Iterable
from statistics import median

import msgspec


class Foretold(msgspec.Struct, frozen=True):
    """How long a run was thought to take, between what bounds, and how long it took."""

    plan: float
    low: float
    high: float
    seconds: float


class Errors(msgspec.Struct, frozen=True):
    """Over ``count`` runs; None if there were none."""

    count: int
    median_relative: float | None  # of what it took: 0.5 is half as long again, or half as long
    under: float | None  # part of the runs that took longer than planned
    inside: float | None  # part of the runs that stayed within the bounds


_LEAST_SECONDS = 1.0  # what is shorter is not told apart


def errors(pairs: Iterable[Foretold]) -> Errors:
    found = list(pairs)
    if not found:
        return Errors(0, None, None, None)
    relative = [abs(one.plan - one.seconds) / max(one.seconds, _LEAST_SECONDS) for one in found]
    under = sum(one.seconds > max(one.plan, _LEAST_SECONDS) for one in found)
    inside = sum(one.low <= max(one.seconds, _LEAST_SECONDS) <= one.high for one in found)
    return Errors(len(found), median(relative), under / len(found), inside / len(found))
