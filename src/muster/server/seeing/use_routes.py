"""What can be asked about use to draw it: as a tree, and over time.

What lives and is under way comes from the ledger, the rest from the store, in a thread; nothing gets from the
one to the other meanwhile (``Metering.still``).
"""

import asyncio
import enum
from collections.abc import Callable
from operator import add
from typing import Annotated

import msgspec

from muster.model.job import JobId
from muster.model.stewardship import Defended, Subject, of_effort, of_job
from muster.model.units import MILLI, WEEK, parse_seconds
from muster.server.answers import UseMetrics
from muster.server.http import Call, Route
from muster.server.metering import Metering
from muster.server.seeing import use_over_time, use_tree
from muster.server.seeing.use_answers import DefendedBy, UseNode, UseSeries, UseTree
from muster.server.seeing.use_history import History, HoursKept, Living
from muster.server.seeing.use_over_time import lines_of
from muster.server.seeing.use_tree import Leaf, Shape, grown
from muster.server.service import Service
from muster.server.use import interval
from muster.store.journal import Journal
from muster.store.reviews import unit_of
from muster.store.seeing_reads import AMOUNTS, AttemptUse

_TITLES = {"team": "those in no team", "purpose": "work without a purpose", "effort": "work in no effort"}

PurposeOf = Callable[[JobId], str | None]
Leaves = Annotated[int, msgspec.Meta(ge=1, le=2000)]
Moment = Annotated[str, msgspec.Meta(max_length=40)]


class TreeBy(enum.StrEnum):
    TEAM = "team"
    OWNER = "owner"
    PURPOSE = "purpose"


class SeriesBy(enum.StrEnum):
    TEAM = "team"
    OWNER = "owner"


class Unit(enum.StrEnum):
    GPU = "gpu"
    CPU = "cpu"


class TreeQuery(msgspec.Struct, forbid_unknown_fields=True):
    by: TreeBy = TreeBy.TEAM
    since: Moment | None = None  # seconds since the epoch, or how long ago; not said: a week before the end
    until: Moment | None = None
    limit: Leaves = 200  # jobs that are told one by one


class SeriesQuery(msgspec.Struct, forbid_unknown_fields=True):
    by: SeriesBy = SeriesBy.TEAM
    since: Moment | None = None
    until: Moment | None = None
    step: Moment | None = None  # such as 1h; not said: as fine as can be drawn
    unit: Unit | None = None  # not said: gpu if there are any


class UseRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._hours = HoursKept()

    @property
    def _metering(self) -> Metering:
        metering = self._service.metering
        assert metering is not None, "a server meters"
        return metering

    def _living(self, since: str | None, until: str | None) -> Living:
        """With times as ours: people speak of those of the wall."""
        service, ledger = self._service, self._metering.ledger
        now, ahead = service.now(), service.fold.wall_ahead_seconds
        begin, end = interval(since, until, now + ahead)
        if since is None:
            begin = end - WEEK
        return Living(now, begin - ahead, end - ahead, ledger.living, ledger.under_way(now))

    # --- The tree -----------------------------------------------------------------------------------

    async def tree(self, call: Call) -> UseTree:
        asked: TreeQuery = call.query
        fold, ahead = self._service.fold, self._service.fold.wall_ahead_seconds
        async with self._metering.still():
            living = self._living(asked.since, asked.until)
            said = self._said(fold.stewardship.defences, ahead)
            shape = Shape(asked.by, fold.tenancy, living.until - living.since, asked.limit, self._review_at())

            def answer() -> UseNode:
                purpose_of = self._purpose if asked.by is TreeBy.PURPOSE else None
                return grown(_leaves(self._service.journal, living, said, purpose_of), shape)

            total = await asyncio.to_thread(answer)
        capacity, seconds = fold.hardware.total, shape.seconds
        return UseTree(
            sentence=use_tree.sentence_of(total, seconds, _TITLES),
            by=asked.by,
            since=living.since + ahead,
            until=living.until + ahead,
            drawn_by="gpu" if total.gpu_held_seconds or capacity.gpus_milli else "cpu",
            metrics=UseMetrics(self._metering.gpu_metric),
            capacity_gpu_seconds=capacity.gpus_milli / MILLI * seconds,
            capacity_cpu_seconds=capacity.cpus_milli / MILLI * seconds,
            total=total,
        )

    def _said(self, defences: "dict[Subject, list[Defended]]", ahead: float) -> "_Said":
        mark_of, running = self._service.views.review, self._service.fold.running.values()
        marked = {unit_of(one.job) for one in running if mark_of(one.job) is not None}
        last = {subject: _defended_by(some[-1], ahead) for subject, some in defences.items() if some}
        return _Said(last, marked)

    def _purpose(self, job_id: JobId) -> str | None:
        """Of a job that lives. A thread may ask: what it finds is a value."""
        record = self._service.fold.records.get(job_id)
        entry = None if record is None else record.running or record.waiting
        return None if entry is None else entry.job.charter.purpose

    def _review_at(self) -> float | None:
        reviewing = self._service.reviewing
        return None if reviewing is None else reviewing.closes_next()

    # --- Over time ----------------------------------------------------------------------------------

    async def series(self, call: Call) -> UseSeries:
        asked: SeriesQuery = call.query
        total, ahead = self._service.fold.hardware.total, self._service.fold.wall_ahead_seconds
        unit = asked.unit or (Unit.GPU if total.gpus_milli else Unit.CPU)
        step = None if asked.step is None else parse_seconds(asked.step)
        keeps = self._metering.minutes_kept_seconds
        async with self._metering.still():
            living = self._living(asked.since, asked.until)
            history = History(self._service.journal, living, keeps, self._hours, of_gpus=unit is Unit.GPU)

            def answer() -> UseSeries:
                grid = history.grid(step)
                owner = asked.by is SeriesBy.OWNER
                lines = lines_of(
                    grid,
                    history.spans,
                    history.pieces(grid),
                    (lambda span: span.owner) if owner else (lambda span: span.team),
                    of_gpus=unit is Unit.GPU,
                )
                capacity = (total.gpus_milli if unit is Unit.GPU else total.cpus_milli) / MILLI
                return UseSeries(
                    use_over_time.sentence_of(lines[0], capacity, unit, grid.until - grid.first),
                    asked.by,
                    unit,
                    self._metering.gpu_metric if unit is Unit.GPU else UseMetrics(None).cpu,
                    grid.first + ahead,
                    grid.until + ahead,
                    grid.step,
                    [at + ahead for at in grid.starts()],
                    capacity,
                    *lines,
                )

            return await asyncio.to_thread(answer)

    def table(self) -> list[Route]:
        tree, over_time = "Held against used, from the whole down to jobs.", "Held and used over time."
        use, errors = "/api/v1/use", (507,)
        return [
            Route("GET", f"{use}/tree", self.tree, UseTree, tree, query=TreeQuery, errors=errors),
            Route(
                "GET", f"{use}/series", self.series, UseSeries, over_time, query=SeriesQuery, errors=errors
            ),
        ]


