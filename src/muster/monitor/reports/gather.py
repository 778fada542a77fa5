"""Looking at what jobs say, again and again: one thread for all sources, some more for those that may block.

Those for whom somebody waits are looked at every tick, the others every tenth, a tenth of them at a time. A
source that is behind is looked at every tick until it has caught up. Whatever a job's user does, others have
their turn: a look is bounded by its source, a tick by its reports and its time, and what is left over comes
first in the next. A source whose looks are dear is given a rest after each.

What was heard waits, in order, until the owner fetches it: so who looks once more at an attempt that is over,
in whichever thread, can't overtake what was heard before. And nobody looks further until it was fetched.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from muster.model.ledger import Key
from muster.monitor.reports.report import Report, Source
from muster.monitor.reports.tail import Tail

log = logging.getLogger("muster")

TICK_SECONDS = 0.5
_SLOWLY = 10  # ticks from one look to the next, of those that nobody waits for
_MOST_REPORTS = 5000  # of a tick
_MOST_SECONDS = 0.25  # likewise
_REST = 10  # after a look, so many times what it took: at most a tenth of a core for each source
_ASIDE = 4  # threads
_QUICK_BYTES = 1 << 16  # that whoever waits for the last look may read himself
_MOST_LAST_LOOKS = 1000
_MOST_HEARD = 20  # last looks that may wait to be fetched
_FETCH_SECONDS = 0.01


class Heard(NamedTuple):
    """What one source said, and how far it has come with that."""

    key: Key
    reports: list[Report]
    position: bytes


class _Watch:
    """A source, and when to look at it."""

    __slots__ = (
        "due_at",
        "is_finishing",
        "is_over",
        "is_quiet",
        "key",
        "lock",
        "place",
        "source",
        "tick",
        "under_way",
    )

    def __init__(self, key: Key, source: Source, place: int) -> None:
        self.key, self.source, self.place = key, source, place
        self.is_quiet = source.is_quiet if isinstance(source, Tail) else None
        self.lock = threading.Lock()  # one look at a time
        self.due_at = 0.0
        self.tick = 0
        self.under_way = self.is_finishing = self.is_over = False


class Gatherer:
    """All sources of attempts that run. ``news`` is called, from any thread, when there is some to fetch."""

    def __init__(self, now: Callable[[], float], news: Callable[[], None]) -> None:
        self._now, self._news = now, news
        self._watches: dict[Key, _Watch] = {}
        self._rings: list[dict[Key, _Watch]] = [{} for _ in range(_SLOWLY)]
        self._soon: dict[Key, _Watch] = {}
        self._behind: dict[Key, _Watch] = {}
        self._left_over: list[_Watch] = []
        self._heard: deque[Heard] = deque()
        self._finished: deque[Key] = deque()
        self._tick = self._made = 0
        self._pools: dict[bool, ThreadPoolExecutor] = {}  # those that block are among themselves
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reports", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """What was heard by then can still be fetched."""
        self._ending.set()
        self._thread.join()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    # --- For the owner ------------------------------------------------------------------------------

    def watch(self, key: Key, source: Source, *, soon: bool) -> None:
        self._made += 1
        watch = self._watches[key] = _Watch(key, source, self._made % _SLOWLY)
        self._ring_of(watch, soon=soon)[key] = watch

    def hurry(self, key: Key, *, soon: bool) -> None:
        """Somebody waits for it now, or no longer."""
        watch = self._watches.get(key)
        if watch is not None:
            self._ring_of(watch, soon=not soon).pop(key, None)
            self._ring_of(watch, soon=soon)[key] = watch

    def _ring_of(self, watch: _Watch, *, soon: bool) -> dict[Key, _Watch]:
        return self._soon if soon else self._rings[watch.place]

    def knows(self, key: Key) -> bool:
        return key in self._watches

    def finish(self, key: Key) -> bool:
        """Hear the rest of an attempt that is over. False: that takes a while (see ``finished``)."""
        watch = self._watches.get(key)
        if watch is None:
            return True
        if watch.is_finishing:
            return False
        left = _left_bytes(watch.source)
        if left == 0 and not watch.lock.locked():  # as with most short jobs, which say nothing
            self.forget(key)
            return True
        if left <= _QUICK_BYTES and watch.lock.acquire(blocking=False):
            try:
                self._look(watch, last=True)
            finally:
                watch.lock.release()
            if not watch.source.is_behind:
                self.forget(key)
                return True
        watch.is_finishing = True
        self._aside(self._finish, watch)
        return False

    def forget(self, key: Key) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            watch.is_over = True
            for ring in (self._soon, self._rings[watch.place], self._behind):
                ring.pop(key, None)

    def fetched(self) -> Iterator[Heard]:
        """What was heard and not fetched yet."""
        while self._heard:
            yield self._heard.popleft()

    def finished(self) -> Iterator[Key]:
        """Those of which all has been heard, after it was asked for."""
        while self._finished:
            yield self._finished.popleft()

    # --- The thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        took = 0.0
        while not self._ending.wait(max(TICK_SECONDS - took, TICK_SECONDS / 5)):
            begun = time.monotonic()
            self.tick()
            took = time.monotonic() - begun

    def tick(self) -> None:
        """Look at whoever is due."""
        if self._heard:
            self._news()
            return
        begun, count = time.monotonic(), 0
        self._tick += 1
        due = self._due()
        for number, watch in enumerate(due):
            if watch.is_over or watch.tick == self._tick or watch.due_at > begun:
                continue
            watch.tick = self._tick
            if watch.is_quiet is None or not watch.is_quiet():
                count += self._look_or_send(watch)
            if count >= _MOST_REPORTS or time.monotonic() - begun > _MOST_SECONDS:
                self._left_over = due[number + 1 :]
                break
        if self._heard:
            self._news()

    def _due(self) -> list[_Watch]:
        left, self._left_over = self._left_over, []
        ring = self._rings[self._tick % _SLOWLY]
        return [*left, *self._behind.values(), *self._soon.values(), *ring.values()]

    def _look_or_send(self, watch: _Watch) -> int:
        if watch.source.may_block:
            self._send(watch)
        elif watch.lock.acquire(blocking=False):  # else somebody is there already
            try:
                return 0 if watch.is_over else self._look(watch)
            finally:
                watch.lock.release()
        return 0

    def _send(self, watch: _Watch) -> None:
        if not watch.under_way:
            watch.under_way = True
            self._aside(self._look_aside, watch)

    def _look_aside(self, watch: _Watch) -> None:
        with watch.lock:
            found = 0 if watch.is_over else self._look(watch)
        watch.under_way = False
        if found:
            self._news()

    def _look(self, watch: _Watch, *, last: bool = False) -> int:
        """Say how many reports there were."""
        begun, source = time.monotonic(), watch.source
        try:
            reports = source.poll(self._now(), last=last)
        except Exception:
            log.exception("what job %s reports could not be read", watch.key[0])
            reports = []
        if reports:
            self._heard.append(Heard(watch.key, reports, source.position))
        ended = time.monotonic()
        watch.due_at = ended + max(source.least_seconds, _REST * (ended - begun)) - TICK_SECONDS / 2
        if source.is_behind:
            self._behind[watch.key] = watch
        elif watch.key in self._behind:
            del self._behind[watch.key]
        return len(reports)

    def _finish(self, watch: _Watch) -> None:
        """Somebody may write on for ever: so not for ever."""
        with watch.lock:
            for _ in range(_MOST_LAST_LOOKS):
                self._look(watch, last=True)
                if not watch.source.is_behind:
                    break
                self._news()
                while len(self._heard) > _MOST_HEARD and not self._ending.wait(_FETCH_SECONDS):
                    pass
                if self._ending.is_set():
                    return  # it is not finished, and whoever comes next goes on from here
            self.forget(watch.key)
        self._finished.append(watch.key)
        self._news()

    def _aside(self, look: Callable[[_Watch], None], watch: _Watch) -> None:
        blocks = watch.source.may_block
        if blocks not in self._pools:
            self._pools[blocks] = ThreadPoolExecutor(_ASIDE, thread_name_prefix="reports")
        self._pools[blocks].submit(look, watch)


def _left_bytes(source: Source) -> float:
    """How much there is to read; of what is not a log, nobody knows."""
    return source.left_bytes() if isinstance(source, Tail) else math.inf
