"""The tables, and how a database of an older version becomes one of this.

``events`` is the truth; the others can be made again from it, or are kept for their own sake (``blobs``,
``tokens``, ``estimates``, ``usage_…``, ``reports``, ``hindsights``). Migrations run in order and in one
transaction: a database is of one version or of the next, never in between. Each makes its tables as they
stand here; whoever changes a table later adds a migration, and gives the one that made it a copy of the table
as it was.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from muster.model.errors import MusterError
from muster.store.usage_rows import SUMS


class StoreTooNew(MusterError):
    """A newer Muster has written this database."""


metadata = MetaData()

_SEQ = BigInteger().with_variant(Integer, "sqlite")  # where only INTEGER is the row's own number

events = Table(
    "events",
    metadata,
    Column("seq", _SEQ, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job", Text, index=True),  # None: of a node, or a team
    Column("body", LargeBinary, nullable=False),
)

images = Table(
    "images",
    metadata,
    Column("seq", _SEQ, primary_key=True, autoincrement=False),  # of the last event that is in it
    Column("made_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

blobs = Table(
    "blobs",
    metadata,
    Column("key", Text, primary_key=True),  # follows from the content
    Column("body", LargeBinary, nullable=False),
)


def _jobs(where: MetaData, *added: Column[Any]) -> Table:
    """Jobs that have ended; ``added`` came with later versions."""
    return Table(
        "jobs",
        where,
        Column("id", Text, primary_key=True),
        Column("array_id", Text, index=True),
        Column("owner", Text, nullable=False),
        Column("team", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("submitted_at", Double, nullable=False),
        Column("started_at", Double),
        Column("ended_at", Double, nullable=False),
        Column("body", LargeBinary, nullable=False),
        *added,
        Index("ix_jobs_ended", "ended_at", "id"),
        Index("ix_jobs_owner_ended", "owner", "ended_at", "id"),
    )


jobs = _jobs(metadata, Column("verdict", Text))  # None: it has none, or ended before verdicts were kept here

estimates = Table(
    "estimates",
    metadata,
    Column("job", Text, primary_key=True),
    Column("made_at", Double, primary_key=True),
    Column("earliest", Double),
    Column("latest", Double),
    Column("probability", Double),
    Column("started_at", Double, index=True),  # when it really started
)

tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("expires_at", Double),
)

meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))
USAGE_SEQ = "usage up to event"  # a key: how far the ledger has come


# --- Usage ----------------------------------------------------------------------------------------------


def _bytes(name: str) -> list[Column[int]]:
    """Bytes times seconds. Those of a season do not fit into eight bytes: in MiB, and what is left over."""
    return [Column(f"{name}_{unit}", BigInteger, nullable=False) for unit in ("mib", "rest")]


def _rollups(name: str) -> Table:
    """Roll-ups of attempts. Amounts are those of a resource times seconds."""
    return Table(
        name,
        metadata,
        Column("job", Text, primary_key=True),
        Column("attempt", Integer, primary_key=True),
        Column("start", BigInteger, primary_key=True),  # a whole minute or hour, in seconds
        Column("measured_seconds", Double, nullable=False),
        Column("cpus_measured", BigInteger, nullable=False),
        Column("cpus_used", BigInteger, nullable=False),
        *_bytes("memory_measured"),
        *_bytes("memory_used"),
        Column("gpus", LargeBinary),  # measured and used of each device that is held
        Column("figures", LargeBinary, nullable=False),  # see ``model.rollups``
        Index(f"ix_{name}_start", "start"),
        sqlite_with_rowid=False,  # the key is long, and once is enough
    )


usage_minutes = _rollups("usage_minutes")
usage_hours = _rollups("usage_hours")

usage_attempts = Table(
    "usage_attempts",
    metadata,
    Column("job", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("effort", Text),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("placed_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),  # None: it lives
    Column("outcome", Text),
    Column("run_seconds", Double),
    Column("cpus_milli", BigInteger, nullable=False),  # held at any moment, as are the next three
    Column("memory_bytes", BigInteger, nullable=False),
    Column("gpus_milli", BigInteger, nullable=False),
    Column("disk_bytes", BigInteger, nullable=False),
    Column("held_seconds", Double, nullable=False),  # in all, as is what follows; 0 as long as it lives
    Column("cpus_held", BigInteger, nullable=False),  # times seconds, as are the rest
    *_bytes("memory_held"),
    Column("gpus_held", BigInteger, nullable=False),
    *_bytes("disk_held"),
    Column("measured_seconds", Double, nullable=False),
    Column("cpus_measured", BigInteger, nullable=False),
    Column("cpus_used", BigInteger, nullable=False),
    *_bytes("memory_measured"),
    *_bytes("memory_used"),
    Column("gpus_measured", BigInteger, nullable=False),
    Column("gpus_used", BigInteger, nullable=False),
    Column("cpus_mean", Double),
    Column("cpus_p95", Double),
    Column("cpus_most", Double),
    Column("memory_most_bytes", BigInteger),
    Column("memory_peak_bytes", BigInteger),
    Column("gpu_memory_most_bytes", BigInteger),
    Column("devices", LargeBinary),  # that are held, and what was measured and used of each
    Column("rest", LargeBinary, nullable=False),  # what is needed to go on with one that lives
    Index("ix_usage_attempts_ended", "ended_at"),
    Index("ix_usage_attempts_kind", "owner", "kind", "ended_at"),
)

usage_totals = Table(  # of all entries that there ever were
    "usage_totals",
    metadata,
    Column("team", Text, primary_key=True),
    *(Column(name, usage_attempts.c[name].type, nullable=False) for name in SUMS),
)


past_uses = Table(
    "past_uses",
    metadata,
    Column("job", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("whose", Text, nullable=False),
    Column("ended_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("ix_past_uses_ended", "ended_at"),
    Index("ix_past_uses_whose", "whose", "ended_at"),
)


# --- Reports --------------------------------------------------------------------------------------------

reports = Table(
    "reports",
    metadata,
    Column("job", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),  # in the order in which they came; some are thinned out
    Column("at", Double, nullable=False),
    Column("ran_seconds", Double),  # how long the attempt had run then; None: not known
    Column("step", Double),
    Column("values", Text, nullable=False),  # a JSON object; what is no number there is a text, such as "nan"
    Column("source", Text, nullable=False),
    sqlite_with_rowid=False,
)

report_states = Table(  # of jobs that live: where whoever goes by their reports has come to
    "report_states",
    metadata,
    Column("job", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("kind", Text, primary_key=True),  # whose it is
    Column("body", LargeBinary, nullable=False),
)


# --- Hindsight ------------------------------------------------------------------------------------------

hindsights = Table(  # of jobs that have reported something, once they have ended
    "hindsights",
    metadata,
    Column("job", Text, primary_key=True),
    Column("after_seconds", Double, nullable=False),  # of run time, after an exit would have ended it
    Column("cpus_after", BigInteger, nullable=False),  # held from then on, times seconds
    Column("gpus_after", BigInteger, nullable=False),
    Column("verdict", Text),  # what it would have been; None: nothing would have ended it sooner
    Column("condition", Text),  # the exit
    Column("because", Text),
)


# --- Migrations -----------------------------------------------------------------------------------------


def _make_tables(connection: Connection) -> None:
    metadata.create_all(connection, tables=[events, images, blobs, estimates, tokens, meta])
    _jobs(MetaData()).create(connection)


def _make_usage(connection: Connection) -> None:
    metadata.create_all(connection, tables=[usage_minutes, usage_hours, usage_attempts, past_uses])


def _make_totals(connection: Connection) -> None:
    metadata.create_all(connection, tables=[usage_totals])
    team, sums = usage_attempts.c.team, (func.sum(usage_attempts.c[name]) for name in SUMS)
    so_far = select(team, *sums).group_by(team)
    connection.execute(insert(usage_totals).from_select(["team", *SUMS], so_far))


def _make_reports(connection: Connection) -> None:
    metadata.create_all(connection, tables=[reports, report_states])


def _make_verdicts(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE jobs ADD COLUMN verdict TEXT"))
    metadata.create_all(connection, tables=[hindsights])


MIGRATIONS: list[Callable[[Connection], None]] = [
    _make_tables,
    _make_usage,
    _make_totals,
    _make_reports,
    _make_verdicts,
]

_VERSION_KEY = "schema version"


def migrate(connection: Connection, migrations: list[Callable[[Connection], None]] | None = None) -> None:
    """Bring the database to this version, within the connection's transaction."""
    steps = MIGRATIONS if migrations is None else migrations
    version = version_of(connection)
    if version > len(steps):
        raise StoreTooNew(
            f"this database was written by a newer Muster (its schema is version {version}, this one knows "
            f"{len(steps)}); install that version again"
        )
    for step in steps[version:]:
        step(connection)
    _set_version(connection, version, len(steps))


def version_of(connection: Connection) -> int:
    """The schema's version; 0 if there is nothing yet."""
    if not inspect(connection).has_table(meta.name):
        return 0
    value = connection.execute(select(meta.c.value).where(meta.c.key == _VERSION_KEY)).scalar()
    return 0 if value is None else int(value)


def _set_version(connection: Connection, before: int, version: int) -> None:
    if before == 0:
        connection.execute(insert(meta).values(key=_VERSION_KEY, value=str(version)))
    elif before < version:
        connection.execute(update(meta).where(meta.c.key == _VERSION_KEY).values(value=str(version)))