# --- Leaves ----------------------------------------------------------------------------------------------


class _Said(msgspec.Struct, frozen=True):
    """What people have said of what there is."""

    defended: dict[Subject, DefendedBy]  # the last of each subject
    marked: set[JobId]  # jobs and arrays that run, and that nobody defends


def _defended_by(said: Defended, ahead: float) -> DefendedBy:
    return DefendedBy(said.by, said.at + ahead, said.because, said.until)


def _leaves(journal: Journal, living: Living, said: _Said, purpose_of: PurposeOf | None) -> list[Leaf]:
    """Jobs, and arrays as one; with purposes if they are asked for."""
    units: dict[JobId, _Unit] = {}
    for use in journal.used_by_attempt(
        living.since, living.until, now=living.now, living=living.entries, under_way=living.under_way
    ):
        unit = use.job.partition("_")[0]
        if unit not in units:
            units[unit] = _Unit(use, [0.0] * len(AMOUNTS), set())
        units[unit].take(use)
    purposes = {} if purpose_of is None else _purposes(journal, units, purpose_of)
    return [_leaf(name, unit, purposes.get(name), said) for name, unit in units.items()]


class _Unit(msgspec.Struct):
    """A job, or an array, as it is put together."""

    one: AttemptUse
    amounts: list[float]
    jobs: set[JobId]

    def take(self, use: AttemptUse) -> None:
        self.one = use
        self.amounts = list(map(add, self.amounts, use.amounts))
        self.jobs.add(use.job)


def _purposes(journal: Journal, units: dict[JobId, _Unit], purpose_of: PurposeOf) -> dict[JobId, str | None]:
    """Of those that live from their charter, of the others from their last view."""
    living = {name: purpose_of(unit.one.job) for name, unit in units.items()}
    asked = {unit.one.job: name for name, unit in units.items() if living[name] is None}
    return living | {asked[job]: purpose for job, purpose in journal.purposes_of(asked).items()}


def _leaf(name: JobId, unit: _Unit, purpose: str | None, said: _Said) -> Leaf:
    one = unit.one
    subjects = [of_job(name), *([of_effort(one.effort)] if one.effort else ())]
    defences = [said.defended[subject] for subject in subjects if subject in said.defended]
    return Leaf(
        job=name,
        name=one.name,
        owner=one.owner,
        team=one.team,
        effort=one.effort,
        amounts=unit.amounts,
        purpose=purpose,
        members=len(unit.jobs),
        is_array=one.job != name,
        defended=max(defences, key=lambda each: each.at, default=None),
        is_undefended=name in said.marked,
    )
