"""What a simulated quarter amounts to, alone and beside the same quarter without stewardship.

Every GPU-hour of the quarter is one of four: *free* (nobody held it), *useful* (it advanced a result
that somebody wanted), *worthless* (held after the result stopped changing, by what nobody wanted, or
idle in a long pause), or *again* (done twice, saved or restored). What stewardship recovers is the
worthless that is no longer there; since the four add up to the cluster's hours, what became of it is
told by the other three.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec
import numpy as np

from bench.quarter_charters import is_content
from bench.quarter_run import Outcome, Span, Track
from bench.quarter_steward import Stopped
from bench.quarter_sums import Ending
from bench.quarter_world import GPUS, Work, World
from muster.model.job import JobId
from muster.model.units import HOUR, WEEK
from muster.simulate.measure import SHORTEST_RUN_SECONDS

REASONS = ("success", "failure", "budget", "date", "idle", "review")


class Hours(msgspec.Struct):
    """GPU-hours of the quarter."""

    useful: float = 0.0
    worthless: float = 0.0
    again: float = 0.0
    unused: float = 0.0  # of all held, those in which the GPUs show no use, short gaps included

    @property
    def held(self) -> float:
        return self.useful + self.worthless + self.again


class Waits(msgspec.Struct, frozen=True):
    """Of the work that somebody wanted: before its first start, and until its result was there."""

    jobs: int
    mean_seconds: float
    median_seconds: float
    p95_seconds: float
    slowdown_mean: float
    slowdown_p95: float
    without_result: int


class Ledger(msgspec.Struct):
    """One quarter, in figures."""

    hours: Hours
    free: float
    worthless_of: dict[JobId, float]
    by_ending: dict[Ending, float]  # GPU-hours of the jobs submitted in the quarter, whenever they were held
    waits: Waits

    @property
    def zero_samples(self) -> float:
        """Part of all GPU time that shows no use."""
        return (self.free + self.hours.unused) / (self.free + self.hours.held)


def ledger(outcome: Outcome) -> Ledger:
    world, lives = outcome.world, _by_root(outcome)
    hours, worthless, by_ending = Hours(), {}, dict.fromkeys(Ending, 0.0)
    for root, tracks in lives.items():
        own = _hours(world, tracks)
        worthless[root] = own.worthless
        hours.useful += own.useful
        hours.worthless += own.worthless
        hours.again += own.again
        hours.unused += own.unused
        work = tracks[0].work
        if world.counts(work):
            by_ending[work.ending] += work.gpus * sum(s.end - s.begin for t in tracks for s in t.spans) / HOUR
    free = GPUS * (world.end - world.begin) / HOUR - hours.held
    return Ledger(hours, free, worthless, by_ending, _waits(world, lives.values()))


def _by_root(outcome: Outcome) -> dict[JobId, list[Track]]:
    """Each work's lives, the first one first."""
    lives: defaultdict[JobId, list[Track]] = defaultdict(list)
    for track in outcome.tracks.values():
        lives[track.work.job.id].append(track)
    return dict(lives)


def _hours(world: World, tracks: list[Track]) -> Hours:
    """Of one work, within the quarter."""
    hours, covered = Hours(), 0.0
    for track in tracks:
        for span in track.spans:
            begin, end = max(span.begin, world.begin), min(span.end, world.end)
            if begin < end:
                _count(hours, world, track.work, span, (begin, end), covered)
            covered = max(covered, span.done_to)
    return hours


def _count(
    hours: Hours, world: World, work: Work, span: Span, within: tuple[float, float], covered: float
) -> None:
    """One time of holding. What was covered before is done again, unless it was worthless then and is now."""
    each, life = work.gpus / HOUR, work.life
    done = [max(span.done_from, span.done_to - (span.end - at)) for at in within]
    until = _wanted_until(world, work, span)
    worthless = max(0.0, done[1] - max(done[0], until))
    worthless += life.worthless_seconds(done[0], max(done[0], min(done[1], until)))
    new_from = min(done[1], max(done[0], covered))
    useful = max(0.0, min(done[1], until) - new_from)
    useful -= life.worthless_seconds(new_from, max(new_from, min(done[1], until)))
    held = within[1] - within[0]
    unused = life.unused_seconds(*done)
    hours.worthless += each * worthless
    hours.useful += each * useful
    hours.again += each * (held - worthless - useful)
    hours.unused += each * (unused + world.gaps * (held - unused))


