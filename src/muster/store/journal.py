"""The journal: every fact, durably, in one order; and what is kept beside them.

Batches are handed to one writer thread, which commits whatever has come since its last commit in one
transaction: the busier it is, the more share the cost of a flush. Only then is each batch's ``done`` called,
in the order in which they were handed over. What nobody waits for, such as what was metered, has a queue of
its own: it is never written before what came earlier, and lets what comes later pass.

When a commit fails (a full disk, a lost connection) the batches stay where they are and are tried again
until it works. A commit that seemed to fail may have happened all the same; the sequence numbers tell.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

import msgspec
from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from muster.model.events import ArraySubmitted, Event, Submitted
from muster.model.job import JobId
from muster.store.database import Database, StoreBusy, StoreError, sentence_of
from muster.store.fold import Fold
from muster.store.image import Sketch, image_from, is_usable
from muster.store.reads import Reads, decode_event
from muster.store.rows import Batch, EndedJob, Estimate, Token
from muster.store.tables import StoreTooNew, blobs, events, images, migrate
from muster.store.writes import Writes

__all__ = [
    "Batch",
    "EndedJob",
    "Estimate",
    "Journal",
    "StoreBroken",
    "StoreBusy",
    "StoreError",
    "StoreTooNew",
    "Token",
]

Done = Callable[[BaseException | None], object]
EventRow = tuple[int, float, str, JobId | None, bytes]

IMAGE_EVERY = 20_000  # events
_PAGE = 5_000  # events read at a time
_PATIENCE_COMMITS = 100
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.05, 2.0

log = logging.getLogger("muster")


class StoreBroken(StoreError):
    """What is in the store can't be made sense of."""


class _Handed(msgspec.Struct, gc=False):
    """A batch as rows, and whom to tell when they are durable."""

    first_seq: int
    last_seq: int  # before the first: there are no events in it
    events: list[EventRow]
    batch: Batch
    image_seq: int
    done: Done


