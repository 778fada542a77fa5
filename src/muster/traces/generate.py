"""Synthetic traces with the features of real ones, the same for the same seed.

Run times are lognormal: most are short, a few take most of the GPUs. People submit by day more than
by night (a Poisson process whose rate swings around its mean), a few submit most, each comes back
to the same few named pieces of work that run about as long each time, and all ask for more time
than they need. The span is chosen so that the GPU-seconds asked for are ``load`` of all there are.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from muster.model.charter import Charter
from muster.model.errors import BadInput, UnknownChoice
from muster.model.job import Checkpoint, Gang, Job, Priority, single
from muster.model.node import Node
from muster.model.units import DAY, GIB, MILLI, MINUTE, WEEK
from muster.traces.lines import number, whole
from muster.traces.nodespec import parse_nodes
from muster.traces.trace import Trace, TraceJob

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NODE_GPUS = 8
_CPUS_PER_GPU, _BYTES_PER_GPU = 8, 32 * GIB
_SIZES_MILLI = np.array([250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000])
_SIZE_WEIGHTS = np.array([0.15, 0.10, 0.40, 0.13, 0.10, 0.08, 0.03, 0.01])
_SUBJECTS = ("vision", "speech", "text", "protein", "weather", "driving")
_SUBJECTS_EACH = 3  # how many one person works on
_SPREAD_OF_WORK, _SPREAD_OF_RUNS = 1.2, 0.35  # of log run times, between and within named work
_SHORTEST_SECONDS, _LONGEST_SECONDS = MINUTE, WEEK
_DAY_SWING = 0.7  # the rate of arrivals at noon is 1.7 times the mean, at midnight 0.3 times
_LOW, _SAVING, _TELLING = 0.15, 0.5, 0.8  # parts of the jobs
_CHECKPOINT = Checkpoint(every_seconds=1800.0, save_seconds=20.0, restore_seconds=40.0)


class _Kind(msgspec.Struct, frozen=True):
    """Work of a size up to ``most_milli``: what it is for, and how long it usually takes."""

    name: str
    purpose: str
    most_milli: int
    median_seconds: float


_KINDS = (
    _Kind("explore", "Look at the {} data by hand.", 500, 3600.0),
    _Kind("eval", "Measure the {} model on data it has not seen.", 1000, 1200.0),
    _Kind("train", "Train the {} model on this month's data.", 8000, 7200.0),
    _Kind("pretrain", "Pretrain the next {} model from nothing.", 32_000, 14_400.0),
)
_KIND_LIMITS_MILLI = np.array([kind.most_milli for kind in _KINDS])
_KIND_MEDIANS_SECONDS = np.array([kind.median_seconds for kind in _KINDS])


class Generation(msgspec.Struct, frozen=True):
    """What to generate. ``load`` is GPU-seconds asked / (``gpus`` × the span of submissions)."""

    jobs: int = 1000
    seed: int = 1
    teams: int = 4
    users: int = 20
    load: float = 0.9
    gpus: int = 48

    def __post_init__(self) -> None:
        if min(self.jobs, self.teams, self.gpus) < 1 or not 0.001 <= self.load <= 100:
            raise BadInput(
                "expected jobs, teams and gpus of 1 or more and load from 0.001 to 100, "
                "like jobs=1000,load=0.9"
            )
        if self.users < self.teams:
            raise BadInput(f"expected a user or more per team, found {self.users} in {self.teams}")
        if self.seed < 0:
            raise BadInput(f"expected a seed of 0 or more, found {self.seed}")


_MOST = {
    "jobs": 1_000_000,
    "seed": 1 << 53,
    "teams": 100_000,
    "users": 100_000,
    "load": 100,
    "gpus": 100_000,
}


def parse_generation(spec: str) -> Generation:
    """``jobs=1000,seed=1,load=0.9`` → a Generation; what is not said keeps its default."""
    given: dict[str, float] = {}
    for pair in filter(str.strip, spec.split(",")):
        key, equals, value = (word.strip() for word in pair.partition("="))
        if not equals:
            raise BadInput(f"{pair.strip()!r} is not key=value; write it like jobs=1000,seed=1")
        if key not in _MOST:
            raise UnknownChoice("key to generate by", key, list(_MOST))
        given[key] = (number if key == "load" else whole)(value, key, _MOST[key])
    return msgspec.structs.replace(Generation(), **given)


class _Drawn(msgspec.Struct, frozen=True):
    """One job's luck."""

    submitted_at: float
    run_seconds: float
    limit_seconds: float
    size_milli: int
    kind: int
    owner: int
    subject: int
    is_low: bool
    saves: bool
    tells_purpose: bool


