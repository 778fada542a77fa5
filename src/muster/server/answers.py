"""What the API answers: the same types make the JSON, the OpenAPI description and the docs."""

import msgspec

from muster.model.charter import Verdict
from muster.model.events import Outcome
from muster.model.ledger import By
from muster.model.state import State
from muster.model.usage import Rollup


class Error(msgspec.Struct):
    """Why not, in a sentence, and the code that a command line should exit with."""

    error: str
    exit_code: int = 1


class ArrayView(msgspec.Struct, omit_defaults=False):
    """Which members of which array a view speaks of."""

    id: str
    first: int
    last: int
    count: int


class Grant(msgspec.Struct, frozen=True):
    """A limit, and whether it is more than a word."""

    what: str
    amount: float  # in base units, of each part
    how: str  # enforced or advisory
    by: str = ""


class StartEstimate(msgspec.Struct):
    earliest: float
    latest: float
    probability: float
    latest_by_limits: float | None = None
    follows: str | None = None  # the running job whose end most likely lets it start


class Used(msgspec.Struct):
    """What a running job uses: shares are means over the last minutes, memory is as of the last look."""

    share: float | None  # of the GPUs that it holds, or of its cpus if it has none
    coverage: float  # how much of that time was measured
    cpus: float | None
    memory_bytes: int | None
    gpu_busy: list[float | None] = []  # of each GPU, in order; of several nodes, node by node
    gpu_memory_bytes: list[int | None] = []


class MeasuredBy(msgspec.Struct):
    """By what a running job is measured."""

    by: str | None  # meters, agent or slurm; None: by nothing, so far
    nodes: int  # on which it sits
    agents: int  # on how many of them an agent speaks
    text: str


class BudgetView(msgspec.Struct):
    """A budget, and what of it is spent by what is and was held; in its own unit."""

    text: str
    spent: float
    share: float
    used: float | None = None  # of what was spent, as far as it was measured; of money it is not known
    decide_by: float | None = None  # it is spent: when it ends unless somebody extends it


class JobHindsight(msgspec.Struct):
    """An exit would have ended it sooner: an estimate, on what it reported."""

    after_seconds: float  # for which it ran on
    gpu_after_seconds: float  # held meanwhile: GPUs × seconds, as it is with cpus
    cpu_after_seconds: float
    because: str  # "val_loss had stopped improving"
    verdict: str  # that it would have had
    condition: str  # the exit


class JobView(msgspec.Struct):
    """A job, or an array, or the waiting members of one."""

    id: str
    name: str
    owner: str
    team: str
    priority: str
    state: State
    outcome: Outcome | None
    exit_code: int | None
    signal: int | None
    reason: str | None  # why it waits, why it is stopping, or how it ended
    verdict: Verdict | None
    attempt: int
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    gpus: float
    cpus: float
    memory_bytes: int
    time_limit_seconds: float | None
    nodes: list[str]
    devices: list[int]
    command: str
    cwd: str
    log: str | None
    purpose: str | None
    effort: str | None = None
    answers: str = ""  # who answers for it: the owner, unless another was named or has taken it over
    success: list[str] = []
    failure: list[str] = []
    until: float | None = None
    parts: int = 1  # processes that start together
    after: list[str] = []
    retries: int = 0
    params: dict[str, str] = {}
    limits: list[Grant] = []
    used: Used | None = None  # while it runs
    measured: MeasuredBy | None = None  # likewise; told when it is asked for by itself
    metrics: dict[str, float | str | None] = {}  # the last; what is no number is a text; once, it was null
    array: ArrayView | None = None
    counts: dict[str, int] | None = None  # of an array's members, by state
    start_estimate: StartEstimate | None = None
    warnings: list[str] = []
    cause: str | None = None  # why it failed, with the evidence and what to do
    efficiency: list[tuple[str, str]] = []  # how well it used what it held: what each is called, what it says
    findings: list[str] = []  # what the steward has found of it
    budget: BudgetView | None = None  # of the job itself; of a member its array's
    review: str | None = None  # that nobody defends it, and when that is decided
    adopted: str | None = None  # the engine in whose queue it was found, where Muster did not submit it
    hindsight: JobHindsight | None = None  # of one that has ended; told when it is asked for by itself


class StoryLine(msgspec.Struct):
    """Something that was said or decided about an effort."""

    at: float
    what: str
    text: str
    by: str


class EffortView(msgspec.Struct, kw_only=True):
    """Work under one charter, of many jobs."""

    name: str
    owner: str
    team: str
    purpose: str | None
    success: list[str]
    failure: list[str]
    budget: str | None
    spending: BudgetView | None = None  # what of it is spent; None: there is no budget, or it is closed
    until: float | None
    first_wins: bool
    opened_at: float
    opened_by: str
    paused: str | None  # why nothing of it starts
    verdict: Verdict | None
    closed_at: float | None
    because: str | None  # how it came to its verdict
    living: int  # of its jobs
    ended: dict[str, int]  # by verdict, or by outcome where there is none
    jobs: list[str] = []  # that live; only where one effort is asked for
    story: list[StoryLine] = []  # likewise


class Efforts(msgspec.Struct):
    efforts: list[EffortView]


class Submitted(msgspec.Struct):
    """What many submissions have become."""

    ids: list[str]
    warnings: list[str]


class Oversized(msgspec.Struct):
    """Work that asks for far more than it needs."""

    owner: str
    name: str
    job: str  # the last that did
    runs: int
    flags: str  # what to ask for, ready to paste
    because: list[str]
    saved_cpu_seconds: float  # held by its runs beyond what is advised
    saved_memory_byte_seconds: float
    text: str


