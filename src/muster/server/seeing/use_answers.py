"""What the API answers about use as a tree, and over time."""

import msgspec

from muster.server.answers import UseMetrics


class DefendedBy(msgspec.Struct, frozen=True):
    """Who wants it to go on, since when, and why."""

    by: str
    at: float
    because: str
    until: float


class Undefended(msgspec.Struct, frozen=True):
    """What runs and nobody defends: how much of it there is, and when that is decided."""

    jobs: int
    gpu_held_seconds: float
    cpu_held_seconds: float
    review_at: float | None  # when the review closes; None: there are no reviews


class UseNode(msgspec.Struct, kw_only=True):
    """A team, owner, purpose, effort, job or array, with all that is below it.

    Amounts are of a resource times seconds. ``used`` is None where nothing was measured.
    """

    kind: str  # team, owner, purpose, effort, job, array; rest: those too small to be told one by one
    id: str | None  # None: in no effort, without a purpose; empty: in no team
    name: str | None = None  # of a job
    owner: str | None = None
    jobs: int  # that held something; an array's members each
    coverage: float | None  # the part of the held time in which something was measured
    gpu_held_seconds: float
    gpu_measured_seconds: float
    gpu_used_seconds: float | None
    cpu_held_seconds: float
    cpu_measured_seconds: float
    cpu_used_seconds: float | None
    quota_gpu_seconds: float | None = None  # of a team: what it and those below own, over this time
    borrowed_gpu_seconds: float | None = None  # held beyond that, over the whole of this time
    defended: DefendedBy | None = None  # the latest to do so, of anything in it
    undefended: Undefended | None = None
    children: list["UseNode"] = []  # who held most first


class UseTree(msgspec.Struct):
    """Held against used, from the whole down to jobs."""

    sentence: str
    by: str
    since: float
    until: float
    drawn_by: str  # gpu; cpu where nobody has held a GPU
    metrics: UseMetrics
    capacity_gpu_seconds: float  # all that there is now, over this time
    capacity_cpu_seconds: float
    total: UseNode  # and in its children all the rest


class UseLine(msgspec.Struct, kw_only=True):
    """One line of the picture: a value for each step; None where nothing was measured."""

    group: str | None  # None: everybody, or all others; empty: in no team
    groups: int = 1  # how many are summed up in it
    held: list[float]  # on average over the step, in GPUs, or in cpus
    used: list[float | None]
    coverage: list[float | None]  # the part of what was held that was measured


class UseSeries(msgspec.Struct):
    """Held and used over time."""

    sentence: str
    by: str
    unit: str  # gpu or cpu
    metric: str | None  # by which use is measured; None: there is none
    since: float
    until: float
    step_seconds: int
    at: list[float]  # when each step begins
    capacity: float  # all that there is now
    total: UseLine
    lines: list[UseLine]  # who held most first
    others: UseLine | None  # all whom there is no line for
