"""A report: what a job says about itself, as numbers under names, at a step.

It is a measurement, like a sample, and no fact of the journal: a job may make a thousand of them, each worth
little. What is decided from them is a fact, with its reason.
"""

import math
from collections.abc import Mapping

import msgspec

from muster.model.job import JobId

MOST_NAMES = 64  # of one report; what is beyond is dropped
MOST_LETTERS = 128  # of a name


class Report(msgspec.Struct, frozen=True):
    """Values that belong together. NaN and the infinities are values, and often the ones that matter."""

    job: JobId
    attempt: int
    at: float  # by the clock that nobody sets
    step: float | None
    values: dict[str, float]  # never empty; bounded by ``numbers_in``
    source: str  # where it comes from: "report", "output", "tensorboard", "mlflow"


def numbers_in(values: Mapping[str, object]) -> dict[str, float]:
    """What of this can be reported: numbers, under names, and not too many."""
    found: dict[str, float] = {}
    for name, value in values.items():
        number = _number(value)
        if number is not None and is_name(name):
            found[name] = number
            if len(found) == MOST_NAMES:
                break
    return found


def is_name(text: str) -> bool:
    """Whether a value can have this name: it is written to terminals and files."""
    return 0 < len(text) <= MOST_LETTERS and text.isprintable()


def _number(value: object) -> float | None:
    """A bool is none; nor is a whole number that is too large for any float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
