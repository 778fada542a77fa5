"""The page that Prometheus reads: figures of now, and counters that never fall.

A counter that falls is taken to have begun anew, and all of it for what happened since; so none may, whatever
happens. What was used counts when it is durable: the store keeps the totals (``store.usage_totals``). What
lives is counted as held until a few seconds ago, as the end of an attempt may be told a moment late; and when
it has ended and is not yet durable, the counter stands still. Until all that was found at a start is durable,
nothing of it is told.
"""

import asyncio
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from muster import __version__
from muster.model.ledger import TICKS, Entry, held_between, span_of
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Running
from muster.model.units import MILLI
from muster.model.usage import Sample, Usage
from muster.server import figures
from muster.server import metrics as m
from muster.server.figures import TeamNames
from muster.server.metering import Metering
from muster.server.outlook.forecast import Accuracy, accuracy
from muster.server.prometheus import Figure, Labels, Metric, exposition
from muster.server.service import Service
from muster.store.database import StoreError

SETTLED_SECONDS = 5.0  # until then an end may still come that was earlier
_ACCURACY_SECONDS = 300.0  # for which what was found of estimates stands
_ESTIMATES = 1000


class Scrape:
    """Makes the page. One thread, that of the service, but for what is asked of the store."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._started_at = time.time()
        self._names = TeamNames(lambda: service.fold.teams)
        self._rising = Rising()
        self._accuracy = Accuracy()
        self._accuracy_at = -_ACCURACY_SECONDS

    async def page(self) -> bytes:
        totals = await asyncio.to_thread(self._ask)
        return exposition(self._figures(totals))

    def _ask(self) -> dict[str, Usage] | None:
        """What the store knows; None if it can't be read now."""
        journal, now = self._service.journal, time.monotonic()
        try:
            if now - self._accuracy_at >= _ACCURACY_SECONDS:
                settled = journal.estimates_settled(_ESTIMATES)
                self._accuracy = accuracy((said, said.started_at) for said in settled)
                self._accuracy_at = now
            return journal.usage_totals()
        except StoreError:
            return None

    def _figures(self, totals: dict[str, Usage] | None) -> Iterator[Figure]:
        service, names, now = self._service, self._names, self._service.now()
        fold, metering, watching = service.fold, service.metering, service.watching
        assert metering is not None  # nobody asks before all is put together
        assert watching is not None
        self._know_teams(totals or {})
        yield from self._of_server()
        yield from figures.of_jobs(fold, service.ended, names, now)
        yield from figures.of_findings(watching.findings, fold.running)
        yield from self._of_seats(metering, now)
        if totals is not None and metering.caught_up:
            until = now - SETTLED_SECONDS
            yield from self._rising(of_ledger(totals, metering.ledger.living, names, until))
        yield from self._of_nodes(metering, now)
        yield m.METERS_SILENT, (), len(metering.silent)
        yield from ((m.METER_SILENT, (who,), now - since) for who, since in metering.silent.items())

    def _know_teams(self, totals: Iterable[str]) -> None:
        """All that ever were, so that each has its figures from the start, if only zeros."""
        declared = self._service.fold.teams
        for team in (*(declared or ("",)), *(team for team, _ in self._service.ended), *totals):
            self._names(team)

    def _of_server(self) -> Iterator[Figure]:
        service, estimates = self._service, self._accuracy
        yield m.BUILD, (__version__, platform.python_version()), 1
        yield m.STARTED, (), self._started_at
        yield m.CYCLES, (), service.cycles
        yield m.CYCLE_SECONDS, (), service.cycle_seconds
        yield m.LAST_CYCLE, (), service.last_cycle_seconds if service.cycles else None
        yield m.JOURNAL_LAG, (), service.journal_lag_seconds
        yield m.JOURNAL_FAILS, (), int(service.journal.sick is not None)
        yield m.ESTIMATES, (), estimates.jobs
        yield m.ESTIMATE_ERROR, (), estimates.median_error_seconds
        yield m.ESTIMATE_WITHIN, (), estimates.within

    def _of_nodes(self, metering: Metering, now: float) -> Iterator[Figure]:
        fold, readings = self._service.fold, metering.readings()
        held = figures.held_devices(fold.running.values())
        for node in fold.nodes.values():
            yield from figures.of_node(node)
            read = readings.get(node.name)
            fresh = read is not None and metering.is_fresh(read.at, now)
            yield from figures.of_gpus(node, read.gpus if read else (), held, fresh=fresh)
            if read is not None and fresh:
                yield from figures.of_reading(node.name, read)

    def _of_seats(self, metering: Metering, now: float) -> Iterator[Figure]:
        def sample_of(running: Running) -> Sample | None:
            sample = metering.newest.get((running.job.id, running.attempt))
            return sample if sample is not None and metering.is_fresh(sample.at, now) else None

        return figures.of_seats(self._service.fold.running.values(), sample_of, self._names)


def of_ledger(
    totals: Mapping[str, Usage], living: Iterable[Entry], names: TeamNames, until: float
) -> Iterator[Figure]:
    """What is durable, and what lives has held until then."""
    sums: defaultdict[str, Usage] = defaultdict(Usage)
    for some in (totals, _held_until(living, until)):
        for team, usage in some.items():
            sums[names(team)] += usage
    for name in names.known:
        yield from _of_usage(sums[name], (name,))


def _held_until(living: Iterable[Entry], until: float) -> dict[str, Usage]:
    held, held_ticks = dict[str, Resources](), Counter[str]()
    for entry in living:
        if entry.ended_at is not None and entry.ended_at - entry.placed_at < SETTLED_SECONDS:
            continue  # nothing of it was ever counted, and there may be thousands
        first, last = span_of(entry, 0.0, until)
        held[entry.team] = held.get(entry.team, NOTHING) + held_between(entry, first, last)
        held_ticks[entry.team] += last - first
    return {team: Usage(some, held_seconds=held_ticks[team] / TICKS) for team, some in held.items()}


def _of_usage(usage: Usage, team: Labels) -> Iterator[Figure]:
    held, measured, used = usage.held, usage.measured, usage.used
    yield m.HELD_CPU_SECONDS, team, held.cpus_milli / MILLI
    yield m.HELD_BYTE_SECONDS, team, held.memory_bytes
    yield m.HELD_GPU_SECONDS, team, held.gpus_milli / MILLI
    yield m.HELD_SECONDS, team, usage.held_seconds
    yield m.MEASURED_CPU_SECONDS, team, measured.cpus_milli / MILLI
    yield m.MEASURED_BYTE_SECONDS, team, measured.memory_bytes
    yield m.MEASURED_GPU_SECONDS, team, measured.gpus_milli / MILLI
    yield m.MEASURED_SECONDS, team, usage.measured_seconds
    yield m.USED_CPU_SECONDS, team, used.cpus_milli / MILLI
    yield m.USED_BYTE_SECONDS, team, used.memory_bytes
    yield m.USED_GPU_SECONDS, team, used.gpus_milli / MILLI


class Rising:
    """Lets no figure be less than it was."""

    def __init__(self) -> None:
        self._most: dict[tuple[Metric, Labels], float] = {}

    def __call__(self, some: Iterable[Figure]) -> Iterator[Figure]:
        for metric, labels, value in some:
            most = max(value or 0.0, self._most.get((metric, labels), 0.0))
            self._most[metric, labels] = most
            yield metric, labels, most
