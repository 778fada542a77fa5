"""A courier carries envelopes over one channel, in a thread of its own: nobody waits for it.

What was not taken is tried again after intervals that grow, a few times within an hour; then it is given up,
and whoever handed it over decides what becomes of it. How many may be on their way is bounded.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

from muster.model.units import MINUTE
from muster.server.stewardship.channels.base import Envelope, NotTaken, Sender

log = logging.getLogger("muster")

INTERVALS_SECONDS = (10.0, MINUTE, 5 * MINUTE, 15 * MINUTE, 35 * MINUTE)  # six tries, within an hour
MOST_UNDER_WAY = 1000

# Called in the courier's thread: what it looks up may take a while. None: it is not wanted any more.
Write = Callable[[], Envelope | None]
Done = Callable[[NotTaken | None], None]  # called there too, once


class Courier:
    """One channel's."""

    def __init__(
        self, name: str, sender: Sender, intervals_seconds: tuple[float, ...] = INTERVALS_SECONDS
    ) -> None:
        self.name, self._sender, self._intervals = name, sender, intervals_seconds
        self.trouble: str | None = None  # why the last one was not taken
        self._order = itertools.count()  # of two that are due at once the first comes first
        self._todo: list[tuple[float, int, int, Write, Done]] = []  # when, order, tries so far
        self._changed = threading.Condition()
        self._is_closed = False
        self.is_busy = False  # with one of them
        self._thread = threading.Thread(target=self._work, name=f"channel-{name}", daemon=True)
        self._thread.start()

    def carry(self, write: Write, done: Done) -> bool:
        """Take one along; False if there are too many already."""
        with self._changed:
            if self._is_closed or len(self._todo) >= MOST_UNDER_WAY:
                return False
            self._put(0.0, 0, write, done)
        return True

    def close(self) -> None:
        """Carry nothing more. What is under way is not waited for: it is written down as not delivered."""
        with self._changed:
            self._is_closed = True
            self._todo.clear()
            self._changed.notify()

    def _put(self, after_seconds: float, tries: int, write: Write, done: Done) -> None:
        due = time.monotonic() + after_seconds
        heapq.heappush(self._todo, (due, next(self._order), tries, write, done))
        self._changed.notify()

    def _work(self) -> None:
        while (found := self._next()) is not None:
            tries, write, done = found
            try:
                envelope = write()
                if envelope is not None:
                    self._sender.send(envelope)
                    self._taken()
            except NotTaken as trouble:
                self._not_taken(trouble, tries + 1, write, done)
            except Exception as error:  # what it says may hold a secret
                self._not_taken(NotTaken(f"it failed ({type(error).__name__})"), tries + 1, write, done)
            else:
                done(None)
            self.is_busy = False

    def _next(self) -> tuple[int, Write, Done] | None:
        with self._changed:
            while not self._is_closed:
                wait = self._todo[0][0] - time.monotonic() if self._todo else None
                if wait is not None and wait <= 0:
                    _, _, tries, write, done = heapq.heappop(self._todo)
                    self.is_busy = True
                    return tries, write, done
                self._changed.wait(wait)
        return None

    def _not_taken(self, trouble: NotTaken, tries: int, write: Write, done: Done) -> None:
        if self.trouble is None:  # once, until it works again
            log.warning("channel %s does not take messages: %s", self.name, trouble)
        self.trouble = str(trouble)
        if trouble.for_good or tries > len(self._intervals):
            done(trouble)
            return
        with self._changed:
            if not self._is_closed:
                self._put(self._intervals[tries - 1], tries, write, done)

    def _taken(self) -> None:
        if self.trouble is not None:
            log.warning("channel %s takes messages again", self.name)
            self.trouble = None
