"""The wall's clock as people read it: where it stands, and how a moment is said."""

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from muster.model.errors import BadInput
from muster.steward.review.calendar import Zone


def zone_of(name: str | None) -> Zone:
    """How far the wall is ahead of UTC in a zone such as Europe/Berlin; None: here."""
    if name is None:
        return lambda at: float(time.localtime(at).tm_gmtoff)
    try:
        zone = ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise BadInput(
            f"{name[:40]!r} is not a time zone that this machine knows; write it like Europe/Berlin"
        ) from None

    def ahead(at: float) -> float:
        offset = datetime.fromtimestamp(at, zone).utcoffset()
        return 0.0 if offset is None else offset.total_seconds()

    return ahead


class Wall:
    """Says moments as the clock on the wall has them."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone

    def said(self, at: float) -> str:
        """``Thu 2026-11-12 17:00``."""
        return self._shown(at, "%a %Y-%m-%d %H:%M")

    def briefly(self, at: float) -> str:
        """``Thu 17:00``."""
        return self._shown(at, "%a %H:%M")

    def date(self, at: float) -> str:
        """``2026-11-12``."""
        return self._shown(at, "%Y-%m-%d")

    def _shown(self, at: float, form: str) -> str:
        return datetime.fromtimestamp(at + self.zone(at), UTC).strftime(form)
