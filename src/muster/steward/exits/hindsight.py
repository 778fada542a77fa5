"""What was spent after the moment in which an exit would have ended work that is over.

An estimate, on what was reported. Work is judged by its own exits: they may have been written when it was
late, or nobody was there to act on them. Where nothing said when it is lost, the question is what anybody
would have written (``would_have_stopped``). Reports count by how long the work had run, so that time in which
it stood still or waited stalls nothing; what was spent is what it held from that moment to its end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from muster.model.events import Event, Exited, Resumed, Retried, Started, Suspended, Vacated
from muster.steward.exits.compiled import Exits
from muster.steward.exits.replay import STALLED_SECONDS, Hindsight, Report, first_met, would_have_stopped


class Past(msgspec.Struct, frozen=True):
    """Work that is over: what it reported, how long it ran, and in which words it ended."""

    reports: Sequence[Report]
    ran_seconds: float
    ended: str = ""  # the reason of its verdict


class RunTime:
    """When a job ran, over all of its attempts."""

    def __init__(self, events: Iterable[Event]) -> None:
        spans = list(_spans(events))
        self._begins, self._ends = [begin for begin, _ in spans], [end for _, end in spans]
        self._before = [0.0, *accumulate(end - begin for begin, end in spans)]

    @property
    def total(self) -> float:
        return self._before[-1]

    def until(self, at: float) -> float:
        """How long it had run by then."""
        i = bisect_right(self._begins, at) - 1
        return 0.0 if i < 0 else self._before[i] + min(at, self._ends[i]) - self._begins[i]

    def moment(self, ran_seconds: float) -> float | None:
        """When it had run so long; None: it never has."""
        i = bisect_left(self._before, ran_seconds, 1) - 1
        return self._begins[i] + ran_seconds - self._before[i] if i < len(self._begins) else None


def _spans(events: Iterable[Event]) -> Iterable[tuple[float, float]]:
    begin: float | None = None
    for event in events:
        if isinstance(event, Started | Resumed):
            begin = event.at if begin is None else begin
        elif isinstance(event, Suspended | Vacated | Retried | Exited) and begin is not None:
            yield begin, max(begin, event.at)
            begin = None


def look_back(
    past: Past, exits: Exits, *, says_when_lost: bool, stalled_seconds: float = STALLED_SECONDS
) -> Hindsight | None:
    """The first exit that would have ended it; None: none would have, or that is how it ended.

    ``says_when_lost``: it, or its effort, had a failure exit; then nothing else is held against it.
    """
    own = _by_own(past, exits) if exits.exits else None
    if own is not None and past.ended.endswith(_ends_it(own)):
        return None
    usual = None if says_when_lost else would_have_stopped(past.reports, past.ran_seconds, stalled_seconds)
    found = [one for one in (own, usual) if one is not None]
    return min(found, key=lambda one: one.ran_seconds, default=None)


def _by_own(past: Past, exits: Exits) -> Hindsight | None:
    found = first_met(exits, past.reports, past.ran_seconds)
    if found is None:
        return None
    moment, met = found
    return Hindsight(moment, met.verdict, met.condition, f"{met.condition} was met")


def _ends_it(found: Hindsight) -> str:
    """As the board says it when an exit is met (``watched``)."""
    return f"{found.condition} ends it as {found.verdict}"
