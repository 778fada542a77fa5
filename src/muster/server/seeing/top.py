"""One frame for whoever watches from a terminal: the place in glyphs, and the jobs that hold most.

It is asked every second by many, so it is small whatever the size of the place: no more jobs than are shown,
chosen and put in order here. Of those that wait, only the first are looked through.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated

import msgspec

from muster.layout.ranges import fold
from muster.model.events import Seat
from muster.model.job import Job
from muster.model.ledger import HOUR_SECONDS, Entry, Key, spent_in
from muster.model.snapshot import Running
from muster.model.stewardship import of_effort, of_job
from muster.model.usage import Rollup
from muster.server.answers import JobView
from muster.server.answers_top import Grain, Order, Sparks, TopJob, TopView, Which
from muster.server.metering import Metering
from muster.server.people import Person
from muster.server.seeing.seeing import Seeing
from muster.server.seeing.strip import Strips
from muster.server.service import Service

_MOST_LOOKED_AT = 5000  # of those that wait
_MOST_SPARKS = 100
_HOURS = 24

Most = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Ids = Annotated[str, msgspec.Meta(max_length=4000)]


Wanted = Callable[[Job, tuple[Seat, ...]], bool]


class TopQuery(msgspec.Struct, forbid_unknown_fields=True):
    by: Grain = Grain.GPU
    which: Which = Which.ALL
    order: Order = Order.HELD
    mine: bool = False
    owner: Text | None = None
    team: Text | None = None
    match: Text | None = None  # words that are all in its id, name, people, team, effort, purpose or nodes
    limit: Most = 50  # 0: none


class SparksQuery(msgspec.Struct, forbid_unknown_fields=True):
    jobs: Ids = ""  # with commas between; at most 100 are answered


class Top:
    """Answers with frames, and with what jobs used in the last day."""

    def __init__(self, service: Service, seeing: Seeing) -> None:
        self._service, self._seeing = service, seeing
        self._strips: Strips | None = None

    def view(self, person: Person, asked: TopQuery) -> TopView:
        here, scene = self._seeing.now()
        if self._strips is None or self._strips.map is not here:
            self._strips = Strips(here)
        handed_over = self._service.handed_over()
        jobs, more = self._jobs(person, asked, handed_over)
        facts = self._service.fold
        return TopView(
            site=here.layout.site,
            at=scene.at,
            simulated=self._service.engine.name == "sim",
            generation=scene.generation,
            counts=scene.counts,
            share=scene.tally.share,
            undefended=scene.tally.undefended,
            by=asked.by,
            strips=self._strips.of(scene, asked.by),
            cpus=self._strips.cpus(scene),
            running=len(facts.running) - len(handed_over),
            waiting=facts.waiting_count + len(handed_over),
            jobs=jobs,
            more=more,
        )

    # --- Jobs ---------------------------------------------------------------------------------------

    def _jobs(self, person: Person, asked: TopQuery, handed_over: list[Running]) -> tuple[list[TopJob], int]:
        """Those that hold something, those that wait in a host's own queue, and those that wait here."""
        is_wanted, away = self._wanted(person, asked), {one.job.id for one in handed_over}
        wanted = [one for one in self._service.fold.running.values() if is_wanted(one.job, one.seats)]
        listed: list[Running] = []
        if asked.which is not Which.WAITING:
            holding = (one for one in wanted if one.job.id not in away)
            listed += sorted(holding, key=self._place(asked.order))
        if asked.which is not Which.HOLDING:
            listed += [one for one in wanted if one.job.id in away]
        views = [self._service.views.seated(one) for one in listed[: asked.limit]]
        more = len(listed) - len(views)
        if asked.which is not Which.HOLDING:
            waiting, further = self._service.views.queue(
                lambda job: is_wanted(job, ()), _MOST_LOOKED_AT, asked.limit - len(views)
            )
            views, more = views + waiting, more + further
        return [self._line(view) for view in views], more

    def _wanted(self, person: Person, asked: TopQuery) -> Wanted:
        owner = person.name if asked.mine else asked.owner
        names = None if owner is None else set(self._service.directory.all_names(owner))
        words = (asked.match or "").casefold().split()

        def is_wanted(job: Job, seats: tuple[Seat, ...]) -> bool:
            if names is not None and names.isdisjoint((job.owner, job.charter.owner)):
                return False
            if asked.team not in (None, job.team):
                return False
            if not words:
                return True
            charter = job.charter
            nodes = (seat.node for seat in seats)
            said = (job.id, job.name, job.owner, charter.owner, job.team, job.effort, charter.purpose, *nodes)
            text = "\n".join(filter(None, said)).casefold()
            return all(word in text for word in words)

        return is_wanted

    def _place(self, order: Order) -> Callable[[Running], tuple[object, ...]]:
        """By what to sort; in the end always by id, so that nobody jumps."""
        ahead = self._service.fold.wall_ahead_seconds

        def held(one: Running) -> tuple[object, ...]:
            return (-one.held.gpus_milli, -one.held.cpus_milli, one.placed_at, len(one.job.id), one.job.id)

        def idle(one: Running) -> tuple[object, ...]:
            used = self._service.views.used(one)
            unused = 0.0 if used is None or used.share is None else 1 - min(1.0, used.share)
            return (-unused * one.held.gpus_milli, -unused * one.held.cpus_milli, *held(one))

        orders: dict[Order, Callable[[Running], tuple[object, ...]]] = {
            Order.HELD: held,
            Order.IDLE: idle,
            Order.OWNER: lambda one: (one.job.charter.owner or one.job.owner, *held(one)),
            Order.ENDS: lambda one: (_ends(one, ahead), *held(one)),
            Order.NEW: lambda one: (-one.placed_at, one.job.id),
        }
        return orders[order]

    def _line(self, view: JobView) -> TopJob:
        used, limit, started = view.used, view.time_limit_seconds, view.started_at
        by_limit = None if started is None or limit is None else started + limit
        ends = [at for at in (view.until, by_limit) if at is not None]
        return TopJob(
            id=view.id,
            name=view.name,
            owner=view.answers,
            team=view.team,
            purpose=view.purpose,
            state=view.state,
            gpus=view.gpus,
            cpus=view.cpus,
            nodes=fold(view.nodes),
            share=None if used is None or used.share is None else round(used.share, 3),
            budget=None if view.budget is None else round(view.budget.share, 3),
            started_at=started,
            ends_at=min(ends, default=None),
            reason=view.reason,
            undefended=view.review,
            defended_at=self._defended_at(view),
            effort=view.effort,
        )

    def _defended_at(self, view: JobView) -> float | None:
        """When a person last spoke for it: for the job or its array, or for the effort that it is part of."""
        unit = view.id.partition("_")[0] if view.array is not None else view.id
        defences = self._service.fold.stewardship.defences
        said = [*defences.get(of_job(unit), ())]
        said += defences.get(of_effort(view.effort), ()) if view.effort is not None else ()
        latest = max((one.at for one in said), default=None)
        return None if latest is None else latest + self._service.fold.wall_ahead_seconds

    # --- What they used -----------------------------------------------------------------------------

    async def sparks(self, asked: SparksQuery) -> Sparks:
        """Hours from the store; of those that are not made yet, the minutes at hand."""
        jobs = list(dict.fromkeys(filter(None, asked.jobs.split(","))))[:_MOST_SPARKS]
        journal, now = self._service.journal, self._service.now()
        first = _first_hour(now)

        def stored() -> tuple[dict[Key, Entry], dict[str, list[Rollup]]]:
            hours = {job: journal.rollups_of(job, hourly=True, since=first) for job in jobs}
            return journal.entries_of(set(jobs)), hours

        entries, hours = await asyncio.to_thread(stored)
        entries |= {entry.key: entry for entry in self._living(set(jobs))}
        for job, attempt in entries:
            made = max((hour.start + HOUR_SECONDS for hour in hours[job]), default=first)
            hours[job] += self._at_hand(job, attempt, made, now)
        sparks = {job: by_hour(hours[job], entries, now) for job in {job for job, _ in entries}}
        return Sparks(first + self._service.fold.wall_ahead_seconds, HOUR_SECONDS, sparks)

    def _living(self, jobs: set[str]) -> list[Entry]:
        return [entry for entry in self._metering.ledger.living if entry.job in jobs]

    def _at_hand(self, job: str, attempt: int, since: float, now: float) -> tuple[Rollup, ...]:
        series = self._metering.ledger.series
        return (*series.minutes(job, attempt, since), *series.not_booked(job, attempt, now))

    @property
    def _metering(self) -> Metering:
        metering = self._service.metering
        assert metering is not None, "a server meters"
        return metering


