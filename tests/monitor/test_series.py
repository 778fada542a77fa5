"""Minutes from samples: weighted by time, each handed out once, and no time counted twice."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.model.rollups import packed, rolled, unpacked
from muster.model.units import GIB, HOUR
from muster.model.usage import Rollup, Stat
from muster.monitor.series import Series
from usage_world import DAY0, FIGURES, sample

T = DAY0


def one_attempt(since: float = T, devices: int = 0) -> Series:
    series = Series()
    series.hold("1", 1, since, devices)
    return series


def run(series: Series, since: float, until: float, step: float = 5.0, **figures: object) -> None:
    """A sample every so often, the first at the end of the first interval."""
    at = since + step
    while at <= until:
        series.add(sample("1", at, step, **figures))
        at += step


# --- Minutes ------------------------------------------------------------------------------------------


def test_a_minute_has_the_least_the_mean_and_the_most_weighted_by_time() -> None:
    series = one_attempt()
    series.add(sample("1", T + 20, 20.0, cpus=1.0, memory_bytes=2 * GIB, read_bytes=100))
    series.add(sample("1", T + 30, 10.0, cpus=4.0, memory_bytes=None, read_bytes=None))
    series.add(sample("1", T + 60, 30.0, cpus=2.0, memory_bytes=GIB, read_bytes=50))
    (minute,) = series.closed(T + 60)
    assert (minute.start, minute.held_seconds, minute.measured_seconds) == (T, 60.0, 60.0)
    assert minute.cpus == Stat(1.0, 2.0, 4.0, 60.0)
    assert minute.memory_bytes == Stat(GIB, 1.4 * GIB, 2 * GIB, 50.0), "lost for ten seconds, and only there"
    assert (minute.read_bytes, minute.memory_peak_bytes) == (150, FIGURES["memory_peak_bytes"])


def test_a_sample_that_reaches_into_the_next_minute_counts_in_both() -> None:
    series = one_attempt()
    series.add(sample("1", T + 55, 55.0, cpus=1.0, read_bytes=0))
    series.add(sample("1", T + 65, 10.0, cpus=2.0, read_bytes=10))
    series.add(sample("1", T + 120, 55.0, cpus=1.0, read_bytes=0))
    first, second = series.closed(T + 120)
    assert first.cpus is not None
    assert second.cpus is not None
    assert first.cpus.mean == pytest.approx((55 + 2 * 5) / 60)
    assert second.cpus.mean == pytest.approx((2 * 5 + 55) / 60)
    assert (first.read_bytes, second.read_bytes) == (5, 5)


def test_held_counts_from_the_seats_on_and_until_they_are_left() -> None:
    series = one_attempt(T + 50)
    series.leave("1", 1, T + 130)
    minutes = series.closed(T + 1000)
    assert [(m.start - T, m.held_seconds) for m in minutes] == [(0, 10.0), (60, 60.0), (120, 10.0)]
    assert [m.measured_seconds for m in minutes] == [0.0, 0.0, 0.0]
    assert not series.knows("1", 1)


def test_each_minute_is_handed_out_once_and_when_its_samples_are_in() -> None:
    series = one_attempt()
    run(series, T, T + 55)
    assert series.closed(T + 61) == [], "the sample that reaches its end is still to come"
    series.add(sample("1", T + 62, 7.0))
    assert [m.start for m in series.closed(T + 62)] == [T]
    assert series.closed(T + 63) == []


def test_a_minute_whose_meter_is_silent_is_handed_out_after_a_while_with_what_there_is() -> None:
    series = one_attempt()
    run(series, T, T + 40)
    assert series.closed(T + 119) == []
    (minute,) = series.closed(T + 120)
    assert (minute.held_seconds, minute.measured_seconds) == (60.0, 40.0)
    (silent,) = series.closed(T + 180)
    assert (silent.held_seconds, silent.measured_seconds, silent.cpus) == (60.0, 0.0, None)


def test_the_last_minute_comes_when_the_attempt_has_left_and_its_samples_are_in() -> None:
    series = one_attempt()
    run(series, T, T + 20)
    series.leave("1", 1, T + 22)
    assert series.closed(T + 23) == []
    series.add(sample("1", T + 22, 2.0))
    (minute,) = series.closed(T + 23)
    assert (minute.held_seconds, minute.measured_seconds) == (22.0, 22.0)
    assert series.minutes("1", 1, 0.0) == ()


def test_what_was_measured_after_it_had_left_does_not_count() -> None:
    series = one_attempt()
    run(series, T, T + 30)
    series.leave("1", 1, T + 27)
    (minute,) = series.closed(T + 31)
    assert (minute.held_seconds, minute.measured_seconds) == (27.0, 27.0)
    assert minute.cpus is not None
    assert minute.cpus.seconds == 27.0


def test_samples_of_who_holds_nothing_are_passed_over() -> None:
    series = Series()
    series.add(sample("9", T))
    series.leave("9", 1, T)
    assert series.closed(T + 1000) == []


def test_after_missed_readings_gauges_count_for_their_last_seconds_only() -> None:
    series = one_attempt(devices=1)
    whole = sample("1", T + 60, 60.0, gpu_busy=(0.5,), gpu_memory_bytes=(GIB,))
    series.add(replace(whole, gauge_seconds=5.0))
    (minute,) = series.closed(T + 60)
    stats = (minute.cpus, minute.io_pressure, minute.memory_bytes, minute.processes, *minute.gpu_busy)
    assert [stat and stat.seconds for stat in stats] == [60.0, 60.0, 5.0, 5.0, 5.0]


def test_devices_that_do_not_match_those_held_are_not_known() -> None:
    series = one_attempt(devices=2)
    series.add(sample("1", T + 60, 60.0, gpu_busy=(0.5,), gpu_memory_bytes=(1,)))
    (minute,) = series.closed(T + 60)
    assert (minute.gpu_busy, minute.gpu_memory_bytes) == ((None, None), (None, None))
    assert minute.measured_seconds == 60.0


def test_minutes_at_hand_are_those_since_a_time_and_in_the_window() -> None:
    series = Series(window_seconds=HOUR)
    series.hold("1", 1, T)
    run(series, T, T + 2 * HOUR, 20.0)
    handed_out = series.closed(T + 2 * HOUR)
    assert len(handed_out) == 120
    assert series.minutes("1", 1, 0.0) == tuple(handed_out[60:])
    assert series.minutes("1", 1, T + 2 * HOUR - 90) == tuple(handed_out[-1:])


def test_what_is_under_way_is_held_until_now() -> None:
    series = one_attempt(T + 10)
    run(series, T + 10, T + 30)
    (minute,) = series.under_way(T + 32)
    assert (minute.start, minute.held_seconds, minute.measured_seconds) == (T, 22.0, 20.0)
    assert series.closed(T + 33) == []


# --- Clocks -------------------------------------------------------------------------------------------


def test_a_wall_that_is_set_back_while_we_look_is_not_followed() -> None:
    series = one_attempt()
    run(series, T, T + 600)
    run(series, T + 600 - HOUR, T + 600 - HOUR + 600)
    minutes = series.closed(T + 1200)
    assert [m.start for m in minutes] == [T + 60 * i for i in range(20)]
    assert {(m.held_seconds, m.measured_seconds) for m in minutes} == {(60.0, 60.0)}


def test_a_wall_that_jumps_ahead_leaves_a_gap_that_is_held_and_not_measured() -> None:
    series = one_attempt()
    run(series, T, T + 120)
    run(series, T + 720, T + 840)
    minutes = series.closed(T + 840)
    assert sum(m.held_seconds for m in minutes) == 840.0
    assert sum(m.measured_seconds for m in minutes) == 240.0
    assert max(m.held_seconds for m in minutes) == 60.0


def test_a_jump_by_years_hands_out_no_more_than_a_window_of_empty_minutes() -> None:
    series = Series(window_seconds=HOUR)
    series.hold("1", 1, T)
    run(series, T, T + 60)
    later = T + 1000 * 24 * HOUR
    run(series, later, later + 60)
    minutes = series.closed(later + 60)
    assert len(minutes) <= 61
    assert sum(m.measured_seconds for m in minutes) == 120.0


def test_when_only_our_own_clock_jumped_ahead_samples_are_lost_until_they_are_there() -> None:
    series = one_attempt()
    run(series, T, T + 60)
    minutes = series.closed(T + 360)
    run(series, T + 60, T + 420)
    minutes += series.closed(T + 660)
    assert [m.start for m in minutes] == [T + 60 * i for i in range(10)]
    assert sum(m.measured_seconds for m in minutes) == 60.0 + 120.0


def test_a_meter_that_was_silent_for_long_measures_what_is_not_closed_yet() -> None:
    series = one_attempt()
    run(series, T, T + 60)
    minutes = series.closed(T + 600)
    series.add(replace(sample("1", T + 605, 545.0, cpus=1.0), gauge_seconds=5.0))
    run(series, T + 605, T + 660)
    minutes += series.closed(T + 660)
    assert [m.measured_seconds for m in minutes] == [60.0] + [0.0] * 8 + [60.0, 60.0]
    assert minutes[-2].memory_bytes is None
    assert minutes[-2].cpus == Stat(1.0, 1.0, 1.0, 60.0)


def test_after_a_start_what_another_has_counted_is_not_counted_again() -> None:
    series = Series()
    series.hold("1", 1, T, counted_until=T + 300)
    run(series, T + 120, T + 420)
    minutes = series.closed(T + 420)
    assert [m.start for m in minutes] == [T + 300, T + 360]
    assert sum(m.measured_seconds for m in minutes) == 120.0


def test_two_clocks_that_are_not_read_at_once_lose_nothing() -> None:
    series = one_attempt()
    for i in range(1, 25):
        jitter = 0.04 if i % 2 else -0.04
        series.add(sample("1", T + 5 * i + jitter, 5.0))
    minutes = series.closed(T + 300)
    assert sum(m.measured_seconds for m in minutes) == pytest.approx(120.0, abs=0.1)


steps = st.tuples(
    st.floats(0.1, 200.0),  # how long an interval is
    st.sampled_from([0.0, 0.0, 0.0, -4000.0, -30.0, 45.0, 7200.0]),  # by how much somebody sets the wall
    st.booleans(),  # whether minutes are asked for
)


@given(story=st.lists(steps, min_size=1, max_size=40), start=st.floats(0, 120), left=st.floats(0, 3000))
def test_whatever_clocks_do_no_minute_comes_twice_and_none_is_measured_more_than_held(
    story: list[tuple[float, float, bool]], start: float, left: float
) -> None:
    series, wall, engine = Series(), T + start, T + start
    series.hold("1", 1, wall)
    found: list[Rollup] = []
    real = 0.0
    for seconds, jump, ask in story:
        wall += seconds + jump
        engine = max(wall, engine + seconds)
        real += seconds
        series.add(sample("1", wall, seconds))
        if ask:
            found += series.closed(engine)
    series.leave("1", 1, T + start + left)
    found += series.closed(engine + 1000.0)
    starts = [minute.start for minute in found]
    assert starts == sorted(set(starts))
    assert all(0 < m.held_seconds <= 60 for m in found)
    assert all(m.measured_seconds <= m.held_seconds for m in found)
    assert all(m.cpus is None or m.cpus.seconds <= m.measured_seconds for m in found)
    assert sum(m.measured_seconds for m in found) <= real + 0.13 * len(story)


# --- Roll-ups -----------------------------------------------------------------------------------------

stats = st.one_of(
    st.none(),
    st.builds(
        lambda a, b, c, s: Stat(min(a, b, c), sorted((a, b, c))[1], max(a, b, c), s / 1024),
        *[st.floats(0, 2**40, width=32)] * 3,
        st.integers(1, 60 * 1024),
    ),
)
rollups = st.builds(
    Rollup,
    job=st.just("1"),
    attempt=st.just(1),
    start=st.just(T),
    held_seconds=st.just(60.0),
    measured_seconds=st.integers(0, 60 * 1024).map(lambda n: n / 1024),
    gpu_busy=st.tuples(stats, stats),
    gpu_memory_bytes=st.tuples(stats, stats),
    read_bytes=st.one_of(st.none(), st.integers(0, 2**24)),
    **dict.fromkeys(("cpus", "memory_bytes", "processes", "io_pressure"), stats),
)


@given(rollup=rollups)
def test_a_packed_rollup_comes_back_as_it_was(rollup: Rollup) -> None:
    assert unpacked("1", 1, T, packed(rollup)) == rollup


@given(minutes=st.lists(rollups, min_size=1, max_size=60))
def test_rolling_up_keeps_sums_and_bounds(minutes: list[Rollup]) -> None:
    hour = rolled(minutes, T, 3600.0)
    assert hour.measured_seconds == sum(m.measured_seconds for m in minutes)
    known = [m.cpus for m in minutes if m.cpus is not None]
    if not known:
        assert hour.cpus is None
        return
    assert hour.cpus is not None
    assert hour.cpus.seconds == sum(s.seconds for s in known)
    assert (hour.cpus.least, hour.cpus.most) == (min(s.least for s in known), max(s.most for s in known))
    assert hour.cpus.least <= hour.cpus.mean <= hour.cpus.most
    total = sum(s.mean * s.seconds for s in known)
    assert hour.cpus.mean * hour.cpus.seconds == pytest.approx(total)


def test_an_attempt_of_three_hours_with_eight_gpus_takes_less_than_a_hundred_kilobytes() -> None:
    tracemalloc.start()
    series, attempts = Series(), 10
    gpus = {"gpu_busy": (0.5,) * 8, "gpu_memory_bytes": (GIB,) * 8}
    for i in range(attempts):
        series.hold(str(i), 1, T, 8)
    for minute in range(1, 181):
        for i in range(attempts):
            series.add(sample(str(i), T + 60 * minute, 60.0, **gpus))
        assert len(series.closed(T + 60 * minute)) == attempts
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(series.minutes("0", 1, 0.0)) == 180
    assert size < attempts * 100_000
