"""The cluster's shape: nodes, what is near to what, and how both are followed from look to look."""

import pytest
from slurm_situations import CARRIED, VERSIONS

from muster.engines.slurm.answers import Gpus, SlurmNode
from muster.engines.slurm.errors import ControllerDown
from muster.engines.slurm.fleet import Fleet
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.shape import SOURCE, Switch, node_of, read_topology, switch_of
from muster.layout.found import found_by
from muster.layout.merge import merge
from muster.layout.parts import UNPLACED
from muster.layout.write import as_one_file
from muster.model.errors import BadInput
from muster.model.events import NodeHealth, NodeSeen
from muster.model.node import Device, Health

NODE = SlurmNode(
    "gpu01",
    ("IDLE",),
    cpus=64,
    memory_bytes=256 << 30,
    gpus=(Gpus("a40", 2), Gpus("a100", 1)),
    partitions=("gpu",),
    active_features=("nvlink",),
)
SHOWN = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[01-02]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu[03-04]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=gpu[01-04] Switches=leaf[1-2]
"""


def test_a_node_has_its_gpus_in_slurms_order_and_its_features_and_partitions_as_labels() -> None:
    node = node_of(NODE, {"gpu01": "leaf1"}, Notices())
    assert node.devices == (Device("a40"), Device("a40"), Device("a100"))
    assert node.labels == {"nvlink", "partition:gpu"}
    assert (node.switch, node.rack, node.health) == ("leaf1", None, Health.UP)


def test_a_node_that_slurm_knows_nothing_of_takes_nothing() -> None:
    node = node_of(SlurmNode("n", ("UNKNOWN",)), {}, Notices())
    assert (node.health, node.because) == (Health.DOWN, "Slurm does not know its state")


def test_a_drained_node_says_why_and_by_whom() -> None:
    found = SlurmNode("n", ("IDLE", "DRAIN"), reason="fan is broken", reason_by="root")
    node = node_of(found, {}, Notices())
    assert (node.health, node.because) == (Health.DRAINED, "fan is broken (root)")


@pytest.mark.parametrize("version", VERSIONS)
def test_real_nodes_of_every_version_are_the_same_nodes(version: str) -> None:
    name = "idle.sinfo.json" if version.startswith("22") else "idle.scontrol-node.json"
    nodes = read_nodes((CARRIED / version / name).read_bytes(), Notices())
    made = [node_of(node, {}, Notices()) for node in nodes]
    assert [(one.name, one.cpus_milli, len(one.devices)) for one in made[:4]] == [
        *((f"node{i}", 8000, 4) for i in (1, 2, 3)),
        ("node4", 16000, 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        SHOWN,
        "# ours\nSwitchName=leaf1 Nodes=gpu[01-02]\nSwitchName=leaf2 Nodes=gpu[03-04]\n"
        "SwitchName=spine Switches=leaf[1-2]\n",
        "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
        "    - {switch: spine, children: 'leaf[1-2]'}\n    - {switch: leaf1, nodes: 'gpu[01-02]'}\n"
        "    - {switch: leaf2, nodes: 'gpu[03-04]'}\n",
        "BlockName=leaf1 Nodes=gpu[01-02]\nBlockName=leaf2 Nodes=gpu[03-04]\nBlockSizes=2\n",
        "---\n- topology: b\n  block:\n    block_sizes: [2]\n    blocks:\n"
        "    - {block: leaf1, nodes: 'gpu[01-02]'}\n    - {block: leaf2, nodes: 'gpu[03-04]'}\n",
    ],
    ids=["shown", "conf", "yaml", "blocks", "yaml blocks"],
)
def test_every_way_of_telling_a_topology_says_which_switch_a_node_is_below(text: str) -> None:
    expected = {"gpu01": "leaf1", "gpu02": "leaf1", "gpu03": "leaf2", "gpu04": "leaf2"}
    assert switch_of(read_topology(text)) == expected


@pytest.mark.parametrize("text", ["", "No topology information available\n", "# nothing\n"])
def test_where_nobody_has_said_what_is_near_nothing_is(text: str) -> None:
    assert read_topology(text) == ()


def test_a_topology_that_can_not_be_read_says_so() -> None:
    with pytest.raises(BadInput, match="can't be read as YAML"):
        read_topology("- topology: [\n")


def test_of_several_switches_the_lowest_is_near() -> None:
    switches = [Switch("spine", ("a", "b"), 1), Switch("leaf", ("a",), 0)]
    assert switch_of(switches) == {"a": "leaf", "b": "spine"}


def test_a_switch_on_the_map_is_no_rack() -> None:
    found = found_by(SOURCE, node_of(NODE, {"gpu01": "leaf1"}, Notices()))
    layout = merge(as_one_file([found], "delta"), (found,))
    spot = layout.spot("gpu01")
    assert spot is not None
    assert (spot.rack, spot.switch) == (UNPLACED, "leaf1")
    assert not layout.contradictions


def test_nodes_are_told_once_and_again_when_they_change() -> None:
    fleet = Fleet(Notices())
    (first,) = fleet.changed([NODE], lambda: SHOWN, 1.0)
    assert isinstance(first, NodeSeen)
    assert first.node.switch == "leaf1"
    assert fleet.changed([NODE], lambda: SHOWN, 2.0) == []
    drained = SlurmNode(**{**_fields(NODE), "states": ("IDLE", "DRAIN"), "reason": "fan"})
    assert fleet.changed([drained], lambda: SHOWN, 3.0) == [NodeHealth(3.0, "gpu01", Health.DRAINED, "fan")]
    assert fleet.changed([NODE], lambda: SHOWN, 4.0) == [NodeHealth(4.0, "gpu01", Health.UP)]


def test_a_node_that_slurm_no_longer_lists_is_down() -> None:
    fleet = Fleet(Notices())
    fleet.changed([NODE], str, 1.0)
    assert fleet.changed([], str, 2.0) == [NodeHealth(2.0, "gpu01", Health.DOWN, "Slurm no longer lists it")]


def test_what_was_known_before_a_restart_is_not_told_again() -> None:
    before = Fleet(Notices())
    before.changed([NODE], str, 1.0)
    after = Fleet(Notices())
    after.knows(list(before.nodes.values()))
    assert after.changed([NODE], str, 2.0) == []


def test_a_gpu_that_muster_took_out_of_service_stays_so_whatever_slurm_says_of_the_node() -> None:
    fleet = Fleet(Notices())
    (seen,) = fleet.changed([NODE], str, 1.0)
    assert isinstance(seen, NodeSeen)
    worn = seen.node.with_device(1, Device("a40", healthy=False, because="fails"))
    fleet.knows([worn])
    (event,) = fleet.changed([SlurmNode(**{**_fields(NODE), "cpus": 32})], str, 2.0)
    assert isinstance(event, NodeSeen)
    assert not event.node.devices[1].healthy


def test_the_topology_is_asked_for_only_when_there_are_other_nodes() -> None:
    asked = []
    fleet = Fleet(Notices())
    for _ in range(3):
        fleet.changed([NODE], lambda: asked.append(1) or SHOWN, 1.0)  # type: ignore[func-returns-value]
    assert len(asked) == 1


def test_without_a_topology_that_answers_the_nodes_are_there_all_the_same() -> None:
    notices = Notices()

    def refuses() -> str:
        raise ControllerDown("no")

    assert len(Fleet(notices).changed([NODE], refuses, 1.0)) == 1
    assert len(notices.take()) == 1


def test_a_node_that_people_say_stands_elsewhere_now_is_told_anew() -> None:
    fleet = Fleet(Notices(), {"gpu01": ("R01", None)})
    fleet.changed([NODE], lambda: SHOWN, 1.0)
    fleet.stands = {"gpu01": ("R02", "top")}
    (seen,) = fleet.changed([NODE], lambda: SHOWN, 2.0)
    assert isinstance(seen, NodeSeen)
    assert (seen.node.rack, seen.node.switch) == ("R02", "top")
    assert fleet.changed([NODE], lambda: SHOWN, 3.0) == []


def test_where_people_say_a_node_stands_counts_before_slurms_word() -> None:
    fleet = Fleet(Notices(), {"gpu01": ("R01", None)})
    (seen,) = fleet.changed([NODE], lambda: SHOWN, 1.0)
    assert isinstance(seen, NodeSeen)
    assert (seen.node.rack, seen.node.switch) == ("R01", "leaf1")


def _fields(node: SlurmNode) -> dict[str, object]:
    return {name: getattr(node, name) for name in node.__struct_fields__}
