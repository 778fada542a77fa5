"""Single values of an answer, whatever the version's way of writing them.

A number may be plain, null, or ``{set, infinite, number}`` (where ``infinite`` is to be looked at
first: it comes with ``set: false``). Slurm's own marks for "not said" and "no limit" are the largest
numbers of 32 and 64 bits. A value of a kind that was not expected is unknown, and noted.
"""

import math
from datetime import UTC, datetime

import msgspec

from muster.engines.slurm.answers import Exit
from muster.engines.slurm.notices import Notices

_NO_VALUE_32, _INFINITE_32 = 0xFFFFFFFE, 0xFFFFFFFF
_NO_VALUE_64, _INFINITE_64 = 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF
_NOT_SAID = frozenset((_NO_VALUE_32, _NO_VALUE_64))
_ENDLESS = frozenset((_INFINITE_32, _INFINITE_64))
_LAST_INSTANT = _NO_VALUE_32 - 1  # in 2106: what is later is a limit's end that there isn't


class Reader:
    """Reads values of one answer, and notes what it can't."""

    __slots__ = ("_notices", "_where")

    def __init__(self, notices: Notices, where: str) -> None:
        self._notices, self._where = notices, where

    def odd(self, value: object) -> None:
        self._notices.note("value", value, self._where)

    def number(self, value: object) -> float | None:
        """None: not said. ``inf``: without limit."""
        if type(value) is dict:
            if value.get("infinite") is True:
                return math.inf
            if value.get("set") is False:
                return None
            value = value.get("number")
        if type(value) is int and value < _NO_VALUE_32:  # as nearly all are
            return value
        if type(value) is int or type(value) is float:
            if value in _NOT_SAID or value != value:
                return None
            return math.inf if value in _ENDLESS else value
        if value is not None:
            self.odd(value)
        return None

    def whole(self, value: object) -> int | None:
        if type(value) is int and 0 <= value < _NO_VALUE_32:
            return value
        number = self.number(value)
        return None if number is None or not 0 <= number < math.inf else int(number)

    def some(self, value: object) -> int | None:
        """A count or id, where 0 stands for none."""
        return self.whole(value) or None

    def instant(self, value: object) -> float | None:
        if type(value) is dict:
            if value.get("set") is not True:
                return None
            if value.get("infinite") is not True:
                value = value.get("number")
        if type(value) is int:  # Slurm's marks are later than the last
            return float(value) if 0 < value < _LAST_INSTANT else None
        number = self.number(value)
        return float(number) if number is not None and 0 < number < _LAST_INSTANT else None

    def text(self, value: object) -> str:
        if type(value) is str:
            return value
        if value is not None:
            self.odd(value)
        return ""

    def words(self, value: object) -> tuple[str, ...]:
        """A list of words; one alone, or several with commas between, is taken for such a list."""
        if type(value) is list:
            return tuple([self.text(word) for word in value])
        return tuple(self.text(value).split(",")) if value else ()

    def truth(self, value: object) -> bool | None:
        return value if type(value) is bool else None

    def exit(self, value: msgspec.Raw) -> Exit | None:
        """``{return_code, signal: {id}}``. Most jobs have the same, so it is understood once."""
        said = bytes(value)
        found = _SEEN.get(said)
        if found is None:
            found = self._exit(said)
            if found is not None and len(_SEEN) < _MOST_SEEN:
                _SEEN[said] = found
        return found

    def _exit(self, said: bytes) -> Exit | None:
        value = msgspec.json.decode(said)
        if type(value) is not dict:
            if value is not None:
                self.odd(value)
            return None
        signal = value.get("signal")
        number = signal.get("id") if type(signal) is dict else None
        return _exit(self.whole(value.get("return_code")) or 0, self.whole(number) or 0)


_SEEN: dict[bytes, Exit] = {}
_MOST_SEEN = 1000
_EXITS = {(0, 0): Exit()}


def _exit(code: int, signal: int) -> Exit:
    return _EXITS.get((code, signal)) or Exit(code, signal)


def instant_of_text(text: str) -> float | None:
    """``2026-11-15T21:08:40`` in UTC, as commands are told to write it. ``Unknown``, ``None``: None."""
    if text in ("", "Unknown", "None", "N/A", "(null)"):
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def seconds_of_text(text: str) -> float | None:
    """``1-00:00:00``, ``05:00``, ``00:00.003`` or UNLIMITED. None: not said."""
    if text in ("UNLIMITED", "INFINITE"):
        return math.inf
    if text in ("", "NONE", "N/A", "(null)", "Partition_Limit", "INVALID", "NOT_SET"):
        return None
    days, dash, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + (int(days) * 86400 if dash else 0)


def exit_of_text(text: str) -> Exit | None:
    """``3:0``: code, then signal."""
    code, colon, signal = text.partition(":")
    return _exit(int(code), int(signal)) if colon else None


def null_of_text(text: str) -> str:
    return "" if text in ("(null)", "N/A", "None assigned") else text


def words_of_text(text: str) -> tuple[str, ...]:
    kept = null_of_text(text)
    return tuple(kept.split(",")) if kept else ()
