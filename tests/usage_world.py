"""Attempts and samples for tests of what is held and used, on a day that begins at ``DAY0``."""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from muster.model.charter import Verdict
from muster.model.events import Event, Exited, Outcome, Placed, Retried, Seat, Vacated
from muster.model.job import Job, Shape, single
from muster.model.ledger import (
    KEYS,
    MINUTE_SECONDS,
    Booked,
    By,
    Entry,
    Spent,
    part_of,
    summed,
    usage_by_gpu,
    usage_of,
)
from muster.model.tenancy import ROOT, Team
from muster.model.units import GIB, MILLI
from muster.model.usage import Sample, Usage
from muster.monitor.ledger import Ledger
from muster.store.rows import Batch, EndedJob

DAY0 = 1_699_920_000.0  # midnight, so a whole hour

FIGURES = {
    "cpus": 1.5,
    "throttled": 0.0,
    "memory_bytes": GIB,
    "memory_peak_bytes": 2 * GIB,
    "processes": 3,
    "read_bytes": 4096,
    "written_bytes": 0,
    "cpu_pressure": 0.25,
    "memory_pressure": 0.0,
    "io_pressure": 0.5,
}


def sample(job: str, at: float, seconds: float = 5.0, *, attempt: int = 1, **figures: object) -> Sample:
    """One that knows everything, but what is said otherwise."""
    values = {**FIGURES, **figures}
    return Sample(job=job, attempt=attempt, at=at, seconds=seconds, **values)  # type: ignore[arg-type]


def job(job_id: str, *, owner: str = "ana", team: str = "nlp", name: str = "train-1") -> Job:
    return Job(job_id, single(cpus_milli=2000), DAY0, name=name, owner=owner, team=team)


def placed(
    job_id: str,
    at: float,
    attempt: int = 1,
    *,
    cpus_milli: int = 2000,
    memory_bytes: int = 4 * GIB,
    devices: tuple[int, ...] = (),
    device_milli: int = MILLI,
    node: str = "a",
) -> Placed:
    shape = Shape(cpus_milli, memory_bytes, gpus=len(devices))
    return Placed(at, job_id, attempt, (Seat(node, shape, devices, device_milli if devices else 0),))


