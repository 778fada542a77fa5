"""What a review says to people: one sentence, and one thing to do."""

from muster.model.message import Message
from muster.model.units import DAY, HOUR
from muster.server.stewardship.zones import Wall
from muster.steward.review.items import Item
from muster.steward.review.minutes import title
from muster.store.reviews import Review

_UNDEFENDED = "nobody defended it at review"
_SUGGESTED_SECONDS = 14 * DAY  # beyond the close


def undefended_at(number: int) -> str:
    """Why what a review has stopped or paused is."""
    return f"{_UNDEFENDED} {number}"


def is_undefended(because: str) -> bool:
    return because.startswith(_UNDEFENDED)


def asked(item: Item, person: str, review: Review, wall: Wall, is_urgent: bool) -> Message:
    """Whether somebody wants it to go on."""
    closes = wall.said(review.closes_at)
    sentence = f"{title(item)} is stopped at the review, {closes}, unless you defend it"
    until = wall.date(review.closes_at + _SUGGESTED_SECONDS)
    return Message(
        to=person,
        about=item.defended_as,
        kind="review",
        sentence=f"{sentence}: {item.because} ({_held(item)} since the last review)",
        action=f'muster defend {item.to_defend} --because "…" --until {until}',
        asks=True,
        urgent=is_urgent,
    )


def told_of_stop(item: Item, person: str, until: float, wall: Wall) -> Message:
    more = f", and {len(item.stops) - 1} more of it" if len(item.stops) > 1 else ""
    back = f"it can be brought back until {wall.said(until)}"
    return Message(
        to=person,
        about=item.defended_as,
        kind="review",
        sentence=f"{title(item)} is stopped{more}: nobody defended it; {back}",
        action=f'muster revive {item.stops[0]} --because "…" --until {wall.date(until)}',
    )


def _held(item: Item) -> str:
    if item.gpu_seconds:
        return f"{item.gpu_seconds / HOUR:.1f} GPU-hours"
    return f"{item.cpu_seconds / HOUR:.1f} cpu-hours"
