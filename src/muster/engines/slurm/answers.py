"""What was read from Slurm, as values. Unknown is None (a text that is not there is empty); bytes and
seconds. They hold nothing but such values, so nobody need look for cycles among thousands of them (``gc``).

``start_at`` and ``end_at`` of a job are Slurm's own and mean what its state lets them mean: of a job
that waits they are expectations, of one that was cancelled before it began both are the moment of that.
``started_at``, ``ended_at`` and ``expected_start_at`` say which it is.
"""

import msgspec

ENDS = frozenset(
    (
        *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
        *("DEADLINE", "OUT_OF_MEMORY"),
    )
)
BEGUN = ENDS | {"RUNNING", "SUSPENDED"}


class Exit(msgspec.Struct, frozen=True, gc=False):
    """How a script ended: with a code, or by a signal. Slurm counts out of memory as signal 125."""

    code: int = 0
    signal: int = 0


class Tres(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Resources as Slurm counts them; ``amounts`` has every one by its name."""

    cpus: int | None = None
    memory_bytes: int | None = None
    nodes: int | None = None
    gpus: int = 0
    gpu_types: tuple[tuple[str, int], ...] = ()
    amounts: tuple[tuple[str, int], ...] = ()


class Gpus(msgspec.Struct, frozen=True, gc=False):
    """GPUs of one type. ``indices`` are their numbers on the node; None: not said."""

    type: str
    count: int
    indices: tuple[int, ...] | None = None


class SlurmSeat(msgspec.Struct, frozen=True, gc=False):
    """What a job holds on one node."""

    node: str
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[Gpus, ...] | None = None


class SlurmJob(msgspec.Struct, frozen=True, gc=False):
    """A record of the queue: a job, a task of an array, or all tasks that still wait (``array_tasks``)."""

    id: int
    states: tuple[str, ...]  # the state, then its flags; of 22.05 a flag may stand alone
    name: str = ""
    user: str = ""
    uid: int | None = None
    account: str = ""
    partition: str = ""
    qos: str = ""
    reason: str = ""
    detail: str = ""
    array_id: int | None = None
    array_task: int | None = None
    array_tasks: str = ""
    het_id: int | None = None
    het_offset: int | None = None
    submitted_at: float | None = None
    eligible_at: float | None = None
    start_at: float | None = None
    end_at: float | None = None
    suspended_at: float | None = None
    preempted_at: float | None = None
    time_limit_seconds: float | None = None  # inf: there is none
    nodes: str = ""  # folded
    node_count: int | None = None
    required_nodes: str = ""
    scheduled_nodes: str = ""
    batch_host: str = ""
    asked: Tres | None = None
    given: Tres | None = None
    seats: tuple[SlurmSeat, ...] = ()
    exit: Exit | None = None
    derived_exit: Exit | None = None
    restarts: int | None = None
    requeues: bool | None = None
    priority: float | None = None
    comment: str = ""
    admin_comment: str = ""
    extra: str = ""
    wckey: str = ""
    dependency: str = ""
    reservation: str = ""
    features: str = ""
    output: str = ""
    folder: str = ""
    components: tuple["SlurmJob", ...] = ()  # of a heterogeneous job that is told as one

    @property
    def begun(self) -> bool:
        """Whether it has run or runs. One that ended without ever having had a node did not.

        One that is requeued and still COMPLETING waits already: the times are the next attempt's, and where
        its state is not said beside the flag (22.05), whose they are is not known.
        """
        return bool(self.nodes) and not BEGUN.isdisjoint(self.states)

    @property
    def started_at(self) -> float | None:
        return self.start_at if self.begun else None

    @property
    def ended_at(self) -> float | None:
        return None if ENDS.isdisjoint(self.states) else self.end_at

    @property
    def expected_start_at(self) -> float | None:
        return self.start_at if "PENDING" in self.states or "SPECIAL_EXIT" in self.states else None


class SlurmNode(msgspec.Struct, frozen=True, gc=False):
    """A node. A list that groups nodes tells of many only what they have in common: the rest is None."""

    name: str
    states: tuple[str, ...]
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[Gpus, ...] | None = None
    taken_cpus: int | None = None
    taken_memory_bytes: int | None = None
    taken_gpus: tuple[Gpus, ...] | None = None
    free_memory_bytes: int | None = None
    load: float | None = None
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    active_features: tuple[str, ...] | None = None
    reason: str = ""
    reason_by: str = ""
    reason_at: float | None = None
    address: str = ""
    weight: int | None = None
    version: str = ""


class SlurmPartition(msgspec.Struct, frozen=True):
    """A partition. ``inf``: no limit."""

    name: str
    state: str = ""
    default: bool | None = None
    nodes: str = ""
    node_count: int | None = None
    cpus: int | None = None
    most_seconds: float | None = None
    default_seconds: float | None = None
    most_nodes: float | None = None
    least_nodes: int | None = None
    tier: int | None = None
    preempt_mode: str = ""
    accounts: str = ""
    total: Tres | None = None


class SlurmReservation(msgspec.Struct, frozen=True):
    """Nodes kept for somebody, from one time to another."""

    name: str
    state: str = ""
    nodes: str = ""
    start_at: float | None = None
    end_at: float | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class SlurmAttempt(msgspec.Struct, frozen=True, gc=False):
    """One record of accounting: a requeued job has one for each try, under the same id."""

    job: int
    states: tuple[str, ...]
    restarts: int | None = None  # how many came before; None: the version doesn't say
    array_id: int | None = None
    array_task: int | None = None
    array_tasks: str = ""
    het_id: int | None = None
    het_offset: int | None = None
    name: str | None = None  # None: not asked for, as text can't carry every name
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    reason: str = ""
    submitted_at: float | None = None
    eligible_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    elapsed_seconds: float | None = None
    suspended_seconds: float | None = None
    time_limit_seconds: float | None = None
    nodes: str = ""
    asked: Tres | None = None
    given: Tres | None = None
    exit: Exit | None = None
    derived_exit: Exit | None = None
    killed_by: str = ""
    comment: str | None = None
    admin_comment: str | None = None

    @property
    def over(self) -> bool:
        """Whether this try has ended. A requeued one has, though its job waits again."""
        return "REQUEUED" in self.states or not ENDS.isdisjoint(self.states)


class SlurmUse(msgspec.Struct, frozen=True):
    """What a running step has used so far."""

    job: str  # as Slurm writes it: 12, 6_1 or 7+1
    step: str
    tasks: int | None = None
    cpu_seconds: float | None = None
    memory_bytes: int | None = None  # now, over all of its tasks
    most_memory_bytes: int | None = None  # of one task, at its most
    disk_read_bytes: int | None = None
