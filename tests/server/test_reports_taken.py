"""What becomes of reports within the server: a listener, what others keep with them, ends that wait."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import muster.server.reports as module
from muster.home import Home
from muster.model.events import (
    Event,
    Exited,
    NodeSeen,
    Outcome,
    Placed,
    Reported,
    Resumed,
    Retried,
    Seat,
    Started,
    Submitted,
    Suspended,
)
from muster.model.job import Job, Shape, single
from muster.model.node import Node
from muster.model.policy import Policy
from muster.model.report import Report
from muster.model.run import Run
from muster.monitor.meters.gather import Meters
from muster.monitor.reports.sources import Teller
from muster.server.config_tables import Monitor
from muster.server.metering import Metering
from muster.server.reports import Reports
from muster.server.views import Views
from muster.store.fold import Fold
from muster.store.journal import Batch, Journal
from muster.store.rows import ReportRow, StateKey

T = 1000.0
SHAPE = Shape(cpus_milli=1000)


class Clock:
    at = T

    def now(self) -> float:
        return self.at


class World:
    """A fold with one job that runs, its log, and everything that would be written."""

    def __init__(self, home: Home, journal: Journal) -> None:
        self.fold, self.journal, self.engine = Fold(Policy()), journal, Clock()
        self.views = Views(self.fold, home)
        self.metering = Metering(home, self, Monitor(), Meters(home.path))  # type: ignore[arg-type]
        self.reports = Reports(self, self.metering)  # type: ignore[arg-type]
        self.log = home.logs / "7.1.log"
        self.told: list[list[Report]] = []
        self.reports.on_reports = self.told.append
        self.note(NodeSeen(T, Node("a", cpus_milli=8000, memory_bytes=1 << 30)))

    def hand_over(self) -> None:
        """It is written at once."""

    def keep_reports(
        self, rows: Sequence[ReportRow], states: Mapping[StateKey, bytes], over: str | None = None
    ) -> None:
        over_too = [] if over is None else [over]
        self.journal.write(Batch(reports=rows, states=states, stateless=over_too), lambda _: None)

    def note(self, event: Event) -> None:
        self.fold.apply(event)
        job = self.fold.records[event.job].running if isinstance(event, Placed) else None
        self.metering.saw(event, job.job if job else None)
        self.reports.saw(event)

    def run_job(self) -> None:
        self.note(Submitted(T, Job("7", single(cpus_milli=1000), T, run=Run(("x",)))))
        self.start(1)

    def start(self, attempt: int) -> None:
        self.note(Placed(self.engine.at, "7", attempt, (Seat("a", SHAPE),)))
        self.note(Started(self.engine.at, "7", attempt))

    def tell(self, *values: float, attempt: int = 1) -> None:
        at = self.engine.at
        self.reports.take([Report("7", attempt, at, None, {"a": value}, "report") for value in values])

    async def rows(self) -> list[ReportRow]:
        done = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        self.journal.write(Batch(), lambda _: loop.call_soon_threadsafe(done.set_result, None))
        await done
        return self.journal.reports("7")


def in_a_world(tmp_path: Path, test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        home = Home(tmp_path)
        home.make()
        journal = Journal.open(f"sqlite:///{tmp_path}/muster.db")
        world = World(home, journal)
        world.reports.begin()
        try:
            await test(world)
        finally:
            world.reports.end()
            journal.close()

    asyncio.run(run())


def test_a_listener_hears_every_report_of_an_attempt_that_lives(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        world.tell(1.0, 2.0)
        world.log.write_text('{"a": 3}\n')
        end = Exited(T + 5, "7", 1, Outcome.SUCCEEDED)
        assert world.reports.has_all(end, lambda _: None)
        world.note(end)
        assert [[one.values["a"] for one in some] for some in world.told] == [[1, 2], [3]]
        assert [(row.number, row.report.source) for row in await world.rows()] == [
            (0, "report"),
            (1, "report"),
            (2, "output"),
        ]

    in_a_world(tmp_path, test)


def test_a_listener_that_fails_keeps_no_report_from_being_kept(tmp_path: Path) -> None:
    def fails(_: list[Report]) -> None:
        raise RuntimeError("no")

    async def test(world: World) -> None:
        world.run_job()
        world.reports.on_reports = fails
        world.tell(1.0)
        assert len(await world.rows()) == 1
        assert world.views.metrics["7"] == {"a": 1.0}

    in_a_world(tmp_path, test)


def test_what_others_keep_is_there_until_the_job_has_ended(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        world.tell(1.0)
        world.reports.keep(("7", 1), "exits", b"best: 1")
        world.note(Retried(T + 1, "7", 1, Outcome.FAILED))
        await world.rows()
        assert world.reports.kept("exits") == {("7", 1): b"best: 1"}
        world.start(2)
        world.note(Exited(T + 2, "7", 2, Outcome.SUCCEEDED))
        await world.rows()
        assert world.reports.kept("exits") == {}
        assert world.journal.report_states("reports") == {}

    in_a_world(tmp_path, test)


def test_time_that_it_stood_still_is_not_time_that_it_ran(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        world.note(Suspended(T + 10, "7", 1))
        world.note(Resumed(T + 110, "7", 1))
        world.engine.at = T + 120
        world.tell(1.0)
        assert [row.ran_seconds for row in await world.rows()] == [20.0]

    in_a_world(tmp_path, test)


def test_each_attempt_counts_from_nothing(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        world.tell(1.0)
        world.note(Retried(T + 1, "7", 1, Outcome.FAILED))
        world.start(2)
        world.tell(2.0, attempt=2)
        assert [(row.report.attempt, row.number) for row in await world.rows()] == [(1, 0), (2, 0)]
        assert world.views.metrics["7"] == {"a": 2.0}

    in_a_world(tmp_path, test)


class Slow:
    """A source on a network that takes its time, until the test lets it."""

    may_block, least_seconds, is_behind, position = True, 0.0, False, b""

    def __init__(self, teller: Teller) -> None:
        self._job = teller.job.id

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        time.sleep(0.2)
        return [Report(self._job, 1, now, None, {"slow": 1.0}, "slow")] if last else []


@pytest.mark.parametrize("patience", [30.0, 0.01])
def test_an_end_waits_for_the_last_words_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", patience)

    async def test(world: World) -> None:
        world.reports.makers["auto"] = Slow
        world.run_job()
        end, taken = Exited(T + 5, "7", 1, Outcome.SUCCEEDED), asyncio.Event()

        def again(fact: Event) -> None:
            assert world.reports.has_all(end, again)
            world.note(fact)
            taken.set()

        assert not world.reports.has_all(end, again)
        assert not world.reports.has_all(end, again)  # told twice
        await asyncio.wait_for(taken.wait(), 30)
        assert len(world.told) == (patience > 1)  # else it is too late to decide anything
        await until(lambda: world.journal.reports("7"))
        assert len(await world.rows()) == 1

    in_a_world(tmp_path, test)


def test_whom_an_effort_waits_for_is_looked_at_soon(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        looked_at: list[str] = []

        def wants_soon(job: Job) -> bool:
            looked_at.append(job.id)
            return True

        world.reports.wants_soon = wants_soon
        world.run_job()
        world.reports.reconsider()
        assert looked_at == ["7", "7"]
        world.log.write_text('{"a": 3}\n')
        await until(lambda: world.told)

    in_a_world(tmp_path, test)


def test_while_nothing_can_be_written_nobody_looks_further(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        world.journal.sick = "the disk is full"
        world.log.write_text('{"a": 3}\n')
        await until(lambda: world.reports._gatherer._heard)
        await asyncio.sleep(0.05)
        assert not world.told
        world.journal.sick = None
        await until(lambda: world.told)

    in_a_world(tmp_path, test)


async def until(true: Callable[[], object]) -> None:
    for _ in range(3000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


def test_names_without_end_are_not_all_shown(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.run_job()
        for i in range(500):
            world.reports.take([Report("7", 1, T, None, {f"n{i}": 1.0}, "report")])
        assert len(world.views.metrics["7"]) == 256
        assert len(await world.rows()) == 500

    in_a_world(tmp_path, test)


def test_a_state_with_reports_among_its_events_is_the_same_as_without() -> None:
    fold = Fold(Policy())
    job = Job("7", single(cpus_milli=1000), T)
    events: list[Event] = [
        NodeSeen(T, Node("a", cpus_milli=8000, memory_bytes=1 << 30)),
        Submitted(T, job),
        Placed(T, "7", 1, (Seat("a", SHAPE),)),
        Started(T, "7", 1),
        Reported(T, "7", 1, {"loss": 1.0}, 3.0),
        Exited(T + 1, "7", 1, Outcome.SUCCEEDED),
    ]
    for event in events:
        fold.apply(event)
    assert fold.records["7"].outcome is Outcome.SUCCEEDED
