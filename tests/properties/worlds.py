"""Random clusters, teams and jobs, and a way to play them in virtual time while somebody watches.

A world is drawn from one number, so that dense ones (many jobs that want the same few GPUs) cost little,
and a failure is named by that number: ``world_of(seed)`` brings it back.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from muster.engines.sim import Outage, SimEngine
from muster.model.events import Event, Submitted, TeamSet
from muster.model.job import (
    After,
    ArrayPlace,
    Checkpoint,
    Dependency,
    Gang,
    Job,
    JobId,
    Part,
    Priority,
    Shape,
    Together,
)
from muster.model.node import Device, Node
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.tenancy import Quota, Team
from muster.model.units import GIB, MILLI
from muster.server.loop import Loop
from muster.store.fold import Fold
from room_check import validate

Look = Callable[[Snapshot, Plan, float], None]

seeds = st.integers(0, 1_000_000_000)


def quick(examples: int = 15) -> settings:
    """The same worlds in every run, and no search for a smaller one: it would be another world."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )


class World(NamedTuple):
    """What there is, and who comes."""

    nodes: tuple[Node, ...]
    teams: tuple[Team, ...]
    jobs: tuple[Job, ...]
    run_seconds: dict[JobId, float]
    outages: tuple[Outage, ...] = ()


class Taste(NamedTuple):
    """What kinds of worlds are wanted. The default is: all of it."""

    alike: bool = False  # nodes are equal, and jobs are not picky
    gangs: bool = True
    kinds: int = 2  # of parts in a gang, at most
    by_memory: bool = True  # shares of a GPU may be asked so
    teams: bool = True
    priorities: bool = True
    endless: bool = True  # jobs may have no limit
    bound: bool = True  # jobs may depend on others, begin late, or be of an array
    checkpoints: bool = True
    outages: bool = False
    broken: bool = True  # some GPUs are not healthy
    jobs: int = 12
    until: int = 4000  # the last arrival


ANY = Taste()
ORDERLY = Taste(teams=False, priorities=False, endless=False, bound=False)


def world_of(seed: int, taste: Taste = ANY) -> World:
    luck = Random(seed)
    nodes = tuple(_node(luck, f"n{i}", taste) for i in range(luck.randint(1, 4)))
    jobs = _jobs(luck, taste)
    lengths = {job.id: luck.choice([1.0, 60.0, 700.0, 2500.0, 9000.0]) for job in jobs}
    teams = _teams(luck) if taste.teams and luck.random() < 0.7 else ()
    outages = tuple(_outage(luck, nodes) for _ in range(3)) if taste.outages else ()
    return World(nodes, teams, jobs, lengths, outages)


def _node(luck: Random, name: str, taste: Taste) -> Node:
    if taste.alike:
        return Node(name, 16 * MILLI, 64 * GIB, devices=(Device("A40", 48 * GIB),) * 4)
    model, memory = luck.choice(["A40", "H100"]), luck.choice([24 * GIB, 48 * GIB, None])
    count, healthy = luck.choice([0, 1, 2, 4, 4]), 0.9 if taste.broken else 1.0
    return Node(
        name=name,
        cpus_milli=luck.randint(2, 16) * MILLI,
        memory_bytes=luck.randint(8, 64) * GIB,
        disk_bytes=luck.choice([0, 100 * GIB]),
        devices=tuple(Device(model, memory, healthy=luck.random() < healthy) for _ in range(count)),
        rack=luck.choice([None, "r1", "r2"]),
        switch=luck.choice([None, "s1"]),
        labels=frozenset(luck.choice([(), ("ib",)])),
    )


def _outage(luck: Random, nodes: tuple[Node, ...]) -> Outage:
    return Outage(luck.choice(nodes).name, luck.randint(0, 5000), luck.choice([60.0, 3000.0]))


def shape_of(luck: Random, taste: Taste = ANY) -> Shape:
    kind = luck.choice(["cpus", "whole", "whole", "share", "memory" if taste.by_memory else "share"])
    picky = not taste.alike and luck.random() < 0.4
    memory = kind == "memory" or (taste.by_memory and luck.random() < 0.2)
    return Shape(
        cpus_milli=luck.choice([0, 500, 1000, 2000, 6000]),
        memory_bytes=luck.randint(0, 12) * GIB,
        gpus={"cpus": 0, "whole": luck.randint(1, 4)}.get(kind, 1),
        gpu_milli={"share": luck.choice([200, 300, 500, 700]), "memory": 0}.get(kind, MILLI),
        gpu_memory_bytes=luck.randint(4, 30) * GIB if memory else 0,
        gpu_models=luck.choice([("A40",), ("H100",), ("A40", "H100")]) if picky else (),
        labels=luck.choice([(), ("ib",)]) if picky else (),
        disk_bytes=luck.choice([0, 30 * GIB]) if picky else 0,
    )


