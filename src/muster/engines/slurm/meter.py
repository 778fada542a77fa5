"""What Slurm itself has measured of running jobs (``sstat``): cpu time and memory, in one question for all.

It is gathered on the nodes at the interval that the cluster is configured with, of one's own jobs, or of all
as root. GPUs are not in it: their figures are None, and the coverage says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from muster.engines.base import Key
from muster.engines.slurm.answers import SlurmUse
from muster.engines.slurm.client import Slurm, batches


class Shown(msgspec.Struct, frozen=True):
    """Of one attempt, over all of its steps. Seconds since it started; the peak is the largest task's."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None


def shown(slurm: Slurm, numbers: Mapping[Key, Sequence[int]]) -> dict[Key, Shown]:
    """Of those that Slurm has measured anything of: all of the jobs that an attempt is, or none.

    One task of an array has the array's own number: asked for it, Slurm tells of all of them, once more.
    """
    steps: dict[str, dict[str, SlurmUse]] = {}
    for some in batches(number for each in numbers.values() for number in each):
        for one in slurm.use(some):
            steps.setdefault(one.job, {})[one.step] = one
    found = ((key, [steps.get(str(number), {}).values() for number in each]) for key, each in numbers.items())
    return {key: _summed(chain.from_iterable(each)) for key, each in found if all(each)}


def _summed(steps: Iterable[SlurmUse]) -> Shown:
    some = list(steps)
    return Shown(
        cpu_seconds=_sum(one.cpu_seconds for one in some),
        memory_bytes=_whole(_sum(one.memory_bytes for one in some)),
        memory_peak_bytes=max((one.most_memory_bytes or 0 for one in some), default=0) or None,
    )


def _sum(figures: Iterable[float | None]) -> float | None:
    """Of what is known; None: nothing is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def _whole(figure: float | None) -> int | None:
    return None if figure is None else int(figure)
