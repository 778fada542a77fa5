"""Observe → decide → act, once per thing that happens.

Every fact is recorded before it is acted on: first those the engine observed, then each decision, and only
then is the engine told. The same loop drives the simulator and real engines.
"""

from collections.abc import Callable, Iterator

from muster.engines.base import Engine
from muster.model.events import (
    Amended,
    ArraySubmitted,
    DeviceHealth,
    Event,
    Evicting,
    Exited,
    Held,
    NodeHealth,
    NodeSeen,
    Placed,
    Promised,
    Released,
    Retried,
    StoodDown,
    Submitted,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.plan import Action, Plan
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.schedule import schedule
from muster.store.fold import Fold

# Facts that can change a decision; others are recorded and no more.
CHANGES = (
    Submitted,
    ArraySubmitted,
    Held,
    Released,
    Withdrawn,
    Amended,
    Exited,
    Vacated,
    Retried,
    StoodDown,
    NodeSeen,
    NodeHealth,
    DeviceHealth,
    TeamSet,
)


class Loop:
    """One engine, one policy, one fold. ``record`` sees every fact in order: a journal, a report."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        fold: Fold,
        record: Callable[[Event], None] | None = None,
    ) -> None:
        self.engine, self.policy, self.fold = engine, policy, fold
        self.plan = Plan()
        self.cycles = 0
        self._record = record
        for node in engine.nodes():
            self._fact(NodeSeen(engine.now(), node))

    def step(self) -> bool:
        """Wait for what happens next and answer it. False: nothing is left to wait for."""
        wake_at = self.plan.wake_at
        facts = self.engine.observe(wake_at)
        for fact in facts:
            self._fact(fact)
        if not facts and wake_at is None:
            return False
        if not facts or any(isinstance(f, CHANGES) for f in facts):
            self.decide()
        return True

    def decide(self) -> None:
        """One cycle, and what follows from it."""
        now = self.engine.now()
        snap = self.fold.snapshot()
        self.plan = schedule(snap, self.policy, now=now)
        self.cycles += 1
        consequences = tuple(consequences_of(self.plan, snap, now))
        self.fold.release()
        for fact, action in consequences:
            self._fact(fact)
            if action is not None:
                self.engine.act(action)
        if self.plan.withdraws:  # others may depend on them
            self.decide()

    def _fact(self, fact: Event) -> None:
        self.fold.apply(fact)
        if self._record is not None:
            self._record(fact)


def consequences_of(plan: Plan, snap: Snapshot, now: float) -> Iterator[tuple[Event, Action | None]]:
    """The facts that a plan makes, each with the action that the engine has to carry out."""
    for withdraw in plan.withdraws:
        yield Withdrawn(now, withdraw.job, withdraw.outcome), None
    for evict in plan.evicts:
        yield Evicting(now, evict.job, evict.attempt, evict.because, evict.in_favour_of), evict
    for start in plan.starts:
        lasts = (start.expected_seconds, start.at_most_seconds)
        yield Placed(now, start.job, start.attempt, start.seats, *lasts), start
    promised = {w.job.id for w in snap.promised}
    for promise in plan.promises:
        known = promise.job in (snap.favoured if promise.made_room else promised)
        if promise.firm and not known:
            yield Promised(now, promise.job, promise.made_room, promise.nodes), None
