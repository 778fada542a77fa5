"""Offering room to one job after the other: what every kind of cycle has in common.

An offer is taken (the job starts) or declined with a typed reason. Room only shrinks within a cycle, so a
gang that did not fit is not tried again.
"""

from typing import cast

from muster.model.events import Seat
from muster.model.job import Gang, Job, JobId
from muster.model.plan import Evict, Plan, Start, Wait, Withdraw
from muster.model.policy import Policy
from muster.model.reasons import (
    ArrayFull,
    BehindPromise,
    GangTooLarge,
    NoRoomTogether,
    NotBefore,
    Reason,
)
from muster.model.room import Hardware, held_by
from muster.model.snapshot import LaneKey, Snapshot, Waiting
from muster.schedule.backfill import Leaving, Only, Promises, first_fit, place_somehow
from muster.schedule.fit import asked_at_least, empty_room, never, why_not
from muster.schedule.order import Lanes
from muster.schedule.place import Placer
from muster.schedule.predict import Lasts, lasts, leaves_at
from muster.schedule.preempt import Evictions
from muster.schedule.quota import QuotaBook
from muster.schedule.rank import Ranker
from muster.schedule.scratch import Scratch


def impossible(hw: Hardware, gang: Gang) -> Reason | None:
    """Why it can't run even on the empty cluster; also since unlike parts don't fit beside each other."""
    reason = never(hw, gang)
    if reason is None and len(gang.parts) > 1:
        key = ("never together", gang)
        if key not in hw.derived:
            fits = first_fit(Scratch(hw, empty_room(hw)), gang, [])
            too_large = GangTooLarge(gang.size, gang.size - 1, gang.together)
            hw.derived[key] = too_large if fits is None else None
        reason = hw.derived[key]
    return reason


