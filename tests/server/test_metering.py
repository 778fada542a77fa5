"""While somebody sums up, nothing gets from the ledger to the store; what was over is there, and what follows
gets there afterwards.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import muster.server.metering as module
from muster.home import Home
from muster.model.policy import Policy
from muster.monitor.meters.gather import Meters
from muster.server.config_tables import Monitor
from muster.server.errors import StoreTrouble
from muster.server.metering import Metering
from muster.store.fold import Fold
from muster.store.journal import Journal
from usage_world import DAY0, job, placed, sample

T = DAY0


class Clock:
    """The engine, of which only the clock is needed: it is moved by hand."""

    at = T

    def now(self) -> float:
        return self.at


class Service:
    def __init__(self, journal: Journal) -> None:
        self.fold, self.journal, self.engine = Fold(Policy()), journal, Clock()

    def hand_over(self) -> None:
        """There is nothing but what is metered."""


class World:
    """A job that is metered every ten seconds."""

    def __init__(self, home: Path, journal: Journal) -> None:
        self.service = Service(journal)
        self.metering = Metering(Home(home), self.service, Monitor(), Meters(home))  # type: ignore[arg-type]
        self.metering.ledger.apply(placed("1", T), job("1"))

    def pass_minutes(self, count: int) -> None:
        for _ in range(6 * count):
            self.service.engine.at += 10.0
            self.metering.ledger.add(sample("1", self.service.engine.at, 10.0))

    def minutes(self) -> int:
        return len(self.service.journal.rollups_of("1"))


def in_a_world(tmp_path: Path, test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        journal = Journal.open(f"sqlite:///{tmp_path}/muster.db")
        try:
            await test(World(tmp_path, journal))
        finally:
            journal.close()

    asyncio.run(run())


def test_who_sums_up_finds_all_that_is_over_and_nothing_else_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WRITE_SECONDS", 0.01)

    async def test(world: World) -> None:
        world.pass_minutes(3)
        world.metering.begin(T)
        async with world.metering.still():
            assert world.minutes() == 3
            world.pass_minutes(2)
            await asyncio.sleep(0.1)
            assert world.minutes() == 3
            assert len(world.metering.ledger.under_way(world.service.engine.at)) == 2
        async with world.metering.still():
            assert world.minutes() == 5
        world.metering.end()

    in_a_world(tmp_path, test)


def test_one_sums_up_after_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    async def ask(world: World, name: str) -> None:
        async with world.metering.still():
            order.append(f"{name} begins")
            await asyncio.sleep(0.01)
            order.append(f"{name} is done")

    async def test(world: World) -> None:
        await asyncio.gather(ask(world, "ana"), ask(world, "bo"))

    in_a_world(tmp_path, test)
    assert order == ["ana begins", "ana is done", "bo begins", "bo is done"]


def test_with_a_store_that_can_t_write_nobody_waits_for_long_and_the_next_time_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)

    def is_full(_: object) -> None:
        raise OSError(28, "No space left on device")

    async def test(world: World) -> None:
        world.pass_minutes(1)
        with monkeypatch.context() as full:
            full.setattr(world.service.journal, "_commit", is_full)
            for _ in range(2):
                with pytest.raises(StoreTrouble, match=r"not written down yet: .*No space left"):
                    async with world.metering.still():
                        raise AssertionError("this is not reached")
        monkeypatch.setattr(module, "_PATIENCE_SECONDS", 20.0)
        while world.service.journal.sick:
            await asyncio.sleep(0.01)
        async with world.metering.still():
            assert world.minutes() == 1

    in_a_world(tmp_path, test)
