"""Humane units at the edges, base units inside: bytes, seconds, thousandths of a cpu or GPU.

Parsing is strict: a number that is negative, not finite or absurd is refused with a sentence.
"""

import math
import re

from muster.model.errors import BadInput

MILLI = 1000  # a whole cpu or GPU, in thousandths: sums of integers never drift
KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86_400.0, 604_800.0

_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgtp]?)i?b?\s*", re.IGNORECASE)
_SIZES = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB, "p": TIB << 10}
_SPAN = re.compile(r"([0-9]*\.?[0-9]+)\s*(ms|s|m|h|d|w)", re.IGNORECASE)
_SPANS = {"ms": 0.001, "s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_MOST_BYTES = 1 << 60
_MOST_SECONDS = 100 * 365 * DAY


def parse_bytes(text: str) -> int:
    """``64G`` → bytes. Units are binary, as memory is."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} is not a size; write it like 512M, 64G or 1.5T")
    value = float(match[1]) * _SIZES[match[2].lower()]
    if value > _MOST_BYTES:
        raise BadInput(f"{text!r} is more than any machine has")
    return int(value)


def parse_seconds(text: str) -> float:
    """``90m``, ``1d12h``, ``02:30:00`` or ``1-12:00:00`` (as Slurm writes it) → seconds."""
    text = text.strip()
    seconds = _clock_seconds(text) if ":" in text else _span_seconds(text)
    if seconds is None:
        raise BadInput(f"{text!r} is not a time span; write it like 30s, 90m, 8h, 2d or 1-12:00:00")
    if seconds > _MOST_SECONDS:
        raise BadInput(f"{text!r} is longer than a century")
    return seconds


def _span_seconds(text: str) -> float | None:
    parts = _SPAN.findall(text)
    if not parts or _SPAN.sub("", text).strip():
        return None
    return sum(float(n) * _SPANS[unit.lower()] for n, unit in parts)


def _clock_seconds(text: str) -> float | None:
    """D-HH:MM:SS, HH:MM:SS or MM:SS."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(g or 0) for g in match.groups())
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds


def parse_milli(text: str, what: str = "number") -> int:
    """``1.5`` → 1500 thousandths."""
    value = parse_number(text, what)
    if value > 1e9:
        raise BadInput(f"{what} {text!r} is absurdly large")
    return round(value * MILLI)


def parse_number(text: str, what: str = "number") -> float:
    """A finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{what} {text!r} is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise BadInput(f"{what} {text!r} must be a finite number, zero or more")
    return value


def show_bytes(value: int) -> str:
    """Bytes → ``64G``."""
    for unit, size in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value}B"


def show_seconds(value: float) -> str:
    """Seconds → ``3h 12m``, two units at most."""
    if math.isinf(value):
        return "unlimited time"
    if value < 1:
        return "0s" if value <= 0 else f"{value * 1000:.0f}ms"
    parts: list[str] = []
    rest = round(value)
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1.0)):
        count, rest = divmod(rest, round(size))
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def show_milli(value: int) -> str:
    """Thousandths → ``4`` or ``0.46``."""
    return f"{value / MILLI:g}"


def show_count(value: float, one: str) -> str:
    """``1 cpu``, ``4 cpus``, ``0.5 cpus``: the word is given for one of them."""
    return f"{value:.10g} {one}" + "s" * (value != 1)
