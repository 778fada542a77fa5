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
from typing import NamedTuple

import numpy as np

from muster.model.events import Seat
from muster.model.job import Gang, JobId, Part, Priority, Shape, Together
from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.room import Index
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.model.units import MILLI
from muster.schedule.fit import capacity, feasible
from muster.schedule.quota import QuotaBook
from muster.schedule.row import Row, row_capacity
from muster.schedule.scratch import Scratch

Cause = Callable[[Running], str | None]

_MOST_NODES = 64  # on which a set of victims is worked out for one job


class Victims(NamedTuple):
    cost: float
    jobs: tuple[tuple[Running, str], ...]  # with the cause


class Evictions:
    """Victims among the running jobs of one snapshot. A job is taken at most once in a cycle."""

    def __init__(self, snap: Snapshot, policy: Policy, book: QuotaBook, scratch: Scratch, now: float):
        self._snap, self._policy, self._book, self._scratch = snap, policy, book, scratch
        self._now = now
        self._by_node: dict[int, list[Running]] | None = None
        self._taken: set[JobId] = set()
        # What nobody's leaving would help, by gang, priority, and the team that is owed something.
        self._hopeless: set[tuple[Gang, Priority, str | None]] = set()

    @property
    def full(self) -> bool:
        """Whether this cycle has evicted enough."""
        return len(self._taken) >= self._policy.most_evictions

    def take(self, victims: Victims) -> None:
        """They are told to leave: their team holds that much less, and nobody else may count on them."""
        for victim, _ in victims.jobs:
            self._taken.add(victim.job.id)
            self._book.book(victim.job.team, victim.held, -1)

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
        if self._policy.reclaim and self._book.governs:
            return True
        if self._policy.evict == "none":
            return False
        lower = 1 if self._policy.evict == "low" else int(waiting.job.priority)
        return any(self._snap.tally.by_priority[: min(lower, waiting.job.priority)])

    def find(self, waiting: Waiting) -> Victims | None:
        """The cheapest victims whose leaving makes room for the whole gang; None if there are none."""
        job, asked = waiting.job, waiting.asked
        entitled = self._policy.reclaim and self._book.entitled(job.team, asked) is not None
        claim = (job.gang, job.priority, job.team if entitled else None)
        if claim in self._hopeless:
            return None
        found = self.cheapest(waiting, self._cause_for(waiting, asked, entitled))
        if found is None or not self._quota_allows(waiting, asked, found):
            self._hopeless.add(claim)
            return None
        return found

    def cheapest(self, waiting: Waiting, cause: Cause) -> Victims | None:
        """The cheapest victims, among those for whom there is a cause."""
        gang = waiting.job.gang
        if len(gang.parts) != 1:
            return None  # a gang of several kinds of parts waits for room instead
        part = gang.parts[0]
        found = [self._cheapest_in(part, gang.together, nodes, cause) for nodes in self._places(gang)]
        return min((v for v in found if v is not None), key=lambda v: v.cost, default=None)

    def cost(self, victim: Running) -> float:
        """GPU-seconds lost (cpu-seconds where there is no GPU) if it left now."""
        kept = victim.job.checkpoint
        seconds = victim.unsaved_seconds(self._now)
        if kept is not None:
            seconds += kept.save_seconds + kept.restore_seconds
        weight = victim.held.gpus_milli or victim.held.cpus_milli
        return (seconds + 1.0) * weight / MILLI

    def candidates(self) -> dict[int, list[Running]]:
        """Running jobs that are past their protection, by node, the cheapest first."""
        if self._by_node is None:
            self._by_node = {}
            index = self._snap.hardware.index
            for victim in sorted(self._open_to_eviction(), key=lambda r: (self.cost(r), r.job.id)):
                for node in dict.fromkeys(index[s.node] for s in victim.seats):
                    self._by_node.setdefault(node, []).append(victim)
        return self._by_node

    def _open_to_eviction(self) -> Iterable[Running]:
        for r in self._snap.running.values():
            if r.state is State.RUNNING and r.elapsed(self._now) >= self._policy.protected_seconds:
                yield r

    def _cause_for(self, waiting: Waiting, asked: Resources, entitled: bool) -> Cause:
        job, policy, book = waiting.job, self._policy, self._book

        def cause(victim: Running) -> str | None:
            if entitled and book.borrows(victim.job.team, asked, job.team):
                return "reclaim"
            lower = victim.job.priority < job.priority
            if policy.evict == "none" or not lower:
                return None
            if policy.evict == "low" and victim.job.priority is not Priority.LOW:
                return None
            if book.governs and not entitled and not book.over(victim.job.team):
                return None
            return "priority"

        return cause

    def _quota_allows(self, waiting: Waiting, asked: Resources, victims: Victims) -> bool:
        for victim, _ in victims.jobs:
            self._book.book(victim.job.team, victim.held, -1)
        refusal = self._book.refuses(waiting.job.team, asked)
        for victim, _ in victims.jobs:
            self._book.book(victim.job.team, victim.held)
        return refusal is None

    def _places(self, gang: Gang) -> list[Index]:
        """Groups of nodes, in one of which the whole gang must find its room."""
        hw = self._snap.hardware
        serves = feasible(hw, hw.derived["empty"], gang.parts[0].shape) & self._scratch.room.is_open
        nodes = np.flatnonzero(serves)
        if gang.together in (Together.ANYWHERE, Together.SPREAD):
            return [nodes]
        if gang.together is Together.NODE:
            return [np.array([n]) for n in nodes if n in self.candidates()]
        by = (hw.racks if gang.together is Together.RACK else hw.switches)[nodes]
        return [nodes[by == group] for group in np.unique(by[by >= 0])]

    def _cheapest_in(self, part: Part, together: Together, nodes: Index, cause: Cause) -> Victims | None:
        """Take the cheapest step on any of the nodes, again and again, until all parts have room."""
        hw, room = self._snap.hardware, self._scratch.room
        spread = together is Together.SPREAD
        many = capacity(hw, room, part.shape, nodes)
        have = int(np.count_nonzero(many) if spread else many.sum())
        rows: dict[int, Row] = {}
        chosen: dict[str, tuple[Running, str]] = {}
        steps: list[_Step] = []
        for node in self._worth_a_look(nodes, part.count):
            self._push(steps, node, part.shape, rows, cause, chosen)
        while have < part.count:
            if not steps:
                return None
            step = heapq.heappop(steps)
            if any(v.job.id in chosen for v, _ in step.victims):  # it left for another node's sake
                self._push(steps, step.node, part.shape, rows, cause, chosen)
                continue
            for victim, why in step.victims:
                chosen[victim.job.id] = (victim, why)
                self._vacate(rows, victim)
            have += 1 if spread else step.gain
            if not spread:
                self._push(steps, step.node, part.shape, rows, cause, chosen)
        return Victims(sum(self.cost(v) for v, _ in chosen.values()), tuple(chosen.values()))

    def _worth_a_look(self, nodes: Index, parts: int) -> list[int]:
        """The nodes whose cheapest candidate is cheapest, not too many of them."""
        there = [n for n in nodes.tolist() if n in self.candidates()]
        most = max(_MOST_NODES, 2 * parts)
        if len(there) <= most:
            return there
        return heapq.nsmallest(most, there, key=lambda n: (self.cost(self.candidates()[n][0]), n))

    def _push(
        self,
        steps: "list[_Step]",
        node: int,
        shape: Shape,
        rows: dict[int, Row],
        cause: Cause,
        chosen: dict[str, tuple[Running, str]],
    ) -> None:
        """The fewest, cheapest victims that let one more part in on this node."""
        hw = self._snap.hardware
        row = rows.get(node)
        row = Row.of(self._scratch.room, node) if row is None else row.copy()
        before = row_capacity(hw, node, row, shape)
        picked: list[tuple[Running, str]] = []
        for victim in self.candidates()[node]:
            gone = victim.job.id in chosen or victim.job.id in self._taken
            why = None if gone else cause(victim)
            if why is None:
                continue
            picked.append((victim, why))
            self._seats_on(row.give, victim, node)
            if row_capacity(hw, node, row, shape) > before:
                break
        else:
            return
        for victim, why in picked[-2::-1]:  # the dearest first: who need not leave after all?
            self._seats_on(row.take, victim, node)
            if row_capacity(hw, node, row, shape) > before:
                picked.remove((victim, why))
            else:
                self._seats_on(row.give, victim, node)
        gain = row_capacity(hw, node, row, shape) - before
        cost = sum(self.cost(v) for v, _ in picked)
        heapq.heappush(steps, _Step(cost / gain, node, gain, tuple(picked)))

    def _seats_on(self, change: Callable[[Seat], None], victim: Running, node: int) -> None:
        name = self._snap.hardware.nodes[node].name
        for seat in victim.seats:
            if seat.node == name:
                change(seat)

    def _vacate(self, rows: dict[int, Row], victim: Running) -> None:
        for seat in victim.seats:
            node = self._snap.hardware.index[seat.node]
            if node not in rows:
                rows[node] = Row.of(self._scratch.room, node)
            rows[node].give(seat)


class _Step(NamedTuple):
    """Victims on one node, and the parts that their leaving lets in."""

    cost_per_part: float
    node: int
    gain: int
    victims: tuple[tuple[Running, str], ...]
