"""A server that is killed, a clock that is set, a store of an older version: nothing is counted twice."""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import Connection
from stores import Opener, held, put
from usage_machine import Machine, written

import muster.monitor.ledger as ledger_module
from muster.model.events import ArraySubmitted, Event, Exited, Outcome, Placed, Submitted, Vacated, Withdrawn
from muster.model.ledger import Booked, By, Entry, Spent, summed, usage_of
from muster.model.resources import Resources
from muster.model.units import HOUR
from muster.model.usage import Usage
from muster.store.journal import Batch, EndedJob, Journal, StoreBroken
from muster.store.tables import MIGRATIONS, events, jobs, migrate, version_of
from usage_world import DAY0, job, placed

T = DAY0


def minutes_of(journal: Journal) -> dict[tuple[str, int], list[Booked]]:
    found: dict[tuple[str, int], list[Booked]] = {}
    for hour in journal.hours_to_roll_up(1 << 40):
        for minute in journal.minutes_of_hour(hour):
            found.setdefault(minute.key, []).append(minute)
    return found


def assert_true_to_the_journal(journal: Journal) -> None:
    """Every attempt that was ever placed has its entry, with its times, and is the sum of its minutes."""
    placed_at: dict[tuple[str, int], float] = {}
    ended_at: dict[tuple[str, int], float] = {}
    for event in journal.events_after(0):
        if isinstance(event, Placed):
            placed_at[event.job, event.attempt] = event.at
        elif isinstance(event, Exited | Vacated):
            ended_at[event.job, event.attempt] = event.at
    entries = journal.entries_of({job_id for job_id, _ in placed_at})
    assert {key: entry.placed_at for key, entry in entries.items()} == placed_at
    assert {key: e.ended_at for key, e in entries.items() if e.ended_at is not None} == ended_at
    minutes = minutes_of(journal)
    for key, entry in entries.items():
        assert entry.spent == sum((minute.spent for minute in minutes.pop(key, [])), Spent())
        usage = usage_of(entry, entry.spent, 0.0, T + 1e8)
        assert usage.measured_seconds <= usage.held_seconds
    assert minutes == {}
    assert journal.usage_totals() == summed((e.team, written_of(e)) for e in entries.values())


def written_of(entry: Entry) -> Usage:
    """What an entry counts in the totals: what it held as well, once it has ended."""
    usage = usage_of(entry, entry.spent, 0.0, T + 1e8)
    return usage if entry.ended_at is not None else replace(usage, held=Resources(), held_seconds=0.0)


KILLS = 3


