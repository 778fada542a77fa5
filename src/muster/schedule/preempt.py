"""Who yields: the victims whose leaving wastes least work.

A job may evict another for two causes. *Reclaim*: its team would stay within what it owns, and the
other's team holds more than it owns. *Priority*: the other's priority is lower (by default only low ones
yield), and it does not shelter within what its team owns while the evictor's team would be borrowing.
Both relations are strict orders, so two jobs can't evict each other in turn.

The cost of a victim is the GPU-time that would be lost: work since its last checkpoint, and the time to
save and restore. An attempt is left alone for its first minutes, and so is a job that was evicted lately.
"""

import heapq
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from muster.model.events import Seat
from muster.model.job import Gang, JobId, Priority, Together
from muster.model.policy import Policy
from muster.model.room import Index
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.model.units import MILLI
from muster.schedule.backfill import Leaving, first_fit
from muster.schedule.fit import capacity, empty_room, feasible
from muster.schedule.quota import QuotaBook
from muster.schedule.row import Row, row_capacity
from muster.schedule.scratch import Scratch

Cause = Callable[[Running], str | None]

_MOST_NODES = 32  # on which a set of victims is worked out for one job


class Victims(NamedTuple):
    cost: float
    jobs: tuple[tuple[Running, str], ...]  # with the cause


