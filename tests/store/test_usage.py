"""What was held and used, on SQLite and on PostgreSQL alike: as it was written, and cut exactly."""

import threading
from collections.abc import Callable
from itertools import pairwise

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError
from stores import LONG_SECONDS, Answers, Opener, held, put
from usage_machine import Machine, written

from muster.model.events import Exited, Outcome, Vacated
from muster.model.ledger import By, Entry, Spent
from muster.model.resources import Resources
from muster.model.units import GIB, HOUR, TIB
from muster.model.usage import Usage
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch, Journal
from muster.store.rows import UsageRows
from muster.store.tables import usage_attempts
from usage_world import DAY0, placed

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


# --- As it was written --------------------------------------------------------------------------------


def test_entries_and_minutes_come_back_as_they_were(url: str, opened: Opener) -> None:
    journal = opened(url)
    machine = Machine(journal)
    machine.tell(placed("1", T, devices=(0, 3)), placed("2", T))
    busy = {"gpu_busy": (0.25, None), "gpu_memory_bytes": (GIB, 5)}
    machine.run(600, "1", **busy)
    machine.tell(Exited(machine.now, "1", 1, Outcome.FAILED))
    batches = machine.ledger.parcels(machine.now, journal.last_seq)
    written(journal, batches)
    rows = [batch.usage for batch in batches if batch.usage]
    entries = {entry.key: entry for usage in rows for entry in usage.entries}
    assert journal.entries_of({"1", "2", "nobody"}) == entries
    assert [e.key for e in journal.entries_living()] == [("2", 1)]
    assert journal.usage_seq() == journal.last_seq == 3
    minutes = [minute.rollup for usage in rows for minute in usage.minutes]
    assert journal.rollups_of("1") == minutes
    assert journal.rollups_of("1", attempt=1, since=T + 61, until=T + 240) == minutes[2:4]
    assert journal.rollups_of("1", attempt=2) == []


def test_writing_again_replaces_what_is_there(url: str, opened: Opener) -> None:
    journal = opened(url)
    machine = Machine(journal)
    machine.tell(placed("1", T))
    machine.run(300, "1")
    batches = machine.ledger.parcels(machine.now, 1)
    written(journal, [*batches, *batches])
    assert len(journal.rollups_of("1")) == 5
    assert machine.cluster(T, T + 300).measured_seconds == 300.0


def test_sums_beyond_eight_bytes_and_names_that_a_database_would_refuse_are_kept(
    url: str, opened: Opener
) -> None:
    journal = opened(url)
    year = entry(
        "1",
        name="a\0b",
        holds=Resources(2000, 64 * TIB),
        ended_at=T + 400 * 24 * HOUR,
        spent=Spent(memory_used=10**24, memory_measured=10**24),
    )
    put(journal, Batch(usage=UsageRows(entries=[year])))
    usage = journal.usage_between(0.0, T + 1e9, By.OWNER, now=T + 1e9)["ana"]
    assert usage.used.memory_bytes == 10**24
    assert usage.held.memory_bytes == 64 * TIB * 400 * 24 * 3600
    assert journal.attempts_ended()[0].name == "a\ufffdb"
    put(journal, Batch(usage=UsageRows(entries=[entry("2", spent=Spent(cpus_used=10**30))])))
    assert journal.attempts_ended(job="2")[0].spent.cpus_used == 2**63 - 1


