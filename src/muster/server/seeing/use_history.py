"""What was held and measured in an interval, to draw it over time: from the store and from what is under way.

Hours that are over never change. So what was used in them is summed up by team and owner once, and kept: who
looks again reads what is new. What is not rolled up yet is read by its minutes; of very many, only some.
"""

from collections.abc import Iterator, Sequence

import msgspec

from muster.model.ledger import HOUR_SECONDS, Booked, Entry, Key
from muster.model.units import MINUTE
from muster.server.seeing.use_over_time import Grid, step_for
from muster.store.journal import Journal
from muster.store.seeing_reads import Piece, Span, hour_of

_MOST_MINUTES = 30_000  # that are read for one picture
_MOST_HOURS = 24 * 120  # that are kept
_NOBODY: Key = ("", 0)  # of sums over many


class Living(msgspec.Struct, frozen=True):
    """What the state has, copied for a thread."""

    now: float
    since: float
    until: float
    entries: Sequence[Entry]
    under_way: Sequence[Booked]


class HoursKept:
    """What was used in hours that are over, by team and owner."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bool, int], list[Piece]] = {}

    def between(self, journal: Journal, since: int, until: int, *, of_gpus: bool) -> Iterator[Piece]:
        """All of them are rolled up."""
        hours = range(since, until, HOUR_SECONDS)
        new = [hour for hour in hours if (of_gpus, hour) not in self._kept]
        if new:
            self._read(journal, new[0], new[-1] + HOUR_SECONDS, of_gpus)
        for hour in hours:
            yield from self._kept.get((of_gpus, hour), ())
        for old in list(self._kept)[: max(0, len(self._kept) - _MOST_HOURS)]:
            self._kept.pop(old, None)

    def _read(self, journal: Journal, since: int, until: int, of_gpus: bool) -> None:
        sums = journal.hours_summed(since, until, of_gpus=of_gpus)
        found: dict[int, list[Piece]] = {hour: [] for hour in range(since, until, HOUR_SECONDS)}
        for (start, team, owner), (measured, used) in sums.items():
            found[start].append(Piece(_NOBODY, team, owner, start, measured, used))
        self._kept |= {(of_gpus, hour): pieces for hour, pieces in found.items()}


class History:
    """An interval."""

    def __init__(
        self,
        journal: Journal,
        living: Living,
        minutes_kept_seconds: float,
        hours: HoursKept,
        *,
        of_gpus: bool,
    ) -> None:
        self._journal, self._living, self._hours, self._of_gpus = journal, living, hours, of_gpus
        self._keeps = minutes_kept_seconds
        self.spans: list[Span] = []

    def grid(self, asked_step: float | None) -> Grid:
        """As fine as is asked and can be drawn; by hours, if its minutes are gone or too many to read."""
        since, until, now = self._living.since, self._living.until, self._living.now
        step = step_for(until - since, asked_step)
        self.spans = self._all_spans(min(since, float(hour_of(since))), until)
        if step < HOUR_SECONDS and (since < now - self._keeps or self._minutes_in(since) > _MOST_MINUTES):
            step = step_for(until - since, asked_step, least=HOUR_SECONDS)
        return Grid.over(since, until, step)

    def _all_spans(self, since: float, until: float) -> list[Span]:
        """The ledger's go before what is written down of them."""
        mine = {entry.key: _span(entry) for entry in self._living.entries if entry.placed_at < until}
        written = self._journal.spans_between(since, until)
        ended = [span for span in written if span.ended_at is not None and span.key not in mine]
        return [*ended, *mine.values()]

    def _minutes_in(self, since: float) -> float:
        """How many there are at most from then on."""
        until = self._living.until
        ends = ((until if s.ended_at is None else s.ended_at, s) for s in self.spans)
        return sum(max(0.0, min(end, until) - max(s.placed_at, since)) / MINUTE + 1 for end, s in ends)

    def pieces(self, grid: Grid) -> Iterator[Piece]:
        """What was measured, each in one step."""
        yield from self._under_way()
        if grid.step < HOUR_SECONDS:
            yield from self._journal.minutes_between(grid.first, grid.until, of_gpus=self._of_gpus)
            return
        rolled = self._journal.rolled_up_to(self._living.now)  # for some at least; all before, for all
        whole = min(max(rolled, grid.first), hour_of(grid.until))
        yield from self._hours.between(self._journal, grid.first, whole, of_gpus=self._of_gpus)
        yield from self._later(max(whole, grid.first), grid.until)

    def _later(self, since: int, until: float) -> Iterator[Piece]:
        """By hours as far as there are any, else by minutes."""
        if since >= until:
            return
        made = set()
        for piece in self._journal.hours_between(since, until, of_gpus=self._of_gpus):
            made.add((piece.key, piece.start))
            yield piece
        every = max(1, round(self._minutes_in(since) / _MOST_MINUTES))
        for piece in self._journal.minutes_between(since, until, of_gpus=self._of_gpus, every=every):
            if (piece.key, hour_of(piece.start)) not in made:
                yield piece

    def _under_way(self) -> Iterator[Piece]:
        whose = {entry.key: entry for entry in self._living.entries}
        for minute in self._living.under_way:
            entry = whose.get(minute.key)
            if entry is not None:
                start = int(minute.rollup.start)
                yield Piece(minute.key, entry.team, entry.owner, start, *_amounts(minute, self._of_gpus))


def _amounts(minute: Booked, of_gpus: bool) -> tuple[int, int]:
    measured, used = minute.spent.measured, minute.spent.used
    if of_gpus:
        return measured.gpus_milli, used.gpus_milli
    return measured.cpus_milli, used.cpus_milli


def _span(entry: Entry) -> Span:
    held, times = entry.holds, (entry.placed_at, entry.ended_at)
    return Span(entry.job, entry.attempt, entry.team, entry.owner, *times, held.gpus_milli, held.cpus_milli)