def by_hour(rollups: list[Rollup], entries: dict[Key, Entry], now: float) -> list[float | None]:
    """The share that was used of what was held while it was measured: of GPUs, or of cpus without any."""
    first = _first_hour(now)
    used, measured = [0.0] * _HOURS, [0.0] * _HOURS
    for hour in rollups:
        place = int((hour.start - first) // HOUR_SECONDS)
        if not 0 <= place < _HOURS:
            continue
        entry = entries[hour.job, hour.attempt]
        spent = spent_in(hour, entry)
        gpus = bool(entry.holds.gpus_milli)
        used[place] += spent.used.gpus_milli if gpus else spent.used.cpus_milli
        measured[place] += spent.measured.gpus_milli if gpus else spent.measured.cpus_milli
    pairs = zip(used, measured, strict=True)
    return [round(min(1.0, u / m), 2) if m else None for u, m in pairs]


def _first_hour(now: float) -> float:
    return (now // HOUR_SECONDS - _HOURS + 1) * HOUR_SECONDS


def _ends(running: Running, ahead_seconds: float) -> float:
    job, begun = running.job, running.started_at
    limit = job.time_limit_seconds
    by_limit = float("inf") if begun is None or limit is None else begun + limit + ahead_seconds
    return by_limit if job.charter.until is None else min(by_limit, job.charter.until)
