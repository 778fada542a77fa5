"""Moments and spans as people and Slurm write them. Times without a zone are the server's."""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import TypeVar

from muster.model.errors import BadInput
from muster.model.units import DAY, HOUR, MINUTE, parse_seconds

T = TypeVar("T")
UNLIMITED = float("inf")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,6})(?::([0-9]{1,6})(?::([0-9]{1,6}))?)?", re.ASCII)
_CLOCK = re.compile(r"(?:([0-9]{1,6}):)?([0-9]{1,9})(?::([0-9]{1,6}))?", re.ASCII)
_DELAY = re.compile(r"(?:now)?\s*\+\s*(.+)", re.ASCII)
_SLURM_UNIT = re.compile(r"([0-9]{1,9})\s*(second|minute|hour|day|week)?s?", re.ASCII)


def slurm_seconds(text: str) -> float:
    """Slurm's forms: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, UNLIMITED."""
    text = text.strip()
    if text.upper() in ("UNLIMITED", "INFINITE", "0"):
        return UNLIMITED
    if match := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
        return days * DAY + hours * HOUR + minutes * MINUTE + seconds
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(group or 0) for group in match.groups())
        if match[1] and match[3] is None:  # two numbers are minutes and seconds
            hours, minutes, seconds = 0, hours, minutes
        return hours * HOUR + minutes * MINUTE + seconds
    raise BadInput(f"{text[:80]!r} is not a time of Slurm; write it like 90, 90:00, 1:30:00 or 1-12:00:00")


def parse_limit(text: str) -> float:
    """A time limit: ``90m``, ``8h``, ``1-12:00:00``, or ``unlimited``."""
    if text.strip().lower() in ("unlimited", "none"):
        return UNLIMITED
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise BadInput(f"{text!r} leaves no time to run; write it like 30s, 90m or 8h")
    return seconds


def parse_begin(text: str, now: float) -> float:
    """Not before: ``now+2h``, ``16:00`` (the next one), ``2026-12-01`` or ``2026-12-01T08:00``."""
    text = text.strip()
    if text == "now":
        return now
    if match := _DELAY.fullmatch(text):
        return now + _delay(match[1])
    clock = _iso(time.fromisoformat, text)
    if clock is not None and ":" in text:
        return _next(clock, now)
    moment = _moment(text)
    if moment is None:
        raise BadInput(
            f"{text[:80]!r} is not a time to begin; write it like now+2h, 16:00 or 2026-12-01T08:00"
        )
    return moment


def _delay(text: str) -> float:
    match = _SLURM_UNIT.fullmatch(text)
    if match is None:
        return parse_seconds(text)
    return parse_seconds(f"{match[1]}{(match[2] or 'second')[0]}")


def _next(clock: time, now: float) -> float:
    try:
        today = datetime.fromtimestamp(now).astimezone()
        moment = datetime.combine(today.date(), clock, clock.tzinfo or today.tzinfo)
    except (OverflowError, ValueError, OSError):
        raise BadInput("the clock is out of range; give a date and a time") from None
    return moment.timestamp() if moment.timestamp() > now else moment.timestamp() + DAY


def parse_end(text: str, now: float) -> float:
    """The end of something: a date, or ``+7d``, so long from now."""
    text = text.strip()
    return now + parse_seconds(text[1:]) if text.startswith("+") else parse_until(text)


def parse_until(text: str) -> float:
    """A date (its last moment) or a date with a time."""
    text = text.strip()
    moment = _moment(text)
    if moment is None:
        raise BadInput(f"{text[:80]!r} is not a date; write it like 2026-12-01 or 2026-12-01T18:00")
    whole_day = _iso(date.fromisoformat, text) is not None
    return moment + DAY if whole_day else moment


def _moment(text: str) -> float | None:
    read = _iso(datetime.fromisoformat, text) if "-" in text else None
    if read is None:
        return None
    try:
        return read.timestamp()  # without a zone: the local one
    except (OverflowError, ValueError, OSError):
        raise BadInput(f"{text[:80]!r} is out of range; give a year like ours") from None


def _iso(read: Callable[[str], T], text: str) -> T | None:
    try:
        return read(text)
    except ValueError:
        return None
