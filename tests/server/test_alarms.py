"""Many moments, one timer."""

import asyncio

from muster.server.stewardship.alarms import Alarms
from virtual_time import run_at_once


def test_each_rings_at_the_moment_that_was_set_last_and_once() -> None:
    rung: list[tuple[str, float]] = []

    async def story() -> None:
        now = asyncio.get_running_loop().time
        alarms = Alarms(now, lambda key: rung.append((key, round(now()))))
        for key, at in (("a", 50), ("b", 10), ("a", 20), ("c", 30), ("c", None), ("b", 90_000)):
            alarms.set(key, at)
        await asyncio.sleep(100_000)

    run_at_once(story)
    assert rung == [("a", 20), ("b", 90_000)]


def test_moments_that_are_set_again_and_again_are_not_kept() -> None:
    async def story() -> None:
        alarms = Alarms(asyncio.get_running_loop().time, lambda _: None)
        for n in range(10_000):
            alarms.set("budget", 1e6 - n)
        assert len(alarms._heap) < 100

    run_at_once(story)
