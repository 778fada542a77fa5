"""Conditions under which work ends, won or lost, as a person writes them.

Three kinds: a metric crosses a value (``val_acc >= 0.92``, ``val_acc < 0.5 after 2h``), it no longer gets
better (``val_loss stalls for 90m``), or it is no number any more (``loss is nan``). Here they are only read;
acting on them is the steward's part.
"""

import enum
import math
import re

import msgspec

from muster.model.errors import BadInput
from muster.model.units import parse_seconds

_METRIC = r"(?P<metric>[A-Za-z_][A-Za-z0-9_./@-]{0,127})"
_THRESHOLD = re.compile(
    rf"{_METRIC}\s*(?P<comparison>>=|<=|==|>|<)\s*(?P<value>[-+0-9.eE]+)(?:\s+after\s+(?P<after>.+))?",
    re.ASCII,
)
_STALLS = re.compile(rf"{_METRIC}\s+stalls\s+for\s+(?P<span>.+)", re.ASCII)
_NAN = re.compile(rf"{_METRIC}\s+is\s+nan", re.ASCII | re.IGNORECASE)
_HINT = "write it like val_acc >= 0.92, val_acc < 0.5 after 2h, val_loss stalls for 90m or loss is nan"
_MOST_LETTERS = 300


class Comparison(enum.StrEnum):
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    EQUALS = "=="


class Crosses(msgspec.Struct, frozen=True, tag=True):
    """A metric is on one side of a value, looked at once the job has run for so long."""

    metric: str
    comparison: Comparison
    value: float
    after_seconds: float = 0.0


class Stalls(msgspec.Struct, frozen=True, tag=True):
    """A metric has not got better for so long."""

    metric: str
    for_seconds: float


class IsNan(msgspec.Struct, frozen=True, tag=True):
    """A metric is not a number."""

    metric: str


Condition = Crosses | Stalls | IsNan


def parse_condition(text: str) -> Condition:
    """One condition, or a sentence about what it should look like."""
    text = text.strip()
    if len(text) > _MOST_LETTERS:
        raise BadInput(f"a condition of {len(text):,} letters is too long; {_HINT}")
    if match := _THRESHOLD.fullmatch(text):
        after = match["after"]
        value = _finite(match["value"], text)
        return Crosses(
            match["metric"], Comparison(match["comparison"]), value, parse_seconds(after) if after else 0.0
        )
    if match := _STALLS.fullmatch(text):
        return Stalls(match["metric"], parse_seconds(match["span"]))
    if match := _NAN.fullmatch(text):
        return IsNan(match["metric"])
    raise BadInput(f"{text!r} is not a condition; {_HINT}")


def _finite(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise BadInput(f"{text!r} compares with {number!r}, which is not a number; {_HINT}") from None
    if not math.isfinite(value):
        raise BadInput(f"{text!r} compares with a number beyond all bounds; {_HINT}")
    return value