class Evictions:
    """Victims among the running jobs of one snapshot. A job is taken at most once in a cycle."""

    def __init__(self, snap: Snapshot, policy: Policy, book: QuotaBook, scratch: Scratch, now: float):
        self._snap, self._policy, self.book, self.scratch = snap, policy, book, scratch
        self._now = now
        self._by_node: dict[int, list[Running]] | None = None
        self.taken: set[JobId] = set()
        # What nobody's leaving would help, by gang, priority, and the team that is owed something.
        self._hopeless: set[tuple[Gang, Priority, str | None]] = set()

    @property
    def full(self) -> bool:
        """Whether this cycle has evicted enough."""
        return len(self.taken) >= self._policy.most_evictions

    def take(self, victims: Victims) -> None:
        """They are told to leave: their team holds that much less, and nobody else may count on them."""
        for victim, _ in victims.jobs:
            self.taken.add(victim.job.id)
            self.book.book(victim.job.team, victim.held, -1)

    @property
    def any_movable(self) -> bool:
        return self._snap.tally.movable > 0

    def pending_for(self, job_id: str) -> tuple[str, ...]:
        """Jobs that are already leaving in this one's favour."""
        return self._snap.evicting.get(job_id, ())

    def could_help(self, waiting: Waiting) -> bool:
        """A quick no: nobody of lower priority runs, and nothing is owed to its team."""
        if self.full:
            return False
        if self._policy.reclaim and self.book.governs:
            return True
        if self._policy.evict == "none":
            return False
        lower = 1 if self._policy.evict == "low" else int(waiting.job.priority)
        return any(self._snap.tally.by_priority[: min(lower, waiting.job.priority)])

    def find(self, waiting: Waiting) -> Victims | None:
        """The cheapest victims whose leaving makes room for the whole gang; None if there are none."""
        job, asked = waiting.job, waiting.asked
        owed_to = self.book.entitled(job.team, asked) if self._policy.reclaim else None
        claim = (job.gang, job.priority, None if owed_to is None else job.team)
        if claim in self._hopeless:
            return None
        found = self.cheapest(waiting, self._cause_for(waiting, owed_to))
        if found is None or not found.jobs or not self._quota_allows(waiting, found):
            self._hopeless.add(claim)
            return None
        return found

    def cheapest(self, waiting: Waiting, cause: Cause) -> Victims | None:
        """The cheapest victims, among those for whom there is a cause."""
        gang = waiting.job.gang
        if len(gang.parts) != 1:
            return self._for_several_kinds(gang, cause)
        found = [_Search(self, gang, nodes, cause).run() for nodes in self._places(gang)]
        return min((v for v in found if v is not None), key=lambda v: v.cost, default=None)

    def _for_several_kinds(self, gang: Gang, cause: Cause) -> Victims | None:
        """A gang of unlike parts: let the cheapest leave one by one until it fits, then drop who need not."""
        listed = {v.job.id: v for victims in self.candidates().values() for v in victims}
        ready = [(v, why) for v in listed.values() if v.job.id not in self.taken and (why := cause(v))]
        ready.sort(key=lambda x: (self._dearness(x[0]), x[0].job.id))
        leaving = [Leaving(float(i), v.seats) for i, (v, _) in enumerate(ready)]
        found = first_fit(self.scratch, gang, leaving)
        if found is None or found < 0:  # nobody's leaving helps, or nobody's is needed
            return None
        chosen = ready[: int(found) + 1]
        for entry in reversed(chosen[:-1]):
            rest = [x for x in chosen if x is not entry]
            if first_fit(self.scratch, gang, [Leaving(0.0, v.seats) for v, _ in rest]) is not None:
                chosen = rest
        return Victims(sum(self.cost(v) for v, _ in chosen), tuple(chosen))

    @cached_property
    def next_opening(self) -> float | None:
        """When the next running job ceases to be protected."""
        protected = self._policy.protected_seconds
        ends = (r.placed_at + protected for r in self._snap.running.values() if not r.job.adopted)
        return min((at for at in ends if at > self._now), default=None)

    def cost(self, victim: Running) -> float:
        """GPU-seconds lost (cpu-seconds where there is no GPU) if it left now."""
        kept = victim.job.checkpoint
        seconds = victim.unsaved_seconds(self._now)
        if kept is not None:
            seconds += kept.save_seconds + kept.restore_seconds
        weight = victim.held.gpus_milli or victim.held.cpus_milli
        return (seconds + 1.0) * weight / MILLI

    def candidates(self) -> dict[int, list[Running]]:
        """Running jobs that are past their protection, by node, the cheapest for their size first."""
        if self._by_node is None:
            self._by_node = {}
            index = self._snap.hardware.index
            ready = sorted(self._open_to_eviction(), key=lambda r: (self._dearness(r), r.job.id))
            for victim in ready:
                for node in dict.fromkeys(index[s.node] for s in victim.seats):
                    self._by_node.setdefault(node, []).append(victim)
        return self._by_node

    def _dearness(self, victim: Running) -> float:
        return self.cost(victim) / max(victim.held.gpus_milli or victim.held.cpus_milli, 1)

    def _open_to_eviction(self) -> Iterable[Running]:
        for r in self._snap.running.values():
            if r.job.adopted is not None:  # it is not Muster's to move
                continue
            if r.state is State.RUNNING and r.elapsed(self._now) >= self._policy.protected_seconds:
                yield r

    def _cause_for(self, waiting: Waiting, owed_to: str | None) -> Cause:
        job, asked, policy, book = waiting.job, waiting.asked, self._policy, self.book

        def cause(victim: Running) -> str | None:
            team = victim.job.team
            if owed_to is not None and book.borrows(team, asked, owed_to):
                return "reclaim"
            yields = policy.evict == "lower" or (
                policy.evict == "low" and victim.job.priority is Priority.LOW
            )
            if not yields or victim.job.priority >= job.priority:
                return None
            owed = owed_to is not None and not book.is_below(team, owed_to)
            sheltered = team != job.team and not owed and book.shelters(team, asked)
            return None if sheltered else "priority"

        return cause

    def _quota_allows(self, waiting: Waiting, victims: Victims) -> bool:
        for victim, _ in victims.jobs:
            self.book.book(victim.job.team, victim.held, -1)
        refusal = self.book.refuses(waiting.job.team, waiting.asked)
        for victim, _ in victims.jobs:
            self.book.book(victim.job.team, victim.held)
        return refusal is None

    def _places(self, gang: Gang) -> list[Index]:
        """Groups of nodes, in one of which the whole gang must find its room."""
        hw = self._snap.hardware
        serves = feasible(hw, empty_room(hw), gang.parts[0].shape) & self.scratch.room.is_open
        nodes = np.flatnonzero(serves)
        if gang.together in (Together.ANYWHERE, Together.SPREAD):
            return [nodes]
        if gang.together is Together.NODE:
            return [np.array([n]) for n in nodes if n in self.candidates()]
        by = (hw.racks if gang.together is Together.RACK else hw.switches)[nodes]
        return [nodes[by == group] for group in np.unique(by[by >= 0])]


