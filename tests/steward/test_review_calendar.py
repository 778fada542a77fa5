"""When reviews close: schedules as people write them, also where the clock is set twice a year."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.errors import BadInput
from muster.steward.review.calendar import DAYS, Schedule, Zone, next_close, parse_schedule


def zone_of(name: str) -> Zone:
    zone = ZoneInfo(name)

    def ahead(at: float) -> float:
        offset = datetime.fromtimestamp(at, zone).utcoffset()
        assert offset is not None
        return offset.total_seconds()

    return ahead


def closes(text: str, after: str, name: str = "UTC") -> str:
    schedule = parse_schedule(text)
    assert schedule is not None
    found = next_close(schedule, datetime.fromisoformat(after).timestamp(), zone_of(name))
    return datetime.fromtimestamp(found, ZoneInfo(name)).isoformat()


@pytest.mark.parametrize("text", ["Thu 17:00", "Mon,Thu 09:30", "daily 18:00"])
def test_a_schedule_is_said_as_it_was_written(text: str) -> None:
    assert str(parse_schedule(text)) == text


def test_a_schedule_may_be_off() -> None:
    assert parse_schedule("off") is None


@pytest.mark.parametrize(
    "text",
    ["", "Thu", "17:00", "Thu 25:00", "Thu 17:60", "Thu,Thu 17:00", "Thursday 17:00", "Thu 5pm", "Mon, 9:00"],
)
def test_what_is_no_schedule_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match=r"schedule|day"):
        parse_schedule(text)


def test_the_next_close_is_later_than_now_even_by_a_second() -> None:
    assert closes("Thu 17:00", "2026-11-12T16:59:59+00:00") == "2026-11-12T17:00:00+00:00"
    assert closes("Thu 17:00", "2026-11-12T17:00:00+00:00") == "2026-11-19T17:00:00+00:00"


def test_of_several_days_the_nearest_counts() -> None:
    assert closes("Mon,Thu 09:30", "2026-11-13T00:00:00+00:00") == "2026-11-16T09:30:00+00:00"


def test_the_time_of_day_is_the_same_before_and_after_the_clock_is_set() -> None:
    assert closes("Thu 17:00", "2026-10-20T00:00:00+00:00", "Europe/Berlin") == "2026-10-22T17:00:00+02:00"
    assert closes("Thu 17:00", "2026-10-27T00:00:00+00:00", "Europe/Berlin") == "2026-10-29T17:00:00+01:00"


def test_a_time_that_is_left_out_is_the_moment_of_the_jump() -> None:
    assert closes("Sun 02:30", "2026-03-28T00:00:00+00:00", "Europe/Berlin") == "2026-03-29T03:00:00+02:00"


def test_a_time_that_comes_twice_is_the_first_and_comes_once() -> None:
    first = closes("daily 02:30", "2026-10-24T12:00:00+00:00", "Europe/Berlin")
    assert first == "2026-10-25T02:30:00+02:00"
    assert closes("daily 02:30", first, "Europe/Berlin") == "2026-10-26T02:30:00+01:00"


@given(
    after=st.integers(1_700_000_000, 1_900_000_000),
    days=st.sets(st.integers(0, 6), min_size=1),
    minute=st.integers(0, 24 * 60 - 1),
    name=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Tokyo"]),
)
def test_a_close_is_shown_by_the_wall_on_a_day_of_the_schedule(
    after: int, days: set[int], minute: int, name: str
) -> None:
    schedule = Schedule(tuple(sorted(days)), minute)
    found = next_close(schedule, after, zone_of(name))
    shown = datetime.fromtimestamp(found, ZoneInfo(name))
    assert after < found <= after + 8 * 86_400 + 7200
    assert DAYS[shown.weekday()] in {DAYS[day] for day in days}
    is_left_out = datetime.fromtimestamp(found - 1, ZoneInfo(name)).utcoffset() != shown.utcoffset()
    assert shown.hour * 60 + shown.minute == minute or is_left_out
    between = next_close(schedule, after, lambda _: 0.0) if name == "UTC" else None
    assert between in (None, found)
    assert datetime.fromtimestamp(found, UTC).second == 0
