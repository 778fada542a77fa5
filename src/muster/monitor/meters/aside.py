"""Asking what may never answer.

A driver that is wedged, a file server that is gone, a process whose memory is locked: whoever asks them
stands still in the kernel, and nothing wakes it. So they are asked in a thread aside, and waited for only so
long. While one is stuck it is not asked again: there is never more than one thread of each.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Aside(Generic[Answer]):
    """A question with patience. ``now`` says since when nobody answers."""

    def __init__(
        self, ask: Callable[..., Answer], *, patience_seconds: float, now: Callable[[], float]
    ) -> None:
        self._ask, self._patience_seconds, self._now = ask, patience_seconds, now
        self._thread: threading.Thread | None = None
        self.silent_since: float | None = None

    def __call__(self, *about: object) -> Answer | None:
        """The answer; None if there is none, because it takes too long or something is wrong."""
        if self._thread is not None and self._thread.is_alive():
            return None
        answers: list[Answer] = []  # this question's own: what comes too late is lost with it
        self._thread = threading.Thread(target=self._run, args=(answers, about), daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # there can't be another thread now
            self._thread = None
        else:
            self._thread.join(self._patience_seconds)
        if answers:
            self.silent_since = None
            return answers[0]
        self.silent_since = self._now() if self.silent_since is None else self.silent_since
        return None

    def _run(self, answers: list[Answer], about: tuple[object, ...]) -> None:
        try:
            answers.append(self._ask(*about))
        except Exception:  # it is broken: that is silence, too
            return
