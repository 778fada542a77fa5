"""Reports in the store: kept in order with the state that goes with them, thinned out, and gone in time."""

import math

import pytest
from stores import Opener, put

from muster.model.events import Reported
from muster.model.report import Report
from muster.model.units import DAY
from muster.monitor.reports.thin import MOST_KEPT
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch, Journal
from muster.store.rows import EndedJob, ReportRow


def row(
    number: int, value: float = 0.0, job: str = "7", attempt: int = 1, step: float | None = None
) -> ReportRow:
    return ReportRow(
        number, float(number), Report(job, attempt, 100.0 + number, step, {"a": value}, "output")
    )


def ended(job: str, at: float) -> EndedJob:
    return EndedJob(job, None, "ana", "", "x", "SUCCEEDED", 0.0, 0.0, at, b"{}")


@pytest.fixture
def journal(url: str, opened: Opener) -> Journal:
    return opened(url)


def test_reports_are_found_again_in_order_with_all_that_they_said(journal: Journal) -> None:
    rows = [row(0, 1.5, step=3.0), row(1, math.inf), row(0, 2.0, attempt=2), row(0, 9.0, job="8")]
    put(journal, Batch(reports=rows[1:]))
    put(journal, Batch(reports=rows[:1]))
    assert journal.reports("7") == rows[:3]
    assert journal.reports("7", since=100.5) == rows[1:2]
    assert journal.reports("7", limit=1) == rows[:1]
    assert journal.reports("9") == []


def test_what_is_no_number_and_no_step_is_kept_as_what_it_is(journal: Journal) -> None:
    put(journal, Batch(reports=[row(0, math.nan, step=math.nan), row(1, -math.inf)]))
    first, second = (one.report for one in journal.reports("7"))
    assert math.isnan(first.values["a"])
    assert first.step is None
    assert second.values["a"] == -math.inf


def test_a_report_that_is_written_twice_is_there_once(journal: Journal) -> None:
    for _ in range(2):
        put(journal, Batch(reports=[row(0), row(1)]))
    assert len(journal.reports("7")) == 2


def test_states_are_each_their_owners_and_go_with_the_job(journal: Journal) -> None:
    states = {("7", 1, "exits"): b"x", ("7", 1, "reports"): b"a", ("8", 1, "reports"): b"c"}
    put(journal, Batch(states=states))
    put(journal, Batch(states={("7", 1, "reports"): b"b"}))
    assert journal.report_states("reports") == {("7", 1): b"b", ("8", 1): b"c"}
    assert journal.report_states("exits") == {("7", 1): b"x"}
    put(journal, Batch(states={("7", 2, "reports"): b"d"}, stateless=["7"]))
    assert journal.report_states("reports") == {("8", 1): b"c"}
    assert journal.report_states("exits") == {}


def test_of_very_many_reports_the_older_ones_are_thinned_out(journal: Journal) -> None:
    count = 3 * MOST_KEPT
    values = [float(i % 7) for i in range(count)]
    values[11], values[13], values[17] = -5.0, 50.0, math.nan
    put(journal, Batch(reports=[row(i, value) for i, value in enumerate(values)]))
    put(journal, Batch(reports=[row(0, job="8")]))
    upkeep = Upkeep(journal)
    assert upkeep.thin_all() > 0
    kept = [one.number for one in journal.reports("7")]
    assert MOST_KEPT // 2 < len(kept) <= MOST_KEPT + 3
    assert {11, 13, 17} < set(kept)
    assert kept[-MOST_KEPT // 2 :] == list(range(count - MOST_KEPT // 2, count))
    assert upkeep.thin_all() == 0
    assert len(journal.reports("8")) == 1


def test_reports_of_jobs_that_ended_long_ago_go(journal: Journal) -> None:
    put(journal, Batch(reports=[row(i, job=job) for job in "123" for i in range(3)]))
    put(journal, Batch(ended=[ended("1", 0.0), ended("2", 0.0), ended("3", 500 * DAY)]))
    Upkeep(journal).prune(600 * DAY, keep_jobs=frozenset({"2"}))
    assert [len(journal.reports(job)) for job in "123"] == [0, 3, 3]


def test_a_journal_with_reports_among_its_events_is_still_read(journal: Journal) -> None:
    event = Reported(1.0, "7", 1, {"loss": 0.5}, 3.0)
    put(journal, Batch(events=[event]))
    assert list(journal.events_after(0)) == [event]
