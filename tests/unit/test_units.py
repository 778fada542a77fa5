"""Humane units: what is read, what is refused, and what is shown."""

import math

import pytest

from muster.model.errors import BadInput
from muster.model.units import (
    DAY,
    GIB,
    HOUR,
    parse_bytes,
    parse_milli,
    parse_number,
    parse_seconds,
    show_bytes,
    show_count,
    show_milli,
    show_seconds,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("512", 512),
        ("1k", 1024),
        ("64G", 64 * GIB),
        ("64 GiB", 64 * GIB),
        (" 1.5T ", 1536 * GIB),
        (".5g", GIB // 2),
    ],
)
def test_sizes_are_read(text: str, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "G", "-1G", "1X", "1G2", "nan", "inf", "9999P", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30s", 30.0),
        ("90m", 5400.0),
        ("1d12h", 1.5 * DAY),
        ("1h 30m", 1.5 * HOUR),
        ("250ms", 0.25),
        ("05:00", 300.0),
        ("02:30:00", 2.5 * HOUR),
        ("1-12:00:00", 1.5 * DAY),
    ],
)
def test_spans_are_read(text: str, value: float) -> None:
    assert parse_seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "-5m", "5 parsecs", "1h30", "1:2:3:4", "200000d", "::"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_seconds(text)


@pytest.mark.parametrize(("text", "value"), [("1.5", 1500), ("0", 0), ("0.0004", 0), ("4", 4000)])
def test_thousandths_are_read(text: str, value: int) -> None:
    assert parse_milli(text) == value


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "two", "1e12"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_milli(text)


def test_a_refusal_names_what_was_asked_and_given() -> None:
    with pytest.raises(BadInput, match="cpus 'many' is not a number"):
        parse_number("many", "cpus")


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0B"), (1023, "1023B"), (64 * GIB, "64G"), (1536 * GIB, "1.5T")]
)
def test_sizes_are_shown(value: int, text: str) -> None:
    assert show_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-5.0, "0s"),
        (0.25, "250ms"),
        (59.6, "1m"),
        (3 * HOUR + 12 * 60 + 40, "3h 12m"),
        (2 * DAY, "2d"),
        (2 * DAY + 5, "2d 5s"),
    ],
)
def test_spans_are_shown_in_two_units_at_most(value: float, text: str) -> None:
    assert show_seconds(value) == text


def test_a_span_without_end_can_be_shown() -> None:
    assert show_seconds(math.inf)


@pytest.mark.parametrize("value", [0, 1024, 3 * GIB, 5 * 1024 * GIB])
def test_what_is_shown_of_a_size_reads_as_the_same(value: int) -> None:
    assert parse_bytes(show_bytes(value)) == value


@pytest.mark.parametrize(("value", "text"), [(4000, "4"), (460, "0.46"), (0, "0")])
def test_thousandths_are_shown(value: int, text: str) -> None:
    assert show_milli(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1 cpu"), (1.0, "1 cpu"), (0.5, "0.5 cpus"), (0, "0 cpus"), (4_000_000, "4000000 cpus")],
)
def test_one_is_one_and_others_are_many(value: float, text: str) -> None:
    assert show_count(value, "cpu") == text
