"""What a replay leaves behind: one record per job, and a timeline of the cluster."""

import msgspec


class JobRecord(msgspec.Struct):
    """One job's story in numbers. Times are virtual seconds; None means it did not get there."""

    id: str
    name: str
    owner: str
    team: str
    gpus_milli: int
    cpus_milli: int
    submitted_at: float
    run_seconds: float  # the work it had to do
    started_at: float | None = None  # its first start
    ended_at: float | None = None
    preemptions: int = 0  # times it was made to leave for another
    moves: int = 0  # of which only to be put elsewhere
    failures: int = 0  # times its node was lost
    lost_seconds: float = 0.0  # work that had to be done again, and time spent saving and restoring
    infeasible: str | None = None  # why it could never run

    @property
    def wait_seconds(self) -> float | None:
        """All the time it was in the system and not running its own work."""
        return None if self.ended_at is None else self.ended_at - self.submitted_at - self.run_seconds


class Sample(msgspec.Struct, frozen=True):
    """The cluster between two events, from ``at`` on."""

    at: float
    gpus_held_milli: int
    cpus_held_milli: int
    running: int
    waiting: int
    # GPUs (thousandths) that are free but of no use to the job at the head of the queue, None if none waits
    fragmented_milli: int | None


class Replay(msgspec.Struct):
    """The outcome of one policy on one trace."""

    trace: str
    policy: str
    gpus_total_milli: int
    cpus_total_milli: int
    nodes: int
    records: list[JobRecord]
    samples: list[Sample]
    cycles: int = 0
    wall_seconds: float = 0.0
    interrupted: bool = False
