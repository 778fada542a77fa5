"""Time sharing: all jobs, running or waiting, claim room in the order of their rank.

A running job keeps its seats unless a better-ranked one has claimed them; it is never moved. A waiting job
takes free room if there is some, and otherwise claims the seats of the least important. What does not fit
is passed, and worse-ranked jobs are still tried. A job whose room others must leave first starts in the next
cycle, when they have.

Two rooms are kept side by side: ``claimed`` has only those seated who were visited and stay; ``free``
also has those who run and were not visited yet.
"""

import numpy as np

from muster.model.events import Seat
from muster.model.job import JobId, Shape
from muster.model.plan import Evict, Plan, Wait
from muster.model.policy import Policy
from muster.model.reasons import MakingRoom, NotYourTurn
from muster.model.resources import NOTHING
from muster.model.room import Floats, held_by
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.schedule.attained import Contender, ranked, running_contender, waiting_contender
from muster.schedule.backfill import place_somehow
from muster.schedule.fit import feasible, usable_devices
from muster.schedule.offers import Offers
from muster.schedule.place import Placer
from muster.schedule.predict import lasts
from muster.schedule.rank import lowest
from muster.schedule.row import Row, device_needs
from muster.schedule.scratch import Scratch


def rotate(snap: Snapshot, policy: Policy, *, now: float) -> Plan:
    """Decide whose turn it is."""
    rotation = _Rotation(snap, policy, now)
    # 1. Everybody who waits or runs contends; who is leaving or just placed is left alone.
    contenders = [waiting_contender(w) for jobs in rotation.eligible().values() for w in jobs]
    contenders += [running_contender(r, now) for r in snap.running.values() if rotation.evictable(r)]
    ranking = ranked(contenders, snap, policy, now)
    # 2. In order of rank, each keeps, takes or claims its room; first those within what their team owns.
    rotation.enter(ranking.contenders)
    borrowers = [c for c in ranking.contenders if not rotation.visit(c, within_quota=True)]
    for contender in borrowers:
        rotation.visit(contender, within_quota=False)
    rotation.tell_claimants()
    # 3. Ranks change as jobs run: look again then.
    rotation.wakes += [
        now + ranking.changes_in[job_id] for job_id in rotation.seated if job_id in ranking.changes_in
    ]
    return rotation.plan()