class Offers:
    """The working state of one cycle. Nothing in it outlives the plan."""

    def __init__(self, snap: Snapshot, policy: Policy, now: float) -> None:
        self.snap, self.policy, self.now = snap, policy, now
        self.book = QuotaBook(snap)
        self.scratch = Scratch(snap.hardware, snap.room)
        self.placer = Placer(self.scratch, Ranker(self.scratch, policy, snap))
        self.evictions = Evictions(snap, policy, self.book, self.scratch, now)
        self.promises = Promises(self.scratch, self._leaving, now, snap)
        for leaving in snap.evicting.values():
            for job_id in leaving:
                seats = snap.running[job_id].seats
                self.promises.told_to_leave(policy.grace_seconds, seats, job_id)
        self.arrays = dict(snap.array_running)
        self.full = self._known_full()  # gangs that don't fit
        self.behind: dict[Gang, tuple[Lasts, Reason]] = {}  # or not for as long as this
        self.starts: list[Start] = []
        self.evicts: list[Evict] = []
        self.lane_waits: dict[LaneKey, Wait] = {}
        self.job_waits: dict[JobId, Wait] = {}
        self.wakes: list[float] = []

    def _known_full(self) -> dict[Gang, Wait]:
        """What did not fit the last time, if nothing has changed since."""
        mark, known = cast(tuple[int, dict[Gang, Wait]], self.snap.memo.get("full", (-1, {})))
        return dict(known) if mark == self.snap.room.log.end else {}

    def eligible(self) -> Lanes:
        """The lanes, with those whose time has come."""
        early: dict[LaneKey, list[Waiting]] = {}
        for job_id, waiting in self.snap.timed.items():
            reason = self._not_yet(waiting.job)
            if reason is not None:
                self.job_waits[job_id] = Wait((reason,))
            else:
                early.setdefault(waiting.lane, []).append(waiting)
        if not early:
            return self.snap.lanes
        lanes = dict(self.snap.lanes)
        for key, jobs in early.items():
            together = [*lanes.get(key, ()), *jobs]
            lanes[key] = sorted(together, key=lambda w: (w.job.submitted_at, w.job.id))
        return lanes

    def _not_yet(self, job: Job) -> Reason | None:
        if job.begin_at is not None and job.begin_at > self.now:
            self.wakes.append(job.begin_at)
            return NotBefore(job.begin_at, job.begin_at - self.now)
        return None

    def offer(self, waiting: Waiting) -> Reason | None:
        """Start the job if it may and can; otherwise say why not."""
        gang = waiting.job.gang
        refusal = self.refusal(waiting)
        if refusal is not None:
            return refusal
        known = self.full.get(gang)
        if known is not None:
            return known.reasons[0]
        long = lasts(self.snap, self.policy, waiting)
        blocked = self.behind.get(gang)
        if blocked is not None and long.plan >= blocked[0].plan and long.firm >= blocked[0].firm:
            return blocked[1]
        seats = place_somehow(self.placer, gang)
        if seats is None:
            self.full[gang] = Wait((self._why_full(gang),))
            return self.full[gang].reasons[0]
        if len(self.promises):
            delayed = self._beside_promises(gang, long, seats)
            if isinstance(delayed, Reason):
                return delayed
            seats = delayed
        self.start(waiting, seats, long)
        return None

    def fits_somewhere(self, gang: Gang) -> bool:
        """A quick guess: whether one part of each kind fits. If not, it is known from now on."""
        if gang in self.full:
            return False
        fits = all(self.placer.fits_somewhere(part.shape) for part in gang.parts)
        if fits or impossible(self.snap.hardware, gang) is not None:
            return True
        self.full[gang] = Wait((self._why_full(gang),))
        return False

    def known_full(self, waiting: Waiting) -> Wait | None:
        """Why the whole lane waits, if it is known already that there is no room for its gang."""
        known = self.full.get(waiting.job.gang)
        return known if known is None or self.refusal(waiting) is None else None

    def refusal(self, waiting: Waiting) -> Reason | None:
        """Why the job may not start, wherever there is room."""
        job = waiting.job
        reason = impossible(self.snap.hardware, job.gang)
        if reason is not None:
            return reason
        place = job.array
        most = None if place is None else place.most_at_once
        if place is not None and most is not None and self.arrays.get(place.array, 0) >= most:
            return ArrayFull(place.array, most)
        if not self.book.governs:
            return None
        return self.book.refuses(job.team, asked_at_least(self.snap.hardware, waiting))

    def _why_full(self, gang: Gang) -> Reason:
        """Why it does not fit: by what was free at first, or by what is left after those in front."""
        hw, changed = self.snap.hardware, bool(self.scratch.room.log.nodes)
        reason = why_not(hw, self.snap.room, gang)
        if reason is None and changed:
            reason = why_not(hw, self.scratch.room, gang)
        return reason or NoRoomTogether(gang.size, gang.size - 1, gang.together)

    def _beside_promises(self, gang: Gang, long: Lasts, seats: tuple[Seat, ...]) -> tuple[Seat, ...] | Reason:
        """The seats, others that delay no promise, or why there are none."""
        self.scratch.leave_all(seats)  # promises are reckoned without it
        if self.promises.allow(seats, long):
            self.scratch.sit_all(seats)
            return seats
        again = self.placer.place(gang, self.promises.guarded(long))
        if again is not None:
            return again
        promise = self.promises.in_the_way(long)
        assert promise is not None
        assert promise.starts_at is not None
        reason = BehindPromise(promise.job, promise.starts_at - self.now, long.plan)
        self.behind[gang] = (long, reason)
        return reason

    def start(self, waiting: Waiting, seats: tuple[Seat, ...], long: Lasts) -> None:
        """Enter a start, everywhere it counts. The seats are taken already."""
        job = waiting.job
        because = "backfill" if len(self.promises) else "order"
        attempt = waiting.attempt + 1
        self.starts.append(Start(job.id, attempt, seats, long.plan, long.firm, because))
        self.book.book(job.team, held_by(seats))
        self.promises.seated(seats, long)
        if job.array is not None:
            self.arrays[job.array.array] = self.arrays.get(job.array.array, 0) + 1

    def look_again_at(self, at: float | None) -> None:
        if at is not None:
            self.wakes.append(at)

    def _leaving(self, firm: bool, only: Only) -> list[Leaving]:
        """When running jobs leave these nodes: likely, or at the latest."""
        now, running = self.now, self.snap.running.values()
        return [
            Leaving(leaves_at(r, now, firm=firm), r.seats, r.job.id)
            for r in running
            if not only or any(seat.node in only for seat in r.seats)
        ]

    def plan(self) -> Plan:
        """The answer."""
        if not self.starts:
            self.snap.memo["full"] = (self.snap.room.log.end, self.full)
        return Plan(
            starts=tuple(self.starts),
            evicts=tuple(self.evicts),
            withdraws=tuple(Withdraw(j, o) for j, o in self.snap.doomed.items()),
            promises=self.promises.made,
            lane_waits=self.lane_waits,
            job_waits=self.job_waits,
            wake_at=min((w for w in self.wakes if w > self.now), default=None),
        )
