"""Compaction: jobs that keep checkpoints are moved to open a block, if that is worth it."""

from typing import Any

import pytest

from case import Case
from muster.model.job import Checkpoint
from muster.model.reasons import NoRoom

MOVES = Checkpoint(save_seconds=30.0, restore_seconds=30.0)


def scattered(checkpoint: Checkpoint | None = MOVES, lasts: str = "20h", **knobs: Any) -> tuple[Case, str]:
    """Two nodes of four GPUs, one held on each; the job on the second may move."""
    c = Case().policy(**knobs).node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=1, on="a", lasts=lasts)
    return c, c.running(gpus=1, on="b", lasts=lasts, checkpoint=checkpoint)


def test_a_job_is_moved_to_open_a_block() -> None:
    c, mover = scattered()
    big = c.waiting(gpus=4, time_limit="1h")
    c.expect(big).starts_on("b")
    c.expect(mover).is_preempted(because="compact")
    c.expect(mover).starts_on("a")


def test_a_job_without_checkpoints_is_not_moved() -> None:
    c, mover = scattered(checkpoint=None)
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_nobody_is_moved_if_the_policy_says_so() -> None:
    c, mover = scattered(compact=False)
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_nobody_is_moved_for_a_short_wait() -> None:
    c, mover = scattered(lasts="3620s")
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_a_move_that_costs_more_than_it_gains_is_not_made() -> None:
    slow = Checkpoint(save_seconds=3 * 3600.0, restore_seconds=3 * 3600.0)
    c, mover = scattered(checkpoint=slow, lasts="2h")
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_a_job_that_fits_nowhere_else_is_not_moved() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4, labels=("ib",))
    c.running(gpus=1, on="a", lasts="20h")
    mover = c.running(gpus=1, on="b", lasts="20h", checkpoint=MOVES, labels=("ib",))
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_a_young_attempt_is_not_moved() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=1, on="a", lasts="20h")
    mover = c.running(gpus=1, on="b", lasts="20h", checkpoint=MOVES, since_seconds="5m")
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_no_more_are_moved_than_the_policy_allows() -> None:
    c = Case().policy(most_moves=1).node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=2, on="a", lasts="20h")
    movers = [c.running(gpus=1, on="b", lasts="20h", checkpoint=MOVES) for _ in range(2)]
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    for mover in movers:
        c.expect(mover).stays()


@pytest.mark.parametrize("priority", ["normal", "low"])
@pytest.mark.parametrize("seed", range(3))
def test_whoever_was_moved_does_not_go_back_into_the_block(seed: int, priority: str) -> None:
    """Wherever placement would put it, and whoever goes first: the block was opened for another."""
    c = Case().policy(place="random", seed=seed).node("a", gpus=4).node("b", gpus=4)
    movers = [c.running(gpus=1, on=n, lasts="20h", checkpoint=MOVES) for n in ("a", "b")]
    big = c.waiting(gpus=4, time_limit="1h", priority=priority)
    c.expect(big).starts()
    assert sum(len(c.evictions.get(job, ())) for job in movers) == 1


def test_a_block_that_was_opened_for_a_promised_job_is_used_by_it() -> None:
    """It was promised one node; then moving somebody off another became worth it."""
    c = Case().policy(patience=0.0).node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=2, on="a", lasts="90m")
    c.running(gpus=1, on="b", lasts="20h", since_seconds="55m", checkpoint=MOVES)
    big = c.waiting(gpus=4, time_limit="1h")
    c.expect(c.waiting(cpus=1, time_limit="1m")).starts()
    c.expect(big).starts_on("b")


def test_nothing_is_moved_when_too_little_is_free_in_all() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=3, on="a", lasts="20h")
    mover = c.running(gpus=2, on="b", lasts="20h", checkpoint=MOVES)
    c.expect(c.waiting(gpus=4, time_limit="1h")).waits(because=NoRoom)
    c.expect(mover).stays()


def test_cpus_are_compacted_as_well() -> None:
    c = Case().node("a", cpus=4).node("b", cpus=4)
    c.running(cpus=1, on="a", lasts="20h")
    mover = c.running(cpus=1, on="b", lasts="20h", checkpoint=MOVES)
    c.expect(c.waiting(cpus=4, time_limit="1h")).starts_on("b")
    c.expect(mover).starts_on("a")
