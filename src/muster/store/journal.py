"""The journal: every fact, durably, in one order; and what is kept beside them.

Batches are handed to one writer thread, which commits whatever has come since its last commit in one
transaction: the busier it is, the more share the cost of a flush. Only then is each batch's ``done`` called,
in the order in which they were handed over.

When a commit fails (a full disk, a lost connection) the batches stay where they are and are tried again
until it works. A commit that seemed to fail may have happened all the same; the sequence numbers tell.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from muster.model.events import ArraySubmitted, Event, Submitted
from muster.model.job import JobId
from muster.store.database import Database, StoreBusy, StoreError, sentence_of
from muster.store.fold import Fold
from muster.store.image import Sketch, image_from, is_usable
from muster.store.reads import Reads, decode_event
from muster.store.rows import Batch, EndedJob, Estimate, Token
from muster.store.tables import StoreTooNew, blobs, estimates, events, images, jobs, migrate, tokens

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
Values = dict[str, Any]
EventRow = tuple[int, float, str, JobId | None, bytes]

IMAGE_EVERY = 20_000  # events
_IMAGES_KEPT = 2
_PAGE = 5_000  # events read at a time
_BLOBS_KNOWN = 10_000  # keys of blobs that need not be written again
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
        self._upsert = sqlite.insert if database.is_sqlite else postgresql.insert
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[_Handed | None] = SimpleQueue()
        self._closing = threading.Event()
        self._in_doubt = False  # whether the last commit may have happened although it failed
        self._known_blobs: set[str] = set()
        self._replacements: dict[str, Executable] = {}
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
        return image, self._events_after(seq)

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

    def _events_after(self, seq: int) -> Iterator[Event]:
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
                    self._answer(pending, StoreError(self.sick))
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
        """Add what has been handed over; wait for some if there is nothing. False: that was all."""
        if not pending and not (self._closing.is_set() and self._inbox.empty()):
            _add(pending, self._inbox.get())
        while True:
            try:
                _add(pending, self._inbox.get_nowait())
            except Empty:
                return bool(pending)

    def _commit(self, pending: list[_Handed]) -> None:
        with self._database.writer.begin() as connection:
            todo = self._undone(connection, pending) if self._in_doubt else pending
            self._put(connection, todo)
        for handed in pending:
            self._known_blobs.update(handed.batch.blobs)
        if len(self._known_blobs) > _BLOBS_KNOWN:
            self._known_blobs.clear()

    def _undone(self, connection: Connection, pending: list[_Handed]) -> list[_Handed]:
        """Without those that are there already. What has no events may well be written twice."""
        durable = _last_event(connection)
        first = min((handed.first_seq for handed in pending if handed.events), default=durable + 1)
        if not first - 1 <= durable <= pending[-1].last_seq:
            raise StoreBroken(
                f"its last event is {durable}, and not {first - 1}: somebody else has changed it"
            )
        return [handed for handed in pending if not handed.events or handed.last_seq > durable]

    def _put(self, connection: Connection, pending: list[_Handed]) -> None:
        batches = [handed.batch for handed in pending]
        rows = [row for handed in pending for row in handed.events]
        if rows:
            connection.exec_driver_sql(self._insert_events, rows)
        self._replace(connection, jobs, [_values(row) for batch in batches for row in batch.ended])
        self._replace(connection, estimates, [_values(row) for batch in batches for row in batch.estimates])
        self._replace(connection, tokens, [_values(row) for batch in batches for row in batch.tokens])
        self._keep_blobs(connection, batches)
        self._settle(connection, batches)
        for handed in pending:
            if handed.batch.image is not None:
                self._keep_image(connection, handed.image_seq, handed.batch.image)

    def _replace(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert, or change what is there: so that writing twice does no harm."""
        if rows:
            connection.execute(self._replacement(table), rows)

    def _replacement(self, table: Table) -> Executable:
        """Made once: putting a statement together costs more than carrying it out."""
        found = self._replacements.get(table.name)
        if found is None:
            put = self._upsert(table)
            keys = [column.name for column in table.primary_key]
            rest = {c.name: put.excluded[c.name] for c in table.columns if c.name not in keys}
            found = put.on_conflict_do_update(index_elements=keys, set_=rest)
            self._replacements[table.name] = found
        return found

    def _keep_blobs(self, connection: Connection, batches: list[Batch]) -> None:
        new = {key: body for batch in batches for key, body in batch.blobs.items()}
        rows = [{"key": key, "body": body} for key, body in new.items() if key not in self._known_blobs]
        if rows:
            connection.execute(self._upsert(blobs).on_conflict_do_nothing(), rows)

    def _settle(self, connection: Connection, batches: list[Batch]) -> None:
        started = [{"whose": j, "then": at} for batch in batches for j, at in batch.started.items()]
        if started:
            whose = (estimates.c.job == bindparam("whose")) & estimates.c.started_at.is_(None)
            connection.execute(update(estimates).where(whose).values(started_at=bindparam("then")), started)
        revoked = [hashed for batch in batches for hashed in batch.revoked]
        if revoked:
            connection.execute(delete(tokens).where(tokens.c.hash.in_(revoked)))

    def _keep_image(self, connection: Connection, seq: int, body: bytes) -> None:
        self._replace(connection, images, [{"seq": seq, "made_at": time.time(), "body": body}])
        newest = select(images.c.seq).order_by(images.c.seq.desc()).limit(_IMAGES_KEPT)
        kept = connection.execute(newest).scalars().all()
        connection.execute(delete(images).where(images.c.seq < kept[-1]))

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


def _add(pending: list[_Handed], handed: _Handed | None) -> None:
    if handed is not None:
        pending.append(handed)


def _insertion(engine: Engine) -> str:
    """The one statement that is executed for every submission: as text, which costs least."""
    mark = "?" if engine.dialect.paramstyle == "qmark" else "%s"
    return f"INSERT INTO events (seq, at, kind, job, body) VALUES ({', '.join([mark] * 5)})"


def _values(row: msgspec.Struct) -> Values:
    """As columns. A text that a database would refuse must not keep the rest from being written."""
    values = msgspec.structs.asdict(row)
    return {k: _legible(v) if isinstance(v, str) else v for k, v in values.items()}


def _legible(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _told(tell: Callable[[], object]) -> None:
    """Call back; an error there is theirs, and must not stop the writer."""
    try:
        tell()
    except Exception:
        log.exception("a callback of the journal failed")
