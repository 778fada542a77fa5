"""What a batch brings, besides events, as statements. Writing anything twice does no harm."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection, Executable, Table, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from muster.store.report_rows import report_values, state_values
from muster.store.rows import Batch, UsageRows
from muster.store.tables import (
    USAGE_SEQ,
    blobs,
    estimates,
    hindsights,
    images,
    jobs,
    meta,
    past_uses,
    report_states,
    reports,
    tokens,
    usage_attempts,
    usage_hours,
    usage_minutes,
    usage_totals,
)
from muster.store.usage_rows import entry_values, rollup_values
from muster.store.usage_totals import TOTALLED, totals_with

_MOST = (1 << 63) - 1
_IMAGES_KEPT = 2
_BLOBS_KNOWN = 10_000  # keys of blobs that need not be written again

_FORGET = delete(report_states).where(report_states.c.job == bindparam("whose"))

Values = dict[str, Any]


class Writes:
    """Statements for one kind of database. What is used often is made once: making a statement costs most."""

    def __init__(self, is_sqlite: bool) -> None:
        self._upsert = sqlite.insert if is_sqlite else postgresql.insert
        self._mark = "?" if is_sqlite else "%s"
        self._replacements: dict[str, str] = {}
        self._deletions: dict[str, Executable] = {}
        self._known_blobs: set[str] = set()

    def put(self, connection: Connection, batches: Sequence[Batch]) -> None:
        """All that these bring, but their events and images."""
        self._replace(connection, jobs, [asdict(row) for batch in batches for row in batch.ended])
        self._replace(connection, estimates, [asdict(row) for batch in batches for row in batch.estimates])
        self._replace(connection, past_uses, [asdict(row) for batch in batches for row in batch.past])
        self._replace(connection, tokens, [asdict(row) for batch in batches for row in batch.tokens])
        self._keep_blobs(connection, batches)
        self._put_reports(connection, batches)
        self._settle(connection, batches)
        for batch in batches:
            if batch.usage is not None:
                self._put_usage(connection, batch.usage)

    def are_durable(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            self._known_blobs.update(batch.blobs)
        if len(self._known_blobs) > _BLOBS_KNOWN:
            self._known_blobs.clear()

    def keep_image(self, connection: Connection, seq: int, body: bytes) -> None:
        self._replace(connection, images, [{"seq": seq, "made_at": time.time(), "body": body}])
        newest = select(images.c.seq).order_by(images.c.seq.desc()).limit(_IMAGES_KEPT)
        kept = connection.execute(newest).scalars().all()
        connection.execute(delete(images).where(images.c.seq < kept[-1]))

    def _keep_blobs(self, connection: Connection, batches: Sequence[Batch]) -> None:
        new = {key: body for batch in batches for key, body in batch.blobs.items()}
        rows = [{"key": key, "body": body} for key, body in new.items() if key not in self._known_blobs]
        if rows:
            connection.execute(self._upsert(blobs).on_conflict_do_nothing(), rows)

    def _put_reports(self, connection: Connection, batches: Sequence[Batch]) -> None:
        self._replace(connection, reports, [report_values(row) for batch in batches for row in batch.reports])
        states = {key: body for batch in batches for key, body in batch.states.items()}
        self._replace(connection, report_states, [state_values(key, body) for key, body in states.items()])
        over = [{"whose": job} for batch in batches for job in batch.stateless]
        if over:
            connection.execute(_FORGET, over)

    def _settle(self, connection: Connection, batches: Sequence[Batch]) -> None:
        started = [{"whose": j, "then": at} for batch in batches for j, at in batch.started.items()]
        if started:
            whose = (estimates.c.job == bindparam("whose")) & estimates.c.started_at.is_(None)
            connection.execute(update(estimates).where(whose).values(started_at=bindparam("then")), started)
        revoked = [hashed for batch in batches for hashed in batch.revoked]
        if revoked:
            connection.execute(delete(tokens).where(tokens.c.hash.in_(revoked)))

    def _put_usage(self, connection: Connection, rows: UsageRows) -> None:
        entries = [entry_values(entry) for entry in rows.entries]
        if entries:
            totalled = [[_legible(values[name]) for name in TOTALLED] for values in entries]
            self._replace(connection, usage_totals, totals_with(connection, totalled))
        self._replace(connection, usage_attempts, entries)
        self._replace(connection, usage_minutes, [rollup_values(minute) for minute in rows.minutes])
        self._replace(connection, usage_hours, [rollup_values(hour) for hour in rows.hours])
        self._replace(connection, hindsights, [asdict(row) for row in rows.hindsights])
        self._delete(connection, usage_attempts, rows.gone_entries)
        self._delete(connection, hindsights, list(dict.fromkeys((job,) for job, _ in rows.gone_entries)))
        self._delete(connection, usage_minutes, rows.gone_minutes)
        self._delete(connection, usage_hours, rows.gone_hours)
        self._delete(connection, reports, rows.gone_reports)
        if rows.seq is not None:
            self._replace(connection, meta, [{"key": USAGE_SEQ, "value": str(rows.seq)}])

    # --- Statements ---------------------------------------------------------------------------------

    def _replace(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert, or change what is there."""
        if rows:
            names = table.columns.keys()
            legible = [tuple(_legible(values[name]) for name in names) for values in rows]
            connection.exec_driver_sql(self._replacement(table), legible)

    def _replacement(self, table: Table) -> str:
        """As text, which is carried out at half the cost: these are executed for every attempt and minute."""
        found = self._replacements.get(table.name)
        if found is None:
            names = [f'"{column.name}"' for column in table.columns]
            keys = [f'"{column.name}"' for column in table.primary_key]
            marks = ", ".join([self._mark] * len(names))
            rest = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
            found = (
                f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
                f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {rest}"
            )
            self._replacements[table.name] = found
        return found

    def _delete(self, connection: Connection, table: Table, keys: Sequence[tuple[object, ...]]) -> None:
        """By primary key."""
        columns = list(table.primary_key)
        if not keys:
            return
        found = self._deletions.get(table.name)
        if found is None:
            wanted = [column == bindparam(f"k{i}") for i, column in enumerate(columns)]
            found = self._deletions[table.name] = delete(table).where(*wanted)
        connection.execute(found, [{f"k{i}": value for i, value in enumerate(key)} for key in keys])


def _legible(value: Any) -> Any:
    """What a database would refuse must not keep the rest from being written."""
    if isinstance(value, int) and abs(value) > _MOST:
        return _MOST if value > 0 else -_MOST
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\ufffd").encode(errors="replace").decode()