class Journal(Reads):
    """One store, owned by this process. ``write`` and all reads may be called from any thread."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.reader)
        self.on_trouble: Callable[[str], object] = lambda _: None
        self.on_recovered: Callable[[], object] = lambda: None
        self.sick: str | None = None  # why it can't write at present
        self.notes: list[str] = []  # what was found amiss on opening, in sentences
        self._database = database
        self._encode = msgspec.msgpack.Encoder().encode
        self._insert_events = _insertion(database.writer)
        self._writes = Writes(database.is_sqlite)
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[_Handed | None] = SimpleQueue()
        self._patient: deque[_Handed] = deque()
        self._passed_over = 0  # commits before which the first of these was not taken along
        self._closing = threading.Event()
        self._in_doubt = False  # whether the last commit may have happened although it failed
        self.last_seq = self._image_seq = 0
        self._begin()
        self._writer = threading.Thread(target=self._work, name="journal", daemon=True)
        self._writer.start()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        on_trouble: Callable[[str], object] | None = None,
        on_recovered: Callable[[], object] | None = None,
    ) -> "Journal":
        """Own the store, and bring it to this version. The callbacks are called from the writer's thread."""
        database = Database.open(url)
        try:
            journal = cls(database)
        except SQLAlchemyError as error:
            database.close()
            raise StoreError(f"{database.name} can't be opened: {sentence_of(error)}") from None
        except BaseException:
            database.close()
            raise
        journal.on_trouble = on_trouble or journal.on_trouble
        journal.on_recovered = on_recovered or journal.on_recovered
        return journal

    # --- Reading it all -----------------------------------------------------------------------------

    def load(self) -> tuple[bytes | None, Iterator[Event]]:
        """The newest usable image, if there is one, and the events since."""
        try:
            with self._reader.connect() as connection:
                seq, image = self._newest_image(connection)
        except SQLAlchemyError as error:
            raise StoreError(f"{self._database.name} can't be read: {sentence_of(error)}") from None
        return image, self.events_after(seq)

    def _begin(self) -> None:
        with self._database.writer.begin() as connection:
            migrate(connection)
            self._image_seq, _ = self._newest_image(connection, self.notes)
            self.last_seq = max(self._image_seq, _last_event(connection))
            if self.last_seq > self._image_seq:
                self._set_torn_aside(connection)

    def _newest_image(
        self, connection: Connection, notes: list[str] | None = None
    ) -> tuple[int, bytes | None]:
        for seq in connection.execute(select(images.c.seq).order_by(images.c.seq.desc())).scalars().all():
            body = connection.execute(select(images.c.body).where(images.c.seq == seq)).scalar_one()
            if is_usable(body):
                return seq, body
            if notes is not None:
                notes.append(f"the image of the state at event {seq} can't be used; an earlier one is")
        return 0, None

    def _set_torn_aside(self, connection: Connection) -> None:
        """A last record that can't be read was never acted on: it is kept as a blob, and said."""
        last = connection.execute(select(events).where(events.c.seq == self.last_seq)).one()
        try:
            decode_event(last.body)
        except msgspec.MsgspecError as error:
            connection.execute(insert(blobs).values(key=f"torn/{last.seq}/{time.time()}", body=last.body))
            connection.execute(delete(events).where(events.c.seq == last.seq))
            self.last_seq -= 1
            self.notes.append(f"the last event, {last.seq}, can't be read and was set aside: {error}")

    def events_after(self, seq: int) -> Iterator[Event]:
        """All that are in the store and come after this one, in order."""
        page = select(events.c.seq, events.c.body).order_by(events.c.seq).limit(_PAGE)
        while rows := self._rows(page.where(events.c.seq > seq)):
            for found, body in rows:
                seq += 1
                if found != seq:
                    raise StoreBroken(self._no_way_on(seq, "is missing"))
                try:
                    yield decode_event(body)
                except msgspec.MsgspecError as error:
                    raise StoreBroken(self._no_way_on(seq, f"can't be read ({error})")) from None

    def _no_way_on(self, seq: int, problem: str) -> str:
        return f"event {seq} of {self.last_seq} in {self._database.name} {problem}; restore it from a backup"

    # --- Handing over -------------------------------------------------------------------------------

    def write(self, batch: Batch, done: Done) -> None:
        """Hand a batch over. ``done`` is called, from the writer's thread, when it is durable.

        With an error it is called only if the journal was closed before it could be written.
        """
        with self._lock:
            if self._closing.is_set():
                raise StoreError("the journal has been closed")
            first = self.last_seq + 1
            rows = [self._row(seq, event) for seq, event in enumerate(batch.events, first)]
            last = self.last_seq + len(rows)
            image_seq = last if batch.image_seq is None else batch.image_seq
            if batch.image is not None:
                self._image_seq = image_seq
            self.last_seq = last
            self._inbox.put(_Handed(first, last, rows, batch, image_seq, done))

    def image_due(self) -> bool:
        """Whether so much has happened since the last image that a new one is worth it."""
        return self.last_seq - self._image_seq >= IMAGE_EVERY

    def take_image(self, fold: Fold) -> None:
        """Keep an image of the fold, into which all that was handed over has been folded, and no more.

        It is drawn in a thread: with a long queue that takes longer than anybody should have to wait.
        """
        with self._lock:
            self._image_seq = seq = self.last_seq
        sketch = Sketch(fold)

        def draw() -> None:
            batch = Batch(image=image_from(sketch), image_seq=seq)
            with contextlib.suppress(StoreError):  # closed meanwhile: another time, then
                self.write(batch, lambda _: None)

        threading.Thread(target=draw, name="image", daemon=True).start()

    def close(self) -> None:
        """Write what was handed over; should that be impossible now, say so to each. Give the store up."""
        with self._lock:
            self._closing.set()
            self._inbox.put(None)
        self._writer.join()
        self._database.close()

    def _row(self, seq: int, event: Event) -> EventRow:
        return (seq, event.at, type(event).__name__, _about(event), self._encode(event))

    # --- The writer's thread ------------------------------------------------------------------------

    def _work(self) -> None:
        pending: list[_Handed] = []
        delay = _FIRST_DELAY_SECONDS
        while self._gather(pending):
            try:
                self._commit(pending)
            except Exception as error:
                self._in_doubt = True
                self._troubled(error)
                if self._closing.is_set():
                    self._take_all(pending)
                    self._answer([*pending, *self._patient], StoreError(self.sick))
                    return
                self._closing.wait(delay)
                delay = min(2 * delay, _LONGEST_DELAY_SECONDS)
            else:
                self._in_doubt = False
                self._recovered()
                self._answer(pending, None)
                pending.clear()
                delay = _FIRST_DELAY_SECONDS

    def _gather(self, pending: list[_Handed]) -> bool:
        """Add what has been handed over; wait for some if there is nothing. False: that was all.

        What can wait is written when there is nothing else, one by one; or when it has been passed over too
        often.
        """
        if not pending and not self._patient and not (self._closing.is_set() and self._inbox.empty()):
            self._sort(self._inbox.get(), pending)
        self._take_all(pending)
        self._passed_over = self._passed_over + 1 if pending and self._patient else 0
        if self._patient and (not pending or self._passed_over > _PATIENCE_COMMITS):
            pending.append(self._patient.popleft())
            self._passed_over = 0
        return bool(pending)

    def _take_all(self, pending: list[_Handed]) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._sort(self._inbox.get_nowait(), pending)

    def _sort(self, handed: _Handed | None, pending: list[_Handed]) -> None:
        if handed is not None:
            (self._patient if handed.batch.can_wait else pending).append(handed)

    def _commit(self, pending: list[_Handed]) -> None:
        with self._database.writer.begin() as connection:
            todo = self._undone(connection, pending) if self._in_doubt else pending
            rows = [row for handed in todo for row in handed.events]
            if rows:
                connection.exec_driver_sql(self._insert_events, rows)
            self._writes.put(connection, [handed.batch for handed in todo])
            for handed in todo:
                if handed.batch.image is not None:
                    self._writes.keep_image(connection, handed.image_seq, handed.batch.image)
        self._writes.are_durable(handed.batch for handed in pending)

    def _undone(self, connection: Connection, pending: list[_Handed]) -> list[_Handed]:
        """Without those that are there already. What has no events may well be written twice."""
        durable = _last_event(connection)
        ours = [handed for handed in pending if handed.events]
        if ours and not ours[0].first_seq - 1 <= durable <= ours[-1].last_seq:
            raise StoreBroken(
                f"its last event is {durable}, and not {ours[0].first_seq - 1}: somebody else has changed it"
            )
        return [handed for handed in pending if not handed.events or handed.last_seq > durable]

    def _troubled(self, error: Exception) -> None:
        said = f"the journal can't be written: {sentence_of(error)}"
        was_well, self.sick = self.sick is None, said
        if was_well:
            _told(lambda: self.on_trouble(said))

    def _recovered(self) -> None:
        if self.sick is not None:
            self.sick = None
            _told(self.on_recovered)

    def _answer(self, pending: list[_Handed], error: StoreError | None) -> None:
        for handed in pending:
            _told(lambda done=handed.done: done(error))  # type: ignore[misc]


def _about(event: Event) -> JobId | None:
    """Whose event it is: a job's, or an array's as a whole."""
    if isinstance(event, Submitted):
        return event.job.id
    if isinstance(event, ArraySubmitted):
        return event.template.id
    return getattr(event, "job", None)


def _last_event(connection: Connection) -> int:
    return connection.execute(select(func.max(events.c.seq))).scalar() or 0


def _insertion(engine: Engine) -> str:
    """The one statement that is executed for every submission: as text, which costs least."""
    mark = "?" if engine.dialect.paramstyle == "qmark" else "%s"
    return f"INSERT INTO events (seq, at, kind, job, body) VALUES ({', '.join([mark] * 5)})"


def _told(tell: Callable[[], object]) -> None:
    """Call back; an error there is theirs, and must not stop the writer."""
    try:
        tell()
    except Exception:
        log.exception("a callback of the journal failed")
