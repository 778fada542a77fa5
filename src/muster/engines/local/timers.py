"""What is to be done later, in monotonic time."""

import heapq
import time
from collections.abc import Callable

_FEW = 64


class Timer:
    """A call that is due at a time, unless it is cancelled before."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None

    def __lt__(self, other: "Timer") -> bool:
        return self.due < other.due


class Timers:
    """The calls to come. What was cancelled is swept out once it is the larger part."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._swept = _FEW

    def at(self, due: float, call: Callable[[], None]) -> Timer:
        timer = Timer(due, call)
        heapq.heappush(self._heap, timer)
        if len(self._heap) > 2 * self._swept:
            self._heap = [t for t in self._heap if t.call is not None]
            heapq.heapify(self._heap)
            self._swept = max(_FEW, len(self._heap))
        return timer

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self.at(time.monotonic() + seconds, call)

    def wait_seconds(self) -> float | None:
        """How long until the next; None: for ever."""
        while self._heap and self._heap[0].call is None:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0].due - time.monotonic()) if self._heap else None

    def run(self) -> None:
        """Make the calls that are due."""
        now = time.monotonic()
        while self._heap and self._heap[0].due <= now:
            timer = heapq.heappop(self._heap)
            if timer.call is not None:
                timer.call()
