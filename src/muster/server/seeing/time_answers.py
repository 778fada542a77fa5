"""What the API answers about time: rows of bars, what was, what is, and what is planned."""

import enum

import msgspec


class TimeBy(enum.StrEnum):
    NODE = "node"
    GPU = "gpu"
    TEAM = "team"
    OWNER = "owner"


class Kind(enum.StrEnum):
    PAST = "past"
    RUNNING = "running"
    PREDICTED = "predicted"
    SHORT = "short"  # several of the past that are too short to be drawn one by one
    OUT = "out"  # not a job: out of service


class Bar(msgspec.Struct, omit_defaults=True):
    """Somebody had the row, or part of it, from when to when."""

    start: float
    end: float
    kind: Kind
    job: str | None = None  # in ``jobs``; None: several, or an outage
    attempt: int = 0
    lane: int = 0  # of those that are there at once, which is drawn where
    how: str | None = None  # of the past: verdict or outcome, or ``left``; of an outage: its health
    count: int = 1  # attempts that it stands for
    latest: float | None = None  # of what is predicted: its end at the latest, by its limit
    firm: bool = False  # of what waits: it was promised to start then, at the latest
    because: str | None = None  # of an outage


class TimeRow(msgspec.Struct):
    """A node, a GPU, a team or an owner."""

    id: str
    node: str | None
    device: int | None
    rack: str | None
    lanes: int  # at most so many are there at once
    bars: list[Bar]


class TimeJob(msgspec.Struct):
    """What the bars of a job have in common."""

    name: str
    owner: str
    team: str
    gpus: float


class TimeWaiting(msgspec.Struct):
    """One that waits, and of which it is not known yet where exactly it will start."""

    job: str
    earliest: float
    latest: float
    made_at: float  # when that was estimated
    nodes: list[str] = []  # where room is kept for it, if it is


class Timeline(msgspec.Struct):
    """A picture of some time."""

    sentence: str
    by: TimeBy
    since: float
    until: float
    now: float
    resolution_seconds: float  # what is shorter is told together
    rows: list[TimeRow]
    jobs: dict[str, TimeJob]
    waiting: list[TimeWaiting]
    more_rows: int  # that are left out
    unplaced: int  # attempts of which it is not known any more where they ran
    left_out: int  # attempts that were not looked at, at least: the oldest of very many
