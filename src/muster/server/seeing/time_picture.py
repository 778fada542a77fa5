"""A picture of some time, put together in a thread from what lives and from the store.

The past is the ledger's: each attempt that is over, with its GPUs. Of one without GPUs the journal says on
which nodes it was, if that is asked for, and of so many at most.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.units import MILLI, show_seconds
from muster.server.seeing.time_answers import Bar, Kind, TimeBy, TimeJob, Timeline, TimeRow, TimeWaiting
from muster.server.seeing.timeline import (
    Outage,
    Sat,
    bars_by_row,
    in_lanes,
    out_of_service,
    outage_bars,
    outages_of,
)
from muster.server.when import show_time
from muster.store.journal import Journal
from muster.store.seeing_reads import Stay

_MOST_STAYS = 100_000  # attempts that are looked at: the latest
_MOST_LOOKED_UP = 2000  # of those without GPUs, whose nodes are looked up
_MOST_OUTAGES = 2000


class Asked(msgspec.Struct, frozen=True):
    """A question, with times as ours."""

    by: TimeBy
    since: float
    until: float
    now: float
    rows: dict[str, tuple[Node, int | None]]  # that are told; by team and owner, found as they come
    more_rows: int
    limit: int
    nodes: frozenset[str] | None  # only these; None: all

    def is_about(self, nodes: Iterable[str]) -> bool:
        return self.nodes is None or not self.nodes.isdisjoint(nodes)


class Picture:
    """An answer as it is put together, in a thread."""

    def __init__(
        self, journal: Journal, asked: Asked, ahead: float, nodes: dict[str, Node], jobs: dict[JobId, Job]
    ) -> None:
        self._journal, self._asked, self._ahead = journal, asked, ahead
        self._nodes, self._living = nodes, jobs
        self._past_jobs: dict[JobId, Stay] = {}
        self._ended = self._unplaced = self._left_out = 0

    def drawn(self, living: Sequence[Sat], guessed: set[JobId]) -> Timeline:
        asked = self._asked
        living = [sat for sat in living if asked.is_about(sat.nodes)]
        sats = [*self._past(), *living]
        rows, more = self._rows(sats)
        bars, resolution = bars_by_row(sats, rows, asked.by, asked.since, asked.until)
        outages = outages_of(self._journal.outages(_MOST_OUTAGES), self._nodes, asked.now)
        for row, bar in self._outage_bars(outages, rows):
            bars.setdefault(row, []).append(bar)
        told = [self._row(name, bars.get(name, []), rows[name]) for name in rows]
        waiting = [*self._planned(living), *self._waiting(guessed)]
        return Timeline(
            self._sentence(living, outages),
            asked.by,
            asked.since + self._ahead,
            asked.until + self._ahead,
            asked.now + self._ahead,
            resolution,
            told,
            self._jobs_of({*_drawn(told), *(one.job for one in waiting)}),
            waiting,
            more,
            self._unplaced,
            self._left_out,
        )

    def _past(self) -> Iterator[Sat]:
        """Those that may be drawn, each in its rows."""
        asked = self._asked
        verdicts = self._journal.verdicts_since(asked.since + self._ahead)
        has_nodes = asked.by in (TimeBy.NODE, TimeBy.GPU)
        shown = {node.name for node, _ in asked.rows.values()} if has_nodes else asked.nodes
        stays = self._stays(needs_nodes=shown is not None)
        nodes_of = self._nodes_of([stay for stay in stays if not stay.devices]) if shown is not None else {}
        for stay in stays:
            nodes = tuple(dict.fromkeys(held.node for held in stay.devices)) or nodes_of.get(stay[:2], ())
            self._ended += asked.nodes is not None and asked.is_about(nodes)
            if shown is not None and not nodes:
                self._unplaced += 1
            elif shown is None or not shown.isdisjoint(nodes):
                self._past_jobs[stay.job] = stay
                how = verdicts.get(stay.job) or (stay.outcome or "left").lower().replace("_", "-")
                devices = tuple((held.node, held.device) for held in stay.devices)
                times = (stay.placed_at, stay.ended_at)
                yield Sat(
                    stay.job, stay.attempt, stay.owner, stay.team, *times, Kind.PAST, nodes, devices, how
                )

    def _stays(self, *, needs_nodes: bool) -> list[Stay]:
        asked = self._asked
        until, most = min(asked.until, asked.now), _MOST_STAYS + 1
        stays = list(self._journal.stays_between(asked.since, until, most, with_devices=needs_nodes))
        self._left_out = max(0, len(stays) - _MOST_STAYS)
        self._ended = len(stays) if asked.nodes is None else 0
        return stays[:_MOST_STAYS]

    def _nodes_of(self, bare: Sequence[Stay]) -> dict[tuple[JobId, int], tuple[str, ...]]:
        """Of those without GPUs, if these are asked for; where there is one node, it was that."""
        if self._asked.by is TimeBy.GPU:
            return {stay[:2]: ("",) for stay in bare}  # none that is drawn
        if len(self._nodes) == 1:
            return {stay[:2]: tuple(self._nodes) for stay in bare}
        return self._journal.nodes_of({stay.job for stay in bare[:_MOST_LOOKED_UP]})

    def _rows(self, sats: Sequence[Sat]) -> tuple[dict[str, tuple[Node | None, int | None]], int]:
        """By team and owner, those that held most."""
        asked = self._asked
        if asked.by in (TimeBy.NODE, TimeBy.GPU):
            return {**asked.rows}, asked.more_rows
        held: dict[str, float] = {}
        for sat in sats:
            name = sat.team if asked.by is TimeBy.TEAM else sat.owner
            seconds = min(sat.end, asked.until) - max(sat.start, asked.since)
            held[name] = held.get(name, 0.0) + max(0.0, seconds)
        most = sorted(held, key=lambda name: (-held[name], name))
        return dict.fromkeys(most[: asked.limit], (None, None)), max(0, len(most) - asked.limit)

    def _outage_bars(
        self, outages: Sequence[Outage], rows: dict[str, tuple[Node | None, int | None]]
    ) -> Iterator[tuple[str, Bar]]:
        since, until = self._asked.since, self._asked.until
        for one in outages:
            cut = one._replace(start=max(one.start, since), end=min(one.end, until))
            if cut.start < cut.end:
                yield from outage_bars(cut, rows, self._nodes, self._asked.by)

    def _row(self, name: str, bars: list[Bar], where: tuple[Node | None, int | None]) -> TimeRow:
        node, device = where
        lanes = in_lanes(bars)
        for bar in bars:
            bar.start, bar.end = round(bar.start + self._ahead, 1), round(bar.end + self._ahead, 1)
            bar.latest = None if bar.latest is None else round(bar.latest + self._ahead, 1)
        rack = None if node is None else node.rack
        return TimeRow(name, None if node is None else node.name, device, rack, lanes, bars)

    def _jobs_of(self, wanted: set[JobId]) -> dict[str, TimeJob]:
        past = (self._past_jobs[job] for job in wanted if job in self._past_jobs)
        found = {one.job: TimeJob(one.name, one.owner, one.team, one.gpus_milli / MILLI) for one in past}
        for job in self._living.values():
            if job.id in wanted:
                gpus = job.gang.asked().gpus_milli / MILLI
                found[job.id] = TimeJob(job.name, job.owner, job.team, gpus)
        return found

    def _planned(self, living: Sequence[Sat]) -> Iterator[TimeWaiting]:
        """For whom room is kept on a node; on which of its GPUs is not said."""
        if self._asked.by is TimeBy.GPU:
            for sat in living:
                if sat.kind is Kind.PREDICTED and not sat.devices and sat.start > self._asked.now:
                    at, now = sat.start + self._ahead, self._asked.now + self._ahead
                    yield TimeWaiting(sat.job, at, at, now, list(sat.nodes))

    def _waiting(self, guessed: set[JobId]) -> list[TimeWaiting]:
        """As it was estimated last, without asking anew."""
        kept, ahead = self._journal.last_estimates(guessed), self._ahead
        return [
            TimeWaiting(job, said.earliest + ahead, said.latest + ahead, said.made_at + ahead)
            for job, said in sorted(kept.items())
            if said.earliest is not None and said.latest is not None and said.latest > self._asked.now
        ]

    def _sentence(self, living: Sequence[Sat], outages: Sequence[Outage]) -> str:
        asked, past = self._asked, self._ended
        running = sum(1 for sat in living if sat.kind is Kind.RUNNING)
        ends = [sat for sat in living if sat.kind is Kind.PREDICTED and sat.start <= asked.now]
        first = min(ends, key=lambda sat: sat.end, default=None)
        is_over = asked.until < asked.now  # then some of them came to their end after it
        said = f"{self._while()} {past:,} attempt{'s' * (past != 1)} "
        said += f"ran that {'is' if past == 1 else 'are'} over" if is_over else "came to an end"
        said += f", and {running:,} {'runs' if running == 1 else 'run'}{' now' * is_over}"
        if first is not None:
            said += f"; the next to end is likely job {first.job}, at {show_time(first.end + self._ahead)}"
        return f"{said}." + out_of_service(
            one for one in outages if one.end >= asked.now and asked.is_about((one.node,))
        )

    def _while(self) -> str:
        asked = self._asked
        if asked.until >= asked.now:
            return f"In the {show_seconds(asked.now - asked.since)} until now"
        since, until = (show_time(at + self._ahead) for at in (asked.since, asked.until))
        return f"Between {since} and {until}"


def _drawn(rows: Iterable[TimeRow]) -> Iterator[JobId]:
    return (bar.job for row in rows for bar in row.bars if bar.job is not None)
