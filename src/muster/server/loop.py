"""Observe → decide → act, once per thing that happens.

Every fact is recorded before it is acted on: first those the engine observed, then each decision, and only
then is the engine told. The same loop drives the simulator and real engines.
"""

from collections.abc import Callable

from muster.engines.base import Engine
from muster.model.events import (
    Event,
    Evicting,
    Exited,
    Held,
    NodeHealth,
    NodeSeen,
    Placed,
    Promised,
    Released,
    Submitted,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.plan import Action, Plan
from muster.model.policy import Policy
from muster.schedule import schedule
from muster.store.fold import Fold

# Facts that can change a decision; others are recorded and no more.
CHANGES = (
    Submitted,
    Held,
    Released,
    Withdrawn,
    Exited,
    Vacated,
    NodeSeen,
    NodeHealth,
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
        self.plan = plan = schedule(snap, self.policy, now=now)
        promised = {w.job.id for w in snap.promised}
        self.fold.release()
        self.cycles += 1
        for withdraw in plan.withdraws:
            self._fact(Withdrawn(now, withdraw.job, withdraw.outcome))
        for evict in plan.evicts:
            because, favour = evict.because, evict.in_favour_of
            self._decision(Evicting(now, evict.job, evict.attempt, because, favour), evict)
        for start in plan.starts:
            self._decision(
                Placed(
                    now,
                    start.job,
                    start.attempt,
                    start.seats,
                    start.expected_seconds,
                    start.at_most_seconds,
                ),
                start,
            )
        for promise in plan.promises:
            if promise.firm and promise.job not in promised:
                self._fact(Promised(now, promise.job))

    def _decision(self, fact: Event, action: Action) -> None:
        self._fact(fact)
        self.engine.act(action)

    def _fact(self, fact: Event) -> None:
        self.fold.apply(fact)
        if self._record is not None:
            self._record(fact)
