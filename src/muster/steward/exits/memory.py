"""What is remembered of the reports about one subject.

All times are the subject's *run time*: how long it has run, without what it waited or was suspended. So no
clock is in here, and what is kept can be written down and taken up again by another server.
"""

import msgspec

MOST_NAMES = 64  # of metrics that no exit names, to tell which was perhaps meant


class Heard(msgspec.Struct, gc=False):
    """A source's last word on a metric."""

    value: float
    at: float  # run time
    step: float | None  # of this value
    newest: float | None = None  # the highest step so far: below it a value is late
    told: tuple[float, ...] = ()  # values for that step, the last of them


class Streak(msgspec.Struct, gc=False):
    """A test that has held, report after report."""

    count: int
    since: float  # run time of the first


class Best(msgspec.Struct, gc=False):
    """The best of a metric, and how long it has been that."""

    value: float | None  # None: none was finite
    at: float  # run time when it was told; of none, of the first report
    count: int  # of reports since
    heard_at: float  # run time of the last report, of whatever value


class Source(msgspec.Struct):
    """What one job has told."""

    heard: dict[str, Heard] = {}  # by metric
    streaks: dict[str, Streak] = {}  # by the test's text


class Memory(msgspec.Struct):
    """Everything that outlives a server."""

    ran: float = 0.0
    runs: bool = True  # time goes on
    over: bool = False  # an exit was met, and nothing is looked at any more
    turns_at: float = float("inf")  # the run time at which time alone may meet something
    sources: dict[str, Source] = {}
    bests: dict[str, Best] = {}  # of all sources, by the metric and its way
    awaited: dict[str, float] = {}  # metrics that never came, and the run time since which they are awaited
    told: set[str] = set()  # of these, those of which it has been said
    names: set[str] = set()  # of metrics that did come, at most MOST_NAMES
