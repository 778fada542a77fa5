"""The layout and placement agree: a gang in one rack goes where the map draws one."""

import socket
from pathlib import Path

import pytest

from muster.engines.local.inventory import Machine
from muster.home import Home
from muster.layout.file import parse_layout
from muster.layout.found import found_by
from muster.layout.merge import merge
from muster.model.errors import BadInput
from muster.model.node import Device, Node
from muster.model.room import Hardware
from muster.model.units import GIB
from muster.server.standing import read_standing, stood
from muster.wire import Refused
from servers import Server, until

HERE = socket.gethostname().split(".")[0]
TEXT = """\
muster_layout: 1
kinds: {big: {gpus: {count: 4}}}
racks: [{name: "R[1-2]"}]
place:
  - {nodes: "a[1-4]", kind: big, racks: "R[1-2]"}
  - {nodes: loose1, kind: big}
groups: [{type: switch, name: leaf, members: "@R1"}]
"""


def node(name: str, gpus: int = 4) -> Node:
    return Node(name, 64_000, 256 * GIB, devices=(Device("A40"),) * gpus)


def test_a_node_gets_its_rack_and_its_switch_from_the_layout() -> None:
    placed, said = stood(node("a2"), parse_layout(TEXT))
    assert (placed.rack, placed.switch, said) == ("R1", "leaf", [])


def test_nodes_without_a_place_are_near_to_nobody() -> None:
    placed, said = stood(node("loose1"), parse_layout(TEXT))
    assert placed.rack is None
    assert said == ["layout.yaml does not say in which rack loose1 stands"]


def test_what_the_file_and_the_engine_say_differently_is_told() -> None:
    _, said = stood(node("a1", gpus=3), parse_layout(TEXT))
    assert said == ["a1: gpus: layout.yaml, line 2 says 4, the engine sees 3"]


def test_the_scheduler_s_racks_are_those_of_the_map() -> None:
    file = parse_layout(TEXT)
    nodes = [stood(node(name), file)[0] for name in ("a1", "a2", "a3", "a4", "loose1")]
    racks = Hardware(nodes).racks.tolist()
    drawn = {spot.name: spot.rack for spot in merge(file, tuple(found_by("e", n) for n in nodes)).spots}
    assert drawn == {"a1": "R1", "a2": "R1", "a3": "R2", "a4": "R2", "loose1": "unplaced"}
    assert racks[0] == racks[1] != racks[2] == racks[3]
    assert racks[4] < 0


def test_a_rack_does_not_make_a_machine_forget_its_gpus() -> None:
    """Jobs are kept from the devices of others by these numbers."""
    machine = Machine(node("a1", gpus=2), (0, 1))
    assert machine.told(stood(machine.node, parse_layout(TEXT))[0]).gpu_minors == (0, 1)
    assert machine.told(node("a1", gpus=4)).gpu_minors == ()


def test_the_usual_file_is_taken_if_it_is_there_and_a_named_one_must_be(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_standing(home, None) is None
    with pytest.raises(BadInput, match=r"site\.yaml can't be read"):
        read_standing(home, "site.yaml")
    (tmp_path / "layout.yaml").write_text(TEXT)
    file = read_standing(home, None)
    assert file is not None
    assert file.name == "layout.yaml"


def test_a_server_with_a_layout_runs_what_must_be_in_one_rack() -> None:
    parts: dict[str, object] = {"together": "rack", "nodes": 2, "cpus": 1, "memory": "10M"}
    server = Server()
    (server.home.path / "muster.toml").write_text('[node]\ncpus = 4\nlayout = "site.yaml"\n')
    kinds, place = "{k: {gpus: {count: 8}}}", f"[{{nodes: {HERE}, kind: k, racks: R1}}]"
    (server.home.path / "site.yaml").write_text(f"muster_layout: 1\nkinds: {kinds}\nplace: {place}\n")
    with server:
        job = server.sh("sleep 100", **parts)["id"]
        with server.client() as client:
            until(lambda: client.job(job)["state"] == "RUNNING", "its start")
        assert "gpus: site.yaml, line 2 says 8, the engine sees 0" in server.said()


def test_where_nobody_said_in_which_rack_it_stands_nothing_is_in_one_rack() -> None:
    server = Server()
    (server.home.path / "muster.toml").write_text("[node]\ncpus = 4\n")
    with server, pytest.raises(Refused, match="one rack has room for 0 of the 2 parts"):
        server.sh("true", together="rack", nodes=2, cpus=1, memory="10M")
