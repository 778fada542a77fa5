"""Fair share: use that fades, the dominant resource, and steps above what is fair."""

import pytest

from muster.model.job import Priority
from muster.model.resources import Resources
from muster.model.snapshot import Account
from muster.model.units import DAY, GIB
from muster.schedule.shares import average, brought_to, charged, held_now, with_rate

CHARGES = (0.25, 1.0, 2.0)
TOTAL = (64_000.0, 512.0 * GIB, 8000.0)


def test_low_priority_is_cheap_and_high_is_dear() -> None:
    held = Resources(1000, 0, 4000)
    assert charged(held, Priority.LOW, CHARGES) == (250.0, 0.0, 1000.0)
    assert charged(held, Priority.HIGH, CHARGES) == (2000.0, 0.0, 8000.0)


def test_use_fades_by_half_in_a_half_life() -> None:
    account = Account(use=(8.0, 4.0, 2.0), as_of=0.0)
    assert brought_to(account, DAY, DAY).use == pytest.approx((4.0, 2.0, 1.0))


def test_time_does_not_run_backwards() -> None:
    account = Account(use=(8.0, 4.0, 2.0), as_of=DAY)
    assert brought_to(account, 0.0, DAY) is account


def test_what_is_brought_forward_in_steps_is_the_same_as_at_once() -> None:
    account = Account(use=(5.0, 0.0, 1.0), rate=(1.0, 2.0, 3.0), as_of=0.0)
    at_once = brought_to(account, 3 * DAY, DAY)
    in_steps = brought_to(brought_to(account, DAY, DAY), 3 * DAY, DAY)
    assert in_steps.use == pytest.approx(at_once.use)


def test_holding_all_for_ever_is_an_average_of_all() -> None:
    account = Account(rate=TOTAL, as_of=0.0)
    assert average(brought_to(account, 100 * DAY, DAY), TOTAL, DAY) == pytest.approx(1.0)


def test_to_begin_and_to_cease_cancel_out() -> None:
    account = Account(rate=(1.0, 2.0, 3.0))
    cost = (5.0, 6.0, 7.0)
    assert with_rate(with_rate(account, cost, 1), cost, -1) == account


def test_the_dominant_resource_counts() -> None:
    assert held_now((32_000.0, 0.0, 1000.0), TOTAL) == 0.5
    assert held_now((1000.0, 0.0, 6000.0), TOTAL) == 0.75
    assert held_now((0.0, 512.0 * GIB, 0.0), TOTAL) == 1.0


def test_a_resource_that_is_not_there_does_not_count() -> None:
    assert held_now((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)) == 0.0
    assert average(Account(use=(1.0, 1.0, 1.0)), (0.0, 0.0, 0.0), DAY) == 0.0
