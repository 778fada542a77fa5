"""The text that Prometheus reads: whatever the names and figures are, its parser reads back what was said."""

import math

from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from muster.server.prometheus import Figure, Metric, exposition

JOBS = Metric("muster_jobs", "gauge", "Jobs.", ("team", "state"))
SPENT = Metric("muster_spent_seconds_total", "counter", "Time.\nIn \\ all.", ("team",))
UP = Metric("muster_up", "gauge", "Whether.")

names = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False))


def read(page: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


@given(st.dictionaries(st.tuples(names, names), numbers, max_size=8))
@example({('a"b', "\\"): 1, ("a\nb", 'c\\"'): 2, ("\\n", "\r"): 3, ("ä\u2028ö", "\x00🙂"): 4})
def test_any_name_and_any_number_is_read_back_as_it_was(values: dict[tuple[str, str], float]) -> None:
    page = exposition((JOBS, labels, value) for labels, value in values.items())
    wanted = {
        ("muster_jobs", (("state", state), ("team", team))): value for (team, state), value in values.items()
    }
    assert read(page) == wanted


def test_every_metric_has_its_help_and_its_type_once() -> None:
    figures: list[Figure] = [(SPENT, ("b",), 1), (UP, (), 1), (SPENT, ("a",), 2.5)]
    assert exposition(figures).decode().splitlines() == [
        "# HELP muster_spent_seconds_total Time.\\nIn \\\\ all.",
        "# TYPE muster_spent_seconds_total counter",
        'muster_spent_seconds_total{team="a"} 2.5',
        'muster_spent_seconds_total{team="b"} 1',
        "# HELP muster_up Whether.",
        "# TYPE muster_up gauge",
        "muster_up 1",
    ]


def test_an_unknown_is_left_out_and_zero_is_not() -> None:
    assert exposition([(UP, (), None), (SPENT, ("a",), None), (SPENT, ("b",), 0)]).decode().splitlines()[
        2:
    ] == ['muster_spent_seconds_total{team="b"} 0']
    assert exposition([(UP, (), None)]) == b""


def test_the_order_in_which_figures_come_makes_no_difference_within_a_metric() -> None:
    figures: list[Figure] = [(JOBS, (team, state), 1) for team in "cab" for state in "yx"]
    assert exposition(figures) == exposition(reversed(figures))


def test_numbers_that_are_none_are_written_as_prometheus_writes_them() -> None:
    page = exposition([(SPENT, ("a",), math.inf), (SPENT, ("b",), -math.inf), (SPENT, ("c",), math.nan)])
    assert [line.split()[-1] for line in page.decode().splitlines()[2:]] == ["+Inf", "-Inf", "NaN"]


def test_half_a_character_does_not_spoil_the_page() -> None:
    assert read(exposition([(SPENT, ("a\ud800",), 1)])) == {
        ("muster_spent_seconds_total", (("team", "a?"),)): 1
    }
