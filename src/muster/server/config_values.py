"""Values of ``muster.toml``: each reader takes what TOML gave and returns it in base units, or refuses.

A refusal says what was found and what to write instead. Readers are put together: one that reads a table or a
list adds to a refusal where inside of it the trouble is, so in the end the whole path is known, and the line.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from muster.model.errors import BadInput
from muster.model.units import MILLI, parse_bytes, parse_seconds
from muster.server.toml_lines import Path

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Reader = Callable[[object], T]
Spec = Mapping[str, tuple[str, Reader[object]]]  # key → the field it sets, and how it is read

UNLIMITED = "unlimited"
_MOST = 10**9
_MOST_CHARACTERS = 1000  # of one string: more is no name, address or size
_NAME = re.compile(
    r"\w[\w.@+-]{0,63}"
)  # no separators, no spaces, nothing a command line takes for an option
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_STORE = re.compile(r"(sqlite|postgresql)(\+\w+)?:/{2,4}\S*")


class Misfit(BadInput):
    """A value that can't be, and where it stands."""

    def __init__(self, said: str, *where: str | int) -> None:
        super().__init__(said)
        self.where: Path = where


class Address(NamedTuple):
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int


HERE = Address("127.0.0.1", 6878)  # M, U, S, T on a telephone; another port if that one is taken


def at(place: str | int, read: Reader[T], value: object) -> T:
    """Read what stands at a place, and say so if it is refused."""
    try:
        return read(value)
    except BadInput as refusal:
        inner = refusal.where if isinstance(refusal, Misfit) else ()
        raise Misfit(str(refusal), place, *inner) from None


# Tables


def table(known: Iterable[str] | None = None) -> Reader[dict[str, object]]:
    """A table that has no other keys than the known ones."""

    def read(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise BadInput(f"{shown(value)} is not a table")
        unknown = next((key for key in value if known is not None and key not in known), None)
        if unknown is not None:
            raise Misfit(f"there is no such setting; {nearest(unknown, known or ())}", unknown)
        return value

    return read


def section(base: S, spec: Spec) -> Reader[S]:
    """A table that changes fields of a struct."""

    def read(value: object) -> S:
        given = table(spec)(value)
        found = {spec[key][0]: at(key, spec[key][1], given[key]) for key in given}
        return msgspec.structs.replace(base, **found)

    return read


def by_name(read_one: Reader[T]) -> Reader[dict[str, T]]:
    """A table of tables, under names that people choose."""

    def read(value: object) -> dict[str, T]:
        given = table()(value)
        for key in given:
            at(key, name, key)
        return {key: at(key, read_one, given[key]) for key in given}

    return read


# Words


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadInput(f"{shown(value)} is not a text in quotes")
    if len(value) > _MOST_CHARACTERS:
        raise BadInput(f"{shown(value)} is absurdly long")
    return value


def name(value: object) -> str:
    found = text(value)
    if not _NAME.fullmatch(found):
        raise BadInput(
            f"{shown(value)} is not a name; write letters, digits and . _ - + @, a letter or digit first"
        )
    return found


def names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadInput(f'{shown(value)} is not a list of names; write it like ["ada", "ben"]')
    found: dict[str, None] = {}
    for position, item in enumerate(value):
        one = at(position, name, item)
        if one in found:
            raise Misfit(f"{one!r} is listed twice", position)
        found[one] = None
    return tuple(found)


def texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadInput(f'{shown(value)} is not a list of texts; write it like ["a", "b"]')
    return tuple(at(position, text, item) for position, item in enumerate(value))


def one_of(*choices: str) -> Reader[str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            hint = nearest(value, choices) if isinstance(value, str) else f"known: {', '.join(choices)}"
            raise BadInput(f"{shown(value)} is none of the choices; {hint}")
        return value

    return read


def some_of(*choices: str) -> Reader[tuple[str, ...]]:
    """A list of these, each once."""
    one = one_of(*choices)

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise BadInput(f"{shown(value)} is not a list; known: {', '.join(choices)}")
        return tuple(dict.fromkeys(at(position, one, item) for position, item in enumerate(value)))

    return read


def parse_address(given: str) -> Address | None:
    """``host:port`` → where to listen; an IPv6 address stands in brackets. ``none``: nowhere."""
    if given == "none":
        return None
    match = _ADDRESS.fullmatch(given)
    if match is None or int(match[2]) > 65535:
        raise BadInput(f"{shown(given)} is not an address; write it like 127.0.0.1:7777 or [::1]:7777")
    return Address(match[1].strip("[]"), int(match[2]))


def address(value: object) -> Address | None:
    return parse_address(text(value))


def store(value: object) -> str:
    """A URL. It may hold a password, so no message repeats it."""
    if not isinstance(value, str) or not _STORE.fullmatch(value):
        raise BadInput(
            "this is not a store's URL; write sqlite:////path/to/file or postgresql://host/database"
        )
    return value


# Numbers


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{shown(value)} is neither true nor false")
    return value


def count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise BadInput(f"{shown(value)} is not a whole number from 0 to a thousand million")
    return value


def number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise BadInput(f"{shown(value)} is not a number from 0 to a thousand million")
    return float(value)


def milli(value: object) -> int:
    """Cpus or GPUs → thousandths."""
    return round(number(value) * MILLI)


def devices(value: object) -> int:
    found = count(value)
    if found > 1024:
        raise BadInput(f"{found} GPUs are more than any machine has")
    return found


def size(value: object) -> int:
    """A bare number is refused: whoever wrote it did not mean bytes."""
    if not isinstance(value, str):
        raise BadInput(f'{shown(value)} is not a size; write it in quotes with its unit, like "64G"')
    return parse_bytes(text(value))


def span(value: object) -> float:
    if not isinstance(value, str):
        raise BadInput(
            f'{shown(value)} is not a time span; write it in quotes with its unit, like "30s" or "2d"'
        )
    return parse_seconds(text(value))


def above_zero(read: Reader[T]) -> Reader[T]:
    def reader(value: object) -> T:
        found = read(value)
        if not found:
            raise BadInput(f"{shown(value)} is not above 0")
        return found

    return reader


def or_unlimited(read: Reader[T]) -> Reader[T | None]:
    return lambda value: None if value == UNLIMITED else read(value)


# Sentences


def shown(value: object) -> str:
    """What was found, short enough for a sentence, with nothing in it that upsets a terminal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, int) and abs(value) > 10**15:
        return "a number that long"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else "a date or time"


def nearest(given: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word."""
    words = sorted(known)
    near = difflib.get_close_matches(given[:64], words, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    few = ", ".join(words[:30]) + (", …" if len(words) > 30 else "")
    return f"known: {few}" if words else "there is none"
