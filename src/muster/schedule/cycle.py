"""One cycle: from a snapshot to a plan. Read ``schedule`` first; the rest follows its order.

The jobs behind a promise, once enough promises are made, are the *backfill*: they are offered what is left
in the order the policy says, and get it if no promise is delayed.
"""

from muster.model.job import Gang, JobId
from muster.model.plan import Evict, Plan, Wait
from muster.model.policy import ROTATING, Policy
from muster.model.reasons import (
    ArrayFull,
    BehindOthers,
    BehindPromise,
    MakingRoom,
    NotLookedAt,
    QuotaReached,
    Reason,
)
from muster.model.snapshot import Snapshot, Waiting
from muster.schedule.backfill import Dropped
from muster.schedule.compact import moves_for
from muster.schedule.offers import Offers
from muster.schedule.order import Turns
from muster.schedule.predict import lasts
from muster.schedule.preempt import Victims
from muster.schedule.rotate import rotate


def schedule(snap: Snapshot, policy: Policy, *, now: float) -> Plan:
    """Decide who starts where, who yields, and why the others wait."""
    if policy.order in ROTATING:
        return rotate(snap, policy, now=now)
    cycle = _Cycle(snap, policy, now)
    # 1. Set apart who can't be considered: held, dependent, too early, doomed.
    turns = Turns(snap, policy, cycle.book, now, cycle.eligible())
    # 2. By priority: offer the room first to who was promised it, then in order. Who does not fit
    #    evicts if it may, or gets a promise while there are some to give, or is passed.
    # 3. Offer what is left to those behind the promises, if no promise is delayed.
    while turns.next_tier():
        cycle.keep_promises(turns)
        cycle.leave_out_hopeless(turns)
        cycle.offer_in_order(turns)
        cycle.backfill(turns)
    # 4. Everybody else waits, with a reason.
    return cycle.plan()


