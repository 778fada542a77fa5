"""Filters of the templates: how numbers and times look on pages. The same words as in a terminal."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from muster.model.units import DAY, HOUR, show_bytes, show_count, show_seconds

UNKNOWN = "–"


def clock(at: float | None, now: float) -> str:
    """A time of day, with the date unless it is near."""
    if at is None:
        return UNKNOWN
    then, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    if then.date() == today.date():
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if abs(at - now) < 6 * DAY else f"{then:%d %b %Y}"


def ago(at: float | None, now: float) -> str:
    if at is None:
        return "never"
    return "just now" if now - at < 1 else f"{show_seconds(now - at)} ago"


def span(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else show_seconds(seconds)


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


def gpu_hours(gpu_seconds: float | None) -> str:
    if gpu_seconds is None:
        return UNKNOWN
    hours = gpu_seconds / HOUR
    if 0 < hours < 0.1:
        return f"{hours:.1g}" if hours >= 0.001 else "<0.001"
    return f"{hours:,.0f}" if hours >= 10 or hours == 0 else f"{hours:,.1f}"


def money(amount: float | None) -> str:
    if amount is None:
        return UNKNOWN
    return "less than 0.01" if 0 < amount < 0.01 else f"{amount:,.2f}"


def number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.4g}" if value % 1 else f"{value:,.0f}"


def size(value: int | None) -> str:
    return UNKNOWN if value is None else show_bytes(value)


def shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


FILTERS: dict[str, Callable[..., Any]] = {
    "span": span,
    "percent": percent,
    "gpu_hours": gpu_hours,
    "money": money,
    "number": number,
    "size": size,
    "counted": show_count,
    "shorten": shorten,
}
