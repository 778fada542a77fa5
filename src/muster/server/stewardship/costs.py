"""What something has cost so far: held, truly used, and in money where things have a price.

It is the ledger's arithmetic, over the whole life of a job, an array or an effort; what is under way counts.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

import msgspec

from muster.model.events import Outcome
from muster.model.job import JobId
from muster.model.ledger import Booked, By, Entry, Key, Spent, usage_of
from muster.model.stewardship import of_effort
from muster.model.units import MILLI, show_count
from muster.model.usage import Usage
from muster.server import members
from muster.server.answers import JobView, UseRow
from muster.server.errors import NotFound
from muster.server.http import Call, Route
from muster.server.metering import Metering
from muster.server.service import Service
from muster.server.use import row_of
from muster.steward.budget import Budget, Prices, scale_of
from muster.steward.held import NOTHING_HELD, HeldTime, Holding

_LATEST = 60  # jobs of an effort that have ended


class AttemptView(msgspec.Struct):
    """One try of a job: from when it held its seats until it left them."""

    attempt: int
    placed_at: float
    started_at: float | None
    ended_at: float | None  # None: it lives
    outcome: Outcome | None  # None: it lives, or had to leave before it was done
    nodes: list[str]
    gpus: float


class CostView(msgspec.Struct):
    """Of all attempts together, and of an array all members."""

    total: UseRow
    money: float | None = None  # None: nothing has a price here
    currency: str | None = None
    attempts: list[AttemptView] = []  # of a single job


class EffortCost(msgspec.Struct):
    """Of all of its jobs; by how they have ended; and those that ended last."""

    total: UseRow
    by_verdict: list[UseRow]
    money: float | None = None
    currency: str | None = None
    ended: list[JobView] = []


class CostRoutes:
    """The handlers."""

    def __init__(self, service: Service, prices: Callable[[], Prices]) -> None:
        self._service, self._prices = service, prices

    @property
    def _metering(self) -> Metering:
        metering = self._service.metering
        assert metering is not None, "a server meters"
        return metering

    # --- Jobs ---------------------------------------------------------------------------------------

    async def job(self, call: Call) -> CostView:
        ids = members.each(self._service, call.path[0])
        ledger, journal = self._metering.ledger, self._service.journal
        async with self._metering.still():
            now = self._service.now()
            wanted = set(ids)
            living = {entry.key: entry for entry in ledger.living if entry.job in wanted}
            under_way = [one for one in ledger.under_way(now) if one.key in living]
            stored = await asyncio.to_thread(journal.entries_of, wanted)
        return self._cost_of(_merged(stored, living), under_way, now, with_attempts=len(ids) == 1)

    def _cost_of(
        self, entries: Mapping[Key, Entry], under_way: Collection[Booked], now: float, *, with_attempts: bool
    ) -> CostView:
        usage = sum((usage_of(one, _spent(one, under_way), 0.0, now) for one in entries.values()), Usage())
        held = sum((self._held(one, now) for one in entries.values()), NOTHING_HELD)
        attempts = [self._attempt(entries[key]) for key in sorted(entries)] if with_attempts else []
        return CostView(row_of(usage), *self._in_money(held), attempts)

    def _held(self, entry: Entry, now: float) -> HeldTime:
        models = tuple((self._model(one.node, one.device), one.milli) for one in entry.devices)
        holding = Holding(entry.holds.cpus_milli, entry.holds.memory_bytes, models)
        end = now if entry.ended_at is None else entry.ended_at
        return holding.between(entry.placed_at, entry.placed_at, max(end, entry.placed_at))

    def _model(self, node: str, device: int) -> str:
        """Of a GPU, also of one that has left since."""
        known = self._service.fold.nodes.get(node)
        return known.devices[device].model if known is not None and device < len(known.devices) else ""

    def _in_money(self, held: HeldTime) -> tuple[float | None, str | None]:
        prices = self._prices()
        if prices.currency is None:
            return None, None
        return float(scale_of(Budget(Fraction(1), prices.currency), prices).of(held)), prices.currency

    def _attempt(self, entry: Entry) -> AttemptView:
        ahead = self._service.fold.wall_ahead_seconds
        return AttemptView(
            entry.attempt,
            entry.placed_at + ahead,
            None if entry.started_at is None else entry.started_at + ahead,
            None if entry.ended_at is None else entry.ended_at + ahead,
            entry.outcome,
            list(dict.fromkeys(one.node for one in entry.devices)),
            sum(one.milli for one in entry.devices) / MILLI,
        )

    # --- Efforts ------------------------------------------------------------------------------------

    async def effort(self, call: Call) -> EffortCost:
        name, stewardship = call.path[0], self._service.fold.stewardship
        if name not in stewardship.efforts:
            raise NotFound(f"there is no effort {name[:80]!r}; muster effort ls lists them")
        ledger, journal = self._metering.ledger, self._service.journal
        async with self._metering.still():
            now = self._service.now()
            living, under_way = ledger.living, ledger.under_way(now)

            def asked() -> tuple[dict[str | None, Usage], list[JobId]]:
                sums = journal.usage_between(
                    0.0,
                    now,
                    By.VERDICT,
                    now=now,
                    living=living,
                    under_way=under_way,
                    among={By.EFFORT: name},
                )
                return sums, [one.job for one in journal.attempts_ended(4 * _LATEST, effort=name)]

            sums, ids = await asyncio.to_thread(asked)
        rows = [row_of(usage, verdict) for verdict, usage in sums.items()]
        rows.sort(key=lambda row: (-row.gpu_held_seconds, -(row.cpu_held_seconds or 0.0)))
        total = row_of(sum(sums.values(), Usage()))
        return EffortCost(total, rows, *self._money_of(name), self._ended(ids))

    def _money_of(self, name: str) -> tuple[float | None, str | None]:
        currency, budgets = self._prices().currency, self._service.budgets
        if currency is None or budgets is None:
            return None, None
        return budgets.spent_in(of_effort(name), Budget(Fraction(1), currency)), currency

    def _ended(self, ids: list[JobId]) -> list[JobView]:
        """Each once, the latest first; those that are in line again are not over."""
        views = (self._service.look_up(one) for one in dict.fromkeys(ids))
        return [view for view in views if view is not None and view.ended_at is not None][:_LATEST]

    def table(self) -> list[Route]:
        job, effort = "/api/v1/jobs/{id}/cost", "/api/v1/efforts/{id}/cost"
        about = "What it held and used in all, in money, and by which attempts."
        return [
            Route("GET", job, self.job, CostView, about, errors=(507,)),
            Route(
                "GET",
                effort,
                self.effort,
                EffortCost,
                f"What it held and used in all, how that ended, and the last {show_count(_LATEST, 'job')}.",
                errors=(507,),
            ),
        ]


def _merged(stored: Mapping[Key, Entry], living: Mapping[Key, Entry]) -> dict[Key, Entry]:
    """The ledger's word on what lives, unless its end is written down by now."""
    return {**living, **{key: one for key, one in stored.items() if key not in living or one.ended_at}}


def _spent(entry: Entry, under_way: Collection[Booked]) -> Spent:
    return sum((one.spent for one in under_way if one.key == entry.key), entry.spent)
