"""A loop in which time passes when nothing else is to be done: a day takes no time at all."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any


class _Patient(selectors.DefaultSelector):
    """Nobody else will ever call: instead of waiting, it is later."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._patient = _Patient()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.now


def run_at_once(story: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine function from its beginning to its end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story())  # type: ignore[arg-type]
