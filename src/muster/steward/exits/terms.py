"""What a condition says, as values, and in one spelling.

``show`` writes a condition such that reading it gives the same value again; two spellings of one condition
are shown alike, so that text can be compared.
"""

import enum
import math
import re

import msgspec

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*", re.ASCII)
# Words that mean something wherever they stand: a metric of such a name is written in quotes.
RESERVED = frozenset({"and", "or", "not", "is", "after", "for", "stalls", "stops", "nan", "inf", "infinity"})
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


class Sign(enum.StrEnum):
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    EQUALS = "=="
    DIFFERS = "!="


class Odd(enum.StrEnum):
    """What a number may be instead of one."""

    NAN = "nan"
    INF = "inf"
    NOT_FINITE = "not finite"


class Way(enum.StrEnum):
    """Where a metric goes while it gets better."""

    RISING = "rising"
    FALLING = "falling"


class Reports(msgspec.Struct, frozen=True, tag=True):
    """So many reports in a row."""

    count: int


class Span(msgspec.Struct, frozen=True, tag=True):
    """So long, in run time; whole milliseconds."""

    seconds: float


Lasting = Reports | Span


class Compares(msgspec.Struct, frozen=True, tag=True):
    """A metric is on one side of a value."""

    metric: str
    sign: Sign
    value: float
    lasting: Lasting | None = None
    after_seconds: float = 0.0  # not looked at before the work has run so long


class IsOdd(msgspec.Struct, frozen=True, tag=True):
    """A metric is no number, or one beyond all bounds."""

    metric: str
    odd: Odd
    lasting: Lasting | None = None
    after_seconds: float = 0.0


class Stalls(msgspec.Struct, frozen=True, tag=True):
    """A metric has not got better for so long."""

    metric: str
    way: Way | None  # None: as its name and the rest of the charter tell
    lasting: Lasting
    after_seconds: float = 0.0


class AllOf(msgspec.Struct, frozen=True, tag=True):
    """Several at once; none of them is an ``AllOf`` again."""

    of: "tuple[Condition, ...]"


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """One of several; none of them is an ``AnyOf`` again."""

    of: "tuple[Condition, ...]"


Term = Compares | IsOdd | Stalls
Condition = Compares | IsOdd | Stalls | AllOf | AnyOf


def terms_of(condition: Condition) -> tuple[Term, ...]:
    """The leaves, from left to right."""
    if isinstance(condition, AllOf | AnyOf):
        return tuple(term for part in condition.of for term in terms_of(part))
    return (condition,)


def show(condition: Condition) -> str:
    """The condition's one spelling."""
    match condition:
        case AnyOf(of):
            return " or ".join(map(show, of))
        case AllOf(of):
            return " and ".join(f"({show(part)})" if isinstance(part, AnyOf) else show(part) for part in of)
        case Stalls(metric, way, lasting):
            does = "stalls" if way is None else f"stops {way}"
            said = f"{show_name(metric)} {does} for {_show_lasting(lasting)}"
        case _:
            said = show_test(condition)
            if condition.lasting is not None:
                said += f" for {_show_lasting(condition.lasting)}"
    return said + (f" after {show_span(condition.after_seconds)}" if condition.after_seconds else "")


def show_test(term: Compares | IsOdd) -> str:
    """What is asked of a single value, whenever and however often."""
    if isinstance(term, IsOdd):
        return f"{show_name(term.metric)} is {term.odd}"
    return f"{show_name(term.metric)} {term.sign} {show_number(term.value)}"


def show_name(metric: str) -> str:
    """In quotes where the letters or the word ask for it."""
    if PLAIN_NAME.fullmatch(metric) and metric.lower() not in RESERVED:
        return metric
    escaped = metric.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def show_number(value: float) -> str:
    """The shortest that is read as the same number."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def show_span(seconds: float) -> str:
    """In the largest unit that has no rest: ``90m``, ``2h``."""
    milliseconds = round(seconds * 1000)
    unit, size = next((unit, size) for unit, size in _UNITS_MS if milliseconds % size == 0)
    return f"{milliseconds // size}{unit}"


def _show_lasting(lasting: Lasting) -> str:
    if isinstance(lasting, Span):
        return show_span(lasting.seconds)
    return f"{lasting.count} report" + "s" * (lasting.count != 1)
