"""The counters of ``/metrics`` never fall: whoever is killed whenever, and however late an end is told."""

from pathlib import Path
from random import Random

import pytest
from stores import Opener
from usage_machine import Machine

from muster.model.events import Event, Exited, Outcome, Submitted, Vacated
from muster.server.figures import TeamNames
from muster.server.metrics import HELD_SECONDS
from muster.server.prometheus import Labels, Metric
from muster.server.scrape import SETTLED_SECONDS, Rising, of_ledger
from usage_world import DAY0, job, placed

T = DAY0
LATE_SECONDS = 2.0  # that it may take until an end is told


class Watched:
    """A machine that is scraped, killed and started again, and what was told of it so far."""

    def __init__(self, url: str, opened: Opener, seed: int) -> None:
        self.luck, self._url, self._opened = Random(seed), url, opened
        self.machine = Machine(opened(url))
        self.rising, self.names = Rising(), TeamNames(dict)
        self.told: dict[tuple[Metric, Labels], float] = {}
        self.running: list[str] = []
        self.jobs = self.scrapes = 0

    def step(self) -> None:
        self.luck.choice(
            [self.start, self.end, self.measure, self.measure, self.write, self.scrape, self.die]
        )()

    def start(self) -> None:
        self.jobs += 1
        job_id, now = str(self.jobs), self.machine.now
        self.machine.tell(Submitted(now, job(job_id)), placed(job_id, now, devices=(0,)))
        self.running.append(job_id)

    def end(self) -> None:
        """It ended a moment ago, but not before it began."""
        if not self.running:
            return
        job_id = self.running.pop(self.luck.randrange(len(self.running)))
        entry = self.machine.ledger.entry(job_id, 1)
        assert entry is not None
        at = max(self.machine.now - self.luck.uniform(0, LATE_SECONDS), entry.placed_at)
        ends: list[Event] = [Exited(at, job_id, 1, Outcome.FAILED), Vacated(at, job_id, 1, "preempted")]
        self.machine.tell(self.luck.choice(ends))

    def measure(self) -> None:
        busy = {"gpu_busy": (self.luck.random(),), "gpu_memory_bytes": (1,)}
        self.machine.run(self.luck.choice([5.0, 20.0, 100.0]), *self.running, step=5.0, **busy)

    def write(self) -> None:
        self.machine.write()

    def die(self, most: int = 2) -> None:
        """What ends meanwhile is told by the engine, before anything else."""
        self.machine.journal.close()
        now = self.machine.now + self.luck.choice([0.0, 1.0, 500.0])
        self.machine = Machine(self._opened(self._url), now, again=True)
        self.rising = Rising()
        for _ in range(self.luck.randint(0, most)):
            self.end()
        self.write()

    def scrape(self) -> None:
        self.scrapes += 1
        machine = self.machine
        totals, until = machine.journal.usage_totals(), machine.now - SETTLED_SECONDS
        figures = of_ledger(totals, machine.ledger.living, self.names, until)
        for metric, labels, value in self.rising(figures):
            assert value is not None
            assert value >= self.told.get((metric, labels), 0.0), f"{metric.name} has fallen"
            self.told[metric, labels] = value


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_no_counter_falls(tmp_path: Path, opened: Opener, seed: int) -> None:
    watched = Watched(f"sqlite:///{tmp_path}/muster.db", opened, seed)
    for _ in range(80):
        watched.step()
    assert watched.scrapes > 3
    assert max(watched.told.values()) > 0


def test_one_that_ends_between_a_start_and_the_first_scrape_is_counted_on(
    tmp_path: Path, opened: Opener
) -> None:
    watched = Watched(f"sqlite:///{tmp_path}/muster.db", opened, seed=0)
    watched.start()
    watched.measure()
    watched.write()
    watched.machine.now += 1000.0
    watched.scrape()
    watched.die(most=0)
    watched.end()
    watched.scrape()
    (held,) = (value for (metric, _), value in watched.told.items() if metric is HELD_SECONDS)
    assert held >= 1000.0 - LATE_SECONDS
