"""Whose turn is it: waiting lanes in the order in which they are offered room.

Teams within what they own come before those that would borrow; then priority decides. Then ``fifo`` goes
by age. ``fair`` goes by how far above its fair share a team, and within it an owner, is (see ``shares``),
and among equals by who has waited longest for its length: (wait + an hour) / (expected run time + a
minute), so that short jobs pass quickly and no job waits for ever. Each placement counts at once, so that
a burst of one owner's jobs alternates with the others'.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence

from muster.model.job import Priority
from muster.model.plan import Wait
from muster.model.policy import Policy
from muster.model.snapshot import Holder, LaneKey, Snapshot, Waiting
from muster.model.tenancy import ROOT
from muster.model.units import HOUR, MINUTE
from muster.schedule.predict import estimate
from muster.schedule.quota import QuotaBook
from muster.schedule.shares import Vector, average, band, brought_to, charged, held_now

Lanes = Mapping[LaneKey, Sequence[Waiting]]
Rank = tuple[object, ...]
Tier = tuple[bool, Priority]


class Lane:
    """A lane with a finger on its next job."""

    __slots__ = ("at", "branch", "jobs", "key", "weight")

    def __init__(self, key: LaneKey, jobs: Sequence[Waiting]) -> None:
        self.key, self.jobs, self.at = key, jobs, 0
        self.weight = 0.0  # per second of wait; 0 goes by age alone
        self.branch: Branch | None = None

    def rank(self, now: float) -> Rank:
        head = self.jobs[self.at].job
        if not self.weight:
            return (0.0, head.submitted_at, head.id)
        return (-(now - head.submitted_at + HOUR) * self.weight, head.submitted_at, head.id)


class Branch:
    """A team or an owner: what it has had, and a heap of what hangs below it."""

    __slots__ = ("average", "fair", "heap", "parent", "rate", "team")

    def __init__(self, team: str, parent: "Branch | None") -> None:
        self.team, self.parent = team, parent
        self.heap: list[tuple[Rank, int, Branch | Lane]] = []
        self.average, self.fair = 0.0, 1.0
        self.rate: Vector = (0.0, 0.0, 0.0)


class Turns:
    """The order, consumed one job at a time: say what came of each before asking for the next."""

    def __init__(self, snap: Snapshot, policy: Policy, book: QuotaBook, now: float, lanes: Lanes) -> None:
        self._snap, self._policy, self._book, self._now = snap, policy, book, now
        self._fair = policy.order == "fair"
        self._total = snap.hardware.total.vector()
        self._serial = 0
        self._promised = list(snap.promised)
        self._skip = {w.job.id for w in snap.promised}
        self._tiers = self._ranked_tiers(lanes)
        self._tier: Tier = (False, Priority.LOW)
        self._lanes: list[Lane] = []  # of this tier, until they are put in order
        self._root: Branch | None = None
        self._lane: Lane | None = None
        self._branches: dict[Holder, Branch] = {}
        self._weights: dict[str, float] = {}

    def next_tier(self) -> bool:
        """On to the next priority. False: all are done."""
        if not self._tiers:
            return False
        self._tier, self._lanes = self._tiers.pop()
        return True

    def next_promised(self) -> Waiting | None:
        """Who was promised room, before the others of its priority."""
        for waiting in self._promised:
            if waiting.job.id in self._snap.favoured or self._tier_of(waiting) >= self._tier:
                self._promised.remove(waiting)
                return waiting
        return None

    def leave_out(self, why: Callable[[Waiting], Wait | None]) -> Iterator[tuple[LaneKey, Wait]]:
        """The lanes that need no turn, with what they wait for: putting things in order costs."""
        kept = []
        for lane in self._lanes:
            wait = why(lane.jobs[lane.at])
            if wait is None:
                kept.append(lane)
            else:
                yield lane.key, wait
        self._lanes = kept

    def next(self) -> Waiting | None:
        """The job whose turn it is. None: this priority is done."""
        if self._lanes:
            self._root, self._lanes = self._plant(self._lanes), []
        while self._root is not None and self._root.heap:
            self._lane = lane = self._top()
            waiting = lane.jobs[lane.at]
            if waiting.job.id in self._skip:
                self.passed()
            elif self._tier[0] and not self._book.comes_first(waiting.job.team, waiting.asked):
                self._put_off(lane)
            else:
                return waiting
        self._root = None
        return None

    def placed(self, waiting: Waiting) -> None:
        """The job got room: all on its path hold more now."""
        if self._fair:
            cost = charged(waiting.asked, waiting.job.priority, self._policy.charges)
            branch = self._current.branch
            while branch is not None:
                r = branch.rate
                branch.rate = (r[0] + cost[0], r[1] + cost[1], r[2] + cost[2])
                branch = branch.parent
        self.passed()

    def passed(self) -> None:
        """On to the lane's next job."""
        self._current.at += 1
        self._settle(self._current)

    def set_aside(self) -> LaneKey:
        """Nothing of this lane can start now."""
        lane = self._current
        lane.at = len(lane.jobs)
        self._settle(lane)
        return lane.key

    def rest(self) -> Iterator[LaneKey]:
        """The lanes that were not reached, when nobody may pass."""
        while self.next() is not None:
            yield self.set_aside()

    # --- inside -------------------------------------------------------------------------------------

    @property
    def _current(self) -> Lane:
        assert self._lane is not None
        return self._lane

    def _settle(self, lane: Lane) -> None:
        """Put the lane's path back where it belongs: each of it was on top of its heap."""
        item: Branch | Lane = lane
        branch = lane.branch
        alive = lane.at < len(lane.jobs)
        while branch is not None:
            if alive:
                heapq.heapreplace(branch.heap, self._entry(item))
            else:
                heapq.heappop(branch.heap)
            alive = bool(branch.heap)
            item, branch = branch, branch.parent

    def _top(self) -> Lane:
        item: Branch | Lane | None = self._root
        while isinstance(item, Branch):
            item = item.heap[0][2]
        assert item is not None
        return item

    def _entry(self, item: Branch | Lane) -> tuple[Rank, int, Branch | Lane]:
        self._serial += 1
        if isinstance(item, Lane):
            return (item.rank(self._now), self._serial, item)
        step = band(item.average, held_now(item.rate, self._total), item.fair)
        chosen = item.heap[0][0][-3:]  # of the lane that it would send: siblings may be of any depth
        return ((self._book.over(item.team), step, *chosen), self._serial, item)

    def _ranked_tiers(self, lanes: Lanes) -> list[tuple[Tier, list[Lane]]]:
        """The lowest first: they are taken from the end."""
        tiers: dict[Tier, list[Lane]] = {}
        for key, jobs in lanes.items():
            tiers.setdefault(self._tier_of(jobs[0]), []).append(Lane(key, jobs))
        return sorted(tiers.items(), key=_first)

    def _tier_of(self, waiting: Waiting) -> Tier:
        """Teams within what they own come before those that would borrow; then priority decides."""
        return (self._book.comes_first(waiting.job.team, waiting.asked), waiting.job.priority)

    def _put_off(self, lane: Lane) -> None:
        """Its team has what it owns by now: the rest of the lane comes with those that borrow."""
        rest = Lane(lane.key, lane.jobs[lane.at :])
        self.set_aside()
        later: Tier = (False, lane.key.priority)
        for tier, lanes in self._tiers:
            if tier == later:
                lanes.append(rest)
                return
        self._tiers.append((later, [rest]))
        self._tiers.sort(key=_first)

    def _weight(self, key: LaneKey) -> float:
        if not self._fair:
            return 0.0
        return 1.0 / (estimate(self._snap.history, key, self._snap.memo).mean + MINUTE)

    def _plant(self, lanes: list[Lane]) -> Branch:
        root = Branch(ROOT, None)
        self._branches = {}
        for lane in lanes:
            lane.weight = self._weight(lane.key)
            lane.branch = self._owner(lane.key, root) if self._fair else root
            lane.branch.heap.append(self._entry(lane))
        for branch in reversed(self._branches.values()):  # the leaves first
            heapq.heapify(branch.heap)
            assert branch.parent is not None
            branch.parent.heap.append(self._entry(branch))
        heapq.heapify(root.heap)
        return root

    def _owner(self, key: LaneKey, root: Branch) -> Branch:
        """The owner's branch, grown with its teams when first met."""
        found = self._branches.get((key.team, key.owner))
        if found is not None:
            return found
        parent = root
        for team in reversed(self._snap.tenancy.path(key.team)[:-1]):
            parent = self._grow((team, None), parent)
        return self._grow((key.team, key.owner), parent)

    def _grow(self, holder: Holder, parent: Branch) -> Branch:
        branch = self._branches.get(holder)
        if branch is None:
            branch = self._branches[holder] = Branch(holder[0], parent)
            half_life = self._policy.half_life_seconds
            account = self._snap.accounts.get(holder)
            if account is not None:
                account = brought_to(account, self._now, half_life)
                branch.average = average(account, self._total, half_life)
                branch.rate = account.rate
            branch.fair = parent.fair * self._part(holder)
        return branch

    def _part(self, holder: Holder) -> float:
        """What is due to it of its parent's share: its weight among all there that have work."""
        if not self._weights:
            self._weigh_active()
        team, owner = holder
        path = self._snap.tenancy.path(team)
        if owner is not None:
            return 1.0 / self._weights.get(team, 1.0)
        weight = self._snap.tenancy.weight(team)
        return weight / max(self._weights.get(path[1], weight), weight)

    def _weigh_active(self) -> None:
        """The weights of all that have work, summed by the team they hang below."""
        tenancy = self._snap.tenancy
        for team, owner in self._snap.active:
            if owner is not None:
                self._weights[team] = self._weights.get(team, 0.0) + 1.0
            else:
                parent = tenancy.path(team)[1]
                weight = tenancy.weight(team)
                self._weights[parent] = self._weights.get(parent, 0.0) + weight


def _first(tier: tuple[Tier, list[Lane]]) -> Tier:
    return tier[0]