def test_a_server_that_is_killed_at_any_moment_loses_coverage_and_counts_nothing_twice(
    url: str, opened: Opener
) -> None:
    script = Path(__file__).with_name("usage_writer.py")
    paths = [str(script.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for seed in range(KILLS):
        command = [sys.executable, str(script), url, str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
            time.sleep(Random(seed).uniform(0.05, 0.3))
            writer.kill()
        journal = opened(url)
        machine = Machine(journal, journal_now(journal), again=True)
        assert_true_to_the_journal(journal)
        cluster = machine.cluster(T, machine.now)
        for by in (By.OWNER, By.TEAM, By.EFFORT, By.VERDICT):
            assert sum(machine.usage(by, T, machine.now).values(), Usage()) == cluster
        assert 0 < cluster.measured_seconds <= cluster.held_seconds
        journal.close()


def journal_now(journal: Journal) -> float:
    """As late as anything that is written down: time goes on over a restart."""
    counted = [entry.counted_until or 0.0 for entry in journal.entries_living()]
    return max(*(event.at for event in journal.events_after(0)), *counted, 0.0)


# --- Restarts, by hand --------------------------------------------------------------------------------


def test_what_was_not_written_before_a_crash_lowers_the_coverage_and_nothing_else(
    url: str, opened: Opener
) -> None:
    first = Machine(opened(url))
    first.tell(Submitted(T, job("1")), placed("1", T))
    first.run(300, "1", cpus=1.0)
    first.write()
    first.run(90, "1", cpus=1.0)  # and this is lost
    first.journal.close()
    second = Machine(opened(url), T + 400, again=True)
    second.run(200, "1", cpus=1.0)
    second.tell(Exited(second.now, "1", 1, Outcome.SUCCEEDED))
    second.write()
    usage = second.cluster(T, T + HOUR)
    assert (usage.held_seconds, usage.measured_seconds) == (600.0, 500.0)
    assert usage.used.cpus_milli == 500_000
    assert_true_to_the_journal(second.journal)


def test_attempts_that_came_and_went_after_the_last_parcel_are_caught_up_from_the_journal(
    url: str, opened: Opener
) -> None:
    first = Machine(opened(url))
    array = ArraySubmitted(T, job("7"), (1, 2, 3))
    first.tell(Submitted(T, job("1")), placed("1", T))
    first.write()
    seq = first.journal.last_seq
    put(first.journal, Batch(events=[array, Submitted(T, job("2", owner="bob"))]))
    put(first.journal, Batch(events=[placed("7_2", T + 5), placed("2", T + 6), Withdrawn(T + 6, "7_1")]))
    put(first.journal, Batch(events=[Exited(T + 65, "7_2", 1, Outcome.FAILED), Vacated(T + 20, "1", 1, "x")]))
    first.journal.close()
    second = Machine(opened(url), T + 100, again=True)
    assert second.journal.usage_seq() == seq + 7
    by_job = second.usage(By.JOB, T, T + 100)
    assert {who: usage.held_seconds for who, usage in by_job.items()} == {"1": 20.0, "7_2": 60.0, "2": 94.0}
    assert second.usage(By.OWNER, T, T + 100)["bob"].held_seconds == 94.0
    assert [entry.key for entry in second.ledger.living] == [("2", 1)]


def test_a_crash_between_two_parcels_of_one_look_is_no_harm(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_ROWS_IN_A_PARCEL", 1)
    first = Machine(opened(url))
    first.tell(Submitted(T, job("1")), Submitted(T, job("2")), placed("1", T), placed("2", T))
    first.run(300, "1", "2")
    first.tell(Exited(T + 300, "1", 1, Outcome.FAILED))
    written(first.journal, first.ledger.parcels(first.now, first.journal.last_seq)[:1])
    assert first.journal.usage_seq() == 0
    first.journal.close()
    second = Machine(opened(url), T + 300, again=True)
    assert_true_to_the_journal(second.journal)
    assert second.usage(By.JOB, T, T + 300)["1"].measured_seconds == 300.0
    assert second.usage(By.JOB, T, T + 300)["2"].measured_seconds == 0.0


def test_a_clock_that_was_set_back_over_a_restart_counts_nothing_again(url: str, opened: Opener) -> None:
    first = Machine(opened(url))
    first.tell(Submitted(T, job("1")), placed("1", T))
    first.run(HOUR, "1", cpus=1.0)
    first.write()
    first.journal.close()
    second = Machine(opened(url), T + HOUR / 2, again=True)
    second.run(HOUR, "1", cpus=1.0)
    second.tell(Exited(second.now, "1", 1, Outcome.SUCCEEDED))
    second.write()
    usage = second.cluster(T, T + 1e6)
    assert (usage.held_seconds, usage.measured_seconds) == (1.5 * HOUR, 1.5 * HOUR)
    assert usage.used.cpus_milli == 1000 * 1.5 * HOUR
    assert_true_to_the_journal(second.journal)


def test_a_job_that_was_placed_and_never_submitted_is_said_to_be_broken(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(events=[placed("1", T)]))
    with pytest.raises(StoreBroken, match="job 1 was placed"):
        Machine(journal, again=True)


# --- An older version ---------------------------------------------------------------------------------


def an_old_store(url: str, told: list[Event]) -> None:
    """A store of version 1, as that version left it."""

    def make(connection: Connection) -> None:
        migrate(connection, MIGRATIONS[:1])
        names = set(inspect(connection).get_table_names())
        assert names == {"events", "images", "blobs", "jobs", "estimates", "tokens", "meta"}
        rows = [
            {
                "seq": seq,
                "at": event.at,
                "kind": type(event).__name__,
                "job": event.job.id if isinstance(event, Submitted) else getattr(event, "job", None),
                "body": msgspec.msgpack.encode(event),
            }
            for seq, event in enumerate(told, 1)
        ]
        connection.execute(events.insert(), rows)
        ended = EndedJob("1", None, "ana", "nlp", "train-1", "FAILED", T, T, T + 60, b"{}")
        row = msgspec.structs.asdict(ended)
        del row["verdict"]  # there was no such thing
        connection.execute(jobs.insert(), [row])

    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        make(connection)
    engine.dispose()


def test_a_store_of_version_1_keeps_what_it_has_and_its_history_is_entered(url: str, opened: Opener) -> None:
    told: list[Event] = [
        Submitted(T, job("1")),
        placed("1", T, devices=(2,)),
        Exited(T + 60, "1", 1, Outcome.FAILED),
        Submitted(T + 60, job("2")),
        placed("2", T + 70),
    ]
    an_old_store(url, told)
    machine = Machine(opened(url), T + 100, again=True)
    journal = machine.journal
    versions: list[int] = []
    with journal._database.reader.connect() as connection:
        versions.append(version_of(connection))
    assert versions == [len(MIGRATIONS)]
    assert list(journal.load()[1]) == told
    assert journal.job("1") is not None
    by_job = machine.usage(By.JOB, T, T + 100)
    assert {who: usage.held_seconds for who, usage in by_job.items()} == {"1": 60.0, "2": 30.0}
    assert by_job["1"].held.gpus_milli == 60_000
    by_verdict = machine.usage(By.VERDICT, T, T + 100)
    assert {how: usage.held_seconds for how, usage in by_verdict.items()} == {"failed": 60.0, "running": 30.0}
    assert (by_job["1"].coverage, journal.usage_seq()) == (0.0, 5)
    put(journal, Batch(events=[held(9)]))
    assert journal.last_seq == 6


def test_a_long_history_is_entered_page_by_page(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_EVENTS_UNNOTED", 10)
    told: list[Event] = []
    for n in range(50):
        ids = str(n)
        told += [Submitted(T + n, job(ids)), placed(ids, T + n), Exited(T + n + 5, ids, 1, Outcome.SUCCEEDED)]
    journal = opened(url)
    put(journal, Batch(events=told))
    machine = Machine(journal, T + 1000)
    seqs: list[int] = []
    for batch in machine.ledger.catch_up(journal, machine.now):
        assert batch.usage is not None
        seqs += [batch.usage.seq or 0]
        put(journal, batch)
    assert seqs == list(range(10, 151, 10))
    assert machine.ledger.living == []
    assert len(journal.attempts_ended()) == 50
    assert machine.cluster(T, T + 1000).held_seconds == 250.0


def test_an_entry_that_lives_goes_on_where_it_was(url: str, opened: Opener) -> None:
    first = Machine(opened(url))
    first.tell(Submitted(T, job("1")), placed("1", T))
    first.run(300, "1", cpus=1.0, memory_peak_bytes=5)
    first.write()
    before: list[Entry] = first.ledger.living
    first.journal.close()
    second = Machine(opened(url), T + 300, again=True)
    assert second.ledger.living == before
    second.run(300, "1", cpus=3.0, memory_peak_bytes=4)
    second.write()
    (entry,) = second.ledger.living
    assert (entry.cpus_mean, entry.cpus_most, entry.memory_peak_bytes) == (2.0, 3.0, 5)
