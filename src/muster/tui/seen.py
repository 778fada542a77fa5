"""What is known of the place at a moment, and how somebody looks at it: all that a frame is drawn from."""

from collections.abc import Mapping
from typing import Any

import msgspec

View = dict[str, Any]
JOBS, MAP, QUEUE, REVIEW, USE = "jobs", "map", "queue", "review", "use"
ORDERS = ("held", "idle", "owner", "ends", "new")


class Seen(msgspec.Struct, frozen=True):
    """What the server has told last. ``away``: why it tells nothing now."""

    top: View
    mode: str  # of who looked
    at: float  # when it came, by the clock here
    sparks: Mapping[str, list[float | None]] = {}
    review: View | None = None
    use: View | None = None
    away: str | None = None


class Gaze(msgspec.Struct, frozen=True):
    """What somebody looks at."""

    mode: str = JOBS
    cursor: int = 0
    order: str = ORDERS[0]
    match: str = ""
    is_map_shown: bool = True
    notice: str = ""  # a sentence about what was done, or refused


def rows_of(seen: Seen, gaze: Gaze) -> list[View]:
    """What the cursor moves over; nothing, as long as what was seen is of another view."""
    if seen.mode != gaze.mode:
        return []
    if gaze.mode in (JOBS, QUEUE):
        return list(seen.top["jobs"])
    if gaze.mode == REVIEW:
        return [] if seen.review is None else list(seen.review["items"])
    if gaze.mode == USE:
        return [] if seen.use is None else list(seen.use["rows"])
    return []
