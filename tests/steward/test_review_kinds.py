"""Defended, habit, forgotten: what consumed is in one item each, and the items add up."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from review_world import NOW, WHOLE, consumer, defence, effort, held, world

from muster.model.charter import Charter, Verdict
from muster.model.review import of_work
from muster.model.units import DAY
from muster.model.usage import Usage
from muster.steward.review.items import Consumer, Foreign, Item, Kind, World
from muster.steward.review.kinds import reviewed

AGAIN = of_work("ana", "train", WHOLE.purpose)


def only(found: World) -> Item:
    [item] = reviewed(found)
    return item


def test_a_charter_within_its_terms_is_a_defence() -> None:
    item = only(world(consumer("1")))
    assert (item.kind, item.because, item.stops) == (
        Kind.DEFENDED,
        "ana answers for it, within its charter",
        (),
    )


@pytest.mark.parametrize(
    ("charter", "because"),
    [
        (replace(WHOLE, owner=None), "nobody is named who answers for it"),
        (replace(WHOLE, purpose=None), "nobody said what it is for"),
        (replace(WHOLE, until=None), "nobody said how it ends"),
        (replace(WHOLE, until=NOW - 1), "its date has passed"),
    ],
)
def test_what_lacks_something_is_forgotten_and_would_be_stopped(charter: Charter, because: str) -> None:
    item = only(world(consumer("1", charter=charter)))
    assert (item.kind, item.because, item.stops) == (Kind.FORGOTTEN, because, ("1",))


def test_a_time_limit_is_an_end() -> None:
    assert (
        only(world(consumer("1", charter=replace(WHOLE, until=None), is_limited=True))).kind is Kind.DEFENDED
    )


def test_work_of_who_has_left_or_is_silent_is_forgotten() -> None:
    assert "not here any more" in only(world(consumer("1"), away=frozenset({"ana"}))).because
    assert "has not called" in only(world(consumer("1"), silent=frozenset({"ana"}))).because


def test_a_spent_budget_is_past_its_terms() -> None:
    assert only(world(consumer("1"), budget_left={"job:1": 0.0})).because == "its budget is spent"
    assert only(world(consumer("1"), budget_left={"job:1": 0.1})).kind is Kind.DEFENDED


def test_the_same_work_as_in_the_period_before_is_a_habit() -> None:
    item = only(world(consumer("7"), before={AGAIN: frozenset({"3"})}))
    assert (item.kind, item.stops) == (Kind.HABIT, ("7",))
    assert "submitted 2 times with no new purpose" in item.because


def test_one_job_that_runs_on_is_no_habit() -> None:
    assert only(world(consumer("7"), before={AGAIN: frozenset({"7"})})).kind is Kind.DEFENDED


def test_what_was_tried_twice_before_and_merely_goes_on_is_no_habit() -> None:
    assert only(world(consumer("7"), before={AGAIN: frozenset({"3", "7"})})).kind is Kind.DEFENDED


def test_work_that_has_won_or_has_a_new_purpose_is_no_habit() -> None:
    again = {AGAIN: frozenset({"3"})}
    assert only(world(consumer("7"), before=again, won=frozenset({AGAIN}))).kind is Kind.DEFENDED
    new = replace(WHOLE, purpose="And with more data?")
    assert only(world(consumer("7", charter=new), before=again)).kind is Kind.DEFENDED


def test_a_defence_makes_a_habit_defended_until_its_end() -> None:
    again = {AGAIN: frozenset({"3"})}
    standing, past = defence("job:7"), defence("job:7", days=-1)
    item = only(world(consumer("7"), before=again, defences={AGAIN: [past, standing]}))
    assert (item.kind, len(item.defences), item.same_words()) == (Kind.DEFENDED, 2, 2)
    assert only(world(consumer("7"), before=again, defences={AGAIN: [past]})).kind is Kind.HABIT


def test_a_defence_by_who_has_left_does_not_stand() -> None:
    said = {of_work("ana", "train", None): [defence("job:1", by="bo")]}
    lacking = consumer("1", charter=replace(WHOLE, purpose=None))
    assert only(world(lacking, defences=said)).kind is Kind.DEFENDED
    assert only(world(lacking, defences=said, away=frozenset({"bo"}))).kind is Kind.FORGOTTEN


def test_jobs_of_an_effort_are_one_item_under_its_charter() -> None:
    jobs = [consumer(str(n), charter=Charter(), effort="llama") for n in range(3)]
    item = only(world(*jobs, efforts={"llama": effort("llama")}))
    assert (item.subject, item.kind, item.to_defend) == ("effort:llama", Kind.DEFENDED, "llama")
    item = only(world(*jobs, efforts={"llama": effort("llama", replace(WHOLE, until=NOW - DAY))}))
    assert (item.kind, set(item.stops)) == (Kind.FORGOTTEN, {"0", "1", "2"})


def test_a_closed_effort_is_no_question_any_more() -> None:
    closed = effort("llama", Charter(), verdict=Verdict.WON, closed_at=NOW)
    closed = replace(closed, charter=replace(WHOLE, until=NOW - DAY))
    item = only(world(consumer("1", effort="llama", running=0), efforts={"llama": closed}))
    assert (item.kind, item.because) == (Kind.DEFENDED, "its effort is closed: won")


def test_of_several_submissions_one_whose_charter_holds_is_not_dragged_along() -> None:
    good, bad = consumer("1", is_limited=True), consumer("2", charter=replace(WHOLE, until=NOW - 1))
    item = only(world(good, bad))
    assert (item.kind, item.stops) == (Kind.FORGOTTEN, ("2",))


def test_what_has_ended_is_listed_and_has_nothing_to_stop() -> None:
    item = only(world(consumer("1", charter=replace(WHOLE, purpose=None), running=0)))
    assert (item.kind, item.stops, item.running) == (Kind.FORGOTTEN, (), 0)


def test_foreign_processes_are_forgotten_and_nobody_stops_them() -> None:
    item = only(world(foreign=(Foreign("lab7", "eve", (0, 1), 2, 1 << 30),)))
    assert (item.kind, item.subject, item.stops) == (Kind.FORGOTTEN, "foreign:lab7/eve", ())


def test_it_is_idle_if_all_that_runs_of_it_is() -> None:
    some = [consumer("1", idle_since=NOW - 60), consumer("2", idle_since=NOW - 90)]
    assert only(world(*some)).idle_seconds == 60
    assert only(world(*some, consumer("3"))).idle_seconds is None


def test_what_was_not_measured_has_no_share() -> None:
    item = only(world(consumer("1")))
    assert (item.used_share, item.usage.coverage) == (None, 0.0)


def test_the_largest_comes_first_by_gpus_then_cpus() -> None:
    small, large = consumer("1", name="a", gpu_hours=1), consumer("2", name="b", gpu_hours=5)
    cpus = consumer("3", name="c", gpu_hours=1, usage=held(1.0, 9.0))
    assert [item.name for item in reviewed(world(small, large, cpus))] == ["b", "c", "a"]


charters = st.builds(
    Charter,
    owner=st.sampled_from([None, "ana", "bo"]),
    purpose=st.sampled_from([None, "why", "how"]),
    until=st.sampled_from([None, NOW - 1, NOW + 1]),
)
consumers = st.lists(
    st.builds(
        lambda n, charter, name, gpus, living, in_effort: consumer(
            str(n),
            charter=charter,
            name=name,
            gpu_hours=gpus,
            running=living,
            effort="e" if in_effort else None,
        ),
        st.integers(0, 10_000),
        charters,
        st.sampled_from(["a-1", "a-2", "b"]),
        st.sampled_from([0.0, 1.0, 2.5]),
        st.integers(0, 1),
        st.booleans(),
    ),
    unique_by=lambda one: one.job,
    max_size=12,
)
befores = st.dictionaries(
    st.builds(of_work, st.sampled_from(["ana", "bo", ""]), st.sampled_from(["a-1", "b"]), st.none()),
    st.frozensets(st.integers(0, 9).map(str), min_size=1),
)


@given(some=consumers, before=befores, away=st.frozensets(st.sampled_from(["ana", "bo"])))
def test_every_consumer_is_in_one_item_and_items_add_up_to_the_ledger(
    some: list[Consumer], before: dict[str, frozenset[str]], away: frozenset[str]
) -> None:
    found = reviewed(world(*some, before=before, away=away, efforts={"e": effort("e")}))
    assert sorted(one.job for item in found for one in item.consumers) == sorted(one.job for one in some)
    assert len({item.subject for item in found}) == len(found)
    assert sum((item.usage for item in found), Usage()) == sum((one.usage for one in some), Usage())
    living = {one.job for one in some if one.is_living}
    stops = [job for item in found for job in item.stops]
    assert set(stops) <= living
    assert len(set(stops)) == len(stops)
    assert all(not item.stops for item in found if item.kind is Kind.DEFENDED)


@given(some=consumers, luck=st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_they_come(some: list[Consumer], luck: Random) -> None:
    mixed = list(some)
    luck.shuffle(mixed)
    known = {"e": effort("e")}
    assert reviewed(world(*mixed, efforts=known)) == reviewed(world(*some, efforts=known))
