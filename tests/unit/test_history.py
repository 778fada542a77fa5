"""History: the last runs of each owner, and what makes runs alike."""

import pytest

from muster.model.history import RECENT, HistoryBook, kind_of
from muster.model.job import Job, single


def ended(book: HistoryBook, owner: str, seconds: float) -> None:
    book.ended(Job("j", single(gpus=1), 0.0, owner=owner, name="sweep-17"), seconds)


def test_runs_are_kept_by_owner_the_latest_last() -> None:
    book = HistoryBook()
    for seconds in (10.0, 20.0):
        ended(book, "ana", seconds)
    ended(book, "bob", 30.0)
    runs = book.view().runs
    assert [run.seconds for run in runs["ana"]] == [10.0, 20.0]
    assert [run.seconds for run in runs["bob"]] == [30.0]


def test_only_the_last_runs_are_kept() -> None:
    book = HistoryBook()
    for seconds in range(RECENT + 5):
        ended(book, "ana", float(seconds))
    assert [r.seconds for r in book.view().runs["ana"]] == [float(s) for s in range(5, RECENT + 5)]


def test_a_copy_goes_its_own_way() -> None:
    book = HistoryBook()
    ended(book, "ana", 10.0)
    view, copy = book.view(), book.copy()
    ended(copy, "ana", 20.0)
    assert len(view.runs["ana"]) == len(book.view().runs["ana"]) == 1
    assert len(copy.view().runs["ana"]) == 2


@pytest.mark.parametrize(("one", "other"), [("sweep-17", "sweep-18"), ("run_001_a", "run_2_a"), ("", "7")])
def test_names_that_differ_in_numbers_are_of_one_kind(one: str, other: str) -> None:
    assert kind_of(one) == kind_of(other)


def test_other_names_are_not() -> None:
    assert kind_of("train-1") != kind_of("eval-1")
