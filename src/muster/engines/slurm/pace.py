"""How often to look at Slurm, and what to say of it.

A pass that takes long makes the next one later, so that Muster is never more than a small part of what the
controller has to do; one that fails makes it later still, and is said once, until it works again.
"""

import logging

log = logging.getLogger("muster")

BUSY_SECONDS, CALM_SECONDS = 1.0, 2.0
_TIMES_AS_LONG = 9  # between two passes, as the one before took
_LONGEST_SECONDS = 120.0
_AWAY_SECONDS, _LONGEST_AWAY_SECONDS = 5.0, 20.0


class Pace:
    """Told of each pass how it went."""

    def __init__(self, period_seconds: float) -> None:
        self._period = period_seconds
        self._failures = 0
        self._took = 0.0
        self.trouble: str | None = None  # why the last pass failed

    def worked(self, took_seconds: float) -> None:
        if self.trouble is not None:
            log.warning("Slurm answers again")
        self._failures, self._took, self.trouble = 0, took_seconds, None

    def failed(self, sentence: str) -> None:
        self._failures += 1
        self.say(sentence)

    def say(self, sentence: str) -> None:
        """What is in the way; once, as long as it is the same."""
        if sentence != self.trouble:
            self.trouble = sentence
            log.warning("%s", sentence)

    def pause(self, *, busy: bool, calm: bool) -> float:
        """Seconds until the next. Busy: something is about to happen; calm: something of ours is there.

        Whoever does not answer has nothing to do with us; so what it took to find out does not count.
        """
        if self._failures:
            return min(_LONGEST_AWAY_SECONDS, _AWAY_SECONDS * 2.0 ** min(self._failures - 1, 10))
        wanted = BUSY_SECONDS if busy else CALM_SECONDS if calm else self._period
        return max(min(wanted, self._period), min(_LONGEST_SECONDS, _TIMES_AS_LONG * self._took))
