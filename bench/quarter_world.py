"""A made-up quarter of a 400-GPU cluster whose sums are those of a real one. Synthetic, and the same for a
seed.

What is published fixes how many jobs end how, how much GPU-time each ending takes, how long and how
large jobs are, and how much of all GPU time shows no use. What is *not* published is what the work was
worth: when its result stopped changing, and whether anybody wanted it. These are assumptions, each a
constant with its reason, in ``quarter_lives``; the sums hold whatever they are.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from bench.quarter_lives import USUAL, Kind, Life, Nature, life_of
from bench.quarter_people import Person, people, works_at
from bench.quarter_sums import Ending, Sums
from muster.model.charter import Charter
from muster.model.job import Checkpoint, Gang, Job, JobId, single
from muster.model.node import Node
from muster.model.units import DAY, GIB, HOUR, MILLI, MINUTE, WEEK
from muster.traces.nodespec import parse_nodes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NODES, NODE_GPUS = 100, 4
GPUS = NODES * NODE_GPUS
QUARTER_DAYS = 91
WARM_UP_SECONDS = WEEK  # before the quarter begins, so that it does not begin empty; nothing in it is counted
LOAD = 0.87  # GPU time asked for, of all there is: busy, with a queue at most times, and not hopeless
MOST_GPUS = 32  # of one job: larger ones would make the queue about themselves
LONGEST_SECONDS = 30 * DAY
SHORTEST_SECONDS = 10.0
DAY_SWING = 0.7  # the rate of arrivals at noon is 1.7 times the mean, at midnight 0.3 times
WEEKEND = 0.5  # of the rate on other days
LIMIT_ROOM = 10.0  # people ask for once to this many times the run
CHECKPOINT = Checkpoint(every_seconds=30 * MINUTE, save_seconds=30.0, restore_seconds=60.0)
TEAMS, PEOPLE = 8, 60
TAKEN_OVER = 0.3  # of the work whose owner left: somebody else wants it
SUBJECTS = ("vision", "speech", "text", "protein", "weather", "driving")
FIT_ROUNDS = 200


class Work(msgspec.Struct, frozen=True, gc=False):
    """A job, how it would end, and the truth about it."""

    job: Job
    run_seconds: float
    gpus: int
    ending: Ending
    life: Life
    luck: float  # from 0 to 1: whether it has a charter, for a share of those who have
    taken_over: bool  # somebody wants it still when its owner has left


class World(msgspec.Struct, frozen=True):
    sums: Sums
    seed: int
    begin: float  # of the quarter
    end: float
    nodes: tuple[Node, ...]
    people: dict[str, Person]
    works: dict[JobId, Work]
    gaps: float  # part of working time that shows no use, in pauses too short to be found

    def counts(self, work: Work) -> bool:
        """Whether it belongs to the quarter."""
        return self.begin <= work.job.submitted_at < self.end


def generate(
    sums: Sums, seed: int, days: float = QUARTER_DAYS, load: float = LOAD, nature: Nature = USUAL
) -> World:
    """The quarter, after its warm-up; with fewer days, a part of it."""
    begin = min(WARM_UP_SECONDS, days * DAY)
    end = begin + days * DAY
    each = sum(sums.jobs[ending] * sums.gpu_seconds_each[ending] for ending in Ending)
    count = max(10, round(load * GPUS * end / each))
    luck = [np.random.default_rng((seed, stream)) for stream in range(5)]
    gpus = _sizes(sums, count, luck[0])
    endings = luck[1].choice(len(Ending), count, p=[sums.jobs[ending] for ending in Ending])
    arrivals = _arrivals(count, end, luck[4])
    runs = _runs(sums, gpus, endings, arrivals >= begin, luck[2])
    staff = people(PEOPLE, TEAMS, end, luck[3])
    works = _works(arrivals, gpus, endings, runs, staff, nature, seed)
    nodes = parse_nodes(f"{NODES}x{NODE_GPUS} A40:48G cpus=64 mem=512G")
    return World(sums, seed, begin, end, nodes, staff, works, _gaps(sums, list(works.values()), load))


# --- Drawn to the sums ------------------------------------------------------------------------------------


def _sizes(sums: Sums, count: int, luck: np.random.Generator) -> Ints:
    """Powers of two, half of them one GPU as published, thinning out so that their mean is the published one.

    Where that would take jobs larger than ``MOST_GPUS`` the mean stays below it.
    """
    sizes = 2 ** np.arange(1, round(math.log2(MOST_GPUS)) + 1)
    low, high = 0.01, 1.0
    for _ in range(50):
        thins = (low + high) / 2
        rest = _thinning(thins, len(sizes))
        low, high = (thins, high) if 1 + rest @ (sizes - 1) < sums.gpus_mean else (low, thins)
    rest = _thinning((low + high) / 2, len(sizes))
    chosen: Ints = luck.choice([1, *sizes], count, p=[1 - rest.sum(), *rest])
    return chosen


def _thinning(ratio: float, count: int) -> Floats:
    """Parts of all jobs that have two, four, … GPUs. Never more than half: the median is one."""
    powers = ratio ** np.arange(1, count + 1)
    parts: Floats = powers * min(1.0, 0.5 / powers.sum())
    return parts


def _runs(sums: Sums, gpus: Ints, endings: Ints, counts: Bools, luck: np.random.Generator) -> Floats:
    """Lognormal, and longer for larger jobs, fitted until the sums of this very draw are the published ones.

    One scale for each ending (its GPU-time), one spread (the median), one slope over size (the mean). What
    comes before the quarter is drawn in the same way, and does not count.
    """
    normal = luck.standard_normal(len(gpus))
    scale, spread, slope = np.full(len(Ending), sums.run_median_seconds), 2.0, 0.2
    targets = np.array([sums.gpu_seconds_each[ending] for ending in Ending])
    runs = np.zeros(len(gpus))
    for _ in range(FIT_ROUNDS):
        runs = scale[endings] * gpus**slope * np.exp(spread * normal)
        runs = np.clip(runs, SHORTEST_SECONDS, LONGEST_SECONDS)
        found = np.array([(runs * gpus)[counts & (endings == n)].mean() for n in range(len(Ending))])
        scale *= targets / found
        # a longer tail lets the median sink, at the same GPU-time; a steeper slope lets the mean sink
        median, mean = float(np.median(runs[counts])), float(runs[counts].mean())
        spread = float(np.clip(spread * (median / sums.run_median_seconds) ** 0.05, 0.5, 4.0))
        slope = float(np.clip(slope + 0.1 * math.log(mean / sums.run_mean_seconds), 0.0, 1.0))
    return runs


def _arrivals(count: int, end: float, luck: np.random.Generator) -> Floats:
    """By day more than by night, and on weekdays more than at weekends."""
    hours = np.arange(0.0, end + HOUR, HOUR)
    rate = 1 - DAY_SWING * np.cos(math.tau * hours / DAY)
    rate *= np.where(hours % WEEK < 5 * DAY, 1.0, WEEKEND)
    passed = np.concatenate([[0.0], np.cumsum(rate[:-1])])
    passed *= 1 / np.interp(end, hours, passed)
    arrivals: Floats = np.interp(np.sort(luck.random(count)), passed, hours)
    return arrivals


def _gaps(sums: Sums, works: list[Work], load: float) -> float:
    """What is missing to the published share of samples without use, once GPUs that nobody holds and the long
    pauses of the works are counted, as a part of the time in which works are at work."""
    held = sum(work.gpus * work.run_seconds for work in works)
    unused = sum(work.gpus * work.life.unused_seconds(0.0, work.run_seconds) for work in works)
    missing = (sums.zero_samples - (1 - load)) / load * held - unused
    return max(0.0, missing / (held - unused))


# --- Jobs -------------------------------------------------------------------------------------------------


def _works(
    arrivals: Floats,
    gpus: Ints,
    endings: Ints,
    runs: Floats,
    staff: dict[str, Person],
    nature: Nature,
    seed: int,
) -> dict[JobId, Work]:
    names = tuple(Ending)
    owners = _owners(arrivals, staff, np.random.default_rng((seed, 5)))
    columns = zip(arrivals.tolist(), gpus.tolist(), endings.tolist(), runs.tolist(), owners, strict=True)
    works = {}
    for place, (at, size, ending, run, owner) in enumerate(columns, 1):
        luck = np.random.default_rng((seed, 6, place))
        life = life_of(names[ending], run, size, at, nature, luck)
        saves = life.kind in (Kind.TRAINING, Kind.BATCH) and luck.random() < nature.saves
        job = _job(str(place), at, size, run, life, owner, saves, luck)
        works[job.id] = Work(job, run, size, names[ending], life, luck.random(), luck.random() < TAKEN_OVER)
    return works


def _owners(arrivals: Floats, staff: dict[str, Person], luck: np.random.Generator) -> Iterator[Person]:
    """A few people submit most, and nobody does who is away or has left."""
    names = list(staff)
    weights = 1.0 / np.arange(1, len(names) + 1)
    draws = luck.choice(len(names), (len(arrivals), 8), p=weights / weights.sum())
    for at, drawn in zip(arrivals.tolist(), draws.tolist(), strict=True):
        there = (staff[names[n]] for n in drawn)
        yield next((one for one in there if works_at(one, at)), staff[names[drawn[0]]])


def _job(
    job_id: JobId,
    at: float,
    gpus: int,
    run: float,
    life: Life,
    owner: Person,
    saves: bool,
    luck: np.random.Generator,
) -> Job:
    limit = math.ceil(run * LIMIT_ROOM ** luck.random() / MINUTE) * MINUTE
    subject = SUBJECTS[int(luck.integers(3) + owner.number) % len(SUBJECTS)]
    return Job(
        id=job_id,
        gang=_gang(gpus),
        submitted_at=at,
        name=f"{life.kind}-{subject}",
        owner=owner.name,
        team=owner.team,
        time_limit_seconds=limit,
        checkpoint=CHECKPOINT if saves else None,
        charter=Charter(owner.name),
    )


def _gang(gpus: int) -> Gang:
    part = min(gpus, NODE_GPUS)
    cpus_milli, memory_bytes = part * 8 * MILLI, part * 64 * GIB
    return single(cpus_milli=cpus_milli, memory_bytes=memory_bytes, gpus=part, parts=gpus // part)