def gang_of(luck: Random, taste: Taste = ANY) -> Gang:
    if not taste.gangs or luck.random() < 0.5:
        return Gang((Part(shape_of(luck, taste)),))
    kinds = luck.randint(1, taste.kinds)
    parts = tuple(Part(shape_of(luck, taste), luck.randint(1, 3)) for _ in range(kinds))
    return Gang(parts, luck.choice(list(Together)))


def _jobs(luck: Random, taste: Taste) -> tuple[Job, ...]:
    made: list[Job] = []
    arrivals = sorted(luck.randint(0, taste.until) for _ in range(luck.randint(2, taste.jobs)))
    gangs = [gang_of(luck, taste) for _ in range(6)]  # a few, so that lanes are long
    for i, at in enumerate(arrivals):
        job = Job(
            id=f"j{i:02}",
            gang=luck.choice(gangs),
            submitted_at=float(at),
            owner=luck.choice(["ana", "bob"]),
            team=luck.choice(["", "nlp", "vision", "sub"]) if taste.teams else "",
            priority=Priority(luck.choice([0, 1, 1, 2])) if taste.priorities else Priority.NORMAL,
            time_limit_seconds=_limit(luck, taste),
            checkpoint=_checkpoint(luck) if taste.checkpoints else None,
        )
        made.append(_bound(luck, job, made) if taste.bound else job)
    return tuple(made)


def _limit(luck: Random, taste: Taste) -> float | None:
    limits = [600.0, 1800.0, 3600.0, 10_000.0, *([None] if taste.endless else [])]
    return luck.choice(limits)


def _checkpoint(luck: Random) -> Checkpoint | None:
    return luck.choice(
        [
            None,
            Checkpoint(),
            Checkpoint(save_seconds=20.0, restore_seconds=10.0),
            Checkpoint(every_seconds=300.0, on_signal=False),
        ]
    )


def _bound(luck: Random, job: Job, before: list[Job]) -> Job:
    """Perhaps not before a time, or after another, or one of an array."""
    how = luck.choice(["free", "free", "free", "free", "later", "after", "array"])
    if how == "later":
        return msgspec.structs.replace(job, begin_at=job.submitted_at + 500.0)
    if how == "array":
        return msgspec.structs.replace(job, array=ArrayPlace("sweep", len(before), 1))
    if how == "after" and before:
        others = luck.sample(before, luck.randint(1, min(2, len(before))))
        after = tuple(Dependency(other.id, luck.choice(list(After))) for other in others)
        return msgspec.structs.replace(job, after=after)
    return job


def _teams(luck: Random) -> tuple[Team, ...]:
    """An organisation with two teams below it, and one beside it."""

    def gpus(chance: float = 1.0) -> Quota | None:
        return Quota(gpus_milli=luck.randint(0, 6) * MILLI) if luck.random() < chance else None

    named = [("org", ""), ("sub", "org"), ("nlp", "org"), ("vision", "")]
    return tuple(
        Team(name, parent, gpus() or Quota(), luck.choice([1.0, 3.0]), gpus(0.3), gpus(0.3))
        for name, parent in named
    )


# --- Play ---------------------------------------------------------------------------------------------


class Watched(Loop):
    """A loop that shows each snapshot with the plan that came of it, and whose books are checked."""

    look: Look | None = None
    is_over = False  # nothing is left to wait for

    def decide(self) -> None:
        if self.look is None:
            super().decide()
        else:
            snap, cycles = self.fold.snapshot(), self.cycles  # never released, so it stays as it is
            super().decide()
            if self.cycles == cycles + 1:  # or the plan is that of another cycle at the same instant
                self.look(snap, self.plan, self.engine.now())
        validate(self.fold)


def play(
    world: World,
    policy: Policy,
    *,
    look: Look | None = None,
    record: Callable[[Event], None] | None = None,
    most_steps: int = 300,
) -> Watched:
    """All jobs come, run and end, or until so many steps were made. Limits are enforced."""
    engine = SimEngine(world.nodes, world.run_seconds, outages=world.outages, enforce_limits=True)
    for job in world.jobs:
        engine.will(Submitted(job.submitted_at, job))
    loop = Watched(engine, policy, Fold(policy, world.run_seconds), record)
    loop.look = look
    for team in world.teams:
        fact = TeamSet(0.0, team)
        loop.fold.apply(fact)
        if record is not None:
            record(fact)
    loop.is_over = any(not loop.step() for _ in range(most_steps))
    return loop
