"""What holds of every look ahead, whatever world it is asked in."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from worlds import ANY, play, quick, world_of

from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.server.outlook.explain import explain


@quick(25)
@given(st.integers(0, 10_000))
def test_a_look_ahead_gives_an_ordered_range_and_leaves_the_present_alone(seed: int) -> None:
    rng, cycles = np.random.default_rng(seed), itertools.count(1)

    def look(snap: Snapshot, plan: Plan, now: float) -> None:
        if next(cycles) % 6 == 0:
            before = facts(snap)
            for waiting in itertools.islice(
                itertools.chain(*snap.lanes.values(), snap.ineligible.values()), 3
            ):
                ask(snap, plan, waiting.job.id, now, rng)
            assert facts(snap) == before

    play(world_of(seed, ANY._replace(outages=seed % 2 == 0)), Policy(), look=look, most_steps=60)


def ask(snap: Snapshot, plan: Plan, job_id: str, now: float, rng: np.random.Generator) -> None:
    looks = itertools.count()
    found = explain(
        snap, plan, Policy(), job_id, now=now, rng=rng, clock=lambda: next(looks) * 0.01, show_time=str
    )
    when = found.estimate
    if when is not None:
        assert now <= when.earliest <= when.likely <= when.latest < math.inf
        assert when.latest_by_limits is None or when.latest <= when.latest_by_limits
        assert all(better.starts_at <= when.likely for better in found.sooner)


def facts(snap: Snapshot) -> tuple[object, ...]:
    lanes = {key: tuple(w.job.id for w in lane) for key, lane in snap.lanes.items()}
    room = (snap.room.cpus.tolist(), snap.room.gpu.tolist(), snap.room.log.end)
    return (snap.generation, lanes, dict(snap.running), dict(snap.accounts), dict(snap.active), room)
