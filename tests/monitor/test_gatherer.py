"""Looking at many sources: who is looked at when, and that nothing is lost or overtaken at an end."""

import threading
from pathlib import Path

import pytest

from muster.monitor.reports import gather as module
from muster.monitor.reports.gather import Gatherer
from muster.monitor.reports.lines import json_line
from muster.monitor.reports.report import Report
from muster.monitor.reports.tail import Tail
from servers import until

KEY = ("7", 1)


class Told:
    """A source that says what it is told to, and counts how often it is looked at."""

    may_block = False
    least_seconds = 0.0

    def __init__(self, *batches: int) -> None:
        self.batches, self.looks, self.lasts = list(batches), 0, 0
        self.is_behind = False
        self.position = b""

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        self.looks += 1
        self.lasts += last
        count = self.batches.pop(0) if self.batches else 0
        self.is_behind = bool(self.batches)
        self.position += b"."
        return [Report("7", 1, now, None, {"a": 1.0}, "told")] * count


class Waits(Told):
    """One on the network, which answers when it is let."""

    may_block = True

    def __init__(self, *batches: int) -> None:
        super().__init__(*batches)
        self.let = threading.Event()

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        self.let.wait(30)
        return super().poll(now, last=last)


@pytest.fixture
def gatherer(monkeypatch: pytest.MonkeyPatch) -> Gatherer:
    monkeypatch.setattr(module, "_REST", 0)
    return Gatherer(lambda: 5.0, lambda: None)


def ticks(gatherer: Gatherer, count: int) -> int:
    """So many looks around; how many reports were fetched."""
    fetched = 0
    for _ in range(count):
        gatherer.tick()
        fetched += sum(len(heard.reports) for heard in gatherer.fetched())
    return fetched


def test_whom_somebody_waits_for_is_looked_at_every_time_and_others_every_tenth(gatherer: Gatherer) -> None:
    soon, later = Told(), Told()
    gatherer.watch(("1", 1), soon, soon=True)
    gatherer.watch(("2", 1), later, soon=False)
    ticks(gatherer, 20)
    assert (soon.looks, later.looks) == (20, 2)
    gatherer.hurry(("2", 1), soon=True)
    gatherer.hurry(("1", 1), soon=False)
    ticks(gatherer, 10)
    assert (soon.looks, later.looks) == (21, 12)


def test_who_is_behind_is_looked_at_every_time_until_it_has_caught_up(gatherer: Gatherer) -> None:
    source = Told(1, 1, 1, 1)
    gatherer.watch(KEY, source, soon=False)
    assert ticks(gatherer, 13) == 4
    ticks(gatherer, 7)
    assert source.looks == 5


def test_who_says_very_much_lets_the_others_have_their_turn(
    gatherer: Gatherer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_REPORTS", 10)
    loud, quiet = Told(*[50] * 100), Told()
    gatherer.watch(("1", 1), loud, soon=True)
    gatherer.watch(("2", 1), quiet, soon=True)
    ticks(gatherer, 10)
    assert quiet.looks >= 5


def test_nobody_looks_further_until_what_was_heard_was_fetched(gatherer: Gatherer) -> None:
    source = Told(1, 1)
    gatherer.watch(KEY, source, soon=True)
    for _ in range(5):
        gatherer.tick()
    assert source.looks == 1
    assert [heard.position for heard in gatherer.fetched()] == [b"."]


def test_a_source_that_fails_is_passed_over(gatherer: Gatherer, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Told):
        def poll(self, now: float, *, last: bool = False) -> list[Report]:
            raise OSError("no")

    other = Told(1)
    gatherer.watch(("1", 1), Broken(), soon=True)
    gatherer.watch(("2", 1), other, soon=True)
    assert ticks(gatherer, 1) == 1
    assert "could not be read" in caplog.text


def test_little_that_is_left_at_the_end_is_heard_at_once(gatherer: Gatherer, tmp_path: Path) -> None:
    path = tmp_path / "7.1.log"
    path.write_text('{"a": 1}\n{"a": 2}')
    gatherer.watch(KEY, Tail("7", 1, str(path), json_line, log_bytes=1 << 20), soon=False)
    assert gatherer.finish(KEY)
    assert [report.values["a"] for heard in gatherer.fetched() for report in heard.reports] == [1, 2]
    assert not gatherer.knows(KEY)
    assert gatherer.finish(KEY)


def test_what_takes_a_while_at_the_end_is_heard_aside_and_in_order(gatherer: Gatherer) -> None:
    source = Waits(1, 2, 3)
    gatherer.watch(KEY, source, soon=True)
    gatherer.tick()
    assert not gatherer.finish(KEY)
    assert not gatherer.finish(KEY)
    source.let.set()
    until(lambda: not gatherer.knows(KEY), "the end")
    assert [len(heard.reports) for heard in gatherer.fetched()] == [1, 2, 3]
    until(lambda: list(gatherer.finished()) == [KEY], "word of it")
    assert source.lasts == 2


def test_one_that_may_block_keeps_nobody_waiting(gatherer: Gatherer) -> None:
    slow, other = Waits(1), Told(1)
    gatherer.watch(("1", 1), slow, soon=True)
    gatherer.watch(("2", 1), other, soon=True)
    assert ticks(gatherer, 5) == 1
    assert other.looks == 5
    slow.let.set()
    until(lambda: slow.looks == 1, "the answer")
    until(lambda: ticks(gatherer, 1) == 1, "its report")


def test_a_dear_source_is_given_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REST", 1e9)
    gatherer, source = Gatherer(lambda: 5.0, lambda: None), Told()
    gatherer.watch(KEY, source, soon=True)
    ticks(gatherer, 5)
    assert source.looks == 1


def test_who_asks_for_patience_is_given_it(gatherer: Gatherer) -> None:
    source = Told()
    source.least_seconds = 1000.0
    gatherer.watch(KEY, source, soon=True)
    ticks(gatherer, 5)
    assert source.looks == 1


def test_it_looks_by_itself_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    heard = threading.Event()
    gatherer, source = Gatherer(lambda: 5.0, heard.set), Told(0, 0, 1)
    gatherer.watch(KEY, source, soon=True)
    gatherer.begin()
    assert heard.wait(30)
    gatherer.end()
    assert sum(len(one.reports) for one in gatherer.fetched()) == 1
