"""The ledger: sums agree at every level, however time is cut and in whatever order things happen."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.model.events import (
    Exited,
    Outcome,
    Resumed,
    Seat,
    Started,
    Suspended,
    Vacated,
)
from muster.model.job import Shape
from muster.model.ledger import (
    HOUR_SECONDS,
    Booked,
    By,
    DeviceHeld,
    Spent,
    devices_of,
    over_teams,
    part_of,
    usage_of,
)
from muster.model.resources import Resources
from muster.model.tenancy import ROOT, Tenancy
from muster.model.units import GIB, HOUR
from muster.model.usage import Sample, Usage
from muster.monitor.ledger import Ledger
from muster.monitor.upkeep import hour_of
from usage_world import DAY0, Book, World, job, placed, sample, total

T = DAY0

seeds = st.integers(0, 2**32)
instants = st.floats(T - 100, T + 10_000)


@given(seed=seeds, since=instants, until=instants)
def test_sums_agree_at_every_level_to_the_last_unit(seed: int, since: float, until: float) -> None:
    world = World(seed)
    book = world.played(Random(seed))
    sums = {by: book.usage(by, since, until) for by in By}
    cluster = total(sums[By.JOB])
    for by in (By.OWNER, By.TEAM, By.EFFORT):
        assert total(sums[by]) == cluster
    teams = {str(team): usage for team, usage in sums[By.TEAM].items()}
    tree = over_teams(teams, Tenancy(world.teams))
    assert tree[ROOT] == cluster
    for team in world.teams:
        below = [tree.get(child.name, Usage()) for child in world.teams if child.parent == team.name]
        assert tree.get(team.name, Usage()) == sum(below, teams.get(team.name, Usage()))
    gpus = total(sums[By.GPU])
    assert gpus.held.gpus_milli == cluster.held.gpus_milli
    assert gpus.measured.gpus_milli == cluster.measured.gpus_milli
    assert gpus.used.gpus_milli == cluster.used.gpus_milli


@given(seed=seeds, one=seeds, other=seeds)
def test_the_order_in_which_things_happen_to_different_jobs_does_not_matter(
    seed: int, one: int, other: int
) -> None:
    world = World(seed)
    first, second = world.played(Random(one)), world.played(Random(other))
    assert first.entries == second.entries
    assert first.minutes == second.minutes


@given(seed=seeds, cuts=st.lists(instants, min_size=1, max_size=6))
def test_a_day_is_the_sum_of_its_parts_however_it_is_cut(seed: int, cuts: list[float]) -> None:
    book = World(seed).played(Random(seed))
    edges = [T - 1000, *sorted(cuts), T + 1e6]
    for by in By:
        whole = total(book.usage(by, edges[0], edges[-1]))
        parts = [total(book.usage(by, a, b)) for a, b in pairwise(edges)]
        together = sum(parts, Usage())
        if by is By.GPU:  # seconds of a device are rounded down with each cut
            assert together.measured_seconds <= whole.measured_seconds
            whole = Usage(whole.held, whole.measured, whole.used, whole.held_seconds)
            together = Usage(together.held, together.measured, together.used, together.held_seconds)
        assert together == whole


@given(seed=seeds)
def test_an_entry_is_the_sum_of_its_minutes_and_held_is_what_its_seats_were(seed: int) -> None:
    book = World(seed).played(Random(seed))
    for entry in book.entries.values():
        assert entry.ended_at is not None
        assert entry.spent == book.spent(entry, 0.0, T + 1e7)
        usage = usage_of(entry, entry.spent, 0.0, T + 1e7)
        seconds = entry.ended_at - entry.placed_at
        assert usage.held_seconds == pytest.approx(seconds, abs=0.001)
        assert usage.held.cpus_milli == pytest.approx(entry.holds.cpus_milli * seconds, abs=3)
        assert usage.held.gpus_milli == pytest.approx(entry.holds.gpus_milli * seconds, abs=10)
        assert usage.measured_seconds <= usage.held_seconds
        assert usage.held.covers(usage.measured)


@given(seed=seeds)
def test_minutes_rolled_up_to_hours_keep_their_sums(seed: int) -> None:
    book = World(seed).played(Random(seed))
    for entry in book.entries.values():
        hours: dict[int, list[Booked]] = {}
        for (*key, start), minute in sorted(book.minutes.items()):
            if tuple(key) == entry.key:
                hours.setdefault(int(start // HOUR_SECONDS) * HOUR_SECONDS, []).append(minute)
        made = [hour_of(minutes, start, entry) for start, minutes in hours.items()]
        assert sum((hour.spent for hour in made), Spent()) == entry.spent
        assert all(hour.rollup.measured_seconds <= hour.rollup.held_seconds <= 3600 for hour in made)
        parts = (part_of(h.spent, h.rollup.start, HOUR_SECONDS, entry, 0.0, T + 1e7) for h in made)
        assert sum(parts, Spent()) == entry.spent


@given(seed=seeds)
def test_lies_lower_the_coverage_of_their_figure_and_nothing_else(seed: int) -> None:
    honest, lying = World(seed).played(Random(seed)), World(seed)
    luck = Random(seed)
    for story in lying.stories:
        for i, step in enumerate(story):
            if isinstance(step, Sample) and luck.random() < 0.3:
                story[i] = replace(step, cpus=None)
    lied_to = lying.played(Random(seed))
    assert lied_to.entries.keys() == honest.entries.keys()
    for key, entry in honest.entries.items():
        other = lied_to.entries[key]
        assert other.spent.cpus_measured <= entry.spent.cpus_measured
        assert other.spent.cpus_used <= entry.spent.cpus_used + len(honest.minutes), "but for rounding"
        same = ("memory_measured", "memory_used", "gpus", "seconds")
        assert [getattr(other.spent, name) for name in same] == [getattr(entry.spent, name) for name in same]
        whole = (usage_of(e, e.spent, 0.0, T + 1e7).held for e in (entry, other))
        assert len(set(whole)) == 1


# --- Single stories -----------------------------------------------------------------------------------


def measured(ledger: Ledger, since: float, until: float, **figures: object) -> None:
    at = since + 5.0
    while at <= until:
        ledger.add(sample("1", at, **figures))
        at += 5.0


def test_held_and_used_of_an_hour_in_whole_units() -> None:
    ledger, book = Ledger(), Book()
    ledger.apply(placed("1", T, devices=(0, 1)), job("1"))
    measured(ledger, T, T + HOUR, cpus=2.5, memory_bytes=GIB, gpu_busy=(0.5, 0.25), gpu_memory_bytes=(1, 2))
    ledger.apply(Exited(T + HOUR, "1", 1, Outcome.SUCCEEDED))
    book.write(ledger.parcels(T + HOUR, 2))
    usage = book.usage(By.OWNER, T, T + HOUR)["ana"]
    assert usage.held == Resources(2000 * 3600, 4 * GIB * 3600, 2000 * 3600)
    assert usage.measured == usage.held
    assert usage.used == Resources(2500 * 3600, GIB * 3600, 750 * 3600), "a burst is kept as it is"
    assert (usage.held_seconds, usage.coverage) == (3600.0, 1.0)
    assert book.usage(By.GPU, T, T + HOUR)["a/1"].used.gpus_milli == 250 * 3600


def test_a_suspended_attempt_holds_on_and_does_not_run() -> None:
    ledger, book = Ledger(), Book()
    facts = [
        placed("1", T),
        Started(T + 10, "1", 1),
        Suspended(T + 100, "1", 1),
        Resumed(T + 400, "1", 1),
        Suspended(T + 500, "1", 1),
        Exited(T + 600, "1", 1, Outcome.STOPPED),
    ]
    for fact in facts:
        ledger.apply(fact, job("1"))
    book.write(ledger.parcels(T + 1000, 6))
    entry = book.entries["1", 1]
    assert usage_of(entry, entry.spent, 0.0, T + 1e6).held_seconds == 600.0
    assert entry.run_seconds == 600.0 - 10 - 300 - 100
    assert entry.outcome is Outcome.STOPPED


def test_facts_that_are_told_twice_change_nothing() -> None:
    def written(times: int) -> Book:
        ledger, book = Ledger(), Book()
        facts = [
            placed("1", T),
            Started(T + 1, "1", 1),
            Suspended(T + 2, "1", 1),
            Resumed(T + 3, "1", 1),
            Exited(T + 60, "1", 1, Outcome.FAILED),
        ]
        for _ in range(times):
            for fact in facts:
                ledger.apply(fact, job("1"))
        book.write(ledger.parcels(T + 1000, 5))
        return book

    assert written(1).entries == written(2).entries


def test_an_end_before_the_beginning_holds_nothing_rather_than_less() -> None:
    ledger, book = Ledger(), Book()
    ledger.apply(placed("1", T), job("1"))
    ledger.apply(Vacated(T - HOUR, "1", 1, "node lost"))
    book.write(ledger.parcels(T, 2))
    assert book.usage(By.JOB, 0.0, T + 1e6)["1"] == Usage()
    assert book.entries["1", 1].outcome is None


def test_what_right_sizing_asks_for_is_in_the_entry() -> None:
    ledger, book = Ledger(), Book()
    ledger.apply(placed("1", T, devices=(3,)), job("1", name="train-17"))
    for minute in range(100):
        busy = 3.0 if minute == 50 else 0.5 if minute < 90 else 1.0
        at = T + 60 * (minute + 1)
        most = 7 * GIB if minute == 20 else GIB
        ledger.add(
            sample("1", at, 60.0, cpus=busy, memory_bytes=most, gpu_busy=(0.1,), gpu_memory_bytes=(most,))
        )
    ledger.apply(Started(T, "1", 1))
    ledger.apply(Exited(T + 6000, "1", 1, Outcome.OUT_OF_MEMORY))
    book.write(ledger.parcels(T + 6000, 3))
    entry = book.entries["1", 1]
    assert (entry.kind, entry.outcome, entry.run_seconds) == ("train-", Outcome.OUT_OF_MEMORY, 6000.0)
    assert (entry.memory_most_bytes, entry.memory_peak_bytes) == (7 * GIB, 2 * GIB)
    assert entry.gpu_memory_most_bytes == 7 * GIB
    assert entry.cpus_most == 3.0
    assert entry.cpus_mean == pytest.approx((89 * 0.5 + 10 * 1.0 + 3.0) / 100)
    assert entry.cpus_p95 == pytest.approx(1.0, rel=0.1)
    assert entry.devices == (DeviceHeld("a", 3, 1000),)


def test_what_is_written_is_what_has_changed_in_small_parcels_the_last_of_which_says_how_far() -> None:
    ledger = Ledger()
    for number in range(1000):
        ledger.apply(placed(str(number), T), job(str(number)))
    batches = ledger.parcels(T, 1000)
    sizes = [len(batch.usage.entries) for batch in batches if batch.usage]
    assert (sum(sizes), max(sizes)) == (1000, 100)
    assert [batch.usage.seq for batch in batches if batch.usage] == [None] * 9 + [1000]
    assert ledger.parcels(T + 1, 1001) == []
    assert [batch.usage and batch.usage.seq for batch in ledger.parcels(T + 2, 2000)] == [2000]


def test_parts_that_share_a_device_hold_it_together() -> None:
    shape = Shape(1000, gpus=1, gpu_milli=250)
    seats = [Seat("b", shape, (1,), 250), Seat("a", shape, (1,), 250), Seat("b", shape, (1,), 250)]
    assert devices_of(seats) == (DeviceHeld("a", 1, 250), DeviceHeld("b", 1, 500))
