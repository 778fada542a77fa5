"""Conditions, streams of reports, and an evaluator that remembers everything and looks at all of it."""

import math
from typing import NamedTuple

from hypothesis import strategies as st

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
)

# --- Any condition --------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "val_loss", "eval/acc", "step", "for", "IS", "reports"]) | st.text(
    min_size=1, max_size=8
).filter(lambda name: name.isprintable() and bool(name.strip()))
SPANS = st.integers(1, 10**9).map(lambda ms: ms / 1000)
LASTING = st.integers(1, 1000).map(Reports) | SPANS.map(Span)
AFTER = st.just(0.0) | SPANS
NUMBERS = st.floats(allow_nan=False).map(lambda value: value + 0.0)
TERMS = st.one_of(
    st.builds(Compares, NAMES, st.sampled_from(Sign), NUMBERS, st.none() | LASTING, AFTER),
    st.builds(IsOdd, NAMES, st.sampled_from(Odd), st.none() | LASTING, AFTER),
    st.builds(Stalls, NAMES, st.none() | st.sampled_from(Way), LASTING, AFTER),
)


def nested(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    """None is directly within another of its kind, as none is that was read."""

    def some(kind: type[AllOf] | type[AnyOf]) -> st.SearchStrategy[Condition]:
        others = inner.filter(lambda part: not isinstance(part, kind))
        return st.lists(others, min_size=2, max_size=3).map(lambda parts: kind(tuple(parts)))

    return some(AllOf) | some(AnyOf)


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(TERMS, nested, max_leaves=5)


# --- A small world, in which things happen -----------------------------------------------------------------

METRICS = st.sampled_from(["a", "b", "step"])
VALUES = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan, math.inf, -math.inf])
SMALL_LASTING = st.integers(1, 3).map(Reports) | st.sampled_from([2.0, 5.0, 10.0]).map(Span)
SMALL_AFTER = st.sampled_from([0.0, 0.0, 4.0, 10.0])
SMALL_TERMS = st.one_of(
    st.builds(
        Compares,
        METRICS,
        st.sampled_from(Sign),
        st.sampled_from([0.0, 1.0, 2.0]),
        st.none() | SMALL_LASTING,
        SMALL_AFTER,
    ),
    st.builds(IsOdd, METRICS, st.sampled_from(Odd), st.none() | SMALL_LASTING, SMALL_AFTER),
    st.builds(Stalls, METRICS, st.sampled_from(Way), SMALL_LASTING, SMALL_AFTER),
)
SMALL: st.SearchStrategy[Condition] = st.one_of(
    SMALL_TERMS,
    st.tuples(SMALL_TERMS, SMALL_TERMS).map(AllOf),
    st.tuples(SMALL_TERMS, SMALL_TERMS).map(AnyOf),
    st.tuples(SMALL_TERMS, st.tuples(SMALL_TERMS, SMALL_TERMS).map(AnyOf)).map(AllOf),
)


class Told(NamedTuple):
    """A report."""

    at: float
    source: str
    values: dict[str, float]
    step: float | None


def streams(sources: str = "xy") -> st.SearchStrategy[list[Told]]:
    """Reports at whole and half seconds, some late, some twice."""
    reports = st.tuples(
        st.sampled_from([0.0, 0.5, 1.0, 2.0, 6.0]),
        st.sampled_from(sources),
        st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2),
        st.none() | st.integers(0, 6).map(float),
        st.sampled_from([1, 1, 1, 2]),
    )
    return st.lists(reports, max_size=12).map(_in_time)


def _in_time(reports: list[tuple[float, str, dict[str, float], float | None, int]]) -> list[Told]:
    told: list[Told] = []
    at = 0.0
    for later, source, values, step, times in reports:
        at += later
        told += [Told(at, source, values, step)] * times
    return told


# --- Looking at everything each time ------------------------------------------------------------------------


def passes(term: Compares | IsOdd, value: float) -> bool:
    if isinstance(term, IsOdd):
        kinds = {Odd.NAN: math.isnan, Odd.INF: math.isinf, Odd.NOT_FINITE: lambda v: not math.isfinite(v)}
        return kinds[term.odd](value)
    if math.isnan(value):
        return False
    signs = {
        Sign.AT_LEAST: value >= term.value,
        Sign.ABOVE: value > term.value,
        Sign.AT_MOST: value <= term.value,
        Sign.BELOW: value < term.value,
        Sign.EQUALS: value == term.value,
        Sign.DIFFERS: value != term.value,
    }
    return signs[term.sign]


class Entry(NamedTuple):
    at: float
    source: str
    value: float
    step: float | None


