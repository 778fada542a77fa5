"""Looking at Slurm again and again, in a thread of its own.

A controller may answer in a second or in a minute, or not at all; whoever looks waits for it here, and
nobody else does. A look that takes long makes the next one later, so that Muster is never more than a small
part of what the controller has to do; one that fails makes it later still, and is said once, until it works
again.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable

from muster.engines.slurm.errors import SlurmError

log = logging.getLogger("muster")

PERIOD_SECONDS = 5.0
_TIMES_AS_LONG = 9  # between two looks, as the one before took
_LONGEST_SECONDS, _FAILED_SECONDS = 120.0, 30.0


class Watch:
    """Calls ``look`` every ``period_seconds``, or sooner if somebody nudges."""

    def __init__(self, look: Callable[[], None], period_seconds: float = PERIOD_SECONDS) -> None:
        self._look, self._period = look, period_seconds
        self._nudged, self._ends = threading.Event(), False
        self._failures = 0
        self.trouble: str | None = None  # why the last look failed
        self._thread = threading.Thread(target=self._run, name="slurm", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def nudge(self) -> None:
        """Look now, or right after the look that is under way."""
        self._nudged.set()

    def end(self) -> None:
        """A look that is under way is not waited for."""
        self._ends = True
        self._nudged.set()

    def _run(self) -> None:
        while not self._ends:
            begun = time.monotonic()
            self._nudged.clear()
            self.once()
            self._nudged.wait(self._pause(time.monotonic() - begun))

    def _pause(self, took_seconds: float) -> float:
        """Whoever does not answer has nothing to do with us; so what it took to find out does not count."""
        if self._failures:
            return min(_FAILED_SECONDS, self._period * 2.0 ** min(self._failures, 10))
        return max(self._period, min(_LONGEST_SECONDS, _TIMES_AS_LONG * took_seconds))

    def once(self) -> None:
        """One look. What goes wrong is said when it begins and when it is over."""
        try:
            self._look()
        except SlurmError as error:
            self._failures += 1
            if str(error) != self.trouble:
                self.trouble = str(error)
                log.warning("%s", error)
        except Exception:
            self._failures += 1
            log.exception("looking at Slurm has failed")
        else:
            if self.trouble is not None:
                log.warning("Slurm answers again")
            self._failures, self.trouble = 0, None


class Bell:
    """A file that can be waited for: readable once somebody has rung, until it was heard."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._lock, self._is_there = threading.Lock(), True  # a number may be another file's afterwards

    def fileno(self) -> int:
        return self._heard

    def ring(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):  # full: it will be heard all the same
            if self._is_there:
                os.write(self._rung, b"!")

    def hush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._heard, 4096):
                pass

    def close(self) -> None:
        with self._lock:
            if self._is_there:
                self._is_there = False
                os.close(self._heard)
                os.close(self._rung)
