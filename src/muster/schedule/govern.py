"""A cycle for engines that find the seats themselves: who may go is decided here, where and when is not.

In the order of any other cycle, whoever is allowed to go does, whether there is room or not: nobody held,
dependent or too early, no more of an array at once than it says, and no team beyond its quota. What was let
go and does not run yet counts as held by its team. Who waits for room waits in the engine's own queue, beside
those whom Muster knows nothing of; kept back here it would never have its turn there.
"""

from muster.model.plan import Plan, Start, Wait
from muster.model.policy import Policy
from muster.model.reasons import ArrayFull
from muster.model.snapshot import Snapshot, Waiting
from muster.schedule.fit import asked_at_least
from muster.schedule.offers import Offers
from muster.schedule.order import Turns
from muster.schedule.predict import lasts


def govern(snap: Snapshot, policy: Policy, *, now: float) -> Plan:
    """Decide who goes to the engine, and why the others wait."""
    cycle = _Governing(snap, policy, now)
    turns = Turns(snap, policy, cycle.book, now, cycle.eligible())
    while turns.next_tier():
        for promised in iter(turns.next_promised, None):  # while seats were still given here
            cycle.let_go_if_allowed(promised)
        while (waiting := turns.next()) is not None:
            cycle.take_turn(waiting, turns)
    return cycle.plan()


class _Governing(Offers):
    def take_turn(self, waiting: Waiting, turns: Turns) -> None:
        reason = self.refusal(waiting)
        if reason is None:
            self.let_go(waiting)
            turns.placed(waiting)
        elif isinstance(reason, ArrayFull):  # the next of the lane may be of another
            self.job_waits[waiting.job.id] = Wait((reason,))
            turns.passed()
        else:
            self.lane_waits[turns.set_aside()] = Wait((reason,))

    def let_go_if_allowed(self, waiting: Waiting) -> None:
        reason = self.refusal(waiting)
        if reason is None:
            self.let_go(waiting)
        else:
            self.job_waits[waiting.job.id] = Wait((reason,))

    def let_go(self, waiting: Waiting) -> None:
        job, long = waiting.job, lasts(self.snap, self.policy, waiting)
        self.starts.append(Start(job.id, waiting.attempt + 1, (), long.plan, long.firm))
        self.book.book(job.team, asked_at_least(self.snap.hardware, waiting))
        if job.array is not None:
            self.arrays[job.array.array] = self.arrays.get(job.array.array, 0) + 1
