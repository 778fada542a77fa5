"""Lines of output, understood."""

import math

from hypothesis import given
from hypothesis import strategies as st

from muster.model.report import MOST_NAMES, numbers_in
from muster.model.template import Template
from muster.monitor.reports.lines import json_line, pattern_line


def test_the_step_is_not_a_value_but_an_epoch_is_one_as_well() -> None:
    assert json_line(b'{"step": 1, "epoch": 2, "loss": 3}') == (1.0, {"epoch": 2.0, "loss": 3.0})
    assert json_line(b'{"iteration": 1, "loss": 3}') == (1.0, {"loss": 3.0})
    assert json_line(b'{"epoch": 2, "loss": 3}') == (2.0, {"epoch": 2.0, "loss": 3.0})
    assert json_line(b'{"step": "1", "loss": 3}') == (None, {"loss": 3.0})
    assert json_line(b'{"step": true, "loss": 3}') == (None, {"loss": 3.0})
    assert json_line(b'{"step": 1}') is None


def test_what_python_writes_for_no_number_is_read() -> None:
    found = json_line(b'{"a": NaN, "b": -Infinity, "step": NaN}')
    assert found is not None
    step, values = found
    assert step is None
    assert math.isnan(values["a"])
    assert values["b"] == -math.inf


def test_a_line_that_is_no_object_is_passed_over() -> None:
    for line in (
        b"",
        b"{",
        b"[1]",
        b"{}",
        b'"{"',
        b"{" * 60_000,
        b'{"a":' * 60_000,
        b'{"a": NaN' + b"[" * 60_000,
    ):
        assert json_line(line) is None


def test_a_number_too_large_for_any_is_infinite() -> None:
    assert numbers_in({"a": 10**400, "b": -(10**400), "c": True, "d": "1", "e": None}) == {
        "a": math.inf,
        "b": -math.inf,
    }


def test_names_are_bounded_in_length_and_number() -> None:
    many = {f"n{i}": i for i in range(100)}
    assert len(numbers_in(many | {"x" * 129: 1})) == MOST_NAMES
    assert numbers_in({"": 1, "x" * 129: 1, "y": 2}) == {"y": 2.0}


def test_names_that_would_harm_a_terminal_or_a_file_are_none() -> None:
    assert json_line(b'{"\\ud800": NaN, "a\\u001b[2J": 1, "b\\n": 1, "c\\u0000": 1, "d": 1}') == (
        None,
        {"d": 1.0},
    )


def test_colours_and_titles_are_no_text() -> None:
    understand = pattern_line(Template("loss {loss} acc {acc}"))
    coloured = b"\x1b]0;title\x07\x1b[1mloss\x1b[0m \x1b[38;5;1m0.5\x1b[m acc\x08 1\xff"
    assert understand(coloured) == (None, {"loss": 0.5, "acc": 1.0})


@given(st.binary(max_size=300))
def test_any_bytes_are_read(line: bytes) -> None:
    for understand in (json_line, pattern_line(Template("a {a}"))):
        for given_line in (line, b'{"a": ' + line + b"}", b"a " + line):
            found = understand(given_line)
            assert found is None or found[1]