class _Cycle(Offers):
    """Offers in order of turn, with room kept for who can't start yet."""

    def __init__(self, snap: Snapshot, policy: Policy, now: float) -> None:
        super().__init__(snap, policy, now)
        self.first_in_line: Waiting | None = None  # whom nobody may pass
        self.reserved: dict[object, int] = {}  # jobs that room is kept for, by hardware asked for

    # --- 2. In order --------------------------------------------------------------------------------

    def keep_promises(self, turns: Turns) -> None:
        """Offer first to those who were promised; renew the promise of who still does not fit."""
        promised = list(iter(turns.next_promised, None))
        if len(promised) > 1:  # none may take what another was promised
            self.promises.work_out_all(promised)
        for waiting in promised:
            kept = self.promises.drop(waiting)
            self.behind.clear()  # what was behind this promise no longer is
            reason = self.offer(waiting)
            if reason is not None:
                self.job_waits[waiting.job.id] = Wait((reason,))
                if not reason.infeasible and not isinstance(reason, ArrayFull):
                    self._make_room_again(waiting, reason, kept)

    def leave_out_hopeless(self, turns: Turns) -> None:
        """Whose gang fits nowhere, and who is kept no room for, needs no turn to be told so."""
        if self.policy.backfill == "none" or not self.reserved:
            return
        known: dict[Gang, Wait | None] = {}  # a tier has one priority: what holds for one lane does for all

        def hopeless(waiting: Waiting) -> Wait | None:
            gang = waiting.job.gang
            if gang not in known:
                helped = self._may_make_room(waiting) or self.fits_somewhere(gang)
                known[gang] = None if helped else self.full[gang]
            return known[gang] and self.known_full(waiting)

        self.lane_waits.update(turns.leave_out(hopeless))

    def offer_in_order(self, turns: Turns) -> None:
        """Offer room in order. With shortest-first backfill, only until somebody has to be kept room."""
        if self.first_in_line is not None:
            return self._nobody_passes(turns, self.first_in_line)
        shortest_first = self.policy.backfill == "easy-sjbf"
        may_pass = self.policy.backfill != "none"
        while not (shortest_first and len(self.promises)):
            waiting = turns.next()
            if waiting is None:
                return None
            known = self.known_full(waiting)
            if known is not None and may_pass and not self._may_make_room(waiting):
                self.lane_waits[turns.set_aside()] = known
                continue
            reason = self.offer(waiting)
            if reason is None:
                turns.placed(waiting)
            elif self._is_its_own(reason):
                self.job_waits[waiting.job.id] = Wait((reason,))
                turns.passed()
            else:
                self.lane_waits[turns.set_aside()] = Wait((reason,))
                if reason.infeasible or isinstance(reason, BehindPromise):
                    continue
                self._make_room(waiting, reason)
                if self.policy.backfill == "none":
                    self.first_in_line = waiting
                    return self._nobody_passes(turns, waiting)
        return None

    def _is_its_own(self, reason: Reason) -> bool:
        """Whether the next job of the lane may be luckier: it is of another array, or known to be shorter."""
        if isinstance(reason, BehindPromise):
            return self.policy.runtimes == "true"
        return isinstance(reason, ArrayFull)

    def _nobody_passes(self, turns: Turns, waiting: Waiting) -> None:
        for key in turns.rest():
            self.lane_waits.setdefault(key, Wait((BehindOthers(waiting.job.id),)))

    def _may_make_room(self, waiting: Waiting) -> bool:
        return self._keeps_room_for(waiting) or self.evictions.could_help(waiting)

    def _keeps_room_for(self, waiting: Waiting) -> bool:
        """Whether a reservation is to be had: so many for each kind of hardware asked for."""
        return self.reserved.get(_hardware_of(waiting), 0) < self.policy.reservations

    def _make_room(self, waiting: Waiting, reason: Reason) -> None:
        """Evict for it, or keep room for it, or move others out of its way; whatever is allowed."""
        if self._evicts(waiting) or isinstance(reason, QuotaReached) or not self._keeps_room_for(waiting):
            return
        firm = self._patience_is_over(waiting)
        if self.policy.backfill != "none":
            self.promises.reserve(waiting, firm=firm)
            if firm:
                self.promises.worked_out(waiting)  # where, so that no other promise takes it
        self._has_room_kept(waiting)

    def _make_room_again(self, waiting: Waiting, reason: Reason, kept: Dropped | None) -> None:
        """The same for one who was promised room, which it does not lose."""
        if self._evicts(waiting) or isinstance(reason, QuotaReached):
            return
        if kept is not None:
            self.promises.put_back(kept)
        elif self.policy.backfill != "none":
            self.promises.reserve(waiting, firm=True)
        self._has_room_kept(waiting)

    def _has_room_kept(self, waiting: Waiting) -> None:
        kind = _hardware_of(waiting)
        self.reserved[kind] = self.reserved.get(kind, 0) + 1
        if self.policy.compact:
            self._compact(waiting)

    def _patience_is_over(self, waiting: Waiting) -> bool:
        """Whether a plan becomes a promise: it waited several times as long as it asked to run."""
        if self.policy.backfill != "default":
            return True
        longest = lasts(self.snap, self.policy, waiting).firm
        return self.now - waiting.job.submitted_at >= self.policy.patience * longest

    def _evicts(self, waiting: Waiting) -> bool:
        """Whether others leave in its favour, or already do."""
        job = waiting.job
        pending = self.evictions.pending_for(job.id)
        if not pending:
            if not self.evictions.could_help(waiting):
                return False
            if self.promises.is_served_by_leavers(waiting):
                pending = self.promises.leavers
            else:
                victims = self.evictions.find(waiting)
                if victims is None:
                    self.look_again_at(self.evictions.next_opening)
                    return False
                self._evict(victims, job.id)
                pending = tuple(v.job.id for v, _ in victims.jobs)
        self.job_waits[job.id] = Wait((MakingRoom(pending),))
        self.promises.reserve(waiting, firm=True, made_room=True)
        return True

    def _evict(self, victims: Victims, job_id: JobId) -> None:
        self.evictions.take(victims)
        for victim, because in victims.jobs:
            self.evicts.append(Evict(victim.job.id, victim.attempt, because, job_id))
            saving = victim.job.checkpoint.save_seconds if victim.job.checkpoint else 0.0
            leaves_in = saving + self.policy.grace_seconds
            self.promises.told_to_leave(leaves_in, victim.seats, victim.job.id)

    def _compact(self, waiting: Waiting) -> None:
        """Move others out of its way, if enough is free but not together."""
        if self.evictions.full or not self.evictions.any_movable:
            return
        if self.scratch.room.gpu.sum() < waiting.asked.gpus_milli:
            return
        promise = self.promises.worked_out(waiting)
        moves = moves_for(waiting, promise, self.evictions, self.placer, self.policy, self.now)
        if moves is not None:
            self._evict(moves, waiting.job.id)
            self.promises.firmly(waiting)
            leaving = tuple(v.job.id for v, _ in moves.jobs)
            self.job_waits[waiting.job.id] = Wait((MakingRoom(leaving),))

    # --- 3. Backfill --------------------------------------------------------------------------------

    def backfill(self, turns: Turns) -> None:
        """Those behind the first that had to be kept room, the shortest first."""
        behind: list[tuple[float, int, Waiting]] = []
        while (waiting := turns.next()) is not None:
            known = self.known_full(waiting)
            if known is not None:
                self.lane_waits[turns.set_aside()] = known
            elif len(behind) < self.policy.depth:
                plan = lasts(self.snap, self.policy, waiting).plan
                behind.append((plan, len(behind), waiting))
                turns.passed()
            else:
                self.lane_waits.setdefault(turns.set_aside(), Wait((NotLookedAt(self.policy.depth),)))
        for _, _, waiting in sorted(behind):
            reason = self.offer(waiting)
            known = self.full.get(waiting.job.gang)
            if known is not None and known.reasons[0] is reason:
                self.lane_waits[waiting.lane] = known
            elif reason is not None:
                self.job_waits[waiting.job.id] = Wait((reason,))


def _hardware_of(waiting: Waiting) -> object:
    """Jobs that ask for different hardware don't wait for each other."""
    shape = waiting.job.gang.parts[0].shape
    return (bool(shape.gpus), shape.gpu_models, shape.labels)
