"""Conditions that were written well and can't be meant: pointed out when work is submitted.

What can never be met is refused: whoever wrote it counts on an end that will not come. What is only
doubtful is said, and accepted: it is met by the very first report (which may be meant, to see whether
anything comes at all), or the same report would meet success and failure, or it looks turned round.

Whether values can fulfil several tests is tried out: between and beyond the numbers in the tests nothing
changes, so that one value from each gap, and each number itself, stand for all.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from muster.model.errors import BadInput
from muster.model.units import show_seconds
from muster.steward.exits.compiled import Exit, Exits
from muster.steward.exits.direction import points, way_by_name
from muster.steward.exits.looks import passing
from muster.steward.exits.terms import (
    AllOf,
    AnyOf,
    Compares,
    Condition,
    IsOdd,
    Reports,
    Sign,
    Span,
    Stalls,
    Term,
    Way,
    show,
    show_name,
    show_number,
    terms_of,
)

Together = tuple[Term, ...]  # terms that have to hold at once
_MOST_WAYS = 256  # in which a condition may be met; what is more tangled is not looked into
_MOST_TRIED = 4096
_WORSE = {Way.RISING: "less", Way.FALLING: "more"}


def check_sense(exits: Exits, time_limit_seconds: float | None) -> tuple[str, ...]:
    """What is doubtful, in sentences; ``BadInput`` if something can never be met."""
    said: list[str] = []
    for one in exits.exits:
        said += _hopeless(one, time_limit_seconds)
        said += _at_once(one)
        said += _odd(one)
    said += _both(exits)
    return tuple(said)


# --- Never ----------------------------------------------------------------------------------------


def _hopeless(one: Exit, limit_seconds: float | None) -> list[str]:
    """The ways in which it can't be met, unless those are all there are."""
    reasons = [(way, _never(way, limit_seconds)) for way in _ways(one.condition)]
    never = [(way, reason) for way, reason in reasons if reason]
    if never and len(never) == len(reasons):
        raise BadInput(f"'{one.text}' can never be met: {never[0][1]}; change it, or leave it out")
    return [f"'{_shown(way)}' in '{one.text}' can never be met: {reason}" for way, reason in never]


def _never(way: Together, limit_seconds: float | None) -> str | None:
    """Why these can't hold at once; None if they can."""
    for term in way:
        needed = max(term.after_seconds, term.lasting.seconds if isinstance(term.lasting, Span) else 0.0)
        if limit_seconds is not None and needed >= limit_seconds:
            return f"the work runs for at most {show_seconds(limit_seconds)}, its time limit"
    for metric, tests in _tests(way).items():
        if _example(metric, tests) is None:
            return f"no value of {show_name(metric)} fulfils it"
    return None


def _shown(way: Together) -> str:
    return show(AllOf(way) if len(way) > 1 else way[0])


# --- At once --------------------------------------------------------------------------------------


def _at_once(one: Exit) -> Iterator[str]:
    """Whether any first report would meet it, whatever finite numbers are in it."""
    tests = _tests(terms_of(one.condition))
    choices = [[(name, value) for value in _values(name, some, odd=False)] for name, some in tests.items()]
    if not choices or math.prod(map(len, choices)) > _MOST_TRIED:
        return
    if all(_meets(one.condition, dict(chosen)) for chosen in itertools.product(*choices)):
        yield f"'{one.text}' is met by any first report; the work would end as {one.verdict} at once"


def _meets(condition: Condition, values: Mapping[str, float]) -> bool:
    """Whether these values meet it, in a first report."""
    match condition:
        case AllOf(of):
            return all(_meets(part, values) for part in of)
        case AnyOf(of):
            return any(_meets(part, values) for part in of)
        case Stalls():
            return False
        case _:
            now = not condition.after_seconds and condition.lasting in (None, Reports(1))
            return now and passing(condition)(values[condition.metric])


# --- Both, and turned round -----------------------------------------------------------------------


def _both(exits: Exits) -> Iterator[str]:
    """What would be won and lost with the same report. Only tests of the same metrics are compared."""
    for won, lost in itertools.product(exits.success, exits.failure):
        shared = (_shared(*ways) for ways in itertools.product(_ways(won.condition), _ways(lost.condition)))
        if example := next((values for values in shared if values), None):
            said = " and ".join(f"{show_name(name)} = {value:.6g}" for name, value in example.items())
            yield f"{said} would meet both '{won.text}' and '{lost.text}'; success comes first: that is won"


def _shared(won: Together, lost: Together) -> dict[str, float] | None:
    """Values that meet both."""
    ours, theirs = _tests(won), _tests(lost)
    if ours.keys() != theirs.keys():
        return None
    found = {name: _example(name, [*tests, *theirs[name]]) for name, tests in ours.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return values if len(values) == len(found) else None


def _odd(one: Exit) -> Iterator[str]:
    term = one.condition
    if not isinstance(term, Compares):
        return
    name, usual, pointed = (
        show_name(term.metric),
        way_by_name(term.metric),
        points(term, one.verdict == "won"),
    )
    if term.sign is Sign.EQUALS and math.isfinite(term.value) and not term.value.is_integer():
        yield f"'{one.text}': a measured number is seldom exactly {show_number(term.value)}; is >= meant?"
    if pointed is not None and usual is not None and pointed is not usual:
        ends = f"ends it as {one.verdict}"
        yield f"'{one.text}' {ends}, though {_WORSE[usual]} of {name} is usually worse; is it turned round?"


# --- Ways and values ------------------------------------------------------------------------------


def _ways(condition: Condition) -> list[Together]:
    """Each way to meet it: terms that hold at once. Nothing, if there are too many to look into."""
    count = _count_ways(condition)
    return list(_each_way(condition)) if count <= _MOST_WAYS else []


def _count_ways(condition: Condition) -> int:
    match condition:
        case AnyOf(of):
            return sum(map(_count_ways, of))
        case AllOf(of):
            return math.prod(map(_count_ways, of))
        case _:
            return 1


def _each_way(condition: Condition) -> Iterator[Together]:
    match condition:
        case AnyOf(of):
            yield from itertools.chain.from_iterable(map(_each_way, of))
        case AllOf(of):
            for chosen in itertools.product(*map(_each_way, of)):
                yield tuple(itertools.chain.from_iterable(chosen))
        case _:
            yield (condition,)


def _tests(terms: Iterable[Term]) -> dict[str, list[Compares | IsOdd]]:
    tests: dict[str, list[Compares | IsOdd]] = {}
    for term in terms:
        if not isinstance(term, Stalls):
            tests.setdefault(term.metric, []).append(term)
    return tests


def _example(metric: str, tests: list[Compares | IsOdd]) -> float | None:
    """A value that passes all tests."""
    fitting = (v for v in _values(metric, tests, odd=True) if all(passing(test)(v) for test in tests))
    return next(fitting, None)


def _values(metric: str, tests: list[Compares | IsOdd], *, odd: bool) -> list[float]:
    """Values that stand for all: finite ones first. A step is a finite number that is not negative."""
    numbers = sorted({0.0, *(t.value for t in tests if isinstance(t, Compares) and math.isfinite(t.value))})
    between = [low / 2 + high / 2 for low, high in itertools.pairwise(numbers)]
    values = [*between, *numbers, numbers[0] - 1 - abs(numbers[0]), numbers[-1] + 1 + abs(numbers[-1])]
    if metric == "step":
        return [value for value in values if value >= 0]
    return [*values, math.inf, -math.inf, math.nan] if odd else values
