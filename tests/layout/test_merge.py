"""The file over what was found: every fact keeps its source, and nobody is lost."""

import pytest
from sites import delta

from muster.layout.diff import diff
from muster.layout.file import parse_layout
from muster.layout.found import found_by, gpu_facts
from muster.layout.merge import agree, merge
from muster.layout.parts import GPU_MODEL, GPUS, RACK, RAM, UNPLACED, Fact, Found, Gpu, Layout, Spot
from muster.layout.words import sentence, where
from muster.model.node import Device, Node
from muster.model.units import GIB

LINE = "delta.yaml, line 9"


def nvml(name: str, *numa: int, model: str = "A40", memory_bytes: int = 45 * GIB) -> Found:
    gpus = tuple(Gpu(i, model, memory_bytes, n, f"0000:{i:02}:00.0", seen=True) for i, n in enumerate(numa))
    return Found(name, gpu_facts(gpus, "NVML"), gpus)


def spot_of(layout: Layout, name: str) -> Spot:
    spot = layout.spot(name)
    assert spot is not None
    return spot


def test_nodes_stand_rack_by_rack_from_below() -> None:
    layout = merge(delta())
    assert [(s.rack, s.at_u) for s in layout.spots[:2]] == [("R01", 2), ("R01", 4)]
    assert (layout.spots[36].name, layout.spots[36].rack, layout.spots[36].at_u) == ("gpub037", "R04", 14)
    assert where(layout, layout.spots[36]) == (
        "gpub037 stands in rack R04 at U14 (main, row A), below switch leaf04."
    )
    assert sentence(layout) == "delta: 400 GPUs in 100 nodes, 10 racks."


def test_every_fact_names_its_source() -> None:
    spot = spot_of(merge(delta(), (nvml("gpub001", 3, 2, 1, 0),)), "gpub001")
    assert spot.fact(RACK) == Fact(RACK, "R01", LINE)
    assert spot.fact(GPUS) == Fact(GPUS, 4, "delta.yaml, line 5")
    assert Fact(GPUS, 4, "NVML") in spot.facts
    assert spot.fact("switch") == Fact("switch", "leaf01", "delta.yaml, line 11")


def test_what_agrees_is_no_contradiction() -> None:
    """NVML tells 45 of the 48 GiB that are sold."""
    layout = merge(delta(), (nvml("gpub001", 3, 2, 1, 0),))
    assert layout.contradictions == ()
    assert all(gpu.seen and gpu.bus for gpu in spot_of(layout, "gpub001").gpus)


def test_a_gpu_that_nobody_sees_keeps_its_place_and_is_told() -> None:
    layout = merge(delta(), (nvml("gpub001", 3, 2, 0),))
    (one,) = layout.contradictions
    assert str(one) == "gpub001: gpus: delta.yaml, line 5 says 4, NVML sees 3"
    gpus = spot_of(layout, "gpub001").gpus
    assert [gpu.seen for gpu in gpus] == [True, True, False, True]
    assert [gpu.device for gpu in gpus if gpu.seen] == [0, 1, 2]  # as whoever looked counts them
    assert layout.gpu_count == 400
    assert sentence(layout).endswith("10 racks; 1 GPU said and not seen; 1 contradiction.")


def test_where_memory_nodes_can_t_tell_the_last_is_missing() -> None:
    layout = merge(delta(), (nvml("gpub001", 7, 7, 7),))
    assert [gpu.seen for gpu in spot_of(layout, "gpub001").gpus] == [True, True, True, False]


def test_a_gpu_that_only_instruments_know_is_drawn_too() -> None:
    layout = merge(delta(), (nvml("gpub001", 3, 2, 1, 0, 0),))
    assert [gpu.number for gpu in spot_of(layout, "gpub001").gpus] == [0, 1, 2, 3, 4]
    assert len(layout.contradictions) == 1


