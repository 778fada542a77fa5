"""``muster.report(loss=0.3, step=12)``: a job tells how it is doing.

Training goes on whatever happens here: outside of a job nothing is done, and when the server does not
answer, one line says so and the next reports are tried later. A number that is none (nan, inf) is reported
too, as text, since that is what some wait for.
"""

import math
import os
import sys
import threading
import time
from typing import SupportsFloat

from muster.client import Client, Refused

_TIMEOUT_SECONDS = 2.0
_PAUSE_SECONDS = 30.0


class _Reporter:
    """One connection per process, whichever thread reports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._process = 0
        self._warned = False
        self._not_before = 0.0

    def send(self, job: str, values: dict[str, SupportsFloat], step: SupportsFloat | None) -> None:
        with self._lock:
            if time.monotonic() < self._not_before:
                return
            try:
                numbers = {name: _number(value) for name, value in values.items()}
                at = None if step is None else float(step)
            except (TypeError, ValueError) as error:
                self._warn(error)
                return
            try:
                self._connected().report(job, numbers, at)
            except Refused as error:  # of this report; the next may be welcome
                self._warn(error)
            except Exception as error:
                self._not_before = time.monotonic() + _PAUSE_SECONDS
                self._warn(error)

    def _connected(self) -> Client:
        if self._client is None or self._process != os.getpid():  # a fork must not share a connection
            self._client, self._process = Client(timeout_seconds=_TIMEOUT_SECONDS), os.getpid()
        return self._client

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            sys.stderr.write(f"muster: report is not kept, and the job goes on: {error}\n")


def _number(value: SupportsFloat) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)


_reporter = _Reporter()


def report(*, step: SupportsFloat | None = None, **values: SupportsFloat) -> None:
    """Tells the values of metrics, at a step. Anything that ``float`` takes is a value."""
    job = os.environ.get("MUSTER_JOB_ID")
    if job and values:
        _reporter.send(job, values, step)
