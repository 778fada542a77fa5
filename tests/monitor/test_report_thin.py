"""Fewer points that tell the same."""

import math

from hypothesis import given
from hypothesis import strategies as st

from muster.monitor.reports.thin import shown, to_drop

values = st.lists(st.floats(), max_size=300)


@given(values, st.integers(4, 50))
def test_what_is_shown_is_in_order_and_has_the_extremes_and_the_last(found: list[float], most: int) -> None:
    places = shown(found, most)
    assert places == sorted(set(places))
    assert len(places) <= most + 4
    finite = [value for value in found if math.isfinite(value)]
    seen = [found[place] for place in places]
    if found:
        assert places[-1] == len(found) - 1
    if finite:
        assert min(finite) in seen
        assert max(finite) in seen
    assert any(map(math.isnan, seen)) or not any(map(math.isnan, found)) or any(map(math.isinf, seen))


@given(values, st.integers(4, 50))
def test_of_what_is_kept_the_newer_half_is_whole_and_the_extremes_stay(found: list[float], most: int) -> None:
    gone = set(to_drop([{"a": value} for value in found], most))
    kept = [place for place in range(len(found)) if place not in gone]
    assert len(kept) <= most + 3
    assert not gone or min(len(found), most // 2) == sum(place >= len(found) - most // 2 for place in kept)
    finite = [value for value in found if math.isfinite(value)]
    if finite:
        assert {min(finite), max(finite)} <= {found[place] for place in kept}
    assert gone or len(found) <= most + 3


def test_what_is_dropped_lies_evenly_between_what_stays() -> None:
    gone = to_drop([{"a": 1.0}] * 40, 20)
    kept = [place for place in range(30) if place not in gone]
    assert kept == [0, 4, 8, 12, 16, 20, 24, 28]