def generate(spec: str | Generation) -> Trace:
    asked = parse_generation(spec) if isinstance(spec, str) else spec
    drawn = _draw(asked, np.random.default_rng(asked.seed))
    jobs = tuple(
        TraceJob(_job(place, one, asked.teams), one.run_seconds) for place, one in enumerate(drawn, 1)
    )
    return Trace(f"generated-{asked.seed}", jobs, _nodes(asked.gpus))


def _draw(asked: Generation, rng: np.random.Generator) -> Iterator[_Drawn]:
    """All jobs' luck, a column at a time. Arrivals come sorted, so the rows are in order."""
    count = asked.jobs
    sizes_milli = _sizes_milli(asked.gpus, count, rng)
    kinds = np.searchsorted(_KIND_LIMITS_MILLI, sizes_milli)
    owners, subjects = _zipf(asked.users, count, rng), _zipf(_SUBJECTS_EACH, count, rng)
    usual = rng.normal(0.0, _SPREAD_OF_WORK, (asked.users, _SUBJECTS_EACH))[owners, subjects]
    runs = _KIND_MEDIANS_SECONDS[kinds] * np.exp(usual + rng.normal(0.0, _SPREAD_OF_RUNS, count))
    runs = np.clip(runs, _SHORTEST_SECONDS, _LONGEST_SECONDS)
    span_seconds = float(runs @ sizes_milli) / MILLI / (asked.gpus * asked.load)
    columns = (
        _arrivals(count, span_seconds, rng),
        runs,
        _limits_seconds(runs, rng),
        sizes_milli,
        kinds,
        owners,
        subjects,
        *(rng.random(count) < part for part in (_LOW, _SAVING, _TELLING)),
    )
    return map(_Drawn, *(column.tolist() for column in columns))


def _sizes_milli(gpus: int, count: int, rng: np.random.Generator) -> Ints:
    """Sizes that the cluster has room for."""
    fits = gpus * MILLI >= _SIZES_MILLI
    weights = _SIZE_WEIGHTS[fits]
    return rng.choice(_SIZES_MILLI[fits], count, p=weights / weights.sum())


def _zipf(kinds: int, count: int, rng: np.random.Generator) -> Ints:
    """Draws from 0 to ``kinds`` - 1, the n-th in 1/n of the first one's number."""
    weights = 1.0 / np.arange(1, kinds + 1)
    return rng.choice(kinds, count, p=weights / weights.sum())


def _arrivals(count: int, span_seconds: float, rng: np.random.Generator) -> Floats:
    """A Poisson process that had ``count`` arrivals: uniform draws, in time bent by its rate."""
    bent_span = _bent(np.array([span_seconds]))[0]
    days, rest = np.divmod(np.sort(rng.random(count)) * bent_span, DAY)
    minutes = np.linspace(0.0, DAY, 24 * 60 + 1)
    arrivals: Floats = days * DAY + np.interp(rest, _bent(minutes), minutes)
    return arrivals


def _bent(clock: Floats) -> Floats:
    """The integral of the rate, which passes quickly by day; a whole day of it is a day long."""
    bent: Floats = clock - _DAY_SWING * DAY / math.tau * np.sin(math.tau * clock / DAY)
    return bent


def _limits_seconds(runs: Floats, rng: np.random.Generator) -> Floats:
    """What people ask for: once to ten times the run, in whole minutes."""
    return np.ceil(runs * 10.0 ** rng.random(len(runs)) / MINUTE) * MINUTE


def _job(place: int, one: _Drawn, teams: int) -> Job:
    kind = _KINDS[one.kind]
    subject = _SUBJECTS[(one.owner + one.subject) % len(_SUBJECTS)]
    owner = f"user{one.owner + 1}"
    return Job(
        id=str(place),
        gang=_gang(one.size_milli),
        submitted_at=one.submitted_at,
        name=f"{kind.name}-{subject}",
        owner=owner,
        team=f"team{one.owner % teams + 1}",
        priority=Priority.LOW if one.is_low else Priority.NORMAL,
        time_limit_seconds=one.limit_seconds,
        checkpoint=_CHECKPOINT if one.saves else None,
        charter=Charter(owner, kind.purpose.format(subject) if one.tells_purpose else None),
    )


@lru_cache
def _gang(size_milli: int) -> Gang:
    part_milli = min(size_milli, _NODE_GPUS * MILLI)
    return single(
        cpus_milli=part_milli * _CPUS_PER_GPU,
        memory_bytes=part_milli * _BYTES_PER_GPU // MILLI,
        gpus=max(1, part_milli // MILLI),
        gpu_milli=min(size_milli, MILLI),
        parts=size_milli // part_milli,
    )


def _nodes(gpus: int) -> tuple[Node, ...]:
    """Nodes of eight GPUs, and one with the rest."""
    full, rest = divmod(gpus, _NODE_GPUS)
    groups = [f"{full}x{_NODE_GPUS}"] * bool(full) + [f"1x{rest}"] * bool(rest)
    return parse_nodes(", ".join(groups))
