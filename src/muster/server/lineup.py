"""Who follows whom on the same seats: short jobs are lined up before the one ahead of them has left.

Between an exit and the next start lie a message, a turn, a commit and another message: milliseconds that a
long job never notices, and that are most of the life of a short one. So where the jobs of a lane have all
been short lately, the next of them are placed *behind* those that run, written down like any decision, and
the engine starts each when its seats become free. They hold nothing until then. Only first attempts are: who
is recalled waits again as if nothing had been.

Nobody else is made to wait for it: it is done only while no other lane waits for room and nothing is promised
to anybody, for no more than a moment's work, and if a job turns out to be long after all, whoever is lined
up behind it goes back to the queue.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence

from muster.model.events import Placed
from muster.model.job import Job, JobId
from muster.model.plan import Start
from muster.model.snapshot import LaneKey, Running, Waiting
from muster.model.state import State
from muster.store.fold import Fold

_SHORT_SECONDS = 0.05  # each of the last runs
_MOMENT_SECONDS = 0.1  # of work that is lined up, and what a job may take before its line is dissolved
_LONGEST = 24  # in one line
_FEW, _KEPT = 4, 8  # runs that must be known of a lane, and that are remembered
_LANES = 100
_ALIVE = frozenset({State.STARTING, State.RUNNING})


class LineUp:
    """Remembers how long jobs took lately, and who can be lined up."""

    def __init__(self) -> None:
        self._lasted: OrderedDict[LaneKey, deque[float]] = OrderedDict()
        self._recalled: set[JobId] = set()  # and not heard of since

    def recalled(self, job_id: JobId) -> None:
        """Nobody comes behind one who may not be there any more."""
        self._recalled.add(job_id)

    def heard_of(self, job_id: JobId) -> None:
        """It has started after all, or waits again, or is over."""
        self._recalled.discard(job_id)

    def ended(self, running: Running, now: float) -> None:
        """A job has left its seats."""
        if running.started_at is None:
            return
        lane = LaneKey.of(running.job)
        if lane not in self._lasted and len(self._lasted) >= _LANES:
            self._lasted.popitem(last=False)
        self._lasted.setdefault(lane, deque(maxlen=_KEPT)).append(now - running.started_at)

    def decided(self, fold: Fold, now: float) -> list[tuple[Placed, Start]]:
        """Who is lined up behind whom."""
        lane = self._lane(fold)
        length = 0 if lane is None else self._length(lane)
        if lane is None or not length:
            return []
        lines = [
            _Line(head, line[-1] if line else head, length - len(line))
            for head in fold.running.values()
            if _can_be_followed(head, lane, fold, now)
            and len(line := fold.line_behind(head.job.id)) <= length // 2
            and all(map(self._stays, line))
        ]
        return list(_filled(lines, fold.lanes[lane], now))

    def _stays(self, one: Running) -> bool:
        return one.state is State.STARTING and one.job.id not in self._recalled

    def _lane(self, fold: Fold) -> LaneKey | None:
        """The only one that waits for room."""
        if len(fold.lanes) != 1 or fold.has_promised:
            return None
        return next(iter(fold.lanes))

    def _length(self, lane: LaneKey) -> int:
        lasted = self._lasted.get(lane, ())
        if len(lasted) < _FEW or max(lasted) > _SHORT_SECONDS:
            return 0
        return min(_LONGEST, int(_MOMENT_SECONDS * len(lasted) / max(sum(lasted), 1e-6)))

    def overdue(self, fold: Fold, now: float) -> list[Running]:
        """Those who should have left, for the sake of who is lined up behind them."""
        return [r for r in fold.running.values() if r.elapsed(now) >= _MOMENT_SECONDS]

    @property
    def patience_seconds(self) -> float:
        return _MOMENT_SECONDS


def _can_be_followed(head: Running, lane: LaneKey, fold: Fold, now: float) -> bool:
    if head.state not in _ALIVE or head.elapsed(now) > _SHORT_SECONDS or LaneKey.of(head.job) != lane:
        return False
    return fold.is_open(head.seats)


class _Line:
    """A line that is being filled: who has the seats, who comes last, and how many more can."""

    def __init__(self, head: Running, last: Running, room: int) -> None:
        self.head, self.room = head, room
        self.last = (last.job.id, last.attempt)

    def append(self, waiting: Waiting, now: float) -> tuple[Placed, Start]:
        job_id, attempt, head, behind = waiting.job.id, waiting.attempt + 1, self.head, self.last
        self.room -= 1
        self.last = (job_id, attempt)
        lasts = (_seconds(head.expected_end - head.placed_at), _seconds(head.latest_end - head.placed_at))
        placed = Placed(now, job_id, attempt, head.seats, *lasts, behind=behind[0])
        return placed, Start(job_id, attempt, head.seats, *lasts, behind=behind)


def _filled(lines: list[_Line], queue: Sequence[Waiting], now: float) -> Iterator[tuple[Placed, Start]]:
    """One for each line in turn, so that none is longer than another; in the queue's order."""
    lines = sorted(lines, key=lambda line: -line.room)
    waiting = iter(queue)
    while lines:
        for line in lines:
            one = next(waiting, None)
            if one is None or one.attempt or not _may_follow(one.job, line.head.job):
                return
            yield line.append(one, now)
        lines = [line for line in lines if line.room]


def _may_follow(job: Job, head: Job) -> bool:
    """Where only so many of an array may run at once, one of it makes room for another."""
    array = job.array
    if array is None or array.most_at_once is None:
        return True
    return head.array is not None and head.array.array == array.array


def _seconds(seconds: float) -> float | None:
    return seconds if seconds < math.inf else None
