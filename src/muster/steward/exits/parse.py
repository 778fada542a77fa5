"""Reading conditions: by hand, bounded in length and depth, and never by evaluating anything.

    either    = both { "or" both }
    both      = one { "and" one }
    one       = "(" either ")" [ "after" span ]
              | metric sign number   suffixes
              | metric "is" ( "nan" | "inf" | "not" "finite" )   suffixes
              | metric ( "stalls" | "stops" ( "rising" | "falling" ) )   suffixes, "for" among them
    suffixes  = { "after" span | "for" ( span | count "reports" ) }, each at most once
    metric    = a plain name, or any in double quotes

``after`` behind parentheses is meant for each within, of which the latest counts; ``for`` is not, since
that several hold together for a while is not that each of them does.
"""

import functools
import math
import re

import msgspec

from muster.model.errors import BadInput
from muster.model.units import parse_seconds
from muster.steward.exits.lexer import Kind, Token, tokens
from muster.steward.exits.terms import (
    RESERVED,
    AllOf,
    AnyOf,
    Compares,
    Condition,
    IsOdd,
    Lasting,
    Odd,
    Reports,
    Sign,
    Span,
    Stalls,
    Way,
    show,
)
from muster.steward.exits.wrong import nearest, wrong

MOST_WRITTEN, MOST_NAME = 300, 128
_MOST_LETTERS = 2000  # the one spelling may be longer than what was written, by what stood for several
_MOST_DEPTH = 16
_MOST_REPORTS = 1_000_000
_HINT = "write it like val_acc >= 0.92, val_acc < 0.5 after 2h, val_loss stalls for 90m or loss is nan"
_UNITS = {
    **dict.fromkeys(("ms",), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_ESCAPED = re.compile(r'\\(["\\])')
_PREDICATES = ("is", "stalls", "stops")
_LINKS = ("and", "or", "after", "for")


@functools.lru_cache(maxsize=4096)
def parse_condition(text: str) -> Condition:
    """One condition; ``BadInput`` points at the letter from which on it is none."""
    if len(text) > _MOST_LETTERS:
        raise _too_long(text)
    if not text.strip():
        raise BadInput(f"a condition can't be empty; {_HINT}")
    reader = _Reader(text)
    condition = reader.either()
    reader.finish()
    return condition


def normal(text: str) -> str:
    """The one spelling of a condition that somebody wrote."""
    if len(text) > MOST_WRITTEN:
        raise _too_long(text)
    return show(parse_condition(text))


def _too_long(text: str) -> BadInput:
    return BadInput(f"a condition of {len(text):,} letters is too long; {MOST_WRITTEN} are the most")


class _Reader:
    """A place in the text, that moves to the right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    # --- Combinations -----------------------------------------------------------------------------

    def either(self) -> Condition:
        parts = [self._both()]
        while self._take_word("or"):
            parts.append(self._both())
        flat = [inner for part in parts for inner in (part.of if isinstance(part, AnyOf) else (part,))]
        return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._take_word("and"):
            parts.append(self._one())
        flat = [inner for part in parts for inner in (part.of if isinstance(part, AllOf) else (part,))]
        return flat[0] if len(flat) == 1 else AllOf(tuple(flat))

    def _one(self) -> Condition:
        opening = self._peek()
        if opening.kind is not Kind.OPEN:
            return self._term()
        self._step()
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._wrong(opening, f"parentheses go deeper than {_MOST_DEPTH} here; write it simpler")
        inside = self.either()
        if self._peek().kind is not Kind.CLOSE:
            raise self._wrong(self._peek(), f"'and', 'or' or a ) was expected here{self._meant(_LINKS)}")
        self._step()
        self._depth -= 1
        if self._is_word("for"):
            raise self._wrong(
                self._peek(), "'for' belongs to a single metric; write it inside the parentheses"
            )
        return _not_before(inside, self._after()) if self._take_word("after") else inside

    def finish(self) -> None:
        token = self._peek()
        if token.kind is Kind.CLOSE:
            raise self._wrong(token, "this ) closes nothing; leave it out")
        if token.kind is not Kind.END:
            raise self._wrong(token, f"'and', 'or' or the end was expected here{self._meant(_LINKS)}")

    # --- One metric -------------------------------------------------------------------------------

    def _term(self) -> Condition:
        metric = self._metric()
        token = self._peek()
        if token.kind is Kind.SIGN:
            self._step()
            value = self._number(metric)
            return Compares(metric, Sign(token.text), value, *self._suffixes())
        if self._take_word("is"):
            return IsOdd(metric, self._odd(), *self._suffixes())
        if self._take_word("stalls"):
            return self._stalls(metric, None)
        if self._take_word("stops"):
            return self._stalls(metric, self._way())
        meant = self._meant(_PREDICATES) or "; " + _HINT
        raise self._wrong(token, f"a comparison, 'is', 'stalls' or 'stops' was expected here{meant}")

    def _metric(self) -> str:
        token = self._peek()
        if token.kind is Kind.QUOTED:
            return self._quoted(self._step())
        if token.kind is Kind.WORD and token.text.lower() not in RESERVED:
            return self._short(self._step(), token.text)
        hint = _HINT
        if token.text.lower() == "not":
            hint = "there is no 'not'; turn the comparison round"
        elif token.kind is Kind.WORD:
            hint = f'if one has this name, write "{token.text}"'
        raise self._wrong(token, f"the name of a metric was expected here; {hint}")

    def _quoted(self, token: Token) -> str:
        name = _ESCAPED.sub(r"\1", token.text[1:-1])
        if not name.strip() or not name.isprintable():
            raise self._wrong(token, "a metric's name has letters that can be printed; write one")
        return self._short(token, name)

    def _short(self, token: Token, name: str) -> str:
        if len(name) > MOST_NAME:
            raise self._wrong(token, f"a metric's name has at most {MOST_NAME} letters; this has {len(name)}")
        return name

    def _number(self, metric: str) -> float:
        token = self._peek()
        word = token.text.lower()
        if word in ("inf", "infinity", "+inf", "-inf", "+infinity", "-infinity"):
            self._step()
            return float(word)
        if word == "nan":
            raise self._wrong(token, f"nothing compares with nan; write '{metric} is nan'")
        if token.kind is not Kind.NUMBER:
            a_time = ", and not a time," if token.kind is Kind.SPAN else ""
            raise self._wrong(token, f"a number{a_time} was expected here; {_HINT}")
        self._step()
        value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
        if not math.isfinite(value):
            raise self._wrong(token, "this number is beyond all bounds; write a smaller one, or inf")
        return value + 0.0  # -0 is 0

    def _odd(self) -> Odd:
        token = self._peek()
        if self._take_word("nan"):
            return Odd.NAN
        if self._take_word("inf") or self._take_word("infinity"):
            return Odd.INF
        if self._take_word("not"):
            token = self._peek()
            if self._take_word("finite"):
                return Odd.NOT_FINITE
            raise self._wrong(token, "'finite' was expected here; write it like loss is not finite")
        meant = self._meant(("nan", "inf", "not"))
        raise self._wrong(token, f"'nan', 'inf' or 'not finite' was expected here{meant}")

    def _way(self) -> Way:
        token = self._peek()
        for way in Way:
            if self._take_word(way):
                return way
        raise self._wrong(token, f"'rising' or 'falling' was expected here{self._meant(tuple(Way))}")

    def _stalls(self, metric: str, way: Way | None) -> Stalls:
        lasting, after_seconds = self._suffixes()
        if lasting is None:
            raise self._wrong(self._peek(), "for how long? Write it like 'for 90m' or 'for 50 reports'")
        return Stalls(metric, way, lasting, after_seconds)

    # --- How long ---------------------------------------------------------------------------------

    def _suffixes(self) -> tuple[Lasting | None, float]:
        lasting: Lasting | None = None
        after_seconds: float | None = None
        while self._is_word("for") or self._is_word("after"):
            token = self._step()
            if (lasting if token.text.lower() == "for" else after_seconds) is not None:
                raise self._wrong(token, f"'{token.text}' stands here twice; leave one out")
            if token.text.lower() == "for":
                lasting = self._lasting()
            else:
                after_seconds = self._after()
        return lasting, after_seconds or 0.0

    def _after(self) -> float:
        token = self._peek()
        amount = self._amount("a time, like 2h,")
        if isinstance(amount, Reports):
            raise self._wrong(token, "'after' takes a time, like 2h; of reports, compare the step")
        return amount.seconds

    def _lasting(self) -> Lasting:
        token = self._peek()
        amount = self._amount("a time, like 90m, or a number of reports")
        if amount in (Span(0.0), Reports(0)):
            raise self._wrong(token, "'for' nothing says nothing; write it like 'for 90m' or 'for 3 reports'")
        return amount

    def _amount(self, expected: str) -> Lasting:
        token = self._step()
        if token.kind is Kind.SPAN:
            return self._span(token, token.text)
        unit = self._peek()
        if token.kind is not Kind.NUMBER:
            raise self._wrong(token, f"{expected} was expected here")
        if unit.kind is Kind.WORD and unit.text.lower() in _UNITS:
            self._step()
            return self._span(token, token.text + _UNITS[unit.text.lower()])
        if unit.kind is Kind.WORD and unit.text.lower() in ("reports", "report"):
            self._step()
            return self._reports(token)
        meant = self._meant(("reports", "minutes", "hours")) or "; write it like 90m, 2h or 3 reports"
        raise self._wrong(unit, f"a unit was expected here{meant}")

    def _span(self, token: Token, text: str) -> Span:
        try:
            seconds = parse_seconds(text)
        except BadInput as error:
            raise self._wrong(token, str(error)) from None
        return Span(round(seconds * 1000) / 1000)

    def _reports(self, token: Token) -> Reports:
        if not token.text.isdigit() or len(token.text) > 9 or int(token.text) > _MOST_REPORTS:
            raise self._wrong(token, f"reports are counted: from 1 to {_MOST_REPORTS:,} of them")
        return Reports(int(token.text))

    # --- Moving -----------------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _step(self) -> Token:
        token = self._tokens[self._next]
        self._next += token.kind is not Kind.END
        return token

    def _is_word(self, word: str) -> bool:
        token = self._peek()
        return token.kind is Kind.WORD and token.text.lower() == word

    def _take_word(self, word: str) -> bool:
        if not self._is_word(word):
            return False
        self._step()
        return True

    def _meant(self, known: tuple[str, ...]) -> str:
        """A question about a word that resembles a known one."""
        token = self._peek()
        near = nearest(token.text, known) if token.kind is Kind.WORD else None
        return f"; did you mean '{near}'?" if near else ""

    def _wrong(self, token: Token, expected: str) -> BadInput:
        return wrong(self._text, token.at, expected)


def _not_before(condition: Condition, seconds: float) -> Condition:
    """The same, looked at only when the work has run so long."""
    if isinstance(condition, AllOf | AnyOf):
        return type(condition)(tuple(_not_before(part, seconds) for part in condition.of))
    return msgspec.structs.replace(condition, after_seconds=max(seconds, condition.after_seconds))
