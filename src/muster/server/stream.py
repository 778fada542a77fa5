"""Who wants to hear of changes: each listener has a bounded set of jobs that changed since it last looked."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from muster.model.job import JobId

KEEP_ALIVE_SECONDS = 15.0


class Stream:
    """Changes of jobs, to all who listen. A slow listener hears of a job once, with its latest view."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self.is_closed = False

    def close(self) -> None:
        """Nothing more will change here: let everybody go."""
        self.is_closed = True
        for listener in self._listeners:
            listener.wake()

    def publish(self, changed: Iterable[JobId]) -> None:
        for listener in self._listeners:
            listener.hear(changed)

    async def changes(self, only: frozenset[JobId] | None = None) -> AsyncIterator[list[JobId]]:
        """Jobs that changed, as they do; an empty list now and then, when nothing happens.

        ``only`` these, and the members of those of them that are arrays.
        """
        listener = _Listener(only)
        self._listeners.add(listener)
        try:
            while not self.is_closed:
                yield await listener.next()
        finally:
            self._listeners.discard(listener)


class _Listener:
    def __init__(self, only: frozenset[JobId] | None) -> None:
        self._only = only
        self._changed: dict[JobId, None] = {}  # in the order in which they changed first
        self._awake = asyncio.Event()

    def hear(self, changed: Iterable[JobId]) -> None:
        for job_id in changed:
            if self._only is None or not self._only.isdisjoint((job_id, job_id.partition("_")[0])):
                self._changed[job_id] = None
                self._awake.set()

    def wake(self) -> None:
        self._awake.set()

    async def next(self) -> list[JobId]:
        try:
            await asyncio.wait_for(self._awake.wait(), KEEP_ALIVE_SECONDS)
        except TimeoutError:
            return []
        self._awake.clear()
        changed, self._changed = list(self._changed), {}
        return changed
