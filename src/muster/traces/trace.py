"""What every reader returns: jobs with the run times they turned out to have, and maybe nodes."""

import msgspec

from muster.model.job import Job
from muster.model.node import Node


class TraceJob(msgspec.Struct, frozen=True, gc=False):  # can be no part of a cycle
    """A job as it was submitted, and how long it really ran when it had its resources to itself."""

    job: Job
    run_seconds: float


class Trace(msgspec.Struct, frozen=True):
    """Jobs in order of submission. ``nodes`` is empty where the format does not tell.

    ``passed_over`` counts the jobs left out because they never ran, or because their log does not
    know how long or on how much.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    nodes: tuple[Node, ...] = ()
    passed_over: int = 0
