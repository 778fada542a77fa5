"""What is to be written down: gathered in a parcel for each turn, and handed to the journal as one.

At once if somebody waits for it; what only has to be remembered waits a moment for company.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

from muster.model.job import JobId
from muster.server.looking import Looking
from muster.server.parcel import Parcel
from muster.store.rows import Estimate, ReportRow, StateKey, Token

_LATE_SECONDS = 0.02  # after which even what nobody waits for is written down


class Keeping(Looking, ABC):
    """The parcel of this turn, and those that are on their way to the disk."""

    def __init__(self) -> None:
        self._parcel = Parcel()
        self._under_way: list[Parcel] = []  # handed to the journal, not durable yet
        self._estimated: set[JobId] = set()  # jobs that wait, and for whom a start was estimated
        self._late: asyncio.TimerHandle | None = None  # for a parcel that nobody waits for
        self._loop = asyncio.get_running_loop()

    @abstractmethod
    def stir(self) -> None:
        """Something has happened: there will be a turn."""

    @abstractmethod
    def _is_durable(self, parcel: Parcel) -> None:
        """What follows from it happens now."""

    def keep_blob(self, key: str, body: bytes) -> None:
        self._parcel.blobs[key] = body

    def keep_estimate(self, estimate: Estimate) -> None:
        self._parcel.estimates.append(estimate)
        self._estimated.add(estimate.job)
        self.stir()

    def keep_reports(
        self, rows: Sequence[ReportRow], states: Mapping[StateKey, bytes], over: JobId | None = None
    ) -> None:
        """Write these with all else of this turn; of a job that is over, the states go."""
        self._parcel.reports += rows
        self._parcel.states.update(states)
        self._parcel.changed.update(job for job, _, _ in states)
        if over is not None:
            self._parcel.stateless.append(over)
        self.stir()

    @property
    def estimated(self) -> Collection[JobId]:
        """Jobs that wait, and for whom a start was estimated since the server is up."""
        return self._estimated

    def keep_token(self, token: Token) -> None:
        self._parcel.tokens.append(token)

    async def durable(self, *submitted: JobId) -> None:
        """Wait until all that was noted so far is on disk."""
        waiter = self._loop.create_future()
        self._parcel.waiters.append(waiter)
        self._parcel.submitted.extend(submitted)
        self.stir()
        await waiter

    def _hand_over_soon(self) -> None:
        """At once if somebody waits for it. What only has to be remembered waits for company."""
        if self._parcel.is_urgent:
            self.hand_over()
        elif self._parcel.has_anything and self._late is None:
            self._late = self._loop.call_later(_LATE_SECONDS, self.hand_over)

    def hand_over(self) -> None:
        """Give the journal all that was noted so far."""
        parcel = self._parcel
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if not parcel.has_anything:
            return
        self._parcel = Parcel()
        parcel.handed_at = self._loop.time()
        self._under_way.append(parcel)
        self.journal.write(parcel.batch(), self._when_durable(parcel))
        if self.journal.image_due():
            self.journal.take_image(self.fold)

    def _when_durable(self, parcel: Parcel) -> Callable[[BaseException | None], None]:
        def done(error: BaseException | None) -> None:
            if error is None:
                self._loop.call_soon_threadsafe(self._is_durable, parcel)

        return done

    @property
    def journal_lag_seconds(self) -> float:
        """For how long the oldest parcel has been on its way to the disk."""
        return self._loop.time() - self._under_way[0].handed_at if self._under_way else 0.0
