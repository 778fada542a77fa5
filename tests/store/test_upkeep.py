"""Upkeep: minutes become hours, what is old goes in small steps, and what is needed stays."""

import pytest
from stores import Opener, put
from usage_machine import Machine

import muster.monitor.upkeep as upkeep_module
from muster.model.events import Exited, Outcome
from muster.model.ledger import By
from muster.model.units import DAY, HOUR
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch, EndedJob, Journal, StoreError
from muster.store.rows import Retention, UsageRows
from usage_world import DAY0, placed

T = DAY0
ALL_GONE = Retention(minutes_seconds=0.0, hours_seconds=0.0, attempts_seconds=0.0)


def ended(machine: Machine, *ids: str) -> None:
    machine.tell(*(Exited(machine.now, job_id, 1, Outcome.SUCCEEDED) for job_id in ids))
    rows = [EndedJob(j, None, "ana", "nlp", "train", "SUCCEEDED", T, T, machine.now, b"{}") for j in ids]
    put(machine.journal, Batch(ended=rows))
    machine.write()


def two_hours(journal: Journal) -> Machine:
    """Job 1 ends after an hour, job 2 after two, job 3 lives on."""
    machine = Machine(journal)
    machine.tell(placed("1", T), placed("2", T), placed("3", T))
    machine.run(HOUR, "1", "2", "3", step=60.0)
    ended(machine, "1")
    machine.run(HOUR, "2", "3", step=60.0)
    ended(machine, "2")
    return machine


def counts(journal: Journal, job: str) -> tuple[int, int, int]:
    """Minutes, hours and attempts that are kept."""
    minutes, hours = journal.rollups_of(job), journal.rollups_of(job, hourly=True)
    return len(minutes), len(hours), len(journal.entries_of({job}))


def test_an_hour_is_rolled_up_when_all_of_its_minutes_must_be_in(url: str, opened: Opener) -> None:
    machine = two_hours(opened(url))
    upkeep = Upkeep(machine.journal)
    assert upkeep.roll_up(T + HOUR + 299) == 0
    assert upkeep.roll_up(T + HOUR + 300) == 3
    assert upkeep.roll_up(T + 2 * HOUR + 300) == 2
    assert upkeep.roll_up(T + 2 * HOUR + 300) == 0


def test_minutes_go_when_they_are_old_and_in_their_hours_and_not_before(url: str, opened: Opener) -> None:
    machine = two_hours(opened(url))
    journal, upkeep = machine.journal, Upkeep(machine.journal)
    assert upkeep.prune(T + 10 * DAY) == 0, "no hour has them yet"
    upkeep.roll_up(T + HOUR + 300)
    assert upkeep.prune(T + 2 * DAY) == 0
    assert upkeep.prune(T + 2 * DAY + HOUR) == 180
    assert [counts(journal, j) for j in "123"] == [(0, 1, 1), (60, 1, 1), (60, 1, 1)]


def test_of_living_jobs_and_of_those_that_are_needed_no_sum_is_lost(url: str, opened: Opener) -> None:
    machine = two_hours(opened(url))
    journal, upkeep = machine.journal, Upkeep(machine.journal, ALL_GONE)
    before = machine.usage(By.JOB, T, T + 2 * HOUR)
    upkeep.roll_up(T + 3 * HOUR)
    upkeep.prune(T + 1000 * DAY, frozenset({"2"}))
    assert counts(journal, "1") == (0, 0, 0)
    assert counts(journal, "2") == (120, 2, 1), "kept for a budget or a review, as it is"
    assert counts(journal, "3") == (0, 2, 1), "lives: its minutes are in its hours"
    after = machine.usage(By.JOB, T, T + 2 * HOUR)
    assert after == {job: usage for job, usage in before.items() if job != "1"}
    upkeep.prune(T + 1000 * DAY)
    assert counts(journal, "2") == (0, 0, 0)


def test_attempts_are_kept_for_ever_unless_somebody_says_otherwise(url: str, opened: Opener) -> None:
    machine = two_hours(opened(url))
    upkeep = Upkeep(machine.journal)
    upkeep.roll_up(T + 3 * HOUR)
    upkeep.prune(T + 399 * DAY)
    assert counts(machine.journal, "1") == (0, 1, 1)
    upkeep.prune(T + 10_000 * DAY)
    assert counts(machine.journal, "1") == (0, 0, 1)
    assert machine.usage(By.JOB, T, T + HOUR)["1"].measured_seconds == HOUR


def test_what_goes_goes_in_small_steps_that_are_waited_for(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "_ROWS_AT_ONCE", 7)
    machine = two_hours(opened(url))
    journal, sizes = machine.journal, list[int]()
    write = journal.write

    def watched(batch: Batch, done: object) -> None:
        rows = batch.usage or UsageRows()
        sizes.append(len(rows.gone_minutes) + len(rows.gone_hours) + len(rows.hours))
        write(batch, done)  # type: ignore[arg-type]

    monkeypatch.setattr(journal, "write", watched)
    upkeep = Upkeep(journal)
    upkeep.roll_up(T + 3 * HOUR)
    assert upkeep.prune(T + 4 * DAY, frozenset({"3"})) == 180
    assert max(sizes) <= 7 < 180 < sum(sizes)
    assert counts(journal, "3") == (120, 2, 1)


def test_upkeep_ends_with_the_journal(url: str, opened: Opener) -> None:
    machine = two_hours(opened(url))
    machine.journal.close()
    with pytest.raises(StoreError, match="closed"):
        Upkeep(machine.journal).roll_up(T + 3 * HOUR)
