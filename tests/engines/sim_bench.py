"""The simulator on the bench of the conformance suite, and what tests of it share."""

from collections.abc import Sequence

import msgspec

from muster.engines.base import Capabilities
from muster.engines.sim import SimEngine
from muster.model.events import Event, Exited, NodeHealth, Outcome, Submitted
from muster.model.job import Job, JobId
from muster.model.node import Device, Health, Node

NODES = tuple(Node(name, 8000, 1 << 30, devices=(Device(),)) for name in ("n1", "n2"))


class Simulator(SimEngine):
    """The simulated engine, told which jobs fail: by itself it knows run times only."""

    def __init__(self) -> None:
        self.run_seconds: dict[JobId, float] = {}
        self.exit_codes: dict[JobId, int] = {}
        self.stubborn: set[JobId] = set()  # who would not leave; in the simulator nobody is asked
        super().__init__(NODES, self.run_seconds)

    def observe(self, until: float | None = None) -> Sequence[Event]:
        return [self._with_exit_code(fact) for fact in super().observe(until)]

    def _with_exit_code(self, fact: Event) -> Event:
        if not isinstance(fact, Exited) or fact.outcome is not Outcome.SUCCEEDED:
            return fact
        code = self.exit_codes[fact.job]
        outcome = Outcome.FAILED if code else Outcome.SUCCEEDED
        return msgspec.structs.replace(fact, outcome=outcome, exit_code=code)


class Ticking(Simulator):
    """Claims no virtual time: some passes whenever the clock is read, as it does for real."""

    capabilities = Capabilities(virtual_time=False)
    tick_seconds = 1e-6

    def __init__(self) -> None:
        super().__init__()
        self._happened: list[Event] = []

    def now(self) -> float:
        self._happened += super().observe(super().now() + self.tick_seconds)
        return super().now()

    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts, self._happened = self._happened or super().observe(until), []
        return facts


class SimBench:
    """A bench of a simulated engine."""

    beat_seconds = 0.01

    def __init__(self, kind: type[Simulator] = Simulator) -> None:
        self.engine = kind()

    def submit(self, job: Job, *, runs_seconds: float, exit_code: int = 0, stubborn: bool = False) -> None:
        self.engine.run_seconds[job.id] = runs_seconds
        self.engine.exit_codes[job.id] = exit_code
        if stubborn:
            self.engine.stubborn.add(job.id)
        now = self.engine.now()
        self.engine.will(Submitted(now, job))
        self.engine.observe(now)

    def lose(self, node: str) -> None:
        self.engine.will(NodeHealth(self.engine.now(), node, Health.DOWN))

    def restore(self, node: str) -> None:
        self.engine.will(NodeHealth(self.engine.now(), node, Health.UP))

    def close(self) -> None:
        """Nothing is left of virtual jobs."""
