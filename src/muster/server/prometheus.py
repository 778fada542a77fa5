"""Figures as text, in the form that Prometheus reads (version 0.0.4).

An unknown is left out: a figure of None makes no line, and a metric without lines is not named. Where a name
is given twice the last figure stands, as a page that says two things is refused as a whole.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_IN_LABEL = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_IN_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n"})


class Metric(msgspec.Struct, frozen=True, cache_hash=True):
    """What a figure is: its unit stands last in its name."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    labels: tuple[str, ...] = ()


Labels = tuple[str, ...]  # the values, in the order of the metric's names
Figure = tuple[Metric, Labels, float | None]


def exposition(figures: Iterable[Figure]) -> bytes:
    """The page: metrics as they first come, and the figures of each in the order of their labels."""
    found: dict[Metric, dict[Labels, float]] = {}
    for metric, labels, value in figures:
        if value is not None:
            found.setdefault(metric, {})[labels] = value
    lines = [line for metric, values in found.items() for line in _lines(metric, values)]
    return "".join(lines).encode(errors="replace")


def _lines(metric: Metric, values: dict[Labels, float]) -> list[str]:
    name = metric.name
    head = f"# HELP {name} {metric.help.translate(_IN_HELP)}\n# TYPE {name} {metric.kind}\n"
    figures = (
        f"{name}{_shown(metric.labels, labels)} {_number(values[labels])}\n" for labels in sorted(values)
    )
    return [head, *figures]


def _shown(names: Sequence[str], values: Labels) -> str:
    if not names:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{value.translate(_IN_LABEL)}"' for name, value in pairs) + "}"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
