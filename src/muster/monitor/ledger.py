"""The ledger: for each attempt, what it held and what was measured of it; never twice, whatever happens.

Held follows from the journal: it says when an attempt got its seats and when it left them. Used comes from
samples, by way of closed minutes (``series``). An attempt's *entry* and its minutes become durable together,
each under its own key, so that an entry is always the sum of its minutes, and writing again changes nothing.

With them goes how far in the journal the ledger has come. A start takes the entries that live, and folds in
the events since. A server that was killed has lost the minutes that it had not written, and no held second.
No row may be ahead of the journal, so ``parcels`` are taken when all events so far have been handed over.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf

from msgspec.structs import replace

from muster.model.events import (
    ArraySubmitted,
    Event,
    Exited,
    Placed,
    Resumed,
    Retried,
    Seated,
    Started,
    StoodDown,
    Submitted,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.history import kind_of
from muster.model.job import Job, JobId
from muster.model.ledger import Booked, Entry, Key, devices_of, spent_in, with_minute
from muster.model.room import held_by
from muster.model.usage import Rollup, Sample
from muster.monitor.series import Series
from muster.store.journal import Journal, StoreBroken
from muster.store.rows import Batch, UsageRows

_ROWS_IN_A_PARCEL = 100  # a few milliseconds of the writer's time
_EVENTS_UNNOTED = 1000  # that may pass without a word about how far we are


class Ledger:
    """What lives, and what has changed since it was last written down. One thread, that of the state."""

    def __init__(self, series: Series | None = None) -> None:
        self.series = series or Series()
        self._entries: dict[Key, Entry] = {}
        self._changed: dict[Key, None] = {}  # in order, as is the next
        self._ended: dict[Key, None] = {}  # of which the last minute is not in yet
        self._noted_seq = 0
        self._lined_up: dict[Key, tuple[Placed, Job]] = {}  # who hold nothing yet

    # --- In -----------------------------------------------------------------------------------------

    def apply(self, event: Event, job: Job | None = None) -> None:
        """Take a fact in, after it was folded. ``job`` is asked for with ``Placed``. Twice does no harm."""
        if isinstance(event, Placed):
            assert job is not None
            if _holds_nothing(event):
                self._lined_up[event.job, event.attempt] = (event, job)
            else:
                self._placed(event, job)
        elif isinstance(event, Seated):
            self._seated(event)
        elif isinstance(event, StoodDown):
            self._lined_up.pop((event.job, event.attempt), None)
        elif isinstance(event, Exited | Retried | Vacated):
            self._take_seats(event)
            self._left(event)
        elif isinstance(event, Started | Suspended | Resumed):
            self._take_seats(event)
            self._went_on(event)

    def entry(self, job: JobId, attempt: int) -> Entry | None:
        return self._entries.get((job, attempt))

    def _take_seats(self, event: Started | Suspended | Resumed | Exited | Retried | Vacated) -> None:
        """Who was lined up holds its seats from when it is first heard of."""
        placed = self._lined_up.pop((event.job, event.attempt), None)
        if placed is not None:
            self._placed(replace(placed[0], at=event.at), placed[1])

    def _seated(self, event: Seated) -> None:
        """It holds other seats than was decided, and not before now. Nothing of it was measured yet."""
        key = (event.job, event.attempt)
        placed = self._lined_up.pop(key, None)
        entry = self._entries.get(key)
        if placed is not None:
            self._placed(replace(placed[0], at=event.at, seats=event.seats), placed[1])
        elif entry is not None and entry.started_at is None:
            holds, devices = held_by(event.seats), devices_of(event.seats)
            self._enter(replace(entry, holds=holds, devices=devices, placed_at=event.at))
            self.series.forget(*key)
            self.series.hold(*key, event.at, len(devices))

    def add(self, sample: Sample) -> None:
        self.series.add(sample)

    def _placed(self, event: Placed, job: Job) -> None:
        key = (event.job, event.attempt)
        if key not in self._entries:
            entry = self._entry(event, job)
            self._enter(entry)
            self.series.hold(*key, event.at, len(entry.devices))

    def _entry(self, event: Placed, job: Job) -> Entry:
        return Entry(
            job=event.job,
            attempt=event.attempt,
            owner=job.owner,
            team=job.team,
            effort=job.effort,
            name=job.name,
            kind=kind_of(job.name),
            holds=held_by(event.seats),
            devices=devices_of(event.seats),
            placed_at=event.at,
        )

    def _went_on(self, event: Started | Suspended | Resumed) -> None:
        entry = self._entries.get((event.job, event.attempt))
        if entry is None:
            return
        if isinstance(event, Started):
            entry = replace(entry, started_at=event.at)
        elif isinstance(event, Suspended) and event.at > (entry.resumed_at or -inf):
            entry = replace(entry, suspended_at=event.at)
        elif isinstance(event, Resumed) and entry.suspended_at is not None:
            seconds = entry.suspended_seconds + max(0.0, event.at - entry.suspended_at)
            entry = replace(entry, suspended_at=None, resumed_at=event.at, suspended_seconds=seconds)
        self._enter(entry)

    def _left(self, event: Exited | Retried | Vacated) -> None:
        entry = self._entries.get((event.job, event.attempt))
        if entry is None:
            return
        outcome = None if isinstance(event, Vacated) else event.outcome
        self._enter(replace(entry, ended_at=max(event.at, entry.placed_at), outcome=outcome))
        self._ended[entry.key] = None
        self.series.leave(event.job, event.attempt, event.at)

    def _enter(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self._changed[entry.key] = None

    # --- Out ----------------------------------------------------------------------------------------

    @property
    def living(self) -> list[Entry]:
        """All that hold seats, and those that have left and are not written down yet."""
        return [e for key, e in self._entries.items() if e.ended_at is None or key in self._changed]

    def under_way(self, now: float) -> list[Booked]:
        """The minutes that are not over yet: with those that are written down, and ``living``, it is all."""
        return [self._booked(minute) for minute in self.series.under_way(now)]

    def parcels(self, now: float, seq: int) -> list[Batch]:
        """What has changed, in small parcels. All events up to ``seq`` are in the ledger, and no others."""
        minutes: dict[Key, list[Booked]] = {}
        for rollup in self.series.closed(now):
            if rollup.measured_seconds:  # a minute in which nothing was measured leaves no row
                minute = self._booked(rollup)
                minutes.setdefault(minute.key, []).append(minute)
                self._enter(with_minute(self._entries[minute.key], minute))
        changed = [(self._entries[key], minutes.get(key, [])) for key in self._changed]
        self._changed.clear()
        self._forget_ended()
        if not changed and seq - self._noted_seq < _EVENTS_UNNOTED:
            return []
        parts = list(_parted(changed)) or [UsageRows()]
        parts[-1].seq = self._noted_seq = seq
        return [Batch(usage=rows) for rows in parts]

    def _booked(self, rollup: Rollup) -> Booked:
        return Booked(rollup, spent_in(rollup, self._entries[rollup.job, rollup.attempt]))

    def _forget_ended(self) -> None:
        """Those whose last minute is in."""
        for key in [key for key in self._ended if not self.series.knows(*key)]:
            del self._ended[key], self._entries[key]

    # --- After a start --------------------------------------------------------------------------------

    def catch_up(self, journal: Journal, now: float) -> Iterator[Batch]:
        """Go on from what is written down; the parcels are to be written as they come.

        With a store of an older version this is all of its history: what was held then is known, too.
        """
        seq = self._noted_seq = journal.usage_seq()
        for entry in journal.entries_living():
            self._resume(entry, now)
        jobs, events = _Jobs(journal), journal.events_after(seq)
        while page := list(islice(events, _EVENTS_UNNOTED)):
            written = journal.entries_of({event.job for event in page if isinstance(event, Placed)})
            for event in page:
                jobs.saw(event)
                self._replay(event, jobs, written, now)
            seq += len(page)
            yield from self.parcels(now, seq)

    def _replay(self, event: Event, jobs: "_Jobs", written: dict[Key, Entry], now: float) -> None:
        """A fact that may be in its entry already: the server was killed between two parcels."""
        if isinstance(event, Placed) and (event.job, event.attempt) not in self._entries:
            entry = written.get((event.job, event.attempt))
            if entry is None and _holds_nothing(event):
                self.apply(event, jobs.find(event.job))
                return
            entry = entry or self._entry(event, jobs.find(event.job))
            self._resume(replace(entry, ended_at=None, outcome=None), now)
        elif not isinstance(event, Placed):
            self.apply(event)

    def _resume(self, entry: Entry, now: float) -> None:
        """What came before now was measured by another, or by nobody."""
        self._enter(entry)
        counted_until = max(now, entry.counted_until or now)
        self.series.hold(*entry.key, entry.placed_at, len(entry.devices), counted_until)


def _holds_nothing(event: Placed) -> bool:
    """It is lined up, or the engine has yet to say where it sits."""
    return event.behind is not None or not event.seats


class _Jobs:
    """Looks up what was submitted under an id: among what came by lately, or in the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lately: dict[JobId, Job] = {}

    def saw(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self._lately[event.job.id] = event.job
        elif isinstance(event, ArraySubmitted):
            self._lately[event.template.id] = event.template
        elif isinstance(event, Exited | Withdrawn):
            self._lately.pop(event.job, None)

    def find(self, job_id: JobId) -> Job:
        """The job, or the array that it is a member of: what the ledger asks is the same for all of it."""
        array, _, _ = job_id.rpartition("_")
        for name in (job_id, array):
            if name not in self._lately:
                for event in self._journal.events_of(name)[:1]:
                    self.saw(event)
            if name in self._lately:
                return self._lately[name]
        raise StoreBroken(f"job {job_id} was placed, and nothing says that it was submitted")


def _parted(changed: Iterable[tuple[Entry, list[Booked]]]) -> Iterator[UsageRows]:
    """An entry and its minutes stay together; else as many as make a small parcel."""
    entries: list[Entry] = []
    minutes: list[Booked] = []
    for entry, some in changed:
        entries.append(entry)
        minutes += some
        if len(entries) + len(minutes) >= _ROWS_IN_A_PARCEL:
            yield UsageRows(entries, minutes)
            entries, minutes = [], []
    if entries:
        yield UsageRows(entries, minutes)
