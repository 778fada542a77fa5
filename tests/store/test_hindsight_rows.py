"""What came too late, on SQLite and on PostgreSQL alike: summed exactly, and what is not known stays so."""

from random import Random

import pytest
from sqlalchemy import create_engine
from stores import Opener, put

from muster.model.hindsight import LookedBack
from muster.model.ledger import By, DeviceHeld, Entry, ended_as
from muster.model.report import Report
from muster.model.resources import Resources
from muster.model.units import DAY, MILLI
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch, EndedJob, Journal
from muster.store.rows import HindsightRow, ReportRow, Retention, UsageRows
from muster.store.tables import MIGRATIONS, jobs, migrate
from usage_world import DAY0

T = DAY0
LATE = ("lost", "loss stalls for 1h", "loss had stopped improving")


def entry(job: str, attempt: int = 1, *, gpus: int = 2, seconds: float = 100.0, **whose: object) -> Entry:
    devices = tuple(DeviceHeld("a", device, MILLI) for device in range(gpus))
    values: dict[str, object] = {"owner": "ana", "team": "nlp", **whose}
    holds = Resources(1500, gpus_milli=gpus * MILLI)
    times = {"placed_at": T, "ended_at": T + seconds}
    return Entry(job=job, attempt=attempt, holds=holds, devices=devices, **times, **values)  # type: ignore[arg-type]


def ended(job: str, outcome: str = "SUCCEEDED", verdict: str | None = None, at: float = T + 100) -> EndedJob:
    return EndedJob(job, None, "ana", "nlp", "x", outcome, T, T, at, b"{}", verdict)


def three_jobs(journal: Journal) -> None:
    """Job 1 took two attempts and ran on too long, 2 ended in time, of 3 nothing is known."""
    entries = [entry("1"), entry("1", 2, seconds=50.0), entry("2", owner="bob"), entry("3", effort="e")]
    rows = [HindsightRow("1", 60.0, 90_000, 120_000, *LATE), HindsightRow("2")]
    put(journal, Batch(ended=[ended("1", verdict="lost"), ended("2", verdict="won"), ended("3")]))
    put(journal, Batch(usage=UsageRows(entries, hindsights=rows)))


ONE = LookedBack(
    1, 1, 1, Resources(225_000, 0, 300_000), Resources(225_000, 0, 300_000), Resources(90_000, 0, 120_000)
)
TWO = LookedBack(1, 1, 0, Resources(150_000, 0, 200_000), Resources(150_000, 0, 200_000))
THREE = LookedBack(1, 0, 0, Resources(150_000, 0, 200_000))


def test_sums_are_exact_and_unknown_is_not_zero(url: str, opened: Opener) -> None:
    journal = opened(url)
    three_jobs(journal)
    now = T + 1000
    assert journal.looked_back(T, now, By.JOB)[0] == {"1": ONE, "2": TWO, "3": THREE}
    assert journal.looked_back(T, now, By.OWNER)[0] == {"ana": ONE + THREE, "bob": TWO}
    assert journal.looked_back(T, now, By.TEAM)[0] == {"nlp": ONE + TWO + THREE}
    assert journal.looked_back(T, now, By.EFFORT)[0] == {None: ONE + TWO, "e": THREE}
    assert journal.looked_back(T, now, By.VERDICT)[0] == {"lost": ONE, "won": TWO, "succeeded": THREE}
    assert journal.looked_back(T, now, By.OWNER, {By.OWNER: ("bob",)})[0] == {"bob": TWO}
    assert journal.looked_back(T, T + 100, By.OWNER)[0] == {}
    assert journal.looked_back(T, now, By.OWNER)[1] == {LATE[2]: ONE}
    held = journal.usage_between(T, now, By.OWNER, now=now)
    assert held["ana"].held.gpus_milli == (ONE + THREE).held.gpus_milli


