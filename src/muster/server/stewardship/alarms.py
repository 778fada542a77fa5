"""Moments at which to look at something again: many of them, and one timer."""

import asyncio
import heapq
from collections.abc import Callable

_LEAST_SECONDS = 0.001  # as fine as the loop's timers are
_FEW = 64  # that were set otherwise since, and are not worth sweeping out
_MOST_SECONDS = 3600.0  # a timer that is set for long may be off by then


class Alarms:
    """For each key one moment, by the clock that is given. ``ring`` is called when it has come."""

    def __init__(self, now: Callable[[], float], ring: Callable[[str], None]) -> None:
        self._now, self._ring = now, ring
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []  # those that were set otherwise since are passed over
        self._timer: asyncio.TimerHandle | None = None
        self._timed_for = 0.0
        self._loop = asyncio.get_running_loop()

    def set(self, key: str, at: float | None) -> None:
        """At another moment than before, if there was one; None: not at all."""
        if at is None:
            self._at.pop(key, None)
            return
        if self._at.get(key) != at:
            self._at[key] = at
            heapq.heappush(self._heap, (at, key))
            if len(self._heap) > _FEW + 2 * len(self._at):
                self._heap = [(at, key) for key, at in self._at.items()]
                heapq.heapify(self._heap)
        self._wind()

    def clear(self) -> None:
        self._at.clear()
        self._heap.clear()
        self._wind()

    def _wind(self) -> None:
        """Set the timer for what comes first, unless it is."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        first = self._heap[0][0] if self._heap else None
        if self._timer is not None:
            if first == self._timed_for:
                return
            self._timer.cancel()
            self._timer = None
        if first is not None:
            self._timed_for = first
            seconds = min(max(first - self._now(), _LEAST_SECONDS), _MOST_SECONDS)
            self._timer = self._loop.call_later(seconds, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now, due = self._now(), []
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                due.append(key)
        for key in due:
            self._ring(key)
        self._wind()