def test_attempts_are_found_by_owner_and_kind_the_latest_first(url: str, opened: Opener) -> None:
    journal = opened(url)
    rows = [
        entry(str(n), owner=["ana", "bob"][n % 2], kind=["train-", "eval-"][n // 4], ended_at=T + 60 * n)
        for n in range(8)
    ]
    living = entry("9", ended_at=None)
    put(journal, Batch(usage=UsageRows(entries=[*rows, living])))
    assert journal.attempts_ended(owner="ana", kind="train-") == [rows[2], rows[0]]
    assert journal.attempts_ended(3) == rows[:4:-1]
    assert journal.attempts_ended(job="3") == [rows[3]]
    assert journal.attempts_ended(since=T + 360, team="nlp") == [rows[7], rows[6]]


# --- Between two moments ------------------------------------------------------------------------------


def test_held_is_cut_to_the_interval_exactly_and_used_by_its_minutes(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    machine.tell(placed("1", T, devices=(0,)))
    machine.run(600, "1", cpus=1.0, gpu_busy=(0.5,), gpu_memory_bytes=(GIB,))
    machine.tell(Exited(T + 600, "1", 1, Outcome.SUCCEEDED))
    machine.write()
    usage = machine.usage(By.OWNER, T + 90.0, T + 120.5)["ana"]
    assert usage.held == Resources(2000 * 61 // 2, 4 * GIB * 61 // 2, 1000 * 61 // 2)
    assert usage.used == Resources(1000 * 61 // 2, GIB * 61 // 2, 500 * 61 // 2)
    assert (usage.held_seconds, usage.measured_seconds) == (30.5, 30.5)
    assert machine.usage(By.OWNER, T + 600, T + 700) == {}
    assert machine.usage(By.GPU, T, T + 600)["a/0"].used.gpus_milli == 500 * 600


def test_what_lives_counts_to_now_with_the_minute_that_is_under_way(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    machine.tell(placed("1", T - 30), placed("2", T + 50))
    machine.run(100, "1", cpus=1.0)
    machine.write()
    machine.run(40, "1", cpus=1.0)
    by_job = machine.usage(By.JOB, T, T + HOUR)
    assert by_job["1"].held_seconds == 140.0
    assert by_job["1"].used.cpus_milli == pytest.approx(140_000, abs=2)
    assert (by_job["2"].held_seconds, by_job["2"].measured_seconds) == (90.0, 0.0)
    assert machine.usage(By.JOB, T + 100, T + 120)["1"].used.cpus_milli == pytest.approx(20_000, abs=2)


def test_who_ends_and_is_written_down_while_somebody_asks_is_counted_once(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    machine.tell(placed("1", T), placed("2", T))
    machine.run(120, "1", "2")
    machine.write()
    machine.tell(Exited(T + 120, "1", 1, Outcome.SUCCEEDED))
    living, under_way = machine.ledger.living, machine.ledger.under_way(machine.now)
    before = machine.cluster(T, T + 120)
    machine.write()
    asked = machine.journal.usage_between(
        T, T + 120, By.JOB, now=machine.now, living=living, under_way=under_way
    )
    assert sum(asked.values(), Usage()) == before == machine.cluster(T, T + 120)
    assert before.held_seconds == 240.0


def test_what_is_written_between_two_questions_of_one_answer_is_not_seen(url: str, opened: Opener) -> None:
    journal = opened(url)
    count = select(func.count()).select_from(usage_attempts)
    put(journal, Batch(usage=UsageRows(entries=[entry("1")])))
    with journal._at_once() as ask:
        assert ask(count)[0][0] == 1
        put(journal, Batch(usage=UsageRows(entries=[entry("2")])))
        assert ask(count)[0][0] == 1
    assert journal._rows(count)[0][0] == 2


def stories(machine: Machine) -> None:
    """Three hours on one machine: attempts that end, that lie across hours, that live on."""
    machine.tell(placed("1", T + 10, devices=(0, 1)), placed("2", T + 10.25, cpus_milli=333))
    machine.run(HOUR, "1", "2", gpu_busy=(0.3, 0.9), gpu_memory_bytes=(1, 2))
    machine.tell(Exited(machine.now, "2", 1, Outcome.FAILED), placed("3", machine.now + 0.001))
    machine.write()
    machine.run(1000, "1", "3", gpu_busy=(0.3, 0.9), gpu_memory_bytes=(1, 2))
    machine.tell(Vacated(machine.now, "3", 1, "preempted"), placed("3", machine.now, 2, devices=(1,)))
    machine.write()
    machine.run(HOUR + 700, "1", gpu_busy=(0.3, 0.9), gpu_memory_bytes=(1, 2))
    machine.write()


CUTS = [0.0, 11.5, 59.999, 600.0, 3599.5, 3600.0, 3600.0005, 4000.1, 5000.0, 7200.0, 8000.0, 9000.0]


def parts(machine: Machine, by: By) -> list[Usage]:
    edges = [T + cut for cut in CUTS]
    return [sum(machine.usage(by, a, b).values(), Usage()) for a, b in pairwise(edges)]


def test_a_day_is_the_sum_of_its_parts_also_once_its_minutes_are_hours(url: str, opened: Opener) -> None:
    journal = opened(url)
    machine = Machine(journal)
    stories(machine)
    whole = machine.cluster(T, T + 9000)
    assert whole.used.gpus_milli > 0
    for by in (By.JOB, By.OWNER, By.TEAM, By.EFFORT):
        assert sum(parts(machine, by), Usage()) == whole
    by_gpu = sum(parts(machine, By.GPU), Usage())
    assert by_gpu.used.gpus_milli == whole.used.gpus_milli
    upkeep = Upkeep(journal)
    assert upkeep.roll_up(T + 9000) == 4
    assert upkeep.roll_up(T + 9000) == 0
    assert machine.cluster(T, T + 9000) == whole
    assert sum(parts(machine, By.JOB), Usage()) == whole
    assert upkeep.prune(T + 3 * 24 * HOUR) > 0
    assert journal.rollups_of("1", until=T + 7200) == []
    assert machine.cluster(T, T + 9000) == whole
    assert sum(parts(machine, By.JOB), Usage()) == whole
    assert sum(parts(machine, By.TEAM), Usage()) == whole


def test_hours_that_are_drawn_are_those_of_the_minutes(url: str, opened: Opener) -> None:
    journal = opened(url)
    machine = Machine(journal)
    stories(machine)
    minutes = journal.rollups_of("1")
    Upkeep(journal).roll_up(T + 2 * HOUR + 600)
    hours = journal.rollups_of("1", hourly=True)
    assert [hour.start for hour in hours] == [T, T + HOUR]
    assert [hour.held_seconds for hour in hours] == [3590.0, 3600.0]
    first = [minute for minute in minutes if minute.start < T + HOUR]
    assert hours[0].measured_seconds == sum(minute.measured_seconds for minute in first)
    assert hours[0].gpu_busy[1] is not None
    assert hours[0].gpu_busy[1].mean == pytest.approx(0.9)


def test_usage_can_be_limited_to_one_team_owner_or_job(url: str, opened: Opener) -> None:
    journal = opened(url)
    machine = Machine(journal)
    rows = [entry(str(n), owner=["ana", "bob"][n % 2], team=["nlp", "ocr"][n // 2]) for n in range(4)]
    put(journal, Batch(usage=UsageRows(entries=rows)))
    machine.now = T + HOUR
    assert set(machine.usage(By.JOB, T, T + HOUR, owner="bob")) == {"1", "3"}
    assert set(machine.usage(By.OWNER, T, T + HOUR, team="ocr")) == {"ana", "bob"}
    assert set(machine.usage(By.TEAM, T, T + HOUR, job="2")) == {"ocr"}
    assert set(machine.usage(By.EFFORT, T, T + HOUR)) == {None}


# --- The writer ---------------------------------------------------------------------------------------


def held_up(journal: Journal) -> threading.Event:
    """The writer waits until this is set, and nothing else has been handed over yet."""
    waits, handed_over = threading.Event(), threading.Event()

    def done(_: BaseException | None) -> None:
        waits.set()
        handed_over.wait(LONG_SECONDS)

    journal.write(Batch(events=[held(0)]), done)
    assert waits.wait(LONG_SECONDS)
    return handed_over


def test_what_was_metered_lets_what_comes_later_pass_and_is_written_in_order(
    url: str, opened: Opener
) -> None:
    journal, answers = opened(url), Answers()
    handed_over = held_up(journal)
    for n in range(101, 106):
        journal.write(Batch(usage=UsageRows(entries=[entry(str(n))])), answers.of(n))
    for n in range(1, 4):
        journal.write(Batch(events=[held(n)]), answers.of(n))
    handed_over.set()
    answers.wait(8)
    assert answers.told == [(n, None) for n in (1, 2, 3, 101, 102, 103, 104, 105)]


def test_what_was_metered_is_not_put_off_for_ever(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.store.journal._PATIENCE_COMMITS", 3)
    journal, answers = opened(url), Answers()
    handed_over = held_up(journal)

    def next_of(number: int) -> Callable[[BaseException | None], None]:
        """Before each is answered another is handed over, so that there is always one that cannot wait."""

        def done(error: BaseException | None) -> None:
            if number < 20:
                journal.write(Batch(events=[held(number)]), next_of(number + 1))
            answers.of(number)(error)

        return done

    journal.write(Batch(events=[held(0)]), next_of(1))
    journal.write(Batch(usage=UsageRows(entries=[entry("1")])), answers.of(1000))
    handed_over.set()
    answers.wait(21)
    assert [number for number, _ in answers.told].index(1000) == 4


@pytest.mark.parametrize("happened", [True, False])
def test_a_metered_commit_of_unknown_fate_that_others_have_passed_is_written_again(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    journal, answers = opened(url), Answers()
    commit, commits = journal._database.writer.dialect.do_commit, list[int]()

    def unreliable(connection: object) -> None:
        commits.append(len(commits))
        if len(commits) != 3 or happened:
            commit(connection)
        if len(commits) == 3:
            raise OperationalError("COMMIT", None, Exception("the line went dead"))

    monkeypatch.setattr(journal._database.writer.dialect, "do_commit", unreliable)
    handed_over = held_up(journal)
    journal.write(Batch(usage=UsageRows(entries=[entry("1")], seq=1)), answers.of(10))
    journal.write(Batch(events=[held(1)]), answers.of(1))
    handed_over.set()
    answers.wait(2)
    assert answers.told == [(1, None), (10, None)]
    assert len(commits) == 4
    assert (len(journal.attempts_ended()), journal.usage_seq()) == (1, 1)
    assert list(journal.load()[1]) == [held(0), held(1)]


def test_closing_writes_what_was_metered_too(url: str, opened: Opener) -> None:
    journal, answers = opened(url), Answers()
    for n in range(20):
        journal.write(Batch(usage=UsageRows(entries=[entry(str(n))])), answers.of(n))
    journal.close()
    assert len(answers.told) == 20
    assert len(opened(url).attempts_ended()) == 20
