"""Small pictures: they say what they show, stay inside their frame, and escape every word."""

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from muster.model.units import DAY, HOUR
from muster.web.pictures import StartRange, bar, range_in_words, spark, start_range

NOW = 1_800_000_000.0
EVIL = '"><script>alert(1)</script>'


def clock(at: float) -> str:
    return f"+{(at - NOW) / HOUR:.2f}h"


def drawn(markup: str) -> ET.Element:
    """It is well-formed, or this fails."""
    return ET.fromstring(markup)


def percents(element: ET.Element) -> list[float]:
    found = (element.get(name, "") for name in ("x", "x1", "x2"))
    return [float(value.removesuffix("%")) for value in found if value.endswith("%")]


def test_a_spark_has_a_bar_for_each_day_by_the_greatest() -> None:
    bars = list(drawn(spark([0, 5, 10], "held")))
    assert [one.get("class") for one in bars] == ["zero", "some", "some"]
    assert [float(one.get("height", "")) for one in bars] == [1, 10, 20]


def test_what_is_unknown_is_not_drawn_as_nothing() -> None:
    known, unknown = list(drawn(spark([0, None], "held")))
    assert (known.get("class"), unknown.get("class")) == ("zero", "unknown")
    assert [one.get("class") for one in drawn(bar(None, "not measured"))] == ["unknown"]


def test_days_on_which_nothing_was_held_are_a_flat_line() -> None:
    assert {one.get("height") for one in drawn(spark([0, 0], "held"))} == {"1"}
    assert list(drawn(spark([], "nothing"))) == []


def test_a_bar_is_filled_as_far_as_it_was_used_and_never_beyond() -> None:
    def filled(share: float) -> str | None:
        return next(one.get("width") for one in drawn(bar(share, "used")) if one.get("class") == "used")

    assert [filled(share) for share in (0, 0.5, 1.7, float("nan"))] == ["0", "50", "100", "0"]


def test_a_mark_stands_at_its_part() -> None:
    [mark] = [one for one in drawn(bar(0.5, "used", mark=0.75)) if one.get("class") == "mark"]
    assert mark.get("x1") == "75"


def test_words_are_escaped_wherever_they_stand() -> None:
    when = StartRange(NOW + HOUR, NOW + 2 * HOUR, 0.8, NOW + 3 * HOUR)
    for picture in (spark([1], EVIL), bar(0.5, EVIL), start_range(when, NOW, lambda _: EVIL)):
        assert "<script" not in picture
        assert EVIL in (drawn(picture).get("aria-label") or "")


def test_when_it_starts_is_said_in_words_too() -> None:
    when = StartRange(NOW + HOUR, NOW + 2 * HOUR, 0.8, NOW + 5 * HOUR)
    said = "likely +1.00h–+2.00h (80 %); at the latest +5.00h, by time limits"
    assert range_in_words(when, NOW, clock) == said
    assert drawn(start_range(when, NOW, clock)).get("aria-label") == said
    assert range_in_words(StartRange(NOW - 5, NOW, 0.8), NOW, clock) == "likely now (80 %)"
    assert range_in_words(StartRange(NOW, NOW + HOUR, 0.8), NOW, clock) == "likely now–+1.00h (80 %)"


def test_the_limit_is_a_mark_if_it_is_near_and_words_if_it_is_far() -> None:
    def lines(limit: float) -> list[str | None]:
        when = StartRange(NOW + HOUR, NOW + 2 * HOUR, 0.8, NOW + limit)
        return [one.get("class") for one in drawn(start_range(when, NOW, clock))]

    assert "limit" in lines(4 * HOUR)
    assert "limit" not in lines(30 * DAY)
    far = start_range(StartRange(NOW, NOW + HOUR, 0.8, NOW + 30 * DAY), NOW, clock)
    assert "latest +720.00h by time limits →" in far


def test_ticks_stand_at_round_times_of_the_place() -> None:
    half = 5.5 * HOUR  # India
    shown: list[float] = []

    def noted(at: float) -> str:
        shown.append(at)
        return "x"

    start_range(StartRange(NOW, NOW + 4 * HOUR, 0.8), NOW, noted, half)
    ticks = [at for at in shown if at not in (NOW, NOW + 4 * HOUR)]
    assert ticks
    assert all((at + half) % HOUR == 0 for at in ticks)


@given(
    st.floats(-HOUR, 400 * DAY),
    st.floats(0, 400 * DAY),
    st.none() | st.floats(0, 4000 * DAY),
    st.sampled_from((-5 * HOUR, 0.0, 5.5 * HOUR)),
)
def test_a_start_stays_inside_its_frame(first: float, more: float, limit: float | None, zone: float) -> None:
    bound = None if limit is None else NOW + first + more + limit
    when = StartRange(NOW + first, NOW + first + more, 0.8, bound)
    root = drawn(start_range(when, NOW, clock, zone))
    assert all(0 <= at <= 100 for one in root for at in percents(one))
    assert len([one for one in root if one.get("class") == "tick"]) <= 6
    assert not re.search("nan|inf", ET.tostring(root, "unicode"))


@given(st.lists(st.none() | st.floats(0, 1e12), max_size=40))
def test_a_spark_stays_inside_its_frame(values: list[float | None]) -> None:
    bars = [one for one in drawn(spark(values, "held")) if one.tag == "rect"]
    assert all(0 <= float(one.get("y", "")) <= 19 for one in bars)
    assert len(bars) == sum(value is not None for value in values)
