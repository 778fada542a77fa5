"""Pictures of numbers over time: what ``static/charts.js`` draws, and the same in words and as a table.

A page makes a ``Chart`` and hands it to the macro ``chart`` of ``templates/charts.html``; its sheet names
``SCRIPTS``. Unknown is None: a gap in the line, and empty in the table.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

SCRIPTS = ("uplot.css", "charts.css", "uplot.js", "charts.js")
_MOST_ROWS = 60  # of the table twin; the address with .json has all

How = Literal["line", "steps", "filled", "hatched"]
Unit = Literal["", "%", "bytes"]
Tone = Literal["won", "lost", "limit"]


class Series(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value for each moment. ``filled`` is what was used; ``hatched``, behind it, what was held."""

    label: str
    values: Sequence[float | None]
    how: How = "line"


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line across the picture: at a height, or at a moment."""

    label: str
    y: float | None = None
    x: float | None = None
    tone: Tone = "limit"


class Chart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One picture. ``low`` and ``high`` bound it; None: as the values do."""

    id: str
    title: str
    summary: str
    at: Sequence[float]  # seconds since the epoch, in order
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    unit: Unit = ""
    low: float | None = None
    high: float | None = None

    def json(self) -> str:
        """For the attribute ``data-chart``; the template escapes it."""
        return msgspec.json.encode(self).decode()

    def rows(self) -> list[tuple[float, list[float | None]]]:
        """So many, evenly, that a table is still one; the last among them."""
        step = max(1, math.ceil(len(self.at) / _MOST_ROWS))
        places = range((len(self.at) - 1) % step, len(self.at), step)
        return [(self.at[place], [one.values[place] for one in self.series]) for place in places]


def bounds(values: Sequence[float | None], wanted: Sequence[float] = ()) -> tuple[float | None, float | None]:
    """What a picture spans: the values, and those lines that are not so far off that nothing else is seen."""
    known = [value for value in values if value is not None]
    if not known:
        return (min(wanted, default=None), max(wanted, default=None))
    low, high = min(known), max(known)
    reach, size = 4 * (high - low), 5 * max(abs(low), abs(high))
    near = [one for one in wanted if low - reach <= one <= high + reach or abs(one) <= size]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.06 * ((high - low) or abs(high) or 1.0)
    return low - margin, high + margin


def with_gaps(
    at: Sequence[float], values: Sequence[Sequence[float | None]], step_seconds: float
) -> tuple[list[float], list[list[float | None]]]:
    """Values that each stand for a step, ready to be drawn: nothing is drawn across missing steps."""
    moments: list[float] = []
    columns: list[list[float | None]] = [[] for _ in values]
    for place, moment in enumerate(at):
        if moments and moment - moments[-1] > 1.5 * step_seconds:
            moments.append(moments[-1] + step_seconds)
            for column in columns:
                column.append(None)
        moments.append(moment)
        for column, given in zip(columns, values, strict=True):
            column.append(given[place])
    if moments:  # the last value stands for a step, too
        moments.append(moments[-1] + step_seconds)
        for column in columns:
            column.append(column[-1])
    return moments, columns
