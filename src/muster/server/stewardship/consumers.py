"""What consumed since the last review, from the ledger, the journal and what lives: the review's evidence.

What the state has is copied on its own thread, where a few lists are all it takes; sums and history are asked
for in another, as they may take a second. Nothing gets from the ledger to the store meanwhile
(``Metering.still``), so that the items of a review add up to what ``muster use`` says.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from muster.model.charter import Charter, Verdict
from muster.model.job import Job, JobId
from muster.model.ledger import Booked, By, Entry, held_between, span_of
from muster.model.review import of_work
from muster.model.snapshot import Running, Waiting
from muster.model.stewardship import Subject
from muster.model.units import DAY, MILLI
from muster.model.usage import NodeReading, Usage
from muster.server.metering import Metering
from muster.server.watching import Watching
from muster.steward.review.items import Consumer, Foreign, World
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.reviews import unit_of
from muster.store.rows import EndedJob

DAYS_SHOWN = 7
_MOST_PAST = 200_000  # jobs and attempts that are looked at: the latest


class Gathers(Protocol):
    """What is needed of the service."""

    fold: Fold
    journal: Journal
    metering: Metering | None
    watching: Watching | None

    def now(self) -> float: ...

    def wall(self) -> float: ...

    def reaches(self, job: Job) -> bool: ...


class _Past(msgspec.Struct):
    """What is asked of the view of a job that has ended."""

    purpose: str | None = None
    verdict: Verdict | None = None


class _Unit:
    """A job or an array, as it is put together."""

    __slots__ = ("days", "entry", "idle", "job", "past", "running", "usage", "waiting")

    def __init__(self) -> None:
        self.job: Job | None = None  # one that lives
        self.past: tuple[EndedJob, _Past] | None = None  # the last that has ended
        self.entry: Entry | None = None  # of an attempt
        self.running = self.waiting = 0
        self.usage = Usage()
        self.days = [[0.0, 0.0] for _ in range(DAYS_SHOWN)]
        self.idle: list[float | None] = []  # since when each that runs is


class Living(msgspec.Struct, frozen=True):
    """What the state has, copied."""

    running: list[Running]
    waiting: list[Waiting]
    idle: dict[JobId, float]
    entries: list[Entry]
    under_way: list[Booked]


class Gathering:
    """Puts the world of a review together."""

    def __init__(self, service: Gathers) -> None:
        self._service = service

    async def __call__(self, since: float, before: float) -> World:
        """From ``since`` until now; ``before`` is when the period before began."""
        service = self._service
        metering = service.metering
        assert metering is not None, "a server meters"
        async with metering.still():
            now = service.now()
            living = self._living(metering, now)
            collected = _Collected(service.journal, living, since, before, now, service.wall())
            collected.reaches = service.reaches
            consumers = await asyncio.to_thread(collected.collect)
        return World(
            now=now,
            wall=service.wall(),
            consumers=consumers,
            foreign=tuple(one for node, read in metering.readings().items() for one in _foreign(node, read)),
            before={work: frozenset(jobs) for work, jobs in collected.before.items()},
            won=frozenset(collected.won),
        )

    def _living(self, metering: Metering, now: float) -> Living:
        fold, watching = self._service.fold, self._service.watching
        waiting = [one for lane in fold.lanes.values() for one in lane]
        found = {} if watching is None else watching.findings
        idle = {job: f.since for job, some in found.items() for f in some if f.kind == "idle" and f.whole}
        return Living(
            [*fold.running.values(), *fold.lined_up],
            [*waiting, *fold.ineligible.values()],
            idle,
            metering.ledger.living,
            metering.ledger.under_way(now),
        )


class _Collected:
    """Units, from what lives and from history. It is a thread that collects them."""

    def __init__(
        self, journal: Journal, living: Living, since: float, before: float, now: float, wall: float
    ) -> None:
        self._journal, self._living = journal, living
        self._since, self._before, self._now = since, before, now
        self._wall_ahead_seconds = wall - now
        self._units: dict[JobId, _Unit] = {}
        self.reaches: Callable[[Job], bool] = lambda _: True
        self.before: dict[Subject, set[JobId]] = {}
        self.won: set[Subject] = set()

    def _unit(self, job: JobId) -> _Unit:
        name = job.partition("_")[0]
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = _Unit()
        return unit

    def collect(self) -> tuple[Consumer, ...]:
        """Those that live, and those that held something."""
        self._take_living()
        ended = self._journal.jobs_ended(_MOST_PAST, since=self._before + self._wall_ahead_seconds)
        for row in ended:
            self._take_ended(row)
        usages = self._journal.usage_between(
            self._since,
            self._now,
            By.JOB,
            now=self._now,
            living=self._living.entries,
            under_way=self._living.under_way,
        )
        for job, usage in usages.items():
            if job is not None:
                unit = self._unit(job)
                unit.usage = unit.usage + usage
        first = min(self._before, self._now - DAYS_SHOWN * DAY)
        attempts = self._journal.attempts_ended(_MOST_PAST, since=first)
        for entry in {one.key: one for one in (*attempts, *self._living.entries)}.values():
            self._take_entry(entry)
        found = ((name, u) for name, u in self._units.items() if u.job or (u.entry and u.usage.held_seconds))
        return tuple(self._spared(_consumer(name, unit), unit.job) for name, unit in found)

    def _spared(self, consumer: Consumer, job: Job | None) -> Consumer:
        """What others submitted is looked at, and stopped only where that is allowed."""
        if job is None or job.adopted is None:
            return consumer
        return msgspec.structs.replace(consumer, is_spared=not self.reaches(job))

    def _take_living(self) -> None:
        for running in self._living.running:
            unit = self._unit(running.job.id)
            unit.job = running.job
            if running.behind is None:
                unit.running += 1
                unit.idle.append(self._living.idle.get(running.job.id))
            else:
                unit.waiting += 1
        for waiting in self._living.waiting:
            unit = self._unit(waiting.job.id)
            unit.job = unit.job or waiting.job
            unit.waiting += 1

    def _take_ended(self, row: EndedJob) -> None:
        past = msgspec.json.decode(row.body, type=_Past)
        unit = self._unit(row.id)
        unit.past = unit.past or (row, past)
        if past.verdict is Verdict.WON:
            self.won.add(of_work(row.owner, row.name, past.purpose))

    def _take_entry(self, entry: Entry) -> None:
        unit = self._unit(entry.job)
        unit.entry = entry
        for day, sums in enumerate(unit.days):
            end = self._now - (DAYS_SHOWN - 1 - day) * DAY
            if entry.placed_at < end and (entry.ended_at is None or entry.ended_at > end - DAY):
                held = held_between(entry, *span_of(entry, end - DAY, end))
                sums[0] += held.gpus_milli / MILLI
                sums[1] += held.cpus_milli / MILLI
        reaches_back = entry.ended_at is None or entry.ended_at > self._before
        if reaches_back and entry.placed_at < self._since:
            work = of_work(entry.owner, entry.name, _purpose(unit))
            self.before.setdefault(work, set()).add(entry.job.partition("_")[0])


def _consumer(name: JobId, unit: _Unit) -> Consumer:
    common = Consumer(
        job=name,
        name="",
        owner="",
        running=unit.running,
        waiting=unit.waiting,
        usage=unit.usage,
        days=tuple((gpus, cpus) for gpus, cpus in unit.days),
        idle_since=_idle_since(unit),
    )
    return _of_living(common, unit.job) if unit.job is not None else _of_past(common, unit)


def _of_living(common: Consumer, job: Job) -> Consumer:
    return msgspec.structs.replace(
        common,
        job=unit_of(job),
        name=job.name,
        owner=job.charter.owner or job.owner,
        submitter=job.owner,
        team=job.team,
        effort=job.effort,
        charter=job.charter,
        is_limited=job.time_limit_seconds is not None,
        submitted_at=job.submitted_at,
    )


def _of_past(common: Consumer, unit: _Unit) -> Consumer:
    entry = unit.entry
    assert entry is not None
    return msgspec.structs.replace(
        common,
        name=entry.name,
        owner=entry.owner,
        team=entry.team,
        effort=entry.effort,
        charter=Charter(owner=entry.owner or None, purpose=_purpose(unit)),
        submitted_at=entry.placed_at if unit.past is None else unit.past[0].submitted_at,
    )


def _purpose(unit: _Unit) -> str | None:
    if unit.job is not None:
        return unit.job.charter.purpose
    return None if unit.past is None else unit.past[1].purpose


def _idle_since(unit: _Unit) -> float | None:
    known = [since for since in unit.idle if since is not None]
    return max(known) if known and len(known) == len(unit.idle) else None


def _foreign(node: str, reading: NodeReading) -> Iterator[Foreign]:
    by_user: dict[str | None, list[tuple[int, int, int | None]]] = {}
    for gpu in reading.gpus:
        for process in gpu.foreign or ():
            by_user.setdefault(process.user, []).append((gpu.index, process.pid, process.memory_bytes))
    for user, some in by_user.items():
        sizes = [size for *_, size in some]
        known = sum(size for size in sizes if size is not None) if None not in sizes else None
        devices = tuple(sorted({device for device, *_ in some}))
        yield Foreign(node, user, devices, len({pid for _, pid, _ in some}), known)
