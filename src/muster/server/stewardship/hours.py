"""The day on the wall: when digests are due, when it is quiet, and how long ago something was."""

from datetime import datetime, timedelta

from muster.server.config_post import Attention, zone_of
from muster.steward.attention import Moments


def moments(attention: Attention, wall: float, ahead_seconds: float) -> Moments:
    """As of a time on the wall, which is so far ahead of ours."""
    local = datetime.fromtimestamp(wall, zone_of(attention.timezone))
    hour, minute = attention.digest
    at = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if at.timestamp() > wall:
        at -= timedelta(days=1)
    return Moments(at.timestamp() - ahead_seconds, _is_quiet(attention, local))


def _is_quiet(attention: Attention, local: datetime) -> bool:
    if attention.quiet is None:
        return False
    (first, last), now = attention.quiet, (local.hour, local.minute)
    return first <= now < last if first < last else now >= first or now < last


def since_words(attention: Attention, since: float, wall: float) -> str:
    """``yesterday``, ``14:05``, ``12 November``: as one says it."""
    zone = zone_of(attention.timezone)
    then, now = datetime.fromtimestamp(since, zone), datetime.fromtimestamp(wall, zone)
    days = (now.date() - then.date()).days
    if days <= 0:
        return f"{then:%H:%M}"
    return "yesterday" if days == 1 else f"{then.day} {then:%B}"
