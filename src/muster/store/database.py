"""A database that one server owns: SQLite beside the rest of its state, or PostgreSQL anywhere.

Two ways in. All writing goes through one connection; on PostgreSQL that same connection holds the lock that
makes this server the only one, so that who has lost the lock can't write either. Reads go through others,
and from any thread.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from muster.model.errors import BadInput, MusterError

_BUSY_SECONDS = 10.0
_CONNECT_SECONDS = 10
_PATIENCE_SECONDS = 2.0
_LOCK = (0x6D757374, 0x6572)  # PostgreSQL's advisory locks are pairs of numbers; these spell the name
_WHO_HAS_IT = (
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.classid::bigint = %s AND l.objid::bigint = %s"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


Prepare = Callable[[Any, object], None]  # a connection that was just made


class StoreError(MusterError):
    """The store can't be opened, read or written."""


class StoreBusy(StoreError):
    """Another server owns this store."""


class Database:
    """Engines for writing and for reading, and the lock."""

    def __init__(self, url: URL) -> None:
        self.name = url.render_as_string(hide_password=True)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._lock = _lock_file(Path(url.database or "")) if self.is_sqlite else None
        url = url if self.is_sqlite else url.set(drivername="postgresql+psycopg")
        made = _sqlite if self.is_sqlite else _postgres
        self.writer, self.reader = made(url, self.name)

    @classmethod
    def open(cls, url: str) -> "Database":
        """Own the store that a URL names."""
        try:
            return cls(_checked(url))
        except ModuleNotFoundError:
            raise StoreError("PostgreSQL needs its driver: pip install 'passmuster[postgres]'") from None
        except OSError as error:
            raise StoreError(f"the store can't be opened: {error.strerror}: {error.filename}") from None

    def close(self) -> None:
        self.reader.dispose()
        self.writer.dispose()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def sentence_of(error: BaseException) -> str:
    """What a driver says went wrong, in a line."""
    said = error.orig if isinstance(error, DBAPIError) else error
    lines = str(said).strip().splitlines()
    return lines[0] if lines else type(said).__name__


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ModuleNotFoundError):
        backend = None
    if backend not in ("sqlite", "postgresql"):
        raise BadInput("a store is sqlite:///PATH or postgresql://USER@HOST/DATABASE")
    if backend == "sqlite" and (not parsed.database or parsed.database == ":memory:" or parsed.query):
        raise BadInput("a store in SQLite is a file: sqlite:///PATH")
    return parsed


# --- SQLite -------------------------------------------------------------------------------------------


def _lock_file(database: Path) -> int:
    """Hold the lock beside the database for as long as this process lives."""
    lock = os.open(f"{database}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise StoreBusy(
            f"{database} is in use by another Muster server, process {owner}; "
            "stop that one first, or give this one a store of its own"
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    # Environments are in there: nobody else's to read. SQLite gives its other files the same rights.
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, 0o600))
    return lock


def _sqlite(url: URL, _name: str) -> tuple[Engine, Engine]:
    def prepared(raw: Any, _record: object) -> None:
        raw.isolation_level = None  # transactions begin where they are said to, also around DDL
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 67108864"):
            raw.execute(f"PRAGMA {pragma}")

    connect = {"timeout": _BUSY_SECONDS, "check_same_thread": False}
    writer, reader = _engines(url, connect, prepared)
    event.listen(writer, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return writer, reader


# --- PostgreSQL ---------------------------------------------------------------------------------------


def _postgres(url: URL, name: str) -> tuple[Engine, Engine]:
    connect = {
        "application_name": f"muster, process {os.getpid()} on {socket.gethostname()}",
        "connect_timeout": _CONNECT_SECONDS,
    }

    def owned(raw: Any, _record: object) -> None:
        """Whatever the server's own settings are, committed means durable; and one of us owns it all."""
        raw.autocommit = True
        raw.execute("SET synchronous_commit = on")
        if not _is_mine(raw):
            owner = raw.execute(_WHO_HAS_IT, _LOCK).fetchone()
            raw.close()
            raise StoreBusy(
                f"{name} is in use by another Muster server ({owner[0] if owner else 'unknown'}); "
                "stop that one first, or give this one a store of its own"
            )
        raw.autocommit = False

    return _engines(url, connect, owned)


def _is_mine(raw: Any) -> bool:
    """Take the lock. PostgreSQL may need a moment to notice that an owner before us is gone."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not raw.execute("SELECT pg_try_advisory_lock(%s, %s)", _LOCK).fetchone()[0]:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# --- Both ---------------------------------------------------------------------------------------------


def _engines(url: URL, connect: dict[str, Any], prepared: Prepare) -> tuple[Engine, Engine]:
    """One connection to write through, which is prepared anew should it be lost; and some to read through."""
    writer = create_engine(url, poolclass=QueuePool, pool_size=1, max_overflow=0, connect_args=connect)
    event.listen(writer, "connect", prepared)
    reader = create_engine(
        url, poolclass=QueuePool, isolation_level="AUTOCOMMIT", pool_pre_ping=True, connect_args=connect
    )
    return writer, reader
