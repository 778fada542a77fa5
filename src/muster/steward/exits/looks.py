"""Looking at what is remembered: does a condition hold now, and when would time alone make it hold?

A condition that needs time (``after``, ``for 20m``, ``stalls for 90m``) holds at the moment at which the
time is full, without waiting for a report. But nothing ends on the word of a metric that has gone silent:
it must have been heard in the second half of that time. If it was not, the next report decides.

- A comparison holds if the last value fulfils it. NaN fulfils none, ``!=`` included; infinities compare as
  numbers do.
- ``for 3 reports``: so did the last three values of the same source that counted.
- ``for 20m``: so did all for that long.
- ``stalls``: no value was better than the best for that long, or so many reports. Any gain is one.
- ``after 2h``: and the work has run for two hours.
"""

import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from muster.model.units import show_seconds
from muster.steward.exits.memory import Best, Source
from muster.steward.exits.terms import (
    AllOf,
    AnyOf,
    Compares,
    Condition,
    IsOdd,
    Odd,
    Reports,
    Sign,
    Span,
    Stalls,
    Way,
    show_name,
    show_test,
)

NEVER = float("inf")
Test = Callable[[float], bool]

_COMPARE: dict[Sign, Callable[[float, float], bool]] = {
    Sign.AT_LEAST: operator.ge,
    Sign.ABOVE: operator.gt,
    Sign.AT_MOST: operator.le,
    Sign.BELOW: operator.lt,
    Sign.EQUALS: operator.eq,
    Sign.DIFFERS: lambda value, other: value == value and value != other,  # which NaN does not fulfil
}
_ODD: dict[Odd, Test] = {
    Odd.NAN: lambda value: value != value,
    Odd.INF: lambda value: value in (NEVER, -NEVER),
    Odd.NOT_FINITE: lambda value: not -NEVER < value < NEVER,
}


def passing(term: Compares | IsOdd) -> Test:
    """What is asked of a single value."""
    if isinstance(term, IsOdd):
        return _ODD[term.odd]
    compare, other = _COMPARE[term.sign], term.value
    return lambda value: compare(value, other)


class Scene(NamedTuple):
    """What is looked at: what one source has told, and the best that any has."""

    source: Source
    bests: Mapping[str, Best]


class Look(Protocol):
    """A condition, or a part of one."""

    def holds(self, scene: Scene, ran: float) -> bool: ...

    def leaves(self) -> "list[ValueLook | StallLook]": ...

    def said(self, scene: Scene, ran: float) -> str:
        """Why it holds, if it does."""


class ValueLook:
    """A test of a metric's last value."""

    __slots__ = ("after", "count", "is_timed", "key", "lasts", "metric", "passes", "span")

    def __init__(self, term: Compares | IsOdd) -> None:
        self.metric = term.metric
        self.key = show_test(term)
        self.passes = passing(term)
        self.after = term.after_seconds
        self.lasts = term.lasting is not None
        self.count = term.lasting.count if isinstance(term.lasting, Reports) else 0
        self.span = term.lasting.seconds if isinstance(term.lasting, Span) else 0.0
        self.is_timed = bool(self.after or self.span)

    def holds(self, scene: Scene, ran: float) -> bool:
        return ran >= self.after and self._full_at(scene.source) <= ran

    def turns_at(self, scene: Scene) -> float:
        """The run time from which on it holds if nothing more is told."""
        return max(self.after, self._full_at(scene.source))

    def _full_at(self, source: Source) -> float:
        heard = source.heard.get(self.metric)
        if heard is None or heard.at < self.after / 2 or not self.passes(heard.value):
            return NEVER
        if not self.lasts:
            return 0.0
        streak = source.streaks.get(self.key)
        if streak is None or streak.count < self.count or heard.at < streak.since + self.span / 2:
            return NEVER
        return streak.since + self.span

    def leaves(self) -> "list[ValueLook | StallLook]":
        return [self]

    def said(self, scene: Scene, ran: float) -> str:
        source = scene.source
        heard = source.heard[self.metric]
        at = "" if heard.step is None else f" at step {show_step(heard.step)}"
        lasted = (
            f", the last of {source.streaks[self.key].count:,} such reports in a row" if self.count else ""
        )
        if self.span:
            lasted = f", as it has been for {show_seconds(ran - source.streaks[self.key].since)}"
        since = f" after {show_seconds(ran)}" if self.after else ""
        return f"{show_name(self.metric)} was {heard.value:.6g}{at}{since}{lasted}"


class StallLook:
    """Whether a metric still gets better, whoever tells it."""

    __slots__ = ("after", "count", "is_timed", "key", "metric", "span", "way")

    def __init__(self, term: Stalls) -> None:
        assert term.way is not None, "compiling gives every stall its way"
        self.metric = term.metric
        self.way = term.way
        self.key = f"{term.metric} {term.way}"
        self.after = term.after_seconds
        self.count = term.lasting.count if isinstance(term.lasting, Reports) else 0
        self.span = term.lasting.seconds if isinstance(term.lasting, Span) else 0.0
        self.is_timed = bool(self.after or self.span)

    def holds(self, scene: Scene, ran: float) -> bool:
        return ran >= self.after and self._full_at(scene) <= ran

    def turns_at(self, scene: Scene) -> float:
        return max(self.after, self._full_at(scene))

    def _full_at(self, scene: Scene) -> float:
        best = scene.bests.get(self.key)
        if best is None or best.count < self.count:
            return NEVER
        if best.heard_at < self.after / 2 or best.heard_at < best.at + self.span / 2:
            return NEVER
        return best.at + self.span

    def leaves(self) -> "list[ValueLook | StallLook]":
        return [self]

    def said(self, scene: Scene, ran: float) -> str:
        best = scene.bests[self.key]
        lasted = f"{best.count:,} reports" if self.count else show_seconds(ran - best.at)
        went = "risen above" if self.way is Way.RISING else "fallen below"
        what = "been a finite number" if best.value is None else f"{went} {best.value:.6g}"
        return f"{show_name(self.metric)} had not {what} for {lasted}"


class AllLook:
    __slots__ = ("of",)

    def __init__(self, of: tuple[Look, ...]) -> None:
        self.of = of

    def holds(self, scene: Scene, ran: float) -> bool:
        return all(part.holds(scene, ran) for part in self.of)

    def leaves(self) -> list[ValueLook | StallLook]:
        return [leaf for part in self.of for leaf in part.leaves()]

    def said(self, scene: Scene, ran: float) -> str:
        return " and ".join(part.said(scene, ran) for part in self.of)


class AnyLook:
    __slots__ = ("of",)

    def __init__(self, of: tuple[Look, ...]) -> None:
        self.of = of

    def holds(self, scene: Scene, ran: float) -> bool:
        return any(part.holds(scene, ran) for part in self.of)

    def leaves(self) -> list[ValueLook | StallLook]:
        return [leaf for part in self.of for leaf in part.leaves()]

    def said(self, scene: Scene, ran: float) -> str:
        return next(part.said(scene, ran) for part in self.of if part.holds(scene, ran))


def look_at(condition: Condition) -> Look:
    """How to look at a condition whose stalls know their ways."""
    match condition:
        case AllOf(of):
            return AllLook(tuple(map(look_at, of)))
        case AnyOf(of):
            return AnyLook(tuple(map(look_at, of)))
        case Stalls():
            return StallLook(condition)
        case _:
            return ValueLook(condition)


def show_step(step: float) -> str:
    return f"{step:,.0f}" if step == int(step) else f"{step:g}"
