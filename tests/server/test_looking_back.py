"""What a job that has ended held too late, from what is written down of it: exact figures."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import muster.server.stewardship.hindsight as module
from muster.model.events import Event, Exited, Outcome, Resumed, Started, Suspended, Vacated
from muster.model.ledger import DeviceHeld, Entry
from muster.model.report import Report
from muster.model.resources import Resources
from muster.model.units import HOUR, MILLI
from muster.server.stewardship.hindsight import hindsight_of
from muster.store.journal import Batch, EndedJob, Journal
from muster.store.rows import HindsightRow, ReportRow, UsageRows

T = 1_700_000_000.0
NOBODY: frozenset[str] = frozenset()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal.open(f"sqlite:///{tmp_path}/muster.db")
    yield made
    made.close()


def put(journal: Journal, batch: Batch) -> None:
    is_done = threading.Event()
    journal.write(batch, lambda _: is_done.set())
    assert is_done.wait(30)


def ended(journal: Journal, reason: str | None = None, **more: object) -> None:
    body = msgspec.json.encode({"id": "1", "reason": reason, **more})
    put(journal, Batch(ended=[EndedJob("1", None, "ana", "", "x", "SUCCEEDED", T, T, T + 8 * HOUR, body)]))


def life(journal: Journal, metric: str = "loss") -> None:
    """Ran for 1 h, stood still for 1 h, ran 1 h more, waited for 2 h, ran for 3 h: 5 h in all.

    Four GPUs in the first attempt, two in the second, each placed just before it began. After half an hour
    nothing got better, and that was told every six minutes.
    """
    events: list[Event] = [
        Started(T, "1", 1),
        Suspended(T + HOUR, "1", 1),
        Resumed(T + 2 * HOUR, "1", 1),
        Vacated(T + 3 * HOUR, "1", 1, "preempted"),
        Started(T + 5 * HOUR, "1", 2),
        Exited(T + 8 * HOUR, "1", 2, Outcome.SUCCEEDED),
    ]
    put(journal, Batch(events=events))
    entries = [_entry(1, 4, T, T + 3 * HOUR), _entry(2, 2, T + 5 * HOUR, T + 8 * HOUR)]
    put(journal, Batch(usage=UsageRows(entries)))
    running = [T + n * 360 for n in range(10)], [T + 2 * HOUR + n * 360 for n in range(10)]
    again = [T + 5 * HOUR + n * 360 for n in range(30)]
    moments = [(1, at) for part in running for at in part] + [(2, at) for at in again]
    values = [max(0.5, 1.0 - n / 10) for n in range(len(moments))]
    rows = [
        ReportRow(n, None, Report("1", attempt, at, float(n), {metric: value}, "output"))
        for n, ((attempt, at), value) in enumerate(zip(moments, values, strict=True))
    ]
    put(journal, Batch(reports=rows))


def _entry(attempt: int, gpus: int, placed_at: float, ended_at: float) -> Entry:
    devices = tuple(DeviceHeld("a", n, MILLI) for n in range(gpus))
    holds = Resources(500, gpus_milli=gpus * MILLI)
    times = {"placed_at": placed_at, "started_at": placed_at, "ended_at": ended_at}
    return Entry(job="1", attempt=attempt, owner="ana", team="", holds=holds, devices=devices, **times)


def test_what_was_held_from_that_moment_on_is_exact_over_attempts_and_pauses(journal: Journal) -> None:
    life(journal)
    ended(journal)
    # Best after 30 min; a quarter of 5 h later, at 1 h 45 min of run time, is T + 2 h 45 min.
    held = 4 * HOUR / 4 + 2 * 3 * HOUR, (HOUR / 4 + 3 * HOUR) / 2
    gpus, cpus = (round(amount * MILLI) for amount in held)
    how = ("lost", "loss stalls for 75m", "loss had stopped improving")
    assert hindsight_of(journal, "1", NOBODY, HOUR) == HindsightRow("1", 3.25 * HOUR, cpus, gpus, *how)


def test_an_exit_of_its_own_counts_from_when_it_was_met(journal: Journal) -> None:
    life(journal)
    ended(journal, success=["loss <= 0.9"])
    found = hindsight_of(journal, "1", NOBODY, HOUR)
    assert found is not None
    assert (found.verdict, found.condition) == ("won", "loss <= 0.9")
    assert found.after_seconds == 5 * HOUR - 360
    assert found.gpus_after == round(
        (4 * (3 * HOUR - 360) + 2 * 3 * HOUR) * MILLI
    )  # held while it stood still


def test_who_said_when_it_is_lost_or_whose_effort_did_is_left_in_peace(journal: Journal) -> None:
    life(journal)
    ended(journal, failure=["loss > 10"])
    assert hindsight_of(journal, "1", NOBODY, HOUR) == HindsightRow("1")
    ended(journal, effort="llama")
    assert hindsight_of(journal, "1", frozenset({"llama"}), HOUR) == HindsightRow("1")
    assert hindsight_of(journal, "1", NOBODY, HOUR) != HindsightRow("1")


def test_an_exit_that_ended_it_ended_it_in_time(journal: Journal) -> None:
    life(journal)
    ended(journal, "loss was 0.5 at step 5, and loss <= 0.9 ends it as won", success=["loss <= 0.9"])
    assert hindsight_of(journal, "1", NOBODY, HOUR) == HindsightRow("1")


def test_an_exit_that_nobody_understands_any_more_ends_nothing(journal: Journal) -> None:
    life(journal, metric="lr")
    ended(journal, success=["lr !!"])
    assert hindsight_of(journal, "1", NOBODY, HOUR) == HindsightRow("1")


def test_what_can_t_be_told_is_not_said(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hindsight_of(journal, "1", NOBODY, HOUR) is None, "there is no such job"
    ended(journal)
    assert hindsight_of(journal, "1", NOBODY, HOUR) is None, "it has reported nothing"
    life(journal)
    monkeypatch.setattr(module, "_MOST_REPORTS", 49)
    assert hindsight_of(journal, "1", NOBODY, HOUR) is None, "it has reported too much to look at"
