"""Lives of jobs: ages as levels, the table, and mates."""

import numpy as np
import pytest

from muster.model.job import Job, single
from muster.model.lives import EDGES, LEVELS, LivesBook, level_of, life

GANG = single(gpus=1)


def job(name: str, at: float = 0.0, owner: str = "ana") -> Job:
    return Job(name, GANG, at, owner=owner)


@pytest.mark.parametrize(("age", "level"), [(0.0, 0), (299.0, 0), (300.0, 1), (450.0, 2), (1e12, LEVELS - 1)])
def test_ages_are_levels(age: float, level: int) -> None:
    assert level_of(age) == level


def test_a_life_counts_one_on_each_level_it_passed_and_its_part_where_it_is() -> None:
    gone, stayed = life(375.0, ended=False)
    assert not gone.any()
    assert stayed[:3].tolist() == [1.0, 0.5, 0.0]


def test_an_ended_life_died_on_the_level_it_reached() -> None:
    gone, stayed = life(375.0, ended=True)
    assert np.flatnonzero(gone).tolist() == [1]
    assert stayed[:3].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("age", [0.0, 300.0, float(EDGES[-1]), float(EDGES[-1]) * 10])
def test_every_life_ends_once(age: float) -> None:
    gone, stayed = life(age, ended=True)
    assert gone.sum() == 1.0
    assert stayed.max() <= 1.0


def test_jobs_submitted_together_are_mates_the_nearer_the_more() -> None:
    book = LivesBook()
    for name, at in (("a", 0.0), ("b", 60.0), ("c", 10_000.0)):
        book.arrived(job(name, at))
    mates = book.view().mates
    assert [mate for _, mate in mates["a"]] == ["b"]
    assert mates["c"] == ()
    assert 0.8 < mates["a"][0][0] < 1.0


def test_another_owners_jobs_are_no_mates() -> None:
    book = LivesBook()
    book.arrived(job("a"))
    book.arrived(job("b", owner="bob"))
    assert not any(book.view().mates.values())


def test_mates_remember_how_long_one_served() -> None:
    book = LivesBook()
    for name in ("a", "b"):
        book.arrived(job(name))
    book.ended(job("a"), 500.0)
    view = book.view()
    assert "a" not in view.mates
    assert view.mates["b"] == ()
    assert view.ended_mates["b"] == ((1.0, 500.0),)
    assert view.deaths[GANG].sum() == 1.0


def test_who_did_not_come_to_its_end_is_forgotten() -> None:
    book = LivesBook()
    for name in ("a", "b"):
        book.arrived(job(name))
    book.forget("a")
    view = book.view()
    assert view.mates == {"b": ()}
    assert not view.ended_mates
    assert not view.deaths


def test_a_copy_goes_its_own_way() -> None:
    book = LivesBook()
    book.arrived(job("a"))
    view, copy = book.view(), book.copy()
    copy.arrived(job("b"))
    copy.ended(job("a"), 100.0)
    assert view.mates == {"a": ()}
    assert not view.deaths
