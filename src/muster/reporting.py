"""``muster.report(loss=0.3, step=12)``: a job tells how it is doing.

Training goes on whatever happens here, and never waits: a report is put aside, and a thread sends it. The
first goes at once; those that follow within a moment go together. What is left at the exit is sent then.
Outside of a job nothing is done. While the server does not answer, one line says so, and what was put aside
is tried again later; should that become too much, the oldest go. A number that is none (nan, inf) is reported
too, as text, since that is what some wait for.
"""

import atexit
import math
import os
import sys
import threading
import time
from collections import deque
from typing import SupportsFloat

from muster.client import Client, Refused

_TIMEOUT_SECONDS = 2.0
_BETWEEN_SECONDS = 0.2  # two requests
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0
_MOST_KEPT = 10_000
_MOST_AT_ONCE = 500
_SERVERS_FAULT = 500  # statuses from here on: the same may be welcome later
_MOST_NAMES, _MOST_LETTERS = 64, 128  # what the server takes

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    Told = dict[str, Any]


class _Reporter:
    """One buffer, one thread and one connection per process, whichever thread reports."""

    def __init__(self, job: str) -> None:
        self.job, self.process = job, os.getpid()
        self._kept: deque[Told] = deque()
        self._more = threading.Event()
        self._sending = threading.Lock()
        self._client: Client | None = None
        self._warned = False
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        threading.Thread(target=self._work, name="muster reports", daemon=True).start()
        atexit.register(self._flush)

    def put(self, told: "Told") -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.popleft()
            self.warn(f"the server has not taken {_MOST_KEPT:,} of them; the oldest are dropped")
        self._kept.append(told)
        self._more.set()

    def _work(self) -> None:
        while self._more.wait():
            self._more.clear()
            with self._sending:
                went_well = self._send_all()
            if went_well:
                self._pause_seconds = _FIRST_PAUSE_SECONDS
                time.sleep(_BETWEEN_SECONDS)
            else:
                self._more.set()
                time.sleep(self._pause_seconds)
                self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)

    def _flush(self) -> None:
        """At the exit: what is left, if that can be had quickly."""
        if self.process == os.getpid() and self._sending.acquire(timeout=_TIMEOUT_SECONDS):
            self._send_all()

    def _send_all(self) -> bool:
        """False: it has to be tried again."""
        while self._kept:
            some = [self._kept.popleft() for _ in range(min(len(self._kept), _MOST_AT_ONCE))]
            try:
                self._connected().report_many(self.job, some)
            except Exception as error:
                self.warn(error)
                if not isinstance(error, Refused) or error.status >= _SERVERS_FAULT:
                    self._kept.extendleft(reversed(some))
                    return False  # else it is these that are refused; the next may be welcome
        return True

    def _connected(self) -> Client:
        if self._client is None:
            self._client = Client(timeout_seconds=_TIMEOUT_SECONDS)
        return self._client

    def warn(self, error: object) -> None:
        if not self._warned:
            self._warned = True
            sys.stderr.write(f"muster: report is not kept, and the job goes on: {error}\n")


def _number(value: SupportsFloat) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _told(values: dict[str, SupportsFloat], step: SupportsFloat | None) -> "Told":
    if len(values) > _MOST_NAMES or any(len(name) > _MOST_LETTERS for name in values):
        raise ValueError(f"at most {_MOST_NAMES} values at once, each with a name of {_MOST_LETTERS} letters")
    numbers = {name: _number(value) for name, value in values.items()}
    at = None if step is None else float(step)
    if at is not None and not math.isfinite(at):
        at = None
    return {"values": numbers, "step": at, "at": time.time()}


_reporter: _Reporter | None = None
_making = threading.Lock()


def _of_this_process(job: str) -> _Reporter:
    """A fork must share neither a connection nor a buffer, and has no thread."""
    global _reporter  # noqa: PLW0603 - one for the whole process
    if _reporter is None or _reporter.process != os.getpid() or _reporter.job != job:
        with _making:
            if _reporter is None or _reporter.process != os.getpid() or _reporter.job != job:
                _reporter = _Reporter(job)
    return _reporter


def report(*, step: SupportsFloat | None = None, **values: SupportsFloat) -> None:
    """Tells the values of metrics, at a step. Anything that ``float`` takes is a value."""
    job = os.environ.get("MUSTER_JOB_ID")
    if not job or not values:
        return
    reporter = _of_this_process(job)
    try:
        reporter.put(_told(values, step))
    except (TypeError, ValueError) as error:
        reporter.warn(error)
