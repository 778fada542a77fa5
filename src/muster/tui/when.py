"""Times in few letters, as somebody reads them who looks now."""

import time

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def clock(at: float, now: float) -> str:
    """The time of day; in the days around, with the day; else the date."""
    moment, today = time.localtime(at), time.localtime(now)
    if moment[:3] == today[:3]:
        return time.strftime("%H:%M", moment)
    return time.strftime(
        "%a %H:%M" if abs(at - now) < 6 * _DAY else "%d %b %Y" if abs(at - now) > 300 * _DAY else "%d %b",
        moment,
    )


def exact(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def since(at: float, now: float) -> str:
    """``40 s``, ``12 min``, ``3 h``, ``9 d``."""
    seconds = max(0, int(now - at))
    for unit, length in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= 2 * length or (unit == "min" and seconds >= length):
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def days_ago(at: float, now: float) -> str:
    """``today``, ``2 d ago``."""
    days = _day(now) - _day(at)
    return "today" if days <= 0 else f"{days} d ago"


def _day(at: float) -> int:
    """A number of the day, by the calendar here."""
    moment = time.localtime(at)
    return int(at + moment.tm_gmtoff) // _DAY
