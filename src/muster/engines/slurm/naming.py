"""What a number of Slurm's is called here, when it is used again.

``s12`` has ended, for good: an ended job has no way back. But in Slurm it can be requeued, or a cluster
counts from 1 again, and what runs then under 12 consumes. So it is another job, ``s12-2``, and the next is
``s12-3``. Of an array, the tasks that come back together are an array again: ``s6-2`` with ``s6-2_3``.
"""

import re
from collections.abc import Callable, Collection, Iterable
from itertools import count

from muster.model.job import JobId

Used = Callable[[Collection[JobId]], Collection[JobId]]
"""Which of these are jobs or arrays that were ever told of."""
_AGAIN = re.compile(r"-[0-9]+")


def first_called(job_id: JobId) -> JobId:
    """As it would be if nobody had had its number before: ``s6-2_3`` → ``s6_3``."""
    return _AGAIN.sub("", job_id, count=1) if "-" in job_id else job_id


def called_again(ids: Iterable[JobId]) -> dict[JobId, JobId]:
    """Of these, those that are not the first under their number, by what the first was called."""
    return {first_called(one): one for one in ids if "-" in one}


def new_names(ids: Iterable[JobId], used: Used, known: Collection[JobId]) -> dict[JobId, JobId]:
    """A name that is free for each; they are given as the first under their numbers are called."""
    wanted: dict[JobId, list[JobId]] = {}
    for one in ids:
        wanted.setdefault(one.partition("_")[0], []).append(one)
    taken = {one.partition("_")[0] for one in known}
    found = {}
    for whole, some in wanted.items():
        names = (whole if number == 1 else f"{whole}-{number}" for number in count(1))
        name = next(name for name in names if name not in taken and not used((name,)))
        found.update({one: name + one[len(whole) :] for one in some})
    return found
