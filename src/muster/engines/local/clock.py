"""Wall time that never goes back, even when someone sets the clock."""

import time


class Clock:
    """At any moment the wall's time, or what has passed since the last look, whichever is later."""

    def __init__(self) -> None:
        self._wall, self._monotonic = time.time(), time.monotonic()

    def now(self) -> float:
        monotonic = time.monotonic()
        self._wall = max(time.time(), self._wall + monotonic - self._monotonic)
        self._monotonic = monotonic
        return self._wall