class _Rotation(Offers):
    """Claims by rank. The inherited scratch is ``free``."""

    def __init__(self, snap: Snapshot, policy: Policy, now: float) -> None:
        super().__init__(snap, policy, now)
        self.claimed = Scratch(snap.hardware, snap.room)
        self.real = Scratch(snap.hardware, snap.room)  # as it is now, before anybody has left
        self.importance = np.zeros(snap.hardware.count)  # of those not visited yet, by node
        self._places: dict[JobId, int] = {}
        self._going: list[Running] = []
        self._claimants: list[tuple[Waiting, set[str]]] = []
        self._claims = Placer(self.claimed, _LeastImportant(self))
        self.seated: list[JobId] = []  # who runs from now on

    def evictable(self, running: Running) -> bool:
        ready = running.state in (State.RUNNING, State.STARTING) and running.job.adopted is None
        return ready and running.elapsed(self.now) >= self.policy.protected_seconds

    def enter(self, contenders: list[Contender]) -> None:
        """All who could leave give up their claim until it is their turn; who is leaving has none."""
        for place, contender in enumerate(contenders):
            self._places[contender.job.id] = place
            if contender.running is not None:
                self.claimed.leave_all(contender.running.seats)
                self._weigh(contender.running, 1)
                self.book.book(contender.job.team, contender.running.held, -1)
        for running in self.snap.running.values():
            if running.state is State.STOPPING:
                self.claimed.leave_all(running.seats)
                self.scratch.leave_all(running.seats)
                self.book.book(running.job.team, running.held, -1)
                self._going.append(running)

    def visit(self, contender: Contender, *, within_quota: bool) -> bool:
        """It is its turn. False: it would borrow, and comes after those who do not."""
        running, waiting = contender.running, contender.waiting
        if within_quota and self.book.governs:
            asked = running.held if running is not None else waiting.asked if waiting else NOTHING
            if not self.book.comes_first(contender.job.team, asked):
                return False
        if running is not None:
            self._stay_or_leave(running)
        elif waiting is not None:
            self._contend(waiting)
        return True

    def _stay_or_leave(self, running: Running) -> None:
        """Keep the seats if nobody better has claimed them."""
        self._weigh(running, -1)
        if _sits(self.claimed, running.seats):
            self.book.book(running.job.team, running.held)
            self.seated.append(running.job.id)
            return
        self.scratch.leave_all(running.seats)
        self._going.append(running)
        self.evicts.append(Evict(running.job.id, running.attempt, "turn"))

    def _contend(self, waiting: Waiting) -> None:
        """Take free room, or claim what the least important hold."""
        job = waiting.job
        refusal = self.refusal(waiting)
        if refusal is not None:
            self.job_waits[job.id] = Wait((refusal,))
            return
        long = lasts(self.snap, self.policy, waiting)
        seats = place_somehow(self.placer, job.gang)
        if seats is not None:
            self.claimed.sit_all(seats)
        else:
            seats = place_somehow(self._claims, job.gang)
            if seats is None:
                self.job_waits[job.id] = Wait((NotYourTurn(self._places[job.id]),))
                return
            self.scratch.sit_all(seats)
        if _sits(self.real, seats):
            self.start(waiting, seats, long)
            self.seated.append(job.id)
        else:
            self.book.book(job.team, held_by(seats))
            self._claimants.append((waiting, {seat.node for seat in seats}))

    def tell_claimants(self) -> None:
        """Who waits for others to leave is told who they are."""
        for waiting, nodes in self._claimants:
            there = (r.job.id for r in self._going if any(s.node in nodes for s in r.seats))
            self.job_waits[waiting.job.id] = Wait((MakingRoom(tuple(there)),))

    def _weigh(self, running: Running, sign: int) -> None:
        weight = sign / (1 + self._places[running.job.id])
        for seat in running.seats:
            self.importance[self.snap.hardware.index[seat.node]] += weight


class _LeastImportant:
    """Ranks nodes, and devices, by who would have to leave them."""

    def __init__(self, rotation: _Rotation) -> None:
        self._rotation = rotation

    def scores(self, shape: Shape) -> Floats:
        """The fewest to leave first, then the least important."""
        rotation = self._rotation
        hw, free = rotation.snap.hardware, rotation.scratch.room
        if shape.gpus:
            short = shape.gpus - np.count_nonzero(usable_devices(hw, free, shape), axis=1)
        else:
            short = (shape.cpus_milli - free.cpus) / 1000
        score = np.maximum(short, 0) + rotation.importance / (1 + rotation.importance.sum())
        return np.where(feasible(hw, rotation.claimed.room, shape), score, np.inf)

    def best(self, scores: Floats) -> int | None:
        return lowest(scores)

    def seat(self, shape: Shape, node: int) -> Seat:
        """Devices that nobody holds first."""
        rotation = self._rotation
        hw = rotation.snap.hardware
        needs = device_needs(hw, node, shape)
        free, claimed = Row.of(rotation.scratch.room, node), Row.of(rotation.claimed.room, node)
        usable = [g for g, need in enumerate(needs) if need and claimed.gpu[g] >= need]
        usable.sort(key=lambda g: (free.gpu[g] < needs[g], g))
        chosen = tuple(sorted(usable[: shape.gpus]))
        milli = max((needs[g] for g in chosen), default=0)
        return Seat(hw.nodes[node].name, shape, chosen, milli)


def _sits(scratch: Scratch, seats: tuple[Seat, ...]) -> bool:
    """Take just these seats, if all of them are free together."""
    with scratch.trial() as trial:
        for seat in seats:
            if not _has(scratch, seat):
                return False
            scratch.sit(seat)
        trial.commit()
    return True


def _has(scratch: Scratch, seat: Seat) -> bool:
    """Whether just this seat is free."""
    node = scratch.hw.index[seat.node]
    room, shape = scratch.room, seat.shape
    return bool(
        room.cpus[node] >= shape.cpus_milli
        and room.memory[node] >= shape.memory_bytes
        and room.disk[node] >= shape.disk_bytes
        and all(room.gpu[node, g] >= seat.device_milli for g in seat.devices)
    )
