"""Held and used over time, in steps: pure arithmetic over columns.

Held follows from when attempts got their seats and left them, exactly. What was held until a moment is a sum
of ramps, each from a placing on or, less, from a leaving on; with the moments in order that is two running
sums, so that many attempts cost little more than few.

Used comes in minutes and hours, which lie in one step each. What was not measured is taken to be as what was,
in the same step and group: a gap must not look like rest. ``coverage`` says how much was. Where nothing was
measured, used is not known.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.model.units import DAY, HOUR, MILLI, MINUTE, show_seconds
from muster.server.seeing.use_answers import UseLine
from muster.store.seeing_reads import Piece, Span

Floats = NDArray[np.float64]

MOST_POINTS = 300
MOST_LINES = 12
_STEPS = tuple(
    int(step)
    for step in (
        *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
        *(n * HOUR for n in (1, 2, 3, 6, 12)),
        *(n * DAY for n in (1, 2, 7, 14, 28, 91, 364, 3640)),
    )
)


def step_for(seconds: float, asked: float | None = None, *, least: float = MINUTE) -> int:
    """The finest step, or the next to what is asked, that makes no more points than can be drawn."""
    wanted = max(seconds / (MOST_POINTS - 1), least, asked or 0.0)
    return next((step for step in _STEPS if step >= wanted), _STEPS[-1])


class Grid(msgspec.Struct, frozen=True):
    """Steps of equal length, the last of which may be under way."""

    first: int
    step: int
    until: float

    @classmethod
    def over(cls, since: float, until: float, step: int) -> "Grid":
        return cls(int(since // step) * step, step, until)

    @property
    def count(self) -> int:
        return max(1, math.ceil((self.until - self.first) / self.step))

    def edges(self) -> Floats:
        """From the first moment on; the last is until when it goes."""
        edges = self.first + self.step * np.arange(self.count + 1, dtype=np.float64)
        edges[-1] = self.until
        return edges

    def starts(self) -> list[float]:
        return [float(self.first + self.step * i) for i in range(self.count)]


class _Group:
    """One group's sums by step, in thousandths times seconds."""

    __slots__ = ("held", "measured", "used")

    def __init__(self, count: int) -> None:
        self.held, self.measured, self.used = (np.zeros(count) for _ in range(3))

    def add(self, other: "_Group") -> None:
        self.held += other.held
        self.measured += other.measured
        self.used += other.used


def lines_of(
    grid: Grid,
    spans: Sequence[Span],
    pieces: Iterable[Piece],
    group_of: Callable[[Span | Piece], str],
    *,
    of_gpus: bool,
) -> tuple[UseLine, list[UseLine], UseLine | None]:
    """Of all together, of those who held most, and of the others."""
    groups = _held(grid, spans, group_of, of_gpus)
    _add_used(groups, grid, pieces, group_of)
    lengths = np.diff(grid.edges())
    order = sorted(groups, key=lambda name: (-groups[name].held.sum(), name))
    total, rest = _Group(grid.count), _Group(grid.count)
    for i, name in enumerate(order):
        total.add(groups[name])
        if i >= MOST_LINES:
            rest.add(groups[name])
    lines = [_line(groups[name], lengths, name) for name in order[:MOST_LINES]]
    more = len(order) - len(lines)
    others = _line(rest, lengths, None, more) if more > 0 else None
    return _line(total, lengths, None, len(order)), lines, others


def _held(
    grid: Grid, spans: Sequence[Span], group_of: Callable[[Span], str], of_gpus: bool
) -> dict[str, _Group]:
    by_group: dict[str, list[Span]] = {}
    for span in spans:
        if span.gpus_milli if of_gpus else span.cpus_milli:
            by_group.setdefault(group_of(span), []).append(span)
    edges, groups = grid.edges(), {}
    for name, some in by_group.items():
        groups[name] = _Group(grid.count)
        groups[name].held = held_in_steps(edges, some, of_gpus)
    return groups


def held_in_steps(edges: Floats, spans: Sequence[Span], of_gpus: bool) -> Floats:
    """What these held between each edge and the next: thousandths times seconds."""
    first, last = edges[0], edges[-1]
    begins = np.array([span.placed_at for span in spans]).clip(first, last) - first
    ends = np.array([last if span.ended_at is None else span.ended_at for span in spans])
    ends = np.maximum(ends.clip(first, last) - first, begins)  # a clock that was set back makes it empty
    amounts = np.array([span.gpus_milli if of_gpus else span.cpus_milli for span in spans], dtype=np.float64)
    until = edges - first
    return np.diff(_ramps(begins, amounts, until) - _ramps(ends, amounts, until)).clip(0)


def _ramps(begins: Floats, amounts: Floats, until: Floats) -> Floats:
    """Σ amount × (moment − begin), over those that begin before each moment."""
    order = np.argsort(begins)
    sorted_begins, sorted_amounts = begins[order], amounts[order]
    so_far = np.concatenate(([0.0], np.cumsum(sorted_amounts)))
    moments = np.concatenate(([0.0], np.cumsum(sorted_amounts * sorted_begins)))
    count = np.searchsorted(sorted_begins, until, side="left")
    return np.asarray(until * so_far[count] - moments[count])


def _add_used(
    groups: dict[str, _Group], grid: Grid, pieces: Iterable[Piece], group_of: Callable[[Span | Piece], str]
) -> None:
    first, step, count = grid.first, grid.step, grid.count
    measured: dict[str, list[int]] = {name: [0] * count for name in groups}
    used: dict[str, list[int]] = {name: [0] * count for name in groups}
    for piece in pieces:
        name, i = group_of(piece), (piece.start - first) // step
        if name in measured and 0 <= i < count:
            measured[name][i] += piece.measured
            used[name][i] += piece.used
    for name, group in groups.items():
        group.measured, group.used = np.array(measured[name], float), np.array(used[name], float)


def _line(group: _Group, lengths: Floats, name: str | None, groups: int = 1) -> UseLine:
    held = group.held / lengths / MILLI
    known = group.measured > 0
    share = np.divide(group.used, group.measured, out=np.zeros_like(held), where=known)
    coverage = np.divide(group.measured, group.held, out=np.zeros_like(held), where=group.held > 0)
    is_held = group.held > 0
    return UseLine(
        group=name,
        groups=groups,
        held=[round(value, 3) for value in held.tolist()],
        used=[
            round(value, 3) if known[i] else None if is_held[i] else 0.0
            for i, value in enumerate((held * share).tolist())
        ],
        coverage=[
            round(min(value, 1.0), 3) if is_held[i] else None for i, value in enumerate(coverage.tolist())
        ],
    )


def sentence_of(total: UseLine, capacity: float, unit: str, seconds: float) -> str:
    """``On average 268 of 400 GPUs were held in these 7d, and 57 % of that was used; …``."""
    what = "GPUs" if unit == "gpu" else "cpus"
    mean = sum(total.held) / len(total.held)
    if not mean:
        return f"No {what} were held in these {show_seconds(seconds)}."
    known = [(held, used) for held, used in zip(total.held, total.used, strict=True) if used is not None]
    held, used = (sum(column) for column in zip(*known, strict=True)) if known else (0.0, 0.0)
    share = f"{used / held:.0%} of that was used" if held else "what of that was used is not known"
    of = f" of {capacity:,.0f}" if capacity else ""
    return (
        f"On average {show_few(mean)}{of} {what} were held in these {show_seconds(seconds)}, and {share}; "
        f"at most {show_few(max(total.held))} were held."
    )


def show_few(value: float) -> str:
    """``268``; of less than ten, two digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
