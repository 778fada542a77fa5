"""Room kept for a job that can't start yet, which those behind it may not delay.

Going through the times at which running jobs leave, in order, the first moment at which the gang fits is when
it can start; the nodes it will sit on are guarded from then on. A job behind it may still start now if it is
gone before that moment, or if it fits beside the one that is waited for (see ``place``).

There are two kinds. A *plan* reckons with the run times that are likely, and may move as they turn out
otherwise. A *promise* reckons with the longest that jobs can take, so it can only be kept or bettered: it
is missed only if a job without a limit outlives all expectation, or a node is lost. A promised job keeps
its turn until it starts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np

from muster.model.events import Seat
from muster.model.job import Gang, JobId, Shape, Together
from muster.model.plan import Promise
from muster.model.room import Ints
from muster.model.snapshot import Snapshot, Waiting
from muster.schedule.fit import capacity
from muster.schedule.place import NO_GUARDS, Guarded, Placer
from muster.schedule.predict import Lasts
from muster.schedule.row import Row, row_capacity, seat_in
from muster.schedule.scratch import Scratch

Forecast = tuple[float, tuple[Seat, ...], Guarded]  # when, where, and what is left of those nodes then
Only = tuple[str, ...]  # the nodes where a job was promised room, one for each seat; none: all will do


class Leaving(NamedTuple):
    """Seats that become free, and when."""

    at: float
    seats: tuple[Seat, ...]
    job: JobId | None = None


class Guard(NamedTuple):
    """A promise, and what is left of its nodes when it falls due."""

    promise: Promise
    rows: Guarded
    seats: tuple[Seat, ...]

    starts_at: float

    def delayed_by(self, now: float, lasts: Lasts) -> bool:
        """Whether a job that starts now would still be there."""
        return self.starts_at < now + (lasts.firm if self.promise.firm else lasts.plan)


class Dropped(NamedTuple):
    """A guard that was taken away, and where it stood."""

    place: int
    guard: Guard


class Promises:
    """The promises and plans of one cycle."""

    def __init__(
        self,
        scratch: Scratch,
        leaving: Callable[[bool, Only], list[Leaving]],
        now: float,
        snap: Snapshot,
    ) -> None:
        self._scratch, self._now, self._memo = scratch, now, snap.memo
        self._promised_on = snap.promised_on
        self._find_leaving = leaving
        self._running: dict[tuple[bool, Only], list[Leaving]] = {}
        # In order, with how many had come by then.
        self._leaving: dict[tuple[bool, Only], tuple[int, list[Leaving]]] = {}
        self._later: list[tuple[Lasts, tuple[Seat, ...]]] = []  # started or evicted in this cycle
        self._guards: list[Guard] = []
        self._merges: dict[int, Guarded] = {}  # what some of them together leave, by which, as bits
        self._delays: dict[Lasts, int] = {}  # which of them a job that lasts so long could delay
        self._leavers: list[Leaving] = []  # who were told to leave
        self._unserved: dict[Gang, int] = {}  # whom so many leavers do not help
        self._open: list[tuple[Waiting, bool, bool]] = []  # not worked out yet

    @property
    def made(self) -> tuple[Promise, ...]:
        worked_out = tuple(g.promise for g in self._guards)
        return worked_out + tuple(
            Promise(waiting.job.id, firm=firm, made_room=made_room) for waiting, firm, made_room in self._open
        )

    def __len__(self) -> int:
        return len(self._guards) + len(self._open)

    def leaves(self, lasts: Lasts, seats: tuple[Seat, ...]) -> None:
        """Somebody else will leave, too."""
        self._later.append((lasts, seats))

    def told_to_leave(self, after_seconds: float, seats: tuple[Seat, ...], job: JobId) -> None:
        """A running job makes room for another: it leaves earlier than was expected."""
        self._leavers.append(Leaving(self._now + after_seconds, seats, job))

    def reserve(self, waiting: Waiting, *, firm: bool, made_room: bool = False) -> None:
        """Keep room for the job from the first moment at which it fits.

        When and where that is gets worked out once somebody comes who could delay it.
        """
        self._open.append((waiting, firm, made_room))

    def firmly(self, waiting: Waiting) -> None:
        """What was planned for the job is promised to it now."""
        self.drop(waiting)
        self.reserve(waiting, firm=True, made_room=True)

    def work_out_all(self, promised: list[Waiting]) -> None:
        """Keep room for all of them, the first promised first."""
        for waiting in promised:
            self.reserve(waiting, firm=True)
        self._work_out()

    def drop(self, waiting: Waiting) -> Dropped | None:
        """No longer keep room for the job: it is its turn. What was kept can be put back."""
        self._forget_merges()
        self._open = [entry for entry in self._open if entry[0] is not waiting]
        for i, guard in enumerate(self._guards):
            if guard.promise.job == waiting.job.id:
                del self._guards[i]
                self._reckon(guard.seats, self._guards[i:], free=True)
                return Dropped(i, guard)
        return None

    def put_back(self, dropped: Dropped) -> None:
        """It could not start: it keeps its promise, in front of those who were promised later."""
        self._forget_merges()
        self._reckon(dropped.guard.seats, self._guards[dropped.place :], free=False)
        self._guards.insert(dropped.place, dropped.guard)

    def _reckon(self, seats: tuple[Seat, ...], later: list[Guard], *, free: bool) -> None:
        """Those promised later reckon with it sitting there, or no longer do."""
        for guard in later:
            for seat in seats:
                row = guard.rows.get(self._scratch.hw.index[seat.node])
                if row is not None:
                    (row.give if free else row.take)(seat)

    def worked_out(self, waiting: Waiting) -> Promise | None:
        """The job's promise with its time and place; None if no moment is known at which it fits."""
        self._work_out()
        mine = (g.promise for g in self._guards if g.promise.job == waiting.job.id)
        return next(mine, None)

    def _work_out(self) -> None:
        while self._open:
            self._guard(*self._open.pop(0))

    def _guard(self, waiting: Waiting, firm: bool, made_room: bool) -> None:
        found = self._forecast(waiting, firm)
        if found is None:
            return
        at, seats, rows = found
        promise = Promise(waiting.job.id, at, tuple(s.node for s in seats), firm, made_room)
        self._guards.append(Guard(promise, rows, seats, at))
        self._forget_merges()

    def _forecast(self, waiting: Waiting, firm: bool) -> Forecast | None:
        """Worked out, or remembered while nobody has come, gone, or outlived what was expected."""
        log = self._scratch.room.log
        if self._guards or self._later or self._leavers:
            return self._work_out_one(waiting, firm)
        key = ("forecast", firm)
        whose = (log.base, waiting.job.id, self._promised_on.get(waiting.job.id, ()))
        known, since, until, found = cast(
            tuple[object, float, float, Forecast | None], self._memo.get(key, (None, 0.0, 0.0, None))
        )
        if known != whose or not since <= self._now < until:
            found = self._work_out_one(waiting, firm)
            until = min((x.at for x in self._in_order(firm, whose[2])), default=math.inf)
            self._memo[key] = (whose, self._now, until, found)
        if found is None:
            return None
        at, seats, rows = found
        return at, seats, {node: row.copy() for node, row in rows.items()}

    def _work_out_one(self, waiting: Waiting, firm: bool) -> Forecast | None:
        only = self._promised_on.get(waiting.job.id, ())
        found = self._first(waiting, firm, only)
        if found is None and only:  # a node was lost, or somebody outlived all expectation
            found = self._first(waiting, firm, ())
        return found

    def _first(self, waiting: Waiting, firm: bool, only: Only) -> Forecast | None:
        forecast = _Forecast(self._scratch, waiting.job.gang, self._guards, only)
        return forecast.first(self._in_order(firm, only), self._now)

    def is_served_by_leavers(self, waiting: Waiting) -> bool:
        """Whether those who were told to leave make room enough for this one, too."""
        gang = waiting.job.gang
        if not self._leavers or self._unserved.get(gang) == len(self._leavers):
            return False
        self._work_out()
        if _Forecast(self._scratch, gang, self._guards).first(self._leavers, self._now) is not None:
            return True
        self._unserved[gang] = len(self._leavers)
        return False

    @property
    def leavers(self) -> tuple[JobId, ...]:
        return tuple(x.job for x in self._leavers if x.job is not None)

    def guarded(self, lasts: Lasts) -> Guarded:
        """What a job that starts now must leave free, by node."""
        self._work_out()
        if not self._guards:
            return NO_GUARDS
        delayed = self._delayed(lasts)
        merged = self._merges.get(delayed)
        if merged is None:
            guards = [g for i, g in enumerate(self._guards) if delayed >> i & 1]
            merged = self._merges[delayed] = _merged(guards)
        return merged

    def _delayed(self, lasts: Lasts) -> int:
        """Which guards a job that starts now could delay, as bits."""
        found = self._delays.get(lasts)
        if found is None:
            found = 0
            for i, guard in enumerate(self._guards):
                if guard.delayed_by(self._now, lasts):
                    found |= 1 << i
            self._delays[lasts] = found
        return found

    def _forget_merges(self) -> None:
        """The guards are others now."""
        self._merges.clear()
        self._delays.clear()

    def allow(self, seats: tuple[Seat, ...], lasts: Lasts) -> bool:
        """Whether a job may start on these seats without delaying anybody."""
        if self._all_promised_elsewhere(seats):
            return True
        guarded = self.guarded(lasts)
        rows: Guarded = {}
        for seat in seats:
            node = self._scratch.hw.index[seat.node]
            if node in guarded:
                row = rows.setdefault(node, guarded[node].copy())
                row.take(seat)
                if min(row.cpus, row.memory, row.disk, *row.gpu, 0) < 0:
                    return False
        return True

    def _all_promised_elsewhere(self, seats: tuple[Seat, ...]) -> bool:
        """Whether all that room is kept for were promised it on other nodes; then when does not matter."""
        if self._guards:
            return False
        taken = {seat.node for seat in seats}
        promised = (self._promised_on.get(waiting.job.id) for waiting, _, _ in self._open)
        return all(nodes and taken.isdisjoint(nodes) for nodes in promised)

    def in_the_way(self, lasts: Lasts) -> Promise | None:
        """The first promise that a job which starts now could delay."""
        return next((g.promise for g in self._guards if g.delayed_by(self._now, lasts)), None)

    def seated(self, seats: tuple[Seat, ...], lasts: Lasts) -> None:
        """A job behind was started: less is left beside the promised one, if it stays that long."""
        delayed = self._delayed(lasts)
        tables = [g.rows for i, g in enumerate(self._guards) if delayed >> i & 1]
        for which in [w for w in self._merges if w & delayed]:
            if which & ~delayed:
                del self._merges[which]
            else:
                tables.append(self._merges[which])  # what is least stays so if all lose the same
        for rows in tables:
            for seat in seats:
                row = rows.get(self._scratch.hw.index[seat.node])
                if row is not None:
                    row.take(seat)
        self.leaves(lasts, seats)

    def _in_order(self, firm: bool, only: Only) -> list[Leaving]:
        """Who leaves when, the earliest first."""
        news = len(self._later) + len(self._leavers)
        known = self._leaving.get((firm, only))
        if known is None or known[0] != news:
            known = self._leaving[firm, only] = (news, self._sorted(firm, only))
        return known[1]

    def _sorted(self, firm: bool, only: Only) -> list[Leaving]:
        if (firm, only) not in self._running:
            self._running[firm, only] = sorted(self._find_leaving(firm, only), key=_at)
        told = {x.job for x in self._leavers}
        running = [x for x in self._running[firm, only] if x.job not in told]
        new = [Leaving(self._now + (x.firm if firm else x.plan), seats) for x, seats in self._later]
        known = [x for x in (*running, *self._leavers, *new) if x.at < math.inf]
        known.sort(key=_at)
        return known