class _Step(NamedTuple):
    """Victims on one node, and what each part that their leaving lets in costs."""

    cost_per_part: float
    node: int
    victims: tuple[tuple[Running, str], ...]


class _Search:
    """The victims for a gang of equal parts within one group of nodes.

    The cheapest step on any node is taken, again and again, until all parts have room. Who was chosen is
    struck from the book while the search goes on, so that no team loses more than it borrows.
    """

    def __init__(self, evictions: Evictions, gang: Gang, nodes: Index, cause: Cause) -> None:
        self._e, self._cause = evictions, cause
        self._hw, self._room = evictions.scratch.hw, evictions.scratch.room
        self._part = gang.parts[0]
        self._most = 1 if gang.together is Together.SPREAD else self._part.count  # on one node
        many = np.minimum(capacity(self._hw, self._room, self._part.shape, nodes), self._most)
        self._have = int(many.sum())
        self._counts = dict(zip(nodes.tolist(), many.tolist(), strict=True))
        self._rows: dict[int, Row] = {}
        self._chosen: dict[JobId, tuple[Running, str]] = {}
        self._steps: list[_Step] = []

    def run(self) -> Victims | None:
        for node in self._worth_a_look():
            self._push(node)
        while self._have < self._part.count and self._steps:
            step = heapq.heappop(self._steps)
            if not any(v.job.id in self._chosen for v, _ in step.victims):
                self._take(step)
            self._push(step.node)  # what comes next there; or one of them left for another node's sake
        for victim, _ in self._chosen.values():
            self._e.book.book(victim.job.team, victim.held)
        if self._have < self._part.count:
            return None
        return Victims(sum(self._e.cost(v) for v, _ in self._chosen.values()), tuple(self._chosen.values()))

    def _worth_a_look(self) -> list[int]:
        """The nodes whose cheapest candidate is cheapest, not too many of them."""
        candidates = self._e.candidates()
        there = [n for n in self._counts if n in candidates]
        most = max(_MOST_NODES, 2 * self._part.count)
        if len(there) <= most:
            return there
        return heapq.nsmallest(most, there, key=lambda n: (self._e.cost(candidates[n][0]), n))

    def _take(self, step: _Step) -> None:
        for victim, why in step.victims:
            self._chosen[victim.job.id] = (victim, why)
            self._e.book.book(victim.job.team, victim.held, -1)
            for seat in victim.seats:
                node = self._hw.index[seat.node]
                self._row(node).give(seat)
                self._recount(node)

    def _row(self, node: int) -> Row:
        if node not in self._rows:
            self._rows[node] = Row.of(self._room, node)
        return self._rows[node]

    def _recount(self, node: int) -> None:
        if node in self._counts:
            many = self._fit(node, self._rows[node])
            self._have += many - self._counts[node]
            self._counts[node] = many

    def _fit(self, node: int, row: Row) -> int:
        return min(row_capacity(self._hw, node, row, self._part.shape), self._most)

    def _push(self, node: int) -> None:
        """The fewest, cheapest victims that let one more part in on this node."""
        row, before = self._row(node).copy(), self._counts[node]
        picked: list[tuple[Running, str]] = []
        for victim in self._e.candidates()[node]:
            if self._fit(node, row) > before:
                break
            gone = victim.job.id in self._chosen or victim.job.id in self._e.taken
            why = None if gone else self._cause(victim)
            if why is not None:
                picked.append((victim, why))
                self._e.book.book(victim.job.team, victim.held, -1)
                self._on_node(row.give, victim, node)
        for victim, _ in picked:
            self._e.book.book(victim.job.team, victim.held)
        if self._fit(node, row) <= before:
            return
        for entry in sorted(picked, key=lambda x: -self._e.cost(x[0])):  # who need not leave after all?
            self._on_node(row.take, entry[0], node)
            if self._fit(node, row) > before:
                picked.remove(entry)
            else:
                self._on_node(row.give, entry[0], node)
        cost = sum(self._e.cost(v) for v, _ in picked)
        gain = self._fit(node, row) - before
        heapq.heappush(self._steps, _Step(cost / gain, node, tuple(picked)))

    def _on_node(self, change: Callable[[Seat], None], victim: Running, node: int) -> None:
        name = self._hw.nodes[node].name
        for seat in victim.seats:
            if seat.node == name:
                change(seat)
