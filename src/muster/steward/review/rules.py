"""When reviews are held, and how long people have."""

import msgspec

from muster.model.units import DAY
from muster.steward.review.calendar import Schedule

_THURSDAY = 3


class ReviewRules(msgspec.Struct, frozen=True):
    schedule: Schedule | None = Schedule((_THURSDAY,), 17 * 60)  # None: there are no reviews
    opens_seconds: float = 3 * DAY  # before it closes
    notice_seconds: float = DAY  # between being told and being stopped, at least
    revive_seconds: float = 14 * DAY  # for which what was stopped can be brought back
    silent_seconds: float = 14 * DAY  # after which who was asked, and has not called, is silent
    longest_seconds: float = 90 * DAY  # that a defence may reach
    timezone: str | None = None  # None: that of the machine