def test_all_attempts_of_a_job_count_to_its_verdict(url: str, opened: Opener) -> None:
    journal = opened(url)
    three_jobs(journal)
    put(journal, Batch(usage=UsageRows([entry("4")])))  # it left its seats, and waits to go on
    for since in (T, T + 10):  # summed by the database, and cut
        found = journal.usage_between(since, T + 1000, By.VERDICT, now=T + 1000)
        seconds = {how: usage.held_seconds for how, usage in found.items()}
        cut = since - T
        left = {"lost": 150.0 - 2 * cut, "won": 100.0 - cut, "succeeded": 100.0 - cut, "running": 100.0 - cut}
        assert seconds == left


@pytest.mark.parametrize("seed", range(3))
def test_any_jobs_are_summed_as_they_would_be_by_hand(url: str, opened: Opener, seed: int) -> None:
    luck, journal = Random(seed), opened(url)
    plain: dict[By, dict[str | None, LookedBack]] = {by: {} for by in By if by is not By.GPU}
    for number in range(20):
        job, owner, effort = str(number), luck.choice("ab"), luck.choice([None, "e"])
        gpus, seconds = luck.randint(0, 3), float(luck.randint(1, 500))
        verdict, is_judged, after = (
            luck.choice([None, "won", "lost"]),
            luck.random() < 0.5,
            luck.randint(0, 99),
        )
        rows = [HindsightRow(job, 1.0, after, 2 * after, *(LATE if after else ()))] if is_judged else []
        put(journal, Batch(ended=[ended(job, "OUT_OF_MEMORY", verdict)]))
        one = entry(job, gpus=gpus, seconds=seconds, owner=owner, effort=effort)
        put(journal, Batch(usage=UsageRows([one], hindsights=rows)))
        held = Resources(int(1500 * seconds), 0, int(gpus * MILLI * seconds))
        late = Resources(after, 0, 2 * after) if is_judged else Resources()
        is_late = is_judged and after > 0
        mine = LookedBack(1, int(is_judged), int(is_late), held, held if is_judged else Resources(), late)
        word = ended_as("OUT_OF_MEMORY", verdict)
        groups = {By.JOB: job, By.OWNER: owner, By.TEAM: "nlp", By.EFFORT: effort, By.VERDICT: word}
        for by, group in groups.items():
            plain[by][group] = plain[by].get(group, LookedBack()) + mine
    assert {by: journal.looked_back(T, T + DAY, by)[0] for by in plain} == plain


def test_who_reported_and_was_not_looked_at_is_found(url: str, opened: Opener) -> None:
    journal = opened(url)
    three_jobs(journal)
    reports = [ReportRow(0, 1.0, Report(job, 1, T + 1, None, {"loss": 1.0}, "report")) for job in ("2", "3")]
    put(journal, Batch(reports=reports))
    assert journal.jobs_to_look_back_on(T, 10) == ["3"]
    assert journal.jobs_to_look_back_on(T + 101, 10) == []
    put(journal, Batch(usage=UsageRows(hindsights=[HindsightRow("3")])))
    assert journal.jobs_to_look_back_on(T, 10) == []


def test_it_goes_with_what_the_job_has_held(url: str, opened: Opener) -> None:
    journal = opened(url)
    three_jobs(journal)
    keep = Retention(hours_seconds=DAY, attempts_seconds=DAY)
    Upkeep(journal, keep).prune(T + 3 * DAY)
    assert journal.hindsights({"1", "2"}) == {}
    assert journal.looked_back(T, T + DAY, By.JOB)[0] == {}


def test_a_store_from_before_verdicts_were_kept_goes_on(url: str, opened: Opener) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        migrate(connection, MIGRATIONS[:4])
        columns = ("id", "owner", "team", "name", "outcome", "submitted_at", "ended_at", "body")
        old = dict(zip(columns, ("1", "ana", "nlp", "x", "STOPPED", T, T + 100, b"{}"), strict=True))
        connection.execute(jobs.insert(), [old])
    engine.dispose()
    journal = opened(url)
    put(journal, Batch(ended=[ended("2", verdict="won")]))
    put(journal, Batch(usage=UsageRows([entry("1"), entry("2")])))
    found = [journal.job(job) for job in ("1", "2")]
    assert [None if job is None else job.verdict for job in found] == [None, "won"]
    assert set(journal.usage_between(T, T + 1000, By.VERDICT, now=T + 1000)) == {"stopped", "won"}
