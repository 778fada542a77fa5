"""When would an exit have ended work that is over? The case for writing exits.

Work with exits is replayed: its reports, in their order, on a board of its own. Of work without any, two
things are asked that nobody would have wanted to pay for: that a metric became NaN for good, and that
nothing which has a direction got better any more until the end.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from muster.model.units import HOUR, MINUTE
from muster.steward.exits.board import Board
from muster.steward.exits.compiled import Exits, Verdict
from muster.steward.exits.direction import way_by_name
from muster.steward.exits.terms import IsOdd, Odd, Span, Stalls, Way, show
from muster.steward.exits.watched import Met

STALLED_SECONDS = HOUR  # at least so long nothing got better
_STALLED_SHARE = 0.25  # and at least this much of the whole run time
_READABLE = ((10 * MINUTE, MINUTE), (1.0, 1.0), (0.0, 0.001))  # spans from here on are said in these units


class Report(msgspec.Struct, frozen=True):
    """What was told, and how long the work had run then."""

    ran_seconds: float
    values: dict[str, float]
    step: float | None = None
    source: str = ""
    attempt: int = 1


class Hindsight(msgspec.Struct, frozen=True):
    """At this run time this exit would have ended it."""

    ran_seconds: float
    verdict: Verdict
    condition: str
    because: str  # "val_loss had stopped improving"


def first_met(
    exits: Exits, reports: Sequence[Report], ran_seconds: float | None = None
) -> tuple[float, Met] | None:
    """The first exit that these reports meet, and when; ``ran_seconds``: how long it ran in all."""
    board = Board()
    board.begin("", exits, 0.0, 0.0)
    attempts: dict[str, int] = {}
    for report in reports:
        if found := _by_time(board, report.ran_seconds):
            return found
        if attempts.setdefault(report.source, report.attempt) != report.attempt:
            attempts[report.source] = report.attempt
            board.restarted("", report.source)
        met = board.report("", report.source, report.ran_seconds, report.values, report.step)
        if met is not None:
            return report.ran_seconds, met
    return None if ran_seconds is None else _by_time(board, ran_seconds)


def _by_time(board: Board, until: float) -> tuple[float, Met] | None:
    """What time meets until then."""
    while (at := board.next_due()) is not None and at <= until:
        if met := board.due(at):
            return at, met[0]
    return None


def would_have_stopped(
    reports: Sequence[Report], ran_seconds: float, stalled_seconds: float = STALLED_SECONDS
) -> Hindsight | None:
    """When exits that anybody would have agreed to would have ended it; None: not at all.

    A metric that was a number, and then NaN until the end: with the first NaN of these. Or nothing got
    better for an hour, and for a quarter of the run time, until the end: when that time was full, if it was
    still told then.
    """
    found = [_nan_for_good(reports), _stalled_for_good(reports, ran_seconds, stalled_seconds)]
    return min((one for one in found if one is not None), key=lambda one: one.ran_seconds, default=None)


def _nan_for_good(reports: Iterable[Report]) -> Hindsight | None:
    numbers: set[str] = set()  # metrics that were one once
    since: dict[str, float] = {}
    for report in reports:
        for name, value in report.values.items():
            if not math.isnan(value):
                numbers.add(name)
                since.pop(name, None)
            elif name in numbers:
                since.setdefault(name, report.ran_seconds)
    if not since:
        return None
    metric = min(since, key=since.__getitem__)
    return Hindsight(since[metric], "lost", show(IsOdd(metric, Odd.NAN)), f"{metric} had become NaN")


def _stalled_for_good(
    reports: Iterable[Report], ran_seconds: float, stalled_seconds: float
) -> Hindsight | None:
    best: dict[str, float] = {}
    better_at = heard_at = None
    last = ""  # the metric that got better then
    for report in reports:
        for name, value in report.values.items():
            way = way_by_name(name)
            if way is None:
                continue
            heard_at = report.ran_seconds
            if better_at is None:
                better_at, last = heard_at, name
            if math.isfinite(value) and (name not in best or _is_better(value, best[name], way)):
                best[name], better_at, last = value, report.ran_seconds, name
    span = max(stalled_seconds, _STALLED_SHARE * ran_seconds)
    if better_at is None or heard_at is None or heard_at < better_at + span / 2:
        return None
    if better_at + span > ran_seconds:
        return None
    condition = show(Stalls(last, None, Span(_readable(span))))
    return Hindsight(better_at + span, "lost", condition, f"{last} had stopped improving")


def _readable(seconds: float) -> float:
    unit = next(unit for least, unit in _READABLE if seconds >= least)
    return round(seconds / unit) * unit


def _is_better(value: float, best: float, way: Way) -> bool:
    return value > best if way is Way.RISING else value < best