def _wanted_until(world: World, work: Work, span: Span) -> float:
    """How far into the run its result is wanted: until its owner left, unless somebody took it over."""
    leaves = world.people[work.job.owner].leaves_at
    if leaves is None or work.taken_over or leaves >= span.end:
        return work.run_seconds
    return max(0.0, span.done_to - (span.end - leaves))


def _waits(world: World, lives: Iterable[list[Track]]) -> Waits:
    waits, slowdowns, missing = [], [], 0
    for tracks in lives:
        first = tracks[0]
        if not world.counts(first.work) or not first.work.life.wanted:
            continue
        if first.first_start is None:
            missing += 1
            continue
        waits.append(first.first_start - first.job.submitted_at)
        result = _result_at(tracks)
        if result is None:
            missing += 1
        else:
            useful = max(first.work.life.useful_seconds, SHORTEST_RUN_SECONDS)
            slowdowns.append(max(1.0, (result - first.job.submitted_at) / useful))
    return Waits(
        len(waits),
        float(np.mean(waits)),
        float(np.median(waits)),
        float(np.quantile(waits, 0.95)),
        float(np.mean(slowdowns)),
        float(np.quantile(slowdowns, 0.95)),
        missing,
    )


def _result_at(tracks: list[Track]) -> float | None:
    """When all that was useful had been done, or its owner was content."""
    useful = tracks[0].work.life.useful_seconds
    spans = [span for track in tracks for span in track.spans]
    for span in spans:
        if span.done_to >= useful - 1.0:
            return span.end - (span.done_to - useful)
    return spans[-1].end if is_content(tracks[0].work.life, spans[-1].done_to) else None


# --- Two quarters ------------------------------------------------------------------------------------------


class Compared(msgspec.Struct):
    """What stewardship made of a quarter."""

    recovered: float  # GPU-hours that were worthless, and are no longer held so
    by_reason: dict[str, float]
    more_useful: float  # what became of them
    more_free: float
    more_again: float
    false_stops: int
    false_sessions: int  # of these, idle sessions to which somebody came back
    false_hours: float  # useful GPU-hours that were still ahead of what was falsely stopped
    revived: int
    never_done: float  # useful GPU-hours that were never done since nobody revived the work
    spared: float  # and those that their owner does not miss
    stops: int
    questions_per_person_week: float


def compare(
    without: Ledger, with_: Ledger, stopped: list[Stopped], asked_at: list[float], world: World
) -> Compared:
    stops = [stop for stop in stopped if world.begin <= stop.at < world.end]
    false = [stop for stop in stops if stop.false]
    reasons = {stop.root: stop.reason for stop in stopped}  # the last of each
    by_reason = dict.fromkeys((*REASONS, "other"), 0.0)
    for root, before in without.worthless_of.items():
        by_reason[reasons.get(root, "other")] += before - with_.worthless_of[root]
    asked = sum(world.begin <= at < world.end for at in asked_at)
    weeks = (world.end - world.begin) / WEEK
    return Compared(
        recovered=without.hours.worthless - with_.hours.worthless,
        by_reason=by_reason,
        more_useful=with_.hours.useful - without.hours.useful,
        more_free=with_.free - without.free,
        more_again=with_.hours.again - without.hours.again,
        false_stops=len(false),
        false_sessions=sum(stop.reason == "idle" for stop in false),
        false_hours=sum(_ahead(world.works[stop.root], stop) for stop in false),
        revived=sum(stop.revived for stop in false),
        never_done=sum(_ahead(world.works[stop.root], stop) for stop in false if not stop.revived),
        spared=sum(_ahead(world.works[stop.root], stop) for stop in stops if stop.content),
        stops=len(stops),
        questions_per_person_week=asked / len(world.people) / weeks,
    )


def _ahead(work: Work, stop: Stopped) -> float:
    """Useful GPU-hours that it had still to do."""
    life = work.life
    left = life.useful_seconds - stop.done_seconds
    return work.gpus * (left - life.worthless_seconds(stop.done_seconds, life.useful_seconds)) / HOUR
