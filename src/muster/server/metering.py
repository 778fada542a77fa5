"""Metering what runs: a look every few seconds, in a thread; what follows from it, in the service's.

A meter may throw, lie or hang. So looking is a thread's work, which is never waited for: while one look takes
long, the next ones are left out, and what was not measured lowers the coverage and nothing else. From two
looks follows a sample, from samples the series and the ledger (``monitor``), from a minute of them what the
steward finds (``watching``). An attempt's end brings a last sample, from what the kernel says of it then.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from muster.engines.base import Host, Key
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Event, Exited, Retried, Started, Vacated
from muster.model.job import Job, JobId
from muster.model.ledger import devices_of
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.units import MILLI, MINUTE
from muster.model.usage import AtEnd, NodeReading, Reading, Sample
from muster.monitor.agents.board import Said
from muster.monitor.agents.message import Heard, Told
from muster.monitor.lately import Lately
from muster.monitor.ledger import Ledger
from muster.monitor.meters.gather import Attended, Readings
from muster.monitor.meters.parts import PartSeen
from muster.monitor.rates import reading_at_start, sample_between
from muster.monitor.upkeep import Upkeep
from muster.server.answers import Used
from muster.server.config_tables import Monitor
from muster.server.errors import StoreTrouble
from muster.server.footing import Hears, Reader
from muster.server.signs import Signs
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.rows import Batch, UsageRows

log = logging.getLogger("muster")

_WRITE_SECONDS = 30.0  # how often what was measured is written down
_UPKEEP_SECONDS = 3600.0
_PATIENCE_SECONDS = 20.0  # how long who sums up waits for the store
_SILENT_PERIODS = 3  # after which what was measured last is no longer how it is
ITSELF = "meters"  # what a server measures by that reads its jobs itself
_METERED = frozenset({State.RUNNING, State.SUSPENDED, State.STOPPING})


class Metered(Protocol):
    """What is needed of the service."""

    fold: Fold
    engine: Host
    journal: Journal

    def hand_over(self) -> None:
        """Give the journal all that was noted so far."""
        ...


class Metering:
    """All that is measured, and the ledger of it. One thread, that of the service, but for the looks."""

    def __init__(self, home: Home, service: Metered, settings: Monitor, meters: Reader) -> None:
        self._service, self._settings = service, settings
        self._fold, self._engine, self._journal = service.fold, service.engine, service.journal
        self.ledger = Ledger()
        self.signs = Signs(home, self._engine.now)
        self.node: NodeReading | None = None
        self.nodes: Mapping[str, NodeReading] = {}  # where there are several
        self.newest: dict[Key, Sample] = {}
        self.reported: dict[JobId, dict[str, float]] = {}  # the last values of those that run
        self.caught_up = False  # whether the store has all of the ledger that was found at the start
        self._last: dict[Key, Reading] = {}
        self._cpus = float(os.cpu_count() or 1)  # all there are, whatever jobs may have of them
        self._lately: dict[Key, Lately] = {}
        self._meters = meters
        self._looking = False
        self._summing = asyncio.Lock()
        self._is_still = False
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self.upkeep = Upkeep(self._journal, settings.retention)
        self.after_a_look: Callable[[], None] | None = None

    @property
    def silent(self) -> dict[str, float]:
        """Meters that do not answer, and since when."""
        return self._meters.silent

    def readings(self) -> Mapping[str, NodeReading]:
        """By node, what the last look has shown of it."""
        here = self._engine.nodes()
        if self.nodes or self.node is None or len(here) != 1:
            return self.nodes
        return {here[0].name: self.node}

    # --- Agents -------------------------------------------------------------------------------------

    def hear(self, told: Told) -> Heard:
        """What an agent tells of its node."""
        if not isinstance(self._meters, Hears):
            raise BadInput("no agents are heard here: this server reads the meters of its jobs itself")
        return self._meters.hear(told)

    def agents(self) -> Mapping[str, Said]:
        """By node, when its agent spoke last."""
        return self._meters.said() if isinstance(self._meters, Hears) else {}

    def agents_of(self, running: Running) -> int:
        """On how many of its nodes an agent speaks."""
        if not isinstance(self._meters, Hears):
            return 0
        return self._meters.speaking((running.job.id, running.attempt), nodes_of(running))

    @property
    def has_sources(self) -> bool:
        """Whether some may be measured by one kind of meters, and some by another."""
        return isinstance(self._meters, Hears)

    def source_of(self, running: Running) -> str | None:
        """By which kind of meters it is measured; None: by none, lately."""
        key = (running.job.id, running.attempt)
        newest, last = self.newest.get(key), self._last.get(key)
        if newest is None or last is None or newest.at < self.speaks_from(self._engine.now()):
            return None
        return last.by or ITSELF

    @property
    def gpu_metric(self) -> str | None:
        """What is called busy here."""
        nodes = (self.node, *self.nodes.values())
        gpus = (gpu for node in nodes if node is not None for gpu in node.gpus)
        return next((gpu.metric for gpu in gpus if gpu.metric is not None), None)

    @property
    def minutes_kept_seconds(self) -> float:
        """For how long minutes are kept, and not only their hours."""
        return self._settings.retention.minutes_seconds

    def begin(self, now: float) -> None:
        for batch in self.ledger.catch_up(self._journal, now):
            self._journal.write(batch, _written)
        self._loop.call_soon(self._catch_up)  # when what the engine tells of the time before is in
        self._every(self._settings.period_seconds, self._look)
        self._every(_WRITE_SECONDS, self._write_now_and_then)
        self._every(_UPKEEP_SECONDS, self._keep_up)

    def _catch_up(self) -> None:
        def done(error: BaseException | None) -> None:
            self.caught_up = error is None

        self.write_down()
        self._journal.write(Batch(usage=UsageRows()), done)  # after all the rest

    def is_fresh(self, at: float, now: float) -> bool:
        """Whether what was read then still stands."""
        return now - at <= max(MINUTE, 3 * self._settings.period_seconds)

    def end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self.write_down()

    def _every(self, seconds: float, call: Callable[[], None]) -> None:
        place = len(self._timers)

        def again() -> None:
            self._timers[place] = self._loop.call_later(seconds, again)
            call()

        self._timers.append(self._loop.call_later(seconds, again))

    # --- Facts --------------------------------------------------------------------------------------

    def saw(self, event: Event, job: Job | None) -> None:
        """A fact that was folded in just now."""
        if isinstance(event, Exited | Vacated | Retried):
            self._ended(event)
        elif isinstance(event, Started):
            self._begun(event)
        self.ledger.apply(event, job)

    def _begun(self, event: Started) -> None:
        key = (event.job, event.attempt)
        self._last[key] = reading_at_start(*key, event.at, self._since_boot(event.at))

    def last_look(self, event: Exited | Vacated | Retried) -> None:
        """What the kernel says of an attempt that is over, as one more sample. Once."""
        key = (event.job, event.attempt)
        before = self._last.pop(key, None)
        if before is not None and event.at_end is not None:
            last = _last_reading(key, event.at, event.at_end, self._since_boot(event.at))
            self._take_sample(before, last, devices=())

    def _ended(self, event: Exited | Vacated | Retried) -> None:
        self.last_look(event)
        key = (event.job, event.attempt)
        self.newest.pop(key, None)
        self.reported.pop(event.job, None)
        self._lately.pop(key, None)
        self.signs.over(key)

    def _since_boot(self, at: float) -> float:
        """When that was, counted from the boot, the time that the machine slept included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - max(0.0, self._engine.now() - at)

    # --- Looking ------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Start a look, unless the last one is still under way."""
        cpus = sum(node.cpus_milli for node in self._fold.nodes.values()) / MILLI
        self._cpus = max(self._cpus, cpus)  # an attempt may sit on other machines, and on several
        running = [r for r in self._fold.running.values() if r.state in _METERED]
        located = self._engine.locate([(r.job.id, r.attempt) for r in running])
        attended = tuple(
            _attended(r, parts) for r in running if (parts := located.get((r.job.id, r.attempt))) is not None
        )
        if not self._looking:
            self._looking = True
            threading.Thread(target=self._read, args=(attended,), name="meters", daemon=True).start()

    def _read(self, attended: tuple[Attended, ...]) -> None:
        try:
            readings = self._meters.read(attended)
            self.signs.look(attended)
        except Exception:
            log.exception("the meters could not be read")
            readings = None
        self._loop.call_soon_threadsafe(self._have_read, readings)

    def _have_read(self, readings: Readings | None) -> None:
        self._looking = False
        if readings is None:
            return
        self.node, self.nodes = readings.node, readings.nodes
        for reading in readings.readings:
            self._take(reading)
        if self.after_a_look is not None:
            self.after_a_look()

    def _take(self, reading: Reading) -> None:
        key = (reading.job, reading.attempt)
        running = self._fold.running.get(reading.job)
        if running is None or running.attempt != reading.attempt:
            return
        before, self._last[key] = self._last.get(key), reading
        if before is not None:
            self._take_sample(before, reading, _devices_of(running))

    def _take_sample(self, before: Reading, after: Reading, devices: tuple[int, ...]) -> None:
        period = self._settings.period_seconds
        sample = sample_between(before, after, cpus=self._cpus, devices=devices, period_seconds=period)
        if sample is not None:
            self.ledger.add(sample)
            key = (after.job, after.attempt)
            self.newest[key] = sample
            self._lately.setdefault(key, Lately()).add(sample)

    def speaks_from(self, now: float) -> float:
        """From when on a sample tells how it is now."""
        return now - max(MINUTE, _SILENT_PERIODS * self._settings.period_seconds)

    def lately(self, running: Running) -> Lately | None:
        """Its last minutes."""
        return self._lately.get((running.job.id, running.attempt))

    def used(self, running: Running) -> Used | None:
        """What it has used in the last minutes; None: nothing is known of them."""
        newest, lately = self.newest.get((running.job.id, running.attempt)), self.lately(running)
        if newest is None or lately is None or newest.at < self.speaks_from(self._engine.now()):
            return None
        share, coverage = lately.share_of(running.held)
        return Used(
            share=share,
            coverage=coverage,
            cpus=lately.cpus,
            memory_bytes=newest.memory_bytes,
            gpu_busy=lately.gpu_busy,
            gpu_memory_bytes=list(newest.gpu_memory_bytes),
        )

    # --- Writing down -------------------------------------------------------------------------------

    def write_down(self) -> None:
        """After the facts that are in it."""
        self._service.hand_over()
        for batch in self.ledger.parcels(self._engine.now(), self._journal.last_seq):
            self._journal.write(batch, _written)

    def _write_now_and_then(self) -> None:
        if not self._is_still:  # else the next time
            self.write_down()

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """For who sums up: what is over is in the store, and what is not gets there when they are done.

        So nothing that is under way is found in the store as well, and nothing is on its way between.
        """
        async with self._summing:
            self.write_down()
            self._is_still = True
            try:
                await self._all_written()
                yield
            finally:
                self._is_still = False

    async def _all_written(self) -> None:
        done = self._loop.create_future()

        def told(error: BaseException | None) -> None:
            self._loop.call_soon_threadsafe(_settle, done, error)

        self._journal.write(Batch(usage=UsageRows()), told)  # is written after all that came before
        try:
            await asyncio.wait_for(done, 0 if self._journal.sick else _PATIENCE_SECONDS)
        except TimeoutError:
            why = self._journal.sick or "the store is slow"
            raise StoreTrouble(f"what was measured is not written down yet: {why}; ask again later") from None

    def _keep_up(self) -> None:
        threading.Thread(target=self._upkeep_aside, name="upkeep", daemon=True).start()

    def _upkeep_aside(self) -> None:
        try:
            self.upkeep.roll_up(self._engine.now())
            self.upkeep.prune(self._engine.now())
            self.upkeep.thin_all()
        except Exception:
            log.exception("old usage could not be tidied up")


def _attended(running: Running, parts: list[dict[str, object]]) -> Attended:
    seen = tuple(msgspec.convert(part, PartSeen) for part in parts)
    job, devices = running.job, devices_of(running.seats)
    return Attended(
        job.id,
        running.attempt,
        seen,
        tuple(held.device for held in devices),
        job.revives,
        nodes_of(running),
        tuple(held.node for held in devices),
        running.started_at,
    )


def _devices_of(running: Running) -> tuple[int, ...]:
    """Their numbers, node by node: of a gang on several nodes, a number may come again."""
    return tuple(held.device for held in devices_of(running.seats))


def nodes_of(running: Running) -> tuple[str, ...]:
    return tuple(dict.fromkeys(seat.node for seat in running.seats))


def _last_reading(key: Key, at: float, spent: AtEnd, since_boot_seconds: float) -> Reading:
    return Reading(
        job=key[0],
        attempt=key[1],
        at=at,
        since_boot_seconds=since_boot_seconds,
        cpu_seconds=spent.cpu_seconds,
        memory_peak_bytes=None,
    )


def _settle(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _written(error: BaseException | None) -> None:
    """What could not be written is measured no more; the journal says so itself."""
