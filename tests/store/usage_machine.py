"""A server in little, for tests of usage: a journal, a ledger, and a clock that is moved by hand."""

from collections.abc import Iterable

from stores import put

from muster.model.events import Event, Placed, Submitted
from muster.model.ledger import By
from muster.model.usage import Usage
from muster.monitor.ledger import Ledger
from muster.store.journal import Batch, Journal
from usage_world import DAY0, job, sample


def written(journal: Journal, batches: Iterable[Batch]) -> None:
    for batch in batches:
        put(journal, batch)


class Machine:
    """A server in little: a journal, a ledger, and a clock that is moved by hand."""

    def __init__(self, journal: Journal, now: float = DAY0, *, again: bool = False) -> None:
        self.journal, self.ledger, self.now = journal, Ledger(), now
        if again:
            written(journal, self.ledger.catch_up(journal, now))

    def tell(self, *events: Event) -> None:
        put(self.journal, Batch(events=events))
        for event in events:
            if isinstance(event, Submitted):
                continue
            self.ledger.apply(event, job(event.job) if isinstance(event, Placed) else None)  # type: ignore[attr-defined]

    def run(self, seconds: float, *jobs: str, step: float = 20.0, **figures: object) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += step
            for job_id in jobs:
                self.ledger.add(sample(job_id, self.now, step, **figures))

    def write(self) -> None:
        written(self.journal, self.ledger.parcels(self.now, self.journal.last_seq))

    def usage(self, by: By, since: float, until: float, **among: str) -> dict[str | None, Usage]:
        return self.journal.usage_between(
            since,
            until,
            by,
            now=self.now,
            living=self.ledger.living,
            under_way=self.ledger.under_way(self.now),
            among={By(what): who for what, who in among.items()},
        )

    def cluster(self, since: float, until: float) -> Usage:
        return sum(self.usage(By.JOB, since, until).values(), Usage())