def test_nodes_without_a_place_are_in_a_rack_that_says_so_and_a_switch_is_none() -> None:
    found = found_by("slurm", Node("login1", 8000, GIB, switch="leaf01"))
    layout = merge(delta(), (found,))
    spot = spot_of(layout, "login1")
    assert (spot.rack, spot.switch) == (UNPLACED, "leaf01")
    assert [rack.name for rack in layout.racks][-1] == UNPLACED
    assert where(layout, spot) == (
        "login1 has no place: nobody has said in which rack it stands, below switch leaf01."
    )


def test_without_a_file_an_engine_s_racks_are_drawn() -> None:
    nodes = [Node("a", 1000, GIB, rack="r1", devices=(Device("A40"),)), Node("b", 1000, GIB)]
    layout = merge(None, tuple(found_by("engine", node) for node in nodes))
    assert [(spot.name, spot.rack) for spot in layout.spots] == [("a", "r1"), ("b", UNPLACED)]
    assert [rack.name for rack in layout.racks] == ["r1", UNPLACED]
    assert spot_of(layout, "a").gpus[0].seen


def test_a_node_that_an_engine_has_elsewhere_is_where_the_file_says_and_both_are_told() -> None:
    layout = merge(delta(), (found_by("slurm", Node("gpub001", 64000, 256 * GIB, rack="R09")),))
    assert spot_of(layout, "gpub001").rack == "R01"
    assert f"gpub001: rack: {LINE} says R01, slurm sees R09" in map(str, layout.contradictions)


def test_nodes_that_would_stand_in_one_place_keep_their_rack() -> None:
    place = "[{nodes: a, kind: k, racks: R}, {nodes: b, kind: k, racks: R}]"
    layout = merge(parse_layout(f"muster_layout: 1\nkinds: {{k: {{u: 2}}}}\nplace: {place}"))
    assert [(s.name, s.rack, s.at_u) for s in layout.spots] == [("a", "R", 1), ("b", "R", None)]


def test_halves_stand_beside_each_other() -> None:
    text = (
        "muster_layout: 1\nkinds: {k: {across: 2}}\nplace: [{nodes: 'n[1-4]', kind: k, racks: R, from_u: 3}]"
    )
    assert [(s.at_u, s.column) for s in merge(parse_layout(text)).spots] == [(3, 0), (3, 1), (4, 0), (4, 1)]


@pytest.mark.parametrize(
    ("about", "one", "other", "same"),
    [
        (RAM, 256 * GIB, 251 * GIB, True),
        (RAM, 256 * GIB, 128 * GIB, False),
        (GPU_MODEL, "A40", "NVIDIA A40-48Q", True),
        (GPU_MODEL, "A100", "A100-SXM4-80GB", True),
        (GPU_MODEL, "A10", "A100", False),
        (GPUS, 4, 3, False),
    ],
)
def test_facts_agree_as_people_mean_them(about: str, one: int | str, other: int | str, same: bool) -> None:
    assert agree(Fact(about, one, "file"), Fact(about, other, "NVML")) is same


# --- Two layouts ----------------------------------------------------------------------------------------


def test_a_layout_does_not_differ_from_itself() -> None:
    assert diff(merge(delta()), merge(delta())) == []


def test_what_was_added_moved_and_changed_is_told_together() -> None:
    before = (
        "muster_layout: 1\nkinds: {k: {gpus: {count: 4, model: A40}}}\nracks: [{name: 'R[1-2]', row: A}]\n"
    )
    old = merge(parse_layout(before + "place: [{nodes: 'n[1-4]', kind: k, racks: R1}]\n"))
    after = before.replace("A40", "A100").replace("row: A", "row: B, units: 48")
    new = merge(parse_layout(after + "place: [{nodes: 'n[2-5]', kind: k, racks: R2}]\n"))
    assert [str(change) for change in diff(old, new)] == [
        "moved rack R[1-2]: row A → row B",
        "changed rack R[1-2]: units 42 → 48",
        "removed node n1",
        "added node n5",
        "moved node n[2-4]: rack R1 → rack R2",
        "changed node n[2-4]: GPU model A40 → A100",
    ]
