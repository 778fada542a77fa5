"""What does it cost to look at the exits of everything that runs?

Ten thousand jobs, each with a success that is compared, a failure that is looked at after two hours and a
stall of ninety minutes, tell of loss and accuracy a thousand times a second between them. They have run for
up to three hours, and told now and then, so that times become full all the while as they do in a server's
life; another job takes the place of one that ends. A minute of that is played as fast as it goes, with time
looked at ten times a second; the cpu time it takes is told as the share of one core that it would keep
busy. Latency is the cpu time of single reports, memory what Python has allocated for the board.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from bench.figures import Figure
from muster.model.units import HOUR
from muster.steward.exits import Board, compiled

_SUBJECTS, _REPORTS_A_SECOND, _SECONDS, _LOOKS_A_SECOND = 10_000, 1000, 60, 10
_WARM_UP_REPORTS = 6
_RAN_SECONDS = 3 * HOUR
_VARIANT = f"{_SUBJECTS} jobs"


def measure(say: Callable[[str], None] = lambda _: None, seeds: int = 1) -> Iterator[Figure]:
    """The best of as many runs as there are seeds: what the machine can do, not what else it was doing."""
    say("steward: memory")
    yield Figure("exits-memory", _VARIANT, "default", _memory_bytes() / _SUBJECTS, "bytes a job")
    runs = []
    for seed in range(seeds):
        say(f"steward: cost, {seed + 1} of {seeds}")
        runs.append(_Played(seed))
    best = min(runs, key=lambda run: run.seconds)
    share = 100 * best.seconds / _SECONDS
    beside = {
        "µs_a_report": 1e6 * sum(best.latencies) / len(best.latencies),
        "due_share": 100 * best.due_seconds / best.seconds,
        "met": float(best.met),
    }
    yield Figure("exits-cost", _VARIANT, f"{_REPORTS_A_SECOND}/s", share, "% of a core", beside=beside)
    latencies = np.sort(best.latencies) * 1e3
    beside = {
        "median_ms": float(np.median(latencies)),
        "of_1000_the_worst_ms": float(np.quantile(latencies, 0.999)),
    }
    yield Figure("exits-latency", _VARIANT, "one report", float(latencies[-1]), "ms at worst", beside=beside)


class _Played:
    """A minute's reports on a board, and what they cost."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        board = _board(rng)
        self.met = 0
        self.due_seconds = 0.0
        self.latencies: list[float] = []
        tells = _stories(rng, _SECONDS * _REPORTS_A_SECOND)
        gc.collect()
        begun = time.process_time()
        for number, (subject, values, step) in enumerate(tells):
            now = _RAN_SECONDS + number / _REPORTS_A_SECOND
            before = time.thread_time()
            met = board.report(subject, subject, now, values, step)
            after = time.thread_time()
            self.latencies.append(after - before)
            ended = [] if met is None else [met]
            if number % (_REPORTS_A_SECOND // _LOOKS_A_SECOND) == 0:
                ended += board.due(now)
                self.due_seconds += time.thread_time() - after
            for one in ended:
                _begin(board, one.subject, now)
            self.met += len(ended)
        self.seconds = time.process_time() - begun


def _begin(board: Board, subject: str, now: float) -> None:
    """Thresholds differ from job to job, so that nothing is shared by accident."""
    number = int(subject.partition(":")[2])
    success = f"val_acc >= {0.9 + number % 100 / 1000:g}"
    low = f"val_acc < {0.01 + number % 7 / 1000:g} after 2h"
    board.begin(subject, compiled((success,), (low, "val_loss stalls for 90m")), 0.0, now)


def _board(rng: np.random.Generator) -> Board:
    """Jobs that began at different times, and have told of themselves since."""
    board = Board()
    starts = rng.uniform(0.0, _RAN_SECONDS, _SUBJECTS)
    for number, start in enumerate(starts):
        subject = f"job:{number}"
        _begin(board, subject, float(start))
        for at in np.sort(rng.uniform(start, _RAN_SECONDS, _WARM_UP_REPORTS)):
            if board.report(subject, subject, float(at), _values(rng), float(at - start) // 10):
                _begin(board, subject, float(at))
    for met in board.due(_RAN_SECONDS):
        _begin(board, met.subject, _RAN_SECONDS)
    return board


def _stories(rng: np.random.Generator, count: int) -> list[tuple[str, dict[str, float], float]]:
    """Each job tells every ten seconds, in an order that is drawn."""
    order = rng.permutation(_SUBJECTS)
    return [
        (f"job:{order[n % _SUBJECTS]}", _values(rng), _RAN_SECONDS + n // _SUBJECTS) for n in range(count)
    ]


def _values(rng: np.random.Generator) -> dict[str, float]:
    return {"val_loss": float(rng.exponential()), "val_acc": float(rng.uniform(0.1, 0.9)), "lr": 1e-3}


def _memory_bytes() -> int:
    tracemalloc.start()
    board = _board(np.random.default_rng(0))
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del board
    return taken