class AdviceList(msgspec.Struct):
    """Requests that are far from the truth, those that cost most first."""

    advice: list[Oversized]


class Jobs(msgspec.Struct):
    jobs: list[JobView]
    more: int  # how many were left out


class ForeignView(msgspec.Struct):
    """A process on a GPU that Muster has not started."""

    pid: int
    user: str | None
    command: str | None
    memory_bytes: int | None


class DeviceView(msgspec.Struct):
    """A GPU: what it is, and what the meters show of it; null where they do not."""

    model: str
    memory_bytes: int | None
    healthy: bool
    reason: str | None  # why it is not
    busy: float | None = None
    metric: str | None = None  # what ``busy`` is
    memory_used_bytes: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    foreign: list[ForeignView] = []


class Amounts(msgspec.Struct):
    cpus: float
    memory_bytes: int
    gpus: float


class AgentView(msgspec.Struct):
    """The agent on a node of a cluster, and when it spoke last."""

    said_at: float
    is_fresh: bool  # otherwise it is no longer reckoned with
    silent: list[str] = []  # meters that do not answer it


class NodeView(msgspec.Struct):
    name: str
    health: str
    reason: str | None  # why it is not up
    cpus: float
    memory_bytes: int
    disk_bytes: int
    devices: list[DeviceView]
    held: Amounts
    jobs: int
    limits: list[Grant]
    agent: AgentView | None = None  # where there is one


class Nodes(msgspec.Struct):
    nodes: list[NodeView]


class QuotaView(msgspec.Struct):
    gpus: float | None
    cpus: float | None
    memory_bytes: int | None


class TeamView(msgspec.Struct):
    name: str
    parent: str
    weight: float
    quota: QuotaView
    held: Amounts
    waiting: int
    running: int
    users: list[str]


class Teams(msgspec.Struct):
    teams: list[TeamView]


class ReasonView(msgspec.Struct):
    kind: str
    sentence: str
    action: str | None = None


class Sooner(msgspec.Struct):
    """A change that would start the job sooner."""

    change: str
    starts_at: float | None


class BesideView(msgspec.Struct):
    """What else it depends on whether a job starts, and how that is."""

    kind: str  # quota or budget
    state: str  # ok, full or spent
    sentence: str


class Why(msgspec.Struct):
    id: str
    state: State
    reasons: list[ReasonView]
    estimate: StartEstimate | None
    sooner: list[Sooner]
    text: str
    beside: list[BesideView] = []


class Accuracy(msgspec.Struct):
    """How good past estimates were."""

    jobs: int
    median_error_seconds: float | None
    within: float | None
    text: str


class Forecast(msgspec.Struct):
    """What would happen if this were submitted now."""

    feasible: bool
    sentence: str
    starts_at: float | None
    nodes: list[str]
    yields: list[str]
    estimate: StartEstimate | None
    text: str


class UseMetrics(msgspec.Struct):
    """By what use is measured."""

    gpu: str | None  # as the GPUs' meter calls it; None: there is none
    cpu: str = "cpu time"
    memory: str = "working set"
    sources: dict[
        str, int
    ] = {}  # on a cluster: what measures how many of the jobs that run; none: by nothing


class UseRow(msgspec.Struct, kw_only=True):
    """What somebody held, for how much of it that was measured, and what they used meanwhile.

    ``used`` is None where nothing was measured; by GPU, nothing but GPUs is counted.
    """

    group: str | None  # None: in no effort; empty: in no team
    parent: str | None = None  # of a team: in whose row its own is contained
    name: str | None = None  # of a job
    owner: str | None = None
    held_seconds: float  # of all attempts together
    measured_seconds: float
    coverage: float | None  # the part of that time in which something was measured
    gpu_held_seconds: float  # GPUs × seconds, as it is with cpus and bytes
    gpu_measured_seconds: float
    gpu_used_seconds: float | None
    cpu_held_seconds: float | None
    cpu_measured_seconds: float | None
    cpu_used_seconds: float | None
    memory_held_byte_seconds: int | None
    memory_measured_byte_seconds: int | None
    memory_used_byte_seconds: int | None


class Use(msgspec.Struct):
    """Held and used in an interval."""

    by: By
    since: float
    until: float
    metrics: UseMetrics
    rows: list[UseRow]  # who held most first; of teams, each with those below it
    total: UseRow
    more: int  # how many rows were left out; they are in the total


class JobUse(msgspec.Struct):
    """What a job used, in minutes or hours. Those in which nothing was measured are left out."""

    job: str
    step_seconds: int
    since: float
    until: float
    metrics: UseMetrics
    held: Amounts  # by its last attempt
    points: list[Rollup]


class MetricPoint(msgspec.Struct):
    at: float
    attempt: int
    ran_seconds: float | None  # how long the attempt had run by then
    step: float | None
    value: float | str  # "nan", "inf" and "-inf" are texts


class MetricSeries(msgspec.Struct):
    """What was reported under one name. Points are thinned out evenly, but for the most telling ones."""

    name: str
    count: int  # before that
    last: float | str
    least: float | None  # of those that are numbers
    greatest: float | None
    points: list[MetricPoint]


class JobMetrics(msgspec.Struct):
    """What a job has reported, over all of its attempts."""

    job: str
    series: list[MetricSeries]


class Whoami(msgspec.Struct):
    name: str
    role: str
    teams: list[str]


class Health(msgspec.Struct):
    version: str
    pid: int
    home: str
    store: str
    engine: str
    waiting: int
    running: int
    uptime_seconds: float
    trouble: str | None = None
    simulated: bool = False  # nothing here is real: nodes, people, jobs


class Token(msgspec.Struct):
    token: str


class Nothing(msgspec.Struct):
    """Done."""
