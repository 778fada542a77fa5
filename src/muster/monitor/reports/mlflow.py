"""Reports from an MLflow tracking server.

A job's runs are found by tags, which ``engines/local/trackers.py`` puts into its environment and MLflow's
client onto every run that it begins. All runs of a job count, whichever began them: who goes on with the run
of an earlier attempt finds the tags of that one there. So what belongs to an attempt is told by the time:
what was logged since it began.

A round is a few questions. Which runs there are, and the last value of each metric, is one answer; the
values in between are asked for where the last has changed, and now and then where it has not: a run that
goes on from a checkpoint may log steps below those that it has reached before, and then the last stays the
last. Values come in the order of their time, in pages; the last page is where the next round goes on.

When the server fails, the next round comes later, and the one after that later still.
"""

import contextlib
import math
import re
import time
from collections.abc import Collection, Iterator, Mapping

import msgspec

from muster.model.errors import BadInput
from muster.model.job import JobId
from muster.model.report import MOST_LETTERS
from muster.monitor.reports.points import Point, reports_of, short
from muster.monitor.reports.report import Report
from muster.monitor.reports.tracker import Asking, NoAnswer, Refused, address, authorization
from muster.monitor.reports.trouble import Trouble

_ROUND_SECONDS = 3.0
_LOOK_AGAIN_SECONDS = 30.0  # from one look at everything to the next
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 300.0
_MOST_EXPERIMENTS, _EXPERIMENTS_AT_ONCE = 5000, 500
_MOST_RUNS, _MOST_SERIES = 50, 64  # a series is a metric of a run
_PAGE, _MOST_PAGES = 1000, 20  # values, and pages of them in a round
_MOST_TOKEN = 1000
_SYSTEM = "system/"
_FAR = 1 << 62  # beyond which nothing is a time or a step
_PLAIN = re.compile(r"[\w.-]{1,200}", re.ASCII)


class _Experiment(msgspec.Struct):
    experiment_id: str


class _Experiments(msgspec.Struct):
    experiments: list[_Experiment] = []
    next_page_token: str = ""


class _Metric(msgspec.Struct):
    """A value that is no number comes as a word: NaN, Infinity."""

    key: str
    value: float | str = "NaN"
    timestamp: int = 0  # in milliseconds, by the clock of whoever logged it
    step: int = 0


class _Info(msgspec.Struct):
    run_id: str
    experiment_id: str = ""


class _Data(msgspec.Struct):
    metrics: list[_Metric] = []


class _Run(msgspec.Struct):
    info: _Info
    data: _Data = msgspec.field(default_factory=_Data)


class _Runs(msgspec.Struct):
    runs: list[_Run] = []


class _History(msgspec.Struct):
    metrics: list[_Metric] = []
    next_page_token: str = ""


_Series = tuple[str, str]  # a run, and a metric of it
_Place = tuple[int, int]  # a time in milliseconds, and a step


class _Position(msgspec.Struct):
    series: dict[int, _Place] = {}  # by a hash → the last that was handed out