class Naive:
    """Keeps every report that counts, and works everything out from the beginning."""

    def __init__(self, exits: list[tuple[str, Condition]]) -> None:
        self.exits = sorted(exits, key=lambda one: one[0] == "lost")  # success first, in their order
        self.entries: dict[str, list[Entry]] = {}  # by metric
        self.named = {term.metric for _, condition in exits for term in _terms(condition)}

    def play(self, told: list[Told], until: float) -> tuple[float, int] | None:
        """The number of the exit that is met, and when."""
        reports = list(told)
        for tick in range(int(until * 4) + 1):  # whatever turns does so at some quarter of a second
            at = tick / 4
            met = self.look(at)
            while met is None and reports and reports[0].at == at:
                met = self.report(reports.pop(0))
            if met is not None:
                return at, met
        return None

    def report(self, told: Told) -> int | None:
        """The number of the exit that is met."""
        said = {name: value for name, value in told.values.items() if name in self.named}
        if told.step is not None and "step" in self.named:
            said["step"] = told.step
        late = counts = False
        for name, value in said.items():
            mine = [one for one in self.entries.get(name, ()) if one.source == told.source]
            steps = [one.step for one in mine if one.step is not None]
            if told.step is not None and steps and told.step < max(steps):
                late = True
            elif not any(told.step is not None and _same(one, told.step, value) for one in mine):
                counts = True
                self.entries.setdefault(name, []).append(Entry(told.at, told.source, value, told.step))
        if counts and (met := self.look(told.at)) is not None:
            return met
        return self._alone(told, said) if late else None

    def look(self, ran: float) -> int | None:
        for number, (verdict, condition) in enumerate(self.exits):
            hold = [self._holds(condition, source, ran) for source in self.sources()]
            if any(hold) and (verdict == "won" or all(hold)):
                return number
        return None

    def sources(self) -> list[str]:
        return list(dict.fromkeys(one.source for entries in self.entries.values() for one in entries))

    def _alone(self, told: Told, said: dict[str, float]) -> int | None:
        others = [source for source in self.sources() if source != told.source]
        for number, (verdict, condition) in enumerate(self.exits):
            if _holds_alone(condition, said) and (
                verdict == "won" or all(self._holds(condition, other, told.at) for other in others)
            ):
                return number
        return None

    def _holds(self, condition: Condition, source: str, ran: float) -> bool:
        if isinstance(condition, AllOf):
            return all(self._holds(part, source, ran) for part in condition.of)
        if isinstance(condition, AnyOf):
            return any(self._holds(part, source, ran) for part in condition.of)
        entries = self.entries.get(condition.metric, [])
        if isinstance(condition, Stalls):
            return _stalled(condition, entries, ran)
        return _lasts(condition, [one for one in entries if one.source == source], ran)


def _terms(condition: Condition) -> list[Compares | IsOdd | Stalls]:
    if isinstance(condition, AllOf | AnyOf):
        return [term for part in condition.of for term in _terms(part)]
    return [condition]


def _same(one: Entry, step: float, value: float) -> bool:
    return one.step == step and (one.value == value or (math.isnan(one.value) and math.isnan(value)))


def _holds_alone(condition: Condition, said: dict[str, float]) -> bool:
    if isinstance(condition, AllOf):
        return all(_holds_alone(part, said) for part in condition.of)
    if isinstance(condition, AnyOf):
        return any(_holds_alone(part, said) for part in condition.of)
    if isinstance(condition, Stalls) or condition.lasting or condition.after_seconds:
        return False
    return condition.metric in said and passes(condition, said[condition.metric])


def _lasts(term: Compares | IsOdd, entries: list[Entry], ran: float) -> bool:
    if not entries or ran < term.after_seconds or entries[-1].at < term.after_seconds / 2:
        return False
    streak: list[Entry] = []
    for one in reversed(entries):
        if not passes(term, one.value):
            break
        streak.append(one)
    if isinstance(term.lasting, Reports):
        return len(streak) >= term.lasting.count
    span = term.lasting.seconds if term.lasting else 0.0
    return bool(streak) and ran >= streak[-1].at + span and streak[0].at >= streak[-1].at + span / 2


def _stalled(term: Stalls, entries: list[Entry], ran: float) -> bool:
    if not entries or ran < term.after_seconds or entries[-1].at < term.after_seconds / 2:
        return False
    better = (lambda new, old: new > old) if term.way is Way.RISING else (lambda new, old: new < old)
    finite = [number for number, one in enumerate(entries) if math.isfinite(one.value)]
    best = None
    for number in finite:
        if best is None or better(entries[number].value, entries[best].value):
            best = number
    since = entries[0].at if best is None else entries[best].at
    if isinstance(term.lasting, Reports):
        return len(entries) - (0 if best is None else best + 1) >= term.lasting.count
    return ran >= since + term.lasting.seconds and entries[-1].at >= since + term.lasting.seconds / 2
