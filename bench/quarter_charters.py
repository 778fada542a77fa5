"""What owners of the simulated work write down before it starts: exits, a budget, a date.

They write what they know then: what they aim for, give or take, and how long they think it will take,
which is off by half as often as not (``quarter_lives``). Nobody knows when the curve will stand still.
The constants are assumptions, and the conditions are such as the documentation shows.
"""

import math

import numpy as np

from bench.quarter_lives import Kind, Life
from bench.quarter_world import Work
from muster.model.charter import Charter
from muster.model.units import HOUR, MINUTE, WEEK

METRIC = "score"
AIM_SPREAD = 0.01  # part of the aim by which the threshold that is written misses it
CONTENT = 0.01  # part of the aim that an owner does not miss: who is stopped that near has what they wanted
STALL_LEAST_SECONDS, STALL_PART = 90 * MINUTE, 0.15  # patience with a curve: so long, and so much of the run
FLOOR, FLOOR_PART = 0.5, 0.25  # below half the aim after a quarter of the time is lost
BUDGET_ROOM = 2.0  # times what its owner thinks it takes
UNTIL_ROOM, UNTIL_LEAST_SECONDS = 3.0, WEEK  # the same of dates; nobody writes one that is nearer than a week


def charter_of(work: Work, share: float, seed: int) -> Charter:
    """Of those who write one; the others give their name and no more."""
    owner, life = work.job.owner, work.life
    if work.luck >= share:
        return Charter(owner)
    # who does the same every week without asking why gives the same reason, too
    purpose = f"What does run {work.job.id} show?" if life.wanted else "The weekly report."
    if life.kind is not Kind.TRAINING:
        room = max(UNTIL_LEAST_SECONDS, UNTIL_ROOM * life.expected_seconds)
        return Charter(owner, purpose, until=work.job.submitted_at + room)
    luck = np.random.default_rng((seed, 7, int(work.job.id)))
    budget = max(1, math.ceil(BUDGET_ROOM * work.gpus * life.expected_seconds / HOUR))
    won, lost = _exits(life, luck)
    return Charter(owner, purpose, won, lost, f"{budget}GPUh", progress=("report",))


def _exits(life: Life, luck: np.random.Generator) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert life.curve is not None
    threshold = life.curve.aim * (1 + luck.normal(0.0, AIM_SPREAD))
    patience = max(STALL_LEAST_SECONDS, STALL_PART * life.expected_seconds)
    floor_after = max(HOUR, FLOOR_PART * life.expected_seconds)
    failure = (
        f"{METRIC} is nan",
        f"{METRIC} stalls for {math.ceil(patience / MINUTE)}m",
        f"{METRIC} < {FLOOR * life.curve.aim:.4f} after {math.ceil(floor_after / MINUTE)}m",
    )
    return (f"{METRIC} >= {threshold:.4f}",), failure


def is_content(life: Life, seconds: float) -> bool:
    """Whether the owner has what they wanted, were it stopped now."""
    return life.curve is not None and life.curve.at(seconds) >= (1 - CONTENT) * life.curve.aim
