"""What two readings make: the right figures, and from a lying meter no figure, and no other harm."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from muster.model.units import GIB, MIB
from muster.model.usage import GpuShown, Reading, Sample
from muster.monitor.rates import reading_at_start, sample_between

BEFORE = Reading(
    job="7",
    attempt=1,
    at=1000.0,
    since_boot_seconds=50.0,
    cpu_seconds=10.0,
    throttled_seconds=1.0,
    memory_bytes=GIB,
    memory_peak_bytes=2 * GIB,
    processes=3,
    read_bytes=1000,
    written_bytes=2000,
    cpu_stalled_seconds=0.5,
    memory_stalled_seconds=0.0,
    io_stalled_seconds=2.0,
    gpus=(GpuShown(0, 0.5, GIB), GpuShown(2, 0.25, MIB)),
)
AFTER = Reading(
    job="7",
    attempt=1,
    at=1004.0,
    since_boot_seconds=54.0,
    cpu_seconds=16.0,
    throttled_seconds=2.0,
    memory_bytes=2 * GIB,
    memory_peak_bytes=3 * GIB,
    processes=5,
    read_bytes=5000,
    written_bytes=2000,
    cpu_stalled_seconds=1.5,
    memory_stalled_seconds=0.0,
    io_stalled_seconds=6.0,
    gpus=(GpuShown(0, 0.75, 2 * GIB), GpuShown(2, None, None)),
)
TRUTH = Sample(
    job="7",
    attempt=1,
    at=1004.0,
    seconds=4.0,
    cpus=1.5,
    throttled=0.25,
    memory_bytes=3 * GIB // 2,
    memory_peak_bytes=3 * GIB,
    processes=5,
    read_bytes=4000,
    written_bytes=0,
    cpu_pressure=0.25,
    memory_pressure=0.0,
    io_pressure=1.0,
    gpu_busy=(0.75, None),
    gpu_memory_bytes=(2 * GIB, None),
)

# What is read, and what is made of it.
FIGURES = {
    "cpu_seconds": "cpus",
    "throttled_seconds": "throttled",
    "memory_bytes": "memory_bytes",
    "memory_peak_bytes": "memory_peak_bytes",
    "processes": "processes",
    "read_bytes": "read_bytes",
    "written_bytes": "written_bytes",
    "cpu_stalled_seconds": "cpu_pressure",
    "memory_stalled_seconds": "memory_pressure",
    "io_stalled_seconds": "io_pressure",
}
GAUGES = {"memory_bytes", "memory_peak_bytes", "processes"}
LIES = [-1, -1e300, 2**64 - 1, 2**63, math.nan, math.inf, -math.inf]


def test_counters_become_rates_and_gauges_are_taken_as_they_are() -> None:
    assert sample_between(BEFORE, AFTER, cpus=2.0) == TRUTH


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", FIGURES)
def test_a_lie_costs_its_own_figure_and_no_other(name: str, lie: float) -> None:
    lying = sample_between(BEFORE, replace(AFTER, **{name: lie}), cpus=2.0)
    assert lying == replace(TRUTH, **{FIGURES[name]: None})


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - GAUGES))
def test_a_counter_that_shrinks_is_lost_once_and_good_again_after(name: str) -> None:
    less = getattr(BEFORE, name) - 1 if name.endswith("bytes") else getattr(BEFORE, name) - 0.001
    lying = replace(AFTER, **{name: less})
    sample = sample_between(BEFORE, lying, cpus=2.0)
    assert sample is not None
    assert getattr(sample, FIGURES[name]) is None
    if less >= 0:
        more = replace(AFTER, since_boot_seconds=58.0, **{name: getattr(AFTER, name)})
        again = sample_between(lying, more, cpus=2.0)
        assert again is not None
        assert getattr(again, FIGURES[name]) is not None


def test_more_than_all_cpus_could_do_is_lost_but_a_little_more_is_the_kernel_booking_late() -> None:
    def cpus(seconds: float) -> float | None:
        sample = sample_between(BEFORE, replace(AFTER, cpu_seconds=10.0 + seconds), cpus=2.0)
        assert sample is not None
        return sample.cpus

    assert cpus(8.0) == 2.0
    assert cpus(8.5) == 2.125
    assert cpus(10.0) is None


@pytest.mark.parametrize("lie", [-0.1, 1.5, math.nan, math.inf])
def test_a_gpu_that_is_busier_than_can_be_is_not_known(lie: float) -> None:
    shown = replace(AFTER, gpus=(GpuShown(0, lie, GIB), GpuShown(2, 0.5, 2**64 - 1)))
    sample = sample_between(BEFORE, shown, cpus=2.0)
    assert sample == replace(TRUTH, gpu_busy=(None, 0.5), gpu_memory_bytes=(GIB, None))


def test_a_gpu_that_the_meter_no_longer_shows_does_not_shift_the_others() -> None:
    fallen_off = replace(AFTER, gpus=(GpuShown(2, 0.5, GIB),))
    sample = sample_between(BEFORE, fallen_off, devices=(0, 2))
    assert sample is not None
    assert (sample.gpu_busy, sample.gpu_memory_bytes) == ((None, 0.5), (None, GIB))


def test_after_missed_readings_counters_speak_for_all_of_the_time_and_gauges_for_one_period() -> None:
    late = replace(AFTER, since_boot_seconds=110.0, at=1060.0, cpu_seconds=70.0)
    sample = sample_between(BEFORE, late, cpus=2.0, period_seconds=5.0)
    assert sample is not None
    assert (sample.seconds, sample.cpus, sample.gauge_seconds) == (60.0, 1.0, 5.0)
    assert sample.memory_bytes == 2 * GIB, "what it was a minute ago says nothing about the last seconds"
    soon = sample_between(BEFORE, replace(AFTER, since_boot_seconds=62.0), period_seconds=5.0)
    assert soon is not None
    assert soon.gauge_seconds is None


@pytest.mark.parametrize(
    "after",
    [
        replace(AFTER, attempt=2),
        replace(AFTER, job="8"),
        replace(AFTER, since_boot_seconds=50.0),
        replace(AFTER, since_boot_seconds=49.0),
        replace(AFTER, since_boot_seconds=math.nan),
        replace(AFTER, since_boot_seconds=math.inf),
        replace(AFTER, at=math.nan),
        Reading(job="7", attempt=1, at=1004.0, since_boot_seconds=54.0),
    ],
)
def test_two_readings_that_do_not_belong_together_or_show_nothing_make_no_sample(after: Reading) -> None:
    assert sample_between(BEFORE, after) is None


def test_the_wall_does_not_matter_for_how_long_it_was() -> None:
    set_back = sample_between(BEFORE, replace(AFTER, at=-5.0), cpus=2.0)
    assert set_back == replace(TRUTH, at=-5.0)


def test_an_attempt_begins_with_nothing_used() -> None:
    start = reading_at_start("7", 1, 996.0, 46.0)
    sample = sample_between(start, BEFORE, cpus=4.0)
    assert sample is not None
    assert (sample.seconds, sample.cpus, sample.read_bytes, sample.memory_bytes) == (4.0, 2.5, 1000, GIB)


numbers = st.one_of(
    st.none(), st.integers(-(2**65), 2**65), st.floats(), st.sampled_from([math.nan, 2**64 - 1, -1])
)
readings = st.builds(
    Reading,
    job=st.just("7"),
    attempt=st.just(1),
    at=st.floats(0, 2e9),
    since_boot_seconds=st.floats(0, 1e6),
    gpus=st.tuples(st.builds(GpuShown, device=st.just(0), busy=numbers, memory_bytes=numbers)),
    **dict.fromkeys(FIGURES, numbers),
)


@given(before=readings, after=readings, cpus=st.floats(0.5, 1024))
def test_whatever_meters_show_a_figure_is_possible_or_not_there(
    before: Reading, after: Reading, cpus: float
) -> None:
    sample = sample_between(before, after, cpus=cpus)
    if sample is None:
        return
    assert sample.seconds > 0
    for part in (sample.throttled, sample.cpu_pressure, sample.memory_pressure, sample.io_pressure):
        assert part is None or 0 <= part <= 1
    assert all(busy is None or 0 <= busy <= 1 for busy in sample.gpu_busy)
    assert sample.cpus is None or 0 <= sample.cpus * sample.seconds <= cpus * sample.seconds * 1.2 + 0.2
    rest = asdict(sample)
    for name in ("memory_bytes", "memory_peak_bytes", "processes", "read_bytes", "written_bytes"):
        assert rest[name] is None or 0 <= rest[name] <= 2**60


def test_of_several_nodes_figures_come_in_the_order_of_the_devices() -> None:
    shown = (GpuShown(0, 0.1), GpuShown(1, 0.2), GpuShown(0, 0.3), GpuShown(1, 0.4))
    sample = sample_between(BEFORE, replace(AFTER, gpus=shown), devices=(0, 1, 0, 1))
    assert sample is not None
    assert sample.gpu_busy == (0.1, 0.2, 0.3, 0.4)


def test_if_one_of_several_nodes_is_not_shown_nobody_knows_whose_figure_it_is() -> None:
    sample = sample_between(
        BEFORE,
        replace(AFTER, gpus=(GpuShown(0, 0.1), GpuShown(1, 0.2), GpuShown(0, 0.3))),
        devices=(0, 1, 0, 1),
    )
    assert sample is not None
    assert sample.gpu_busy == (0.1, None, 0.3, None)
