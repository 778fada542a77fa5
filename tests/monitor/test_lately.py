"""What is used lately: recent samples count, old ones fade, and what is not measured is not known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.resources import Resources
from muster.monitor.lately import Lately
from usage_world import sample

HOUR = 3600.0
CPUS = Resources(cpus_milli=4000)
GPUS = Resources(cpus_milli=4000, gpus_milli=2000)

parts = st.floats(0, 1)
lengths = st.floats(1, 600)


def lately(*samples: dict[str, object], seconds: float = 5.0) -> Lately:
    found = Lately()
    for figures in samples:
        found.add(sample("1", 0.0, **{"seconds": seconds, **figures}))  # type: ignore[arg-type]
    return found


def test_one_sample_speaks_for_itself() -> None:
    found = lately({"cpus": 2.0, "gpu_busy": ()})
    assert (found.cpus, found.gpu_busy) == (2.0, [])
    assert found.share_of(CPUS) == (0.5, 1.0)


def test_a_long_past_does_not_hide_the_present_nor_a_moment_the_minutes() -> None:
    worked_all_night = [{"cpus": 4.0}] * 1000
    assert lately(*worked_all_night, *[{"cpus": 0.0}] * 2).share_of(CPUS)[0] == pytest.approx(0.92, abs=0.01)
    assert lately(*worked_all_night, *[{"cpus": 0.0}] * 120).share_of(CPUS)[0] == pytest.approx(0, abs=0.01)


def test_a_job_with_gpus_is_told_by_them_and_by_those_that_are_known() -> None:
    busy = {"cpus": 4.0, "gpu_memory_bytes": (1, 1)}
    assert lately({**busy, "gpu_busy": (0.5, 0.1)}).share_of(GPUS) == (pytest.approx(0.3), 1.0)
    assert lately({**busy, "gpu_busy": (0.5, None)}).share_of(GPUS) == (0.5, 0.5)
    assert lately({**busy, "gpu_busy": (None, None)}).share_of(GPUS) == (None, 0.0)
    assert lately({"cpus": 4.0}).share_of(GPUS) == (None, 0.0)


def test_a_meter_that_has_gone_silent_is_unknown_after_a_while() -> None:
    known = [{"cpus": 1.0}] * 100
    assert lately(*known, *[{"cpus": None}] * 4).cpus == pytest.approx(1.0)
    assert lately(*known, *[{"cpus": None}] * 40).cpus is None


def test_after_missed_looks_a_gauge_stands_for_a_part_of_the_time_only() -> None:
    missed = {
        "seconds": 600.0,
        "gauge_seconds": 5.0,
        "cpus": 1.0,
        "gpu_busy": (1.0,),
        "gpu_memory_bytes": (1,),
    }
    found = lately(missed)
    assert (found.cpus, found.gpu_busy) == (1.0, [None])


def test_who_holds_nothing_has_no_share() -> None:
    assert lately({"cpus": 1.0}).share_of(Resources())[0] is None


@given(st.lists(st.tuples(st.one_of(st.none(), parts), lengths), min_size=1, max_size=30))
def test_a_mean_lies_between_what_was_measured_and_coverage_between_nothing_and_all(
    told: list[tuple[float | None, float]],
) -> None:
    found = lately(*({"cpus": value, "seconds": seconds} for value, seconds in told))
    share, coverage = found.share_of(Resources(cpus_milli=1000))
    known = [value for value, _ in told if value is not None]
    assert 0 <= coverage <= 1 + 1e-9
    if share is not None:
        assert min(known) - 1e-9 <= share <= max(known) + 1e-9
    if len(known) == len(told):
        assert coverage == pytest.approx(1)
        assert share is not None
