"""Budgets as values: how they are written, what is spent, and when one will be."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.events import Outcome, Seat
from muster.model.job import Shape, single
from muster.model.ledger import TICKS
from muster.model.room import held_by
from muster.model.units import DAY, GIB, HOUR
from muster.steward.budget import (
    Budget,
    Prices,
    check_currency,
    extended,
    never_spent,
    out_of_time,
    parse_budget,
    parse_team_budget,
    scale_of,
    when,
)
from muster.steward.dates import warn_at
from muster.steward.held import NOTHING_HELD, PERIODS, Burning, HeldTime, Holding, holding_of, period_of

# --- Writing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("200GPUh", "200 GPUh"),
        ("200 GPU·h", "200 GPUh"),
        ("200 gpu-hours", "200 GPUh"),
        (" 1.50 GPU hour ", "1.5 GPUh"),
        ("500CPUh", "500 CPUh"),
        ("0.00001 CPUh", "0.00001 CPUh"),
        ("300 eur", "300 EUR"),
        ("1000000000 USD", "1000000000 USD"),
    ],
)
def test_a_budget_has_one_spelling(written: str, shown: str) -> None:
    budget = parse_budget(written)
    assert str(budget) == shown
    assert parse_budget(shown) == budget


@pytest.mark.parametrize(
    "written",
    ["", "many", "200", "GPUh", "-5 GPUh", "0 GPUh", "1e3 GPUh", "2 GPU", "3 TPU", "2e9 GPUh", "5 €"],
)
def test_what_is_no_budget_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(BadInput):
        parse_budget(written)


def test_a_refusal_says_how_to_write_it() -> None:
    with pytest.raises(BadInput, match="write it like '200 GPUh', '500 CPUh' or '300 EUR'"):
        parse_budget("a lot")


@pytest.mark.parametrize("per", PERIODS)
def test_a_team_has_a_budget_for_a_period(per: str) -> None:
    assert str(parse_team_budget(f"900 GPUh  per {per.upper()}")) == f"900 GPUh per {per}"
    assert parse_team_budget("900 GPUh").per is None


def test_a_period_that_is_none_is_refused() -> None:
    for written in ("900 GPUh per fortnight", "900 GPUh per month or so", "per month"):
        with pytest.raises(BadInput):
            parse_team_budget(written)


# --- What is spent -------------------------------------------------------------------------------------

PRICES = Prices("EUR", gpu=1.8, gpus={"A100": 2.5}, cpu=0.02, memory=0.002)
AN_HOUR = HeldTime(
    2 * 1000 * 3600, 8 * GIB * 3600, (("A100", 1000 * 3600), ("A40", 500 * 3600))
)  # two cpus, 8 GiB, one A100 and half an A40, for an hour


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        ("1 GPUh", Fraction(3, 2)),
        ("1 CPUh", Fraction(2)),
        ("1 EUR", Fraction("2.5") + Fraction("0.9") + Fraction("0.04") + Fraction("0.016")),
    ],
)
def test_what_is_held_counts_in_the_unit_of_the_budget(budget: str, spent: Fraction) -> None:
    assert scale_of(parse_budget(budget), PRICES).of(AN_HOUR) == spent


def test_a_budget_in_money_needs_prices_in_it() -> None:
    check_currency(parse_budget("3 EUR"), PRICES)
    check_currency(parse_budget("3 GPUh"), Prices())
    with pytest.raises(BadInput, match="prices here are in EUR"):
        check_currency(parse_budget("3 USD"), PRICES)
    with pytest.raises(BadInput, match="nothing has a price here"):
        check_currency(parse_budget("3 EUR"), Prices())


def test_a_budget_of_gpus_for_a_job_that_holds_none_is_pointed_out() -> None:
    budget = parse_budget("3 GPUh")
    assert never_spent(budget, single(gpus=1)) is None
    assert "write it in CPUh" in (never_spent(budget, single(cpus_milli=1000)) or "")


def test_gpus_are_told_apart_by_model_and_shares_are_shares() -> None:
    seats = (
        Seat("a", Shape(cpus_milli=1500, gpus=1, gpu_milli=250), (0,), 250),
        Seat("b", Shape(cpus_milli=500, memory_bytes=7, gpus=2), (0, 1), 1000),
    )
    holding = holding_of(held_by(seats), seats, lambda node, _: {"a": "A40", "b": "H100"}[node])
    assert holding.between(0.0, 0.0, 2.0) == HeldTime(4000, 14, (("A40", 500), ("H100", 4000)))
    assert holding.rate == HeldTime(2000, 7, (("A40", 250), ("H100", 2000)))


moments = st.integers(0, 40 * 86_400 * TICKS).map(lambda n: n / TICKS)
holdings = st.builds(
    Holding,
    st.integers(0, 64_000),
    st.integers(0, 1 << 40),
    st.lists(st.tuples(st.sampled_from(["A40", "H100"]), st.integers(1, 1000)), max_size=4).map(tuple),
)


@given(holdings, st.lists(moments, min_size=2, max_size=6))
def test_what_is_held_is_the_sum_of_its_parts_however_they_are_cut(held: Holding, cuts: list[float]) -> None:
    cuts = sorted(cuts)
    first, last = cuts[0], cuts[-1]
    total = NOTHING_HELD
    for begin, end in pairwise(cuts):
        total = total + held.between(first, begin, end)
    assert total == held.between(first, first, last)


@given(st.lists(st.tuples(holdings, moments), max_size=5), st.randoms(use_true_random=False))
def test_what_runs_adds_up_at_any_moment_whatever_the_order(
    some: list[tuple[Holding, float]], luck: object
) -> None:
    now = 50 * DAY
    one, other = Burning(), Burning()
    for holding, since in some:
        one.begin(holding.rate, since)
    shuffled = list(some)
    luck.shuffle(shuffled)  # type: ignore[attr-defined]
    for holding, since in [*shuffled, *shuffled]:
        other.begin(holding.rate, since)
    for holding, since in some:
        other.end(holding.rate, since)
    assert one.at(now) == other.at(now)
    exact = [holding.between(since, since, now) for holding, since in some]
    off = one.at(now).cpu_milli_seconds - sum(held.cpu_milli_seconds for held in exact)
    assert 0 <= off <= len(some), "each is rounded down by itself once it has left"


# --- When ----------------------------------------------------------------------------------------------

amounts = st.fractions(min_value=0, max_value=1000, max_denominator=1000)


@given(amounts, amounts, amounts, st.sampled_from([Fraction(4, 5), Fraction(1)]))
def test_the_moment_is_right(spent: Fraction, rate: Fraction, amount: Fraction, share: Fraction) -> None:
    seconds = when(spent, rate, amount, share)
    if seconds is None:
        assert rate == 0
        assert spent < amount * share
    elif seconds:
        assert spent + rate * seconds == amount * share, "to the moment"
    else:
        assert spent >= amount * share


def test_200_gpu_hours_at_eight_gpus_last_25_hours() -> None:
    budget = parse_budget("200 GPUh")
    rate = scale_of(budget, Prices()).of(Holding(devices=(("A40", 1000),) * 8).rate)
    assert when(Fraction(0), rate, budget.amount) == 25 * 3600
    assert when(Fraction(0), rate, budget.amount, Fraction(4, 5)) == 20 * 3600


# --- Periods -------------------------------------------------------------------------------------------


def test_periods_are_those_of_the_calendar_by_utc() -> None:
    leap_day = 1_709_164_800.0  # 2024-02-29, a Thursday
    assert period_of("week", leap_day) == (leap_day - 3 * DAY, leap_day + 4 * DAY)
    assert period_of("month", leap_day) == (leap_day - 28 * DAY, leap_day + DAY)
    assert period_of("quarter", leap_day) == (leap_day - 59 * DAY, leap_day + 32 * DAY)
    assert period_of("year", leap_day) == (leap_day - 59 * DAY, leap_day + 307 * DAY)


@given(st.sampled_from(PERIODS), st.integers(0, 4_000_000_000).map(float))
def test_periods_follow_on_each_other(kind: str, at: float) -> None:
    begins, ends = period_of(kind, at)
    assert begins <= at < ends
    assert period_of(kind, begins) == (begins, ends)
    assert period_of(kind, ends)[0] == ends
    assert begins % DAY == 0


# --- Extending, and dates ------------------------------------------------------------------------------


def test_a_budget_is_extended_to_an_amount_or_by_one() -> None:
    charter = Charter(owner="ana", budget="200 GPUh")
    assert extended(charter, budget="300gpuh") == Charter(owner="ana", budget="300 GPUh")
    assert extended(charter, budget="+100 GPUh").budget == "300 GPUh"
    assert extended(charter, until=7.0) == Charter(owner="ana", budget="200 GPUh", until=7.0)
    assert extended(Charter(), budget="5 EUR").budget == "5 EUR"


@pytest.mark.parametrize(("before", "more"), [(None, "+5 GPUh"), ("5 GPUh", "+5 CPUh"), ("5 GPUh", "more")])
def test_what_can_not_be_added_is_refused(before: str | None, more: str) -> None:
    with pytest.raises(BadInput):
        extended(Charter(budget=before), budget=more)


def test_a_time_limit_ends_work_with_a_purpose_out_of_time() -> None:
    assert out_of_time(Charter(purpose="Does it learn?"), Outcome.TIMEOUT) is Verdict.OUT_OF_TIME
    assert out_of_time(Charter(), Outcome.TIMEOUT) is None
    assert out_of_time(Charter(purpose="Does it learn?"), Outcome.FAILED) is None


def test_a_date_is_warned_of_a_day_before_or_when_a_tenth_of_a_short_life_is_left() -> None:
    assert warn_at(0.0, 30 * DAY) == 29 * DAY
    assert warn_at(0.0, 10 * HOUR) == 9 * HOUR


def test_budgets_compare_by_what_they_say() -> None:
    assert parse_budget("0.5 GPUh") == Budget(Fraction(1, 2), "GPUh")