def _at(leaving: Leaving) -> float:
    return leaving.at


def _merged(guards: list[Guard]) -> Guarded:
    """What is left beside all of them."""
    merged: Guarded = {}
    for guard in guards:
        for node, row in guard.rows.items():
            known = merged.get(node)
            merged[node] = row.copy() if known is None else row.least(known)
    return merged


def place_somehow(placer: Placer, gang: Gang) -> tuple[Seat, ...] | None:
    """Seats on the best nodes; for unlike parts, where that leads nowhere, on the roomiest."""
    seats = placer.place(gang)
    if seats is None and len(gang.parts) > 1:
        found = _Forecast(placer.scratch, gang, []).first([], 0.0)
        seats = None if found is None else found[1]
        placer.scratch.sit_all(seats or ())
    return seats


def first_fit(scratch: Scratch, gang: Gang, leaving: list[Leaving]) -> float | None:
    """When the gang fits, as those leave one after the other; None if it never does."""
    found = _Forecast(scratch, gang, []).first(leaving, -math.inf)
    return None if found is None else found[0]


class _Forecast:
    """The future of the nodes as jobs leave, seen by one gang."""

    def __init__(self, scratch: Scratch, gang: Gang, guards: list[Guard], only: Only = ()) -> None:
        self._hw, self._room, self._gang = scratch.hw, scratch.room, gang
        self._rows: dict[int, Row] = {}
        self._most = self._most_seats(only)
        self._many: list[Ints] = self._capacities()
        self._sums = [int(m.sum()) for m in self._many]
        for guard in guards:  # what is promised to others is taken, whenever they come
            changed = self._change(guard.seats, -1)
            self._recount(changed)

    def _most_seats(self, only: Only) -> Counter[int] | None:
        """How many seats may be taken on which nodes; None: as many as there is room for, anywhere.

        One who was promised some seats must not better its lot with others, which later ones may have been
        promised meanwhile.
        """
        if not only:
            return None
        index, is_open = self._hw.index, self._room.is_open
        return Counter(index[name] for name in only if name in index and is_open[index[name]])

    def _capacities(self) -> list[Ints]:
        """How many parts of each kind the nodes take now."""
        shapes = [part.shape for part in self._gang.parts]
        if self._most is None:
            return [capacity(self._hw, self._room, shape) for shape in shapes]
        found = [np.zeros(self._hw.count, np.int64) for _ in shapes]
        for node in self._most:
            for many, shape in zip(found, shapes, strict=True):
                many[node] = self._capacity(node, shape)
        return found

    def first(self, leaving: list[Leaving], now: float) -> Forecast | None:
        seats = self._seats()
        if seats is not None:
            return now, seats, self._left(seats)
        i = 0
        while i < len(leaving):
            at = leaving[i].at
            changed: set[int] = set()
            while i < len(leaving) and leaving[i].at <= at:
                changed |= self._change(leaving[i].seats, 1)
                i += 1
            if not changed:
                continue
            self._recount(changed)
            if all(s >= p.count for s, p in zip(self._sums, self._gang.parts, strict=True)):
                seats = self._seats()
                if seats is not None:
                    return max(at, now), seats, self._left(seats)
        return None

    def _change(self, seats: tuple[Seat, ...], sign: int) -> set[int]:
        """Somebody leaves (+1) or will sit there (-1). Returns the nodes that count and are changed."""
        changed = set()
        for seat in seats:
            node = self._hw.index[seat.node]
            if self._most is None or node in self._most:
                row = self._row(node)
                (row.give if sign > 0 else row.take)(seat)
                changed.add(node)
        return changed

    def _capacity(self, node: int, shape: Shape) -> int:
        many = row_capacity(self._hw, node, self._row(node), shape)
        return many if self._most is None else min(many, self._most[node])

    def _row(self, node: int) -> Row:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = Row.of(self._room, node)
        return row

    def _recount(self, nodes: set[int]) -> None:
        """How many parts the changed nodes can take now."""
        is_open = self._room.is_open
        for k, part in enumerate(self._gang.parts):
            counts = self._many[k]
            for node in nodes:
                before = counts[node]
                many = self._capacity(node, part.shape)
                if many != before and is_open[node]:
                    self._sums[k] += many - int(before)
                    counts[node] = many

    def _seats(self) -> tuple[Seat, ...] | None:
        """Seats for all parts in the rows as they are; takes nothing."""
        for group in self._groups():
            taken: dict[int, Row] = {}
            used: Counter[int] = Counter()
            seats: list[list[Seat]] = [[] for _ in self._gang.parts]
            if all(self._sit(k, group, taken, used, seats[k]) for k in self._pickiest()):
                return tuple(seat for kind in seats for seat in kind)
        return None

    def _pickiest(self) -> list[int]:
        """The kinds of parts, those with least room for what they need first."""
        parts = self._gang.parts
        return sorted(range(len(parts)), key=lambda k: self._sums[k] / max(parts[k].count, 1))

    def _sit(
        self, k: int, group: Ints | None, taken: dict[int, Row], used: Counter[int], seats: list[Seat]
    ) -> bool:
        """Put one kind of parts on the nodes that take most of them."""
        part = self._gang.parts[k]
        many = self._many[k] if group is None else np.where(group, self._many[k], 0)
        left = part.count
        spread = self._gang.together is Together.SPREAD
        for node in _roomiest(many):
            if spread and node in taken:
                continue
            row = taken.get(node)
            if row is None:
                row = taken[node] = self._rows.get(node, Row.of(self._room, node)).copy()
            while left and (self._most is None or used[node] < self._most[node]):
                seat = seat_in(self._hw, node, row, part.shape)
                if seat is None:
                    break
                row.take(seat)
                seats.append(seat)
                used[node] += 1
                left -= 1
                if spread:
                    break
            if not left:
                return True
        return False

    def _groups(self) -> list[Ints | None]:
        together = self._gang.together
        if together in (Together.ANYWHERE, Together.SPREAD):
            return [None]
        by = {
            Together.NODE: np.arange(self._hw.count),
            Together.RACK: self._hw.racks,
            Together.SWITCH: self._hw.switches,
        }[together]
        first = np.where(by >= 0, self._many[0], 0)
        sums = np.bincount(np.maximum(by, 0), weights=first)
        enough = np.flatnonzero(sums >= self._gang.parts[0].count)
        return [(by == g).astype(np.int64) for g in enough]

    def _left(self, seats: tuple[Seat, ...]) -> Guarded:
        rows: Guarded = {}
        for seat in seats:
            node = self._hw.index[seat.node]
            if node not in rows:
                rows[node] = self._rows.get(node, Row.of(self._room, node)).copy()
            rows[node].take(seat)
        return rows


def _roomiest(many: Ints) -> Iterator[int]:
    """The nodes that take most parts first. Usually the first will do, so the rest is sorted late."""
    if not many.size or not many.max():
        return
    best = int(many.argmax())
    yield best
    fit = np.flatnonzero(many)
    for node in fit[np.argsort(-many[fit], kind="stable")].tolist():
        if node != best:
            yield node
