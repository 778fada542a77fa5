"""A Gantt chart as data: nothing is lost by merging, nothing overlaps in a lane."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.model.events import DeviceHealth, NodeHealth
from muster.model.node import Device, Health, Node
from muster.server.seeing.time_answers import Bar, Kind
from muster.server.seeing.timeline import (
    MOST_BARS,
    Outage,
    Sat,
    bars_by_row,
    in_lanes,
    longest,
    merged_bars,
    out_of_service,
    outage_bars,
    outages_of,
)


def bar(start: float, end: float, kind: Kind = Kind.PAST, job: str = "1") -> Bar:
    return Bar(start, end, kind, job, 1)


def sat(job: str, start: float, end: float, *devices: int, node: str = "a", kind: Kind = Kind.PAST) -> Sat:
    seats = tuple((node, device) for device in devices)
    return Sat(job, 1, "ana", "nlp", start, end, kind, (node,), seats, "succeeded")


def told(bars: list[Bar]) -> list[tuple[float, float, str, int]]:
    return [(one.start, one.end, one.kind.value, one.count) for one in bars]


def test_short_ones_next_to_each_other_are_one_mark_and_a_long_one_stays() -> None:
    bars = [bar(0, 1), bar(1.5, 2), bar(2.2, 3), bar(10, 30), bar(31, 32), bar(60, 61)]
    assert told(sorted(merged_bars(bars, 5.0), key=lambda one: one.start)) == [
        (0, 3, "short", 3),
        (10, 30, "past", 1),
        (31, 32, "past", 1),
        (60, 61, "past", 1),
    ]


def test_who_runs_is_never_merged_however_short() -> None:
    running = [bar(0, 1, Kind.RUNNING), bar(1, 1.1, Kind.PREDICTED)]
    assert list(merged_bars(running, 100.0)) == running


def test_a_job_is_in_the_row_of_each_of_its_gpus_cut_to_the_interval() -> None:
    rows, _ = bars_by_row([sat("7", -50, 50, 0, 2)], {"a/0": 1, "a/1": 1, "a/2": 1}, "gpu", 0.0, 100.0)
    assert {row: told(bars) for row, bars in rows.items()} == {
        "a/0": [(0.0, 50, "past", 1)],
        "a/2": [(0.0, 50, "past", 1)],
    }
    by_team, _ = bars_by_row([sat("7", -50, 50, 0, 2)], {"nlp": 1}, "team", 0.0, 100.0)
    assert told(by_team["nlp"]) == [(0.0, 50, "past", 1)]


def test_very_many_are_few_enough_and_all_of_them_are_counted() -> None:
    stays = [sat(str(n), n * 0.9, n * 0.9 + 0.8, n % 4, node=f"n{n % 50}") for n in range(20_000)]
    rows = {f"n{n}/{g}": 1 for n in range(50) for g in range(4)}
    found, resolution = bars_by_row(stays, rows, "gpu", 0.0, 20_000.0)
    bars = [one for row in found.values() for one in row]
    assert len(bars) <= MOST_BARS
    assert sum(one.count for one in bars) == 20_000
    assert resolution >= 20.0


def test_of_a_row_with_too_many_the_longest_are_kept_and_the_rest_is_one_of_each_kind() -> None:
    bars = [bar(n, n + n, Kind.RUNNING, str(n)) for n in range(1, 31)] + [bar(0, 1)]
    kept = longest(bars, 10)
    assert len(kept) <= 10
    assert {one.job for one in kept if one.job} == {"26", "27", "28", "29", "30"}
    assert sum(one.count for one in kept) == 31


BARS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 40)).map(lambda s: bar(s[0], s[0] + s[1])), max_size=40
)


@given(BARS, st.floats(0.1, 60))
def test_merging_loses_nobody_and_leaves_no_interval_out(bars: list[Bar], resolution: float) -> None:
    bars.sort(key=lambda one: (one.start, one.end))
    merged = list(merged_bars([Bar(b.start, b.end, b.kind, b.job) for b in bars], resolution))
    assert sum(one.count for one in merged) == len(bars)
    for one in bars:
        assert any(each.start <= one.start and one.end <= each.end for each in merged)


@given(BARS)
def test_no_two_bars_of_a_lane_overlap_and_no_lane_is_needless(bars: list[Bar]) -> None:
    bars = [one for one in bars if one.end > one.start]
    lanes = in_lanes(bars)
    for lane in range(lanes):
        mine = [one for one in bars if one.lane == lane]
        assert mine
        assert all(a.end <= b.start for a, b in pairwise(mine))
    at_once = max((sum(b.start <= a.start < b.end for b in bars) for a in bars), default=0)
    assert lanes == at_once


# --- Outages ---------------------------------------------------------------------------------------------

NODES = {
    "a": Node("a", 1000, 1, devices=(Device(), Device(healthy=False, because="fell off the bus"))),
    "b": Node("b", 1000, 1, health=Health.DOWN, because="no power"),
    "c": Node("c", 1000, 1),
}


def test_an_outage_lasts_from_the_word_that_took_it_out_to_the_one_that_brought_it_back() -> None:
    events = [
        NodeHealth(10.0, "c", Health.DRAINED, "ana: new disk"),
        DeviceHealth(15.0, "a", 1, False, "fell off the bus"),
        NodeHealth(20.0, "c", Health.UP),
    ]
    assert outages_of(events, NODES, 100.0) == [
        ("c", None, 10.0, 20.0, "drained", "ana: new disk"),
        ("a", 1, 15.0, 100.0, "drained", "fell off the bus"),
        ("b", None, -math.inf, 100.0, "down", "no power"),
    ]


def test_what_came_back_and_was_out_before_anything_is_remembered_was_out_until_then() -> None:
    found = outages_of([NodeHealth(20.0, "c", Health.UP)], {"c": NODES["c"]}, 100.0)
    assert [(one.node, one.start, one.end) for one in found] == [("c", -math.inf, 20.0)]


def test_a_node_that_goes_from_drained_to_down_has_two_outages_in_a_row() -> None:
    events = [NodeHealth(10.0, "b", Health.DRAINED, "x"), NodeHealth(30.0, "b", Health.DOWN, "no power")]
    found = outages_of(events, {"b": NODES["b"]}, 100.0)
    assert [(one.start, one.end, one.health) for one in found] == [
        (10.0, 30.0, "drained"),
        (30.0, 100.0, "down"),
    ]


def test_a_node_that_is_out_is_drawn_in_the_rows_of_all_of_its_gpus_and_one_gpu_in_its_own() -> None:
    def drawn(out: Outage, by: str) -> list[tuple[str, str | None]]:
        return [
            (row, each.because) for row, each in outage_bars(out, {"a": 1, "a/0": 1, "a/1": 1}, NODES, by)
        ]

    whole, one = Outage("a", None, 1.0, 9.0, "drained", "disk"), Outage("a", 1, 1.0, 9.0, "drained", "")
    assert drawn(whole, "gpu") == [("a/0", "disk"), ("a/1", "disk")]
    assert drawn(whole, "node") == [("a", "disk")]
    assert (drawn(one, "gpu"), drawn(one, "node"), drawn(whole, "team")) == ([("a/1", None)], [], [])


def test_nodes_and_gpus_that_are_out_of_service_are_told_apart() -> None:
    def out(*where: tuple[str, int | None]) -> str:
        return out_of_service(Outage(node, device, 0.0, 9.0, "drained", "") for node, device in where)

    assert out() == ""
    assert out(("a", None), ("a", 1)) == " 1 node is out of service."  # its GPU with it
    assert out(("a", 0)) == " 1 GPU is out of service."
    assert out(("a", None), ("b", None), ("c", 2)) == " 2 nodes and 1 GPU of others are out of service."


def test_of_what_is_no_longer_there_nobody_knows_whether_it_is_out() -> None:
    assert outages_of([NodeHealth(1.0, "a", Health.DRAINED)], {}, 9.0) == []
