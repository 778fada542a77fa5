"""Totals by team are the sum of all entries that there ever were, on SQLite and on PostgreSQL alike."""

from random import Random

import pytest
from sqlalchemy import create_engine
from stores import Opener, put
from usage_machine import Machine

from muster.model.events import Exited, Outcome
from muster.model.ledger import By, Entry, summed, usage_of
from muster.model.resources import Resources
from muster.model.units import DAY, GIB, TIB
from muster.model.usage import Usage
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch
from muster.store.rows import Retention, UsageRows
from muster.store.tables import MIGRATIONS, migrate, usage_attempts
from muster.store.usage_rows import entry_values
from usage_world import DAY0, World, placed

T = DAY0


def entry(job_id: str, **more: object) -> Entry:
    values = {
        "job": job_id,
        "attempt": 1,
        "owner": "ana",
        "team": "nlp",
        "holds": Resources(2000, GIB),
        "placed_at": T,
        "ended_at": T + 60,
    }
    return Entry(**{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_totals_are_the_sums_of_any_history_however_often_it_is_written(
    url: str, opened: Opener, seed: int
) -> None:
    luck, journal = Random(seed), opened(url)
    book = World(seed).played(luck)
    entries = list(book.entries.values())
    for _ in range(3):
        some = luck.sample(entries, luck.randint(1, len(entries)))
        put(journal, Batch(usage=UsageRows(some)))
    put(journal, Batch(usage=UsageRows(entries)))
    sums = {str(team): usage for team, usage in book.usage(By.TEAM, 0.0, T + 1e6).items()}
    assert journal.usage_totals() == sums


def test_one_that_lives_counts_what_it_has_used_and_what_it_held_when_it_has_ended(
    url: str, opened: Opener
) -> None:
    machine = Machine(opened(url))
    machine.tell(placed("1", T, devices=(0,)))
    machine.run(300, "1", cpus=1.5, gpu_busy=(0.5,), gpu_memory_bytes=(GIB,))
    machine.write()
    living = machine.journal.usage_totals()["nlp"]
    assert (living.held, living.used.cpus_milli, living.used.gpus_milli) == (Resources(), 450_000, 150_000)
    machine.tell(Exited(machine.now, "1", 1, Outcome.SUCCEEDED))
    machine.write()
    ended = machine.journal.usage_totals()["nlp"]
    assert ended == machine.cluster(T, T + 300)
    assert ended.held == Resources(600_000, 300 * 4 * GIB, 300_000)


def test_what_is_deleted_because_it_is_old_stays_in_the_totals(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(usage=UsageRows([entry("1"), entry("2", team="vision")])))
    totals = journal.usage_totals()
    put(journal, Batch(usage=UsageRows(gone_entries=[("1", 1)])))
    Upkeep(journal, Retention(attempts_seconds=DAY)).prune(T + 1000 * DAY)
    assert journal.usage_totals() == totals
    put(journal, Batch(usage=UsageRows([entry("3")])))
    assert journal.usage_totals()["nlp"] == totals["nlp"] + totals["nlp"]


def test_totals_beyond_eight_bytes_are_exact(url: str, opened: Opener) -> None:
    journal = opened(url)
    years = [entry(str(n), holds=Resources(1, 64 * TIB - n), ended_at=T + 400 * DAY) for n in range(5)]
    put(journal, Batch(usage=UsageRows(years)))
    expected = sum(usage_of(one, one.spent, T, T + 400 * DAY).held.memory_bytes for one in years)
    assert expected > 2**63
    assert journal.usage_totals()["nlp"].held.memory_bytes == expected


def test_a_store_from_before_there_were_totals_gets_them_from_its_entries(url: str, opened: Opener) -> None:
    entries = [entry("1"), entry("2", ended_at=None), entry("3", team=""), entry("4")]
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        migrate(connection, MIGRATIONS[:2])
        connection.execute(usage_attempts.insert(), [entry_values(one) for one in entries])
    engine.dispose()
    found = opened(url).usage_totals()
    ended = [one for one in entries if one.ended_at is not None]
    assert found == summed((one.team, usage_of(one, one.spent, T, T + 60)) for one in ended)
    assert found["nlp"] == Usage(Resources(240_000, 120 * GIB), held_seconds=120.0)