class Book:
    """All rows that a ledger has handed over, as a store would have them."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], Entry] = {}
        self.minutes: dict[tuple[str, int, float], Booked] = {}
        self.seq = 0
        self.ended: dict[str, EndedJob] = {}  # jobs, by their ids

    def write(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            assert batch.usage is not None
            assert batch.can_wait
            self.entries |= {entry.key: entry for entry in batch.usage.entries}
            for minute in batch.usage.minutes:
                key = (*minute.key, minute.rollup.start)
                assert key not in self.minutes
                self.minutes[key] = minute
            self.seq = batch.usage.seq or self.seq

    def spent(self, entry: Entry, since: float, until: float) -> Spent:
        parts = (
            part_of(minute.spent, minute.rollup.start, MINUTE_SECONDS, entry, since, until)
            for (*key, _), minute in self.minutes.items()
            if tuple(key) == entry.key
        )
        return sum(parts, Spent())

    def usage(self, by: By, since: float, until: float) -> dict[str | None, Usage]:
        leaves = [(entry, self.spent(entry, since, until)) for entry in self.entries.values()]
        if by is By.GPU:
            return summed(each for e, s in leaves for each in usage_by_gpu(e, s, since, until))
        group = self._ended_as if by is By.VERDICT else KEYS[by]
        return summed((group(e), usage_of(e, s, since, until)) for e, s in leaves)

    def _ended_as(self, entry: Entry) -> str | None:
        job = self.ended.get(entry.job)
        return "running" if job is None else job.verdict or job.outcome.lower().replace("_", "-")


def total(sums: dict[str | None, Usage]) -> Usage:
    return sum(sums.values(), Usage())


# --- Worlds -------------------------------------------------------------------------------------------


def tree_of(luck: Random) -> list[Team]:
    """Any tree of teams: the parent of each is one before it, or the root."""
    names = [f"t{number}" for number in range(luck.randint(1, 7))]
    return [Team(name, luck.choice([ROOT, *names[:i]])) for i, name in enumerate(names)]


class World:
    """Jobs that start, are measured now and then, and end, in a tree of teams. All from one seed."""

    def __init__(self, seed: int) -> None:
        luck = Random(seed)
        self.teams = tree_of(luck)
        self.jobs: dict[str, Job] = {}
        self.stories = [self._story(str(number), luck) for number in range(luck.randint(1, 6))]
        self.ended = dict(self._endings(Random(f"endings {seed}")))

    def _story(self, job_id: str, luck: Random) -> list[object]:
        owner = luck.choice(["ana", "bob", "", "cyd"])
        team = luck.choice([*(team.name for team in self.teams), "new"])
        effort = luck.choice([None, "llama", "whisper"])
        self.jobs[job_id] = replace(job(job_id, owner=owner, team=team), effort=effort)
        at, story = DAY0 + luck.uniform(0, 4000), list[object]()
        for attempt in range(1, luck.randint(2, 4)):
            story += self._attempt(job_id, attempt, at, luck)
            at += luck.uniform(0, 600) + (story[-1].at - at)  # type: ignore[attr-defined]
        return story

    def _endings(self, luck: Random) -> Iterator[tuple[str, EndedJob]]:
        """Some go on; of the others some have a verdict, whatever became of each attempt."""
        for job_id, one in self.jobs.items():
            outcome = luck.choice([None, *Outcome])
            verdict = luck.choice([None, *Verdict])
            if outcome is not None:
                whose = (job_id, None, one.owner, one.team, one.name)
                yield job_id, EndedJob(*whose, outcome, DAY0, DAY0, DAY0 + 1, b"{}", verdict)

    def _attempt(self, job_id: str, attempt: int, at: float, luck: Random) -> list[object]:
        devices = tuple(sorted(luck.sample(range(4), luck.randint(0, 3))))
        milli = luck.choice([MILLI, 333, 250]) if len(devices) == 1 else MILLI
        cpus, memory = luck.choice([0, 500, 2000, 1001]), luck.choice([0, 4 * GIB, 12_345_678_901])
        story: list[object] = [
            placed(
                job_id,
                at,
                attempt,
                cpus_milli=cpus,
                memory_bytes=memory,
                devices=devices,
                device_milli=milli,
                node=luck.choice("ab"),
            )
        ]
        for _ in range(luck.randint(0, 30)):
            seconds = luck.choice([5.0, 5.003, 4.98, 40.0])
            at += seconds
            figures = {
                "cpus": luck.uniform(0, 4),
                "memory_bytes": luck.randint(0, 8 * GIB),
                "gpu_busy": tuple(luck.random() for _ in devices),
                "gpu_memory_bytes": tuple(luck.randint(0, GIB) for _ in devices),
            }
            story.append(sample(job_id, at, seconds, attempt=attempt, **figures))
        at += luck.uniform(0, 90)
        ends = [
            Exited(at, job_id, attempt, Outcome.SUCCEEDED),
            Vacated(at, job_id, attempt, "preempted"),
            Retried(at, job_id, attempt, Outcome.FAILED),
        ]
        return [*story, luck.choice(ends)]

    def played(self, order: Random) -> Book:
        """The stories interleaved: each in its own order, and among each other in any."""
        ledger, book = Ledger(), Book()
        book.ended = self.ended
        left = [list(story) for story in self.stories]
        now, seq = DAY0, 0
        while left:
            story = order.choice(left)
            step = story.pop(0)
            if not story:
                left.remove(story)
            seq += isinstance(step, Event)
            self._take(ledger, step)
            if order.random() < 0.1:
                book.write(ledger.parcels(now, seq))
        book.write(ledger.parcels(DAY0 + 1e6, seq))
        assert ledger.living == []
        return book

    def _take(self, ledger: Ledger, step: object) -> None:
        if isinstance(step, Placed):
            ledger.apply(step, self.jobs[step.job])
        elif isinstance(step, Event):
            ledger.apply(step)
        else:
            assert isinstance(step, Sample)
            ledger.add(step)