class Mlflow:
    """Of one attempt. ``since``: when it began, by the clock that nobody sets; ``server``: Muster's own mark.

    ``environment`` is the job's, and says who is asking; ``hosts``: which may be asked beyond this machine.
    """

    may_block = True
    least_seconds = 5.0

    def __init__(
        self,
        job: JobId,
        attempt: int,
        url: str,
        position: bytes = b"",
        *,
        since: float,
        server: str,
        environment: Mapping[str, str],
        hosts: Collection[str] = (),
    ) -> None:
        self._job, self._attempt, self._since = job, attempt, since
        self._where, self._who = address(url, hosts), authorization(environment)
        self._filter = _filter(job, server)
        self._at = _understood(position)
        self._pages: dict[
            _Series, str
        ] = {}  # of those that are followed: where the last page begins; "": the first
        self._last: dict[_Series, _Metric] = {}  # as it was told with the run, when all up to it was known
        self._experiments: list[str] = []  # those with runs of the job
        self._look_again_at = -math.inf
        self._is_last = False  # whether the last look at everything was also the attempt's last
        self._pause_seconds, self._not_before = 0.0, -math.inf
        self._trouble = Trouble(job, "MLflow")
        self.is_behind = False

    @property
    def position(self) -> bytes:
        return msgspec.msgpack.encode(self._at)

    @property
    def trouble(self) -> str | None:
        return self._trouble.now

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        """What is new. When the server fails in the middle, what it had told by then counts."""
        if now < self._not_before and not last:
            return []
        found: list[_Metric] = []
        self.is_behind, self._trouble.now = False, None
        ahead_seconds = time.time() - now
        begins = int((self._since + ahead_seconds) * 1000)
        try:
            with contextlib.closing(
                Asking(self._where, self._who, time.monotonic() + _ROUND_SECONDS)
            ) as asking:
                runs = self._runs(asking, now, last=last)
                for metric in self._values(asking, runs, begins):
                    found.append(metric)  # noqa: PERF402 - what has come before an error counts
        except NoAnswer as error:
            self._failed(now, error)
        else:
            self._pause_seconds = 0.0
        found.sort(key=lambda metric: metric.timestamp)
        points = [self._point(metric, ahead_seconds, now) for metric in found]
        return reports_of(self._job, self._attempt, "mlflow", points)

    def _point(self, metric: _Metric, ahead_seconds: float, now: float) -> Point:
        at = min(max(metric.timestamp / 1000 - ahead_seconds, self._since), now)
        return Point(at, float(metric.step), metric.key, _number(metric.value))

    def _failed(self, now: float, error: NoAnswer) -> None:
        self.is_behind = False
        self._pause_seconds = min(max(2 * self._pause_seconds, _PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
        self._not_before = now + self._pause_seconds
        self._trouble.say(f"{self._where} {error}")

    # --- Runs -------------------------------------------------------------------------------------

    def _runs(self, asking: Asking, now: float, *, last: bool) -> list[_Run]:
        """Those of the job. To look for more in other experiments is dearer, and done now and then."""
        everything = now >= self._look_again_at or (last and not self._is_last)
        experiments = self._experiments
        if everything or not experiments:
            experiments = _all_experiments(asking)
        runs: list[_Run] = []
        for i in range(0, len(experiments), _EXPERIMENTS_AT_ONCE):
            some = experiments[i : i + _EXPERIMENTS_AT_ONCE]
            question = {"experiment_ids": some, "filter": self._filter, "max_results": _MOST_RUNS}
            runs += asking.post("runs/search", _Runs, **question).runs
        self._experiments = sorted({run.info.experiment_id for run in runs})
        if everything:
            self._look_again_at = now + _LOOK_AGAIN_SECONDS
            self._last.clear()
            self._is_last = last
        return runs[:_MOST_RUNS]

    # --- Values -----------------------------------------------------------------------------------

    def _values(self, asking: Asking, runs: list[_Run], begins: int) -> Iterator[_Metric]:
        """Of each series of which there may be new ones, page by page, as far as this round may go."""
        pages = iter(range(_MOST_PAGES))
        for series, last in self._due(runs):
            for _ in pages:
                values, more = self._page(asking, series)
                yield from self._new(series, values, begins)
                if not more:
                    self._last[series] = last
                    break
            else:
                self.is_behind = True
                return

    def _due(self, runs: list[_Run]) -> Iterator[tuple[_Series, _Metric]]:
        for run in runs:
            for last in run.data.metrics:
                series = run.info.run_id, last.key
                if self._last.get(series) != last and _counts(series) and self._follows(series):
                    yield series, last

    def _follows(self, series: _Series) -> bool:
        """Whether it is one of those that are read: what is kept of them, here and stored, is little."""
        if series in self._pages:
            return True
        kept = self._at.series
        if len(self._pages) < _MOST_SERIES and (_key(series) in kept or len(kept) < _MOST_SERIES):
            self._pages[series] = ""
            return True
        self._trouble.say(f"there are more than {_MOST_SERIES} metrics; those beyond are not read")
        return False

    def _page(self, asking: Asking, series: _Series) -> tuple[list[_Metric], bool]:
        """The page at which the series stands, and whether another follows, at which it then stands."""
        run, metric = series
        token = self._pages[series]
        question: dict[str, str | int] = {"run_id": run, "metric_key": metric, "max_results": _PAGE}
        question |= {"page_token": token} if token else {}
        try:
            told = asking.get("metrics/get-history", _History, **question)
        except Refused:  # the run is gone, or the server has forgotten what its token meant
            self._pages[series] = ""
            return [], False
        following = told.next_page_token
        more = following not in ("", token) and len(following) <= _MOST_TOKEN
        if more:
            self._pages[series] = following
        return told.metrics, more

    def _new(self, series: _Series, values: list[_Metric], begins: int) -> list[_Metric]:
        """Those that come after the last one handed out, or were logged since the attempt began."""
        key = _key(series)
        seen = self._at.series.get(key, (begins, -_FAR))
        new = [one for one in values if (one.timestamp, one.step) > seen and _is_sane(one)]
        if new:
            self._at.series[key] = max((one.timestamp, one.step) for one in new)
        for one in new:
            one.key = series[1]
        return new


def _all_experiments(asking: Asking) -> list[str]:
    """The ids of those that are not deleted, the newest first."""
    found: list[str] = []
    token = ""
    while len(found) < _MOST_EXPERIMENTS:
        question = {"max_results": _PAGE, "order_by": ["creation_time DESC"], "page_token": token}
        told = asking.post("experiments/search", _Experiments, **question)
        found += [one.experiment_id for one in told.experiments]
        if not told.experiments or told.next_page_token in ("", token):
            break
        token = told.next_page_token
    return found[:_MOST_EXPERIMENTS]


def _filter(job: JobId, server: str) -> str:
    """In MLflow's own language. Nothing that could end a text in it is let through."""
    if not _PLAIN.fullmatch(job) or not _PLAIN.fullmatch(server):
        raise BadInput(
            f"runs of job {job!r} can't be looked for by name; only letters, digits and . _ - are plain"
        )
    return f"tags.`muster.job` = '{job}' and tags.`muster.server` = '{server}'"


def _counts(series: _Series) -> bool:
    """What MLflow measures of the machine we measure ourselves; and a name that is too long is never told."""
    run, metric = series
    return (
        not metric.startswith(_SYSTEM) and len(metric) <= MOST_LETTERS and _PLAIN.fullmatch(run) is not None
    )


def _key(series: _Series) -> int:
    return short("/".join(series))


def _is_sane(metric: _Metric) -> bool:
    return abs(metric.timestamp) < _FAR and abs(metric.step) < _FAR


def _number(value: float | str) -> float:
    """What is no number at all is not one, too."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def _understood(position: bytes) -> _Position:
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        return msgspec.msgpack.decode(position, type=_Position)
    return _Position()
