"""What the API answers about hindsight."""

import msgspec

from muster.model.ledger import By


class HindsightRow(msgspec.Struct, kw_only=True):
    """Of jobs that have ended: what they held, and what of it after an exit would have ended them.

    Of who reported nothing that is not known; ``judged`` are the others, and ``after`` is None without any.
    """

    group: str | None  # None: in no effort; empty: in no team
    parent: str | None = None  # of a team: in whose row its own is contained
    name: str | None = None  # of a job, as are the next two
    owner: str | None = None
    because: str | None = None
    jobs: int
    judged: int
    late: int  # whom an exit would have ended sooner
    gpu_held_seconds: float  # GPUs × seconds, as it is with cpus
    gpu_judged_seconds: float  # by those that are judged
    gpu_after_seconds: float | None
    cpu_held_seconds: float
    cpu_judged_seconds: float
    cpu_after_seconds: float | None


class HindsightReason(msgspec.Struct):
    because: str
    jobs: int
    gpu_after_seconds: float
    cpu_after_seconds: float


class Hindsight(msgspec.Struct):
    """Of the jobs that ended in an interval, each as a whole. An estimate, on what they reported."""

    by: By
    since: float
    until: float
    rows: list[HindsightRow]  # who held most too late first; of teams, each with those below it
    total: HindsightRow
    reasons: list[HindsightReason]  # those that cost most
    more: int  # how many rows were left out; they are in the total
