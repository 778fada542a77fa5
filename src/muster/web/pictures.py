"""Small pictures between words, as SVG: what was held day by day, when a job starts, what was used of it.

Pure: numbers and words in, markup out. Whatever is a word is escaped here, so templates print the result as
it is. Colours and patterns are the style sheet's (``.picture``); every picture says in words what it shows.
Where a picture has text, positions are parts of its width, and not scaled: letters stay as large as others.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

import msgspec
from markupsafe import Markup

from muster.model.units import DAY, HOUR, MINUTE

_STEP, _BAR, _HIGH = 10, 8, 20  # of a spark: a bar with its gap, the bar, the highest
_HATCH = "".join(f"M{x} 10l5 -10" for x in range(-5, 100, 5))
_ROUND = (MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY)
_MOST_TICKS = 4
_FAR = 6  # times as far as what is likely: such a limit is named, and not drawn
_LEAST_SECONDS = 2 * MINUTE  # that an axis shows

Clock = Callable[[float], str]


# --- Day by day -----------------------------------------------------------------------------------------


def spark(values: Sequence[float | None], label: str) -> Markup:
    """A bar for each value, by the greatest; what is unknown is a dashed line and not nothing."""
    most = max((value for value in values if value is not None), default=0.0)
    bars = "".join(_spark_bar(at * _STEP, value, most) for at, value in enumerate(values))
    return _scaled("spark", (max(1, len(values)) * _STEP, _HIGH), label, bars)


def _spark_bar(x: int, value: float | None, most: float) -> str:
    if value is None:
        return f'<path class="unknown" d="M{x} {_HIGH - 4}h{_BAR}"/>'
    high = max(1.0, _HIGH * (value / most)) if most > 0 else 1.0
    kind = "some" if value > 0 else "zero"
    return f'<rect class="{kind}" x="{x}" y="{_HIGH - high:.4g}" width="{_BAR}" height="{high:.4g}"/>'


# --- A part of a whole ----------------------------------------------------------------------------------


def bar(share: float | None, label: str, mark: float | None = None) -> Markup:
    """What was used of what was held: filled, and hatched what was not. ``mark``: a tick, such as a quota.

    What was not measured has no filling, and is dashed.
    """
    inside = '<rect class="held" width="100" height="10"/>'
    if share is None:
        inside = '<rect class="unknown" width="100" height="10"/>'
    else:
        inside += f'<path class="hatch" d="{_HATCH}"/>'
        inside += f'<rect class="used" width="{100 * _part(share):.4g}" height="10"/>'
    if mark is not None:
        at = f"{100 * _part(mark):.4g}"
        inside += f'<line class="mark" x1="{at}" x2="{at}" y1="0" y2="10"/>'
    return _scaled("bar", (100, 10), label, inside)


def _part(share: float) -> float:
    return min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0


# --- When something starts ------------------------------------------------------------------------------


class StartRange(msgspec.Struct, frozen=True):
    """Between ``earliest`` and ``latest``, this probably; by time limits at ``limit`` at the latest."""

    earliest: float
    latest: float
    probability: float
    limit: float | None = None


def start_range(when: StartRange, now: float, clock: Clock, zone_seconds: float = 0.0) -> Markup:
    """A band on an axis of time that begins now. ``zone_seconds``: what round times are ahead of UTC."""
    earliest, latest = max(now, when.earliest), max(now, when.latest)
    limit = None if when.limit is None else max(latest, when.limit)
    end = _end(now, latest, limit)
    axis = _Axis(now, end)
    ticks = "".join(_tick(axis, at, clock) for at in _round_times(now, end, zone_seconds))
    start, width = axis.at(earliest), max(0.8, axis.at(latest) - axis.at(earliest))
    inside = (
        f'<line class="axis" x1="0%" x2="100%" y1="38" y2="38"/>{ticks}'
        f'<line class="now" x1="0%" x2="0%" y1="18" y2="42"/>'
        f'<rect class="likely" x="{min(start, 99.2):.4g}%" width="{width:.4g}%" y="20" height="14"/>'
        f"{_label(_span(earliest, latest, now, clock), start + width / 2, 13, 'strong')}"
        f"{'' if limit is None else _limit(axis, limit, clock)}"
    )
    label = escape(range_in_words(when, now, clock), quote=True)
    return Markup(f'<svg class="picture start" role="img" aria-label="{label}" height="72">{inside}</svg>')


def range_in_words(when: StartRange, now: float, clock: Clock) -> str:
    span = _span(max(now, when.earliest), max(now, when.latest), now, clock)
    bound = "" if when.limit is None else f"; at the latest {clock(when.limit)}, by time limits"
    return f"likely {span} ({when.probability * 100:.0f} %){bound}"


def _span(earliest: float, latest: float, now: float, clock: Clock) -> str:
    if latest - now < 1:
        return "now"
    first, last = "now" if earliest - now < 1 else clock(earliest), clock(latest)
    return first if first == last else f"{first}–{last}"


def _end(now: float, latest: float, limit: float | None) -> float:
    likely = max(latest - now, _LEAST_SECONDS)
    is_near = limit is not None and limit - now <= _FAR * likely
    return now + (max(likely, limit - now) * 1.02 if is_near and limit is not None else likely * 1.3)


class _Axis(msgspec.Struct, frozen=True):
    start: float
    end: float

    def at(self, time: float) -> float:
        """In percent of the width."""
        return 100 * min(1.0, max(0.0, (time - self.start) / (self.end - self.start)))


def _round_times(now: float, end: float, zone_seconds: float) -> list[float]:
    span = end - now
    days = DAY * max(1, math.ceil(span / DAY / _MOST_TICKS))
    step = next((one for one in _ROUND if span / one <= _MOST_TICKS), days)
    first = math.ceil((now + zone_seconds) / step) * step - zone_seconds
    return [first + n * step for n in range(_MOST_TICKS + 1) if first + n * step < end]


def _tick(axis: _Axis, at: float, clock: Clock) -> str:
    x = axis.at(at)
    line = f'<line class="axis" x1="{x:.4g}%" x2="{x:.4g}%" y1="38" y2="42"/>'
    return line + (_label(clock(at), x, 54, "tick") if 4 < x < 96 else "")


def _limit(axis: _Axis, at: float, clock: Clock) -> str:
    """A mark where the limits end it; if that is far beyond, only the words."""
    words = f"latest {clock(at)} by time limits"
    if at > axis.end:
        return _label(f"{words} →", 100.0, 68, "tick")
    x = f"{axis.at(at):.4g}%"
    return f'<line class="limit" x1="{x}" x2="{x}" y1="18" y2="60"/>' + _label(words, axis.at(at), 68, "tick")


def _label(text: str, x: float, y: int, kind: str) -> str:
    """Words that stay inside, wherever they stand."""
    anchor, x = ("start", min(x, 100)) if x < 25 else ("end", min(x, 100)) if x > 75 else ("middle", x)
    return f'<text class="{kind}" x="{x:.4g}%" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _scaled(kind: str, size: tuple[int, int], label: str, inside: str) -> Markup:
    box = f'viewBox="0 0 {size[0]} {size[1]}" preserveAspectRatio="none"'
    words = escape(label, quote=True)
    return Markup(f'<svg class="picture {kind}" {box} role="img" aria-label="{words}">{inside}</svg>')
