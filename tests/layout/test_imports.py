"""Layouts from elsewhere: RacksDB's database, NetBox's answers; samples after their documentation."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import one_sentence

from muster.layout.check import check
from muster.layout.file import File, parse_layout
from muster.layout.merge import merge
from muster.layout.netbox import from_netbox
from muster.layout.parts import Gpus
from muster.layout.racksdb import from_racksdb
from muster.layout.write import to_yaml
from muster.model.errors import BadInput
from muster.model.units import GIB

HERE = Path(__file__).parent
RACKSDB, NETBOX = (HERE / "racksdb.yml").read_text(), (HERE / "netbox.json").read_text()


def places(file: File) -> list[tuple[str, str, int | None, int]]:
    """As the layout that is written has them."""
    layout = merge(parse_layout(to_yaml(file)))
    return [(spot.name, spot.rack, spot.at_u, spot.column) for spot in layout.spots]


def test_racksdb_s_nodes_fill_a_rack_from_the_left_and_upwards() -> None:
    file = from_racksdb(RACKSDB, "racksdb.yml")
    assert places(file) == [
        ("cn01", "R1-A01", 3, 0),
        ("cn02", "R1-A01", 3, 1),
        ("cn03", "R1-A01", 4, 0),
        ("cn04", "R1-A01", 4, 1),
        ("gpu1", "R1-A03", 1, 0),
        ("gpu2", "R1-A03", 5, 0),
    ]
    assert [flaw.said for flaw in check(parse_layout(to_yaml(file)))] == ["nothing stands in rack R1-A02"]


def test_racksdb_s_types_are_kinds() -> None:
    file = from_racksdb(RACKSDB, "racksdb.yml")
    thin, fat = file.kinds
    assert (thin.u, thin.across, thin.cores, thin.ram_bytes) == (1, 2, 64, 256 * GIB)
    assert fat.gpus == Gpus(2, "A40", 48 * GIB)
    assert [(rack.room, rack.row, rack.units) for line in file.racks for rack in line.racks] == [
        ("atlas", "R1", 42),
        ("atlas", "R1", 42),
        ("atlas", "R1", 48),
    ]


def test_netbox_s_devices_of_a_role_are_nodes() -> None:
    file = from_netbox(NETBOX, "netbox.json", "gpu-node")
    assert file.site == "north"
    assert places(file) == [("gpu1", "B1", 3, 0), ("gpu2", "B1", 7, 0), ("spare", "unplaced", None, 0)]
    assert [(rack.name, rack.room, rack.units) for line in file.racks for rack in line.racks] == [
        ("B1", "atlas", 48)
    ]
    assert {kind.name: kind.u for kind in file.kinds} == {"fat-4": 4, "thin-1": 1}


def test_without_a_role_all_that_has_a_name_is_taken_and_odd_names_are_spelled_otherwise() -> None:
    assert places(from_netbox(NETBOX, "netbox.json"))[2] == ("panel (A;B)", "B2", 42, 0)


def test_an_answer_about_devices_alone_will_do() -> None:
    devices = json.loads(NETBOX)["devices"]
    for answer in (devices, devices["results"]):
        file = from_netbox(json.dumps(answer), "devices.json", "gpu-node")
        assert places(file)[0] == ("gpu1", "B1", 3, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "netbox.json: this is not JSON"),
        ("[]", "there is no device with a name"),
        ('{"devices": 7}', "devices is neither a list nor a page with results"),
        (
            '[{"name": "a", "site": {"name": "x"}}, {"name": "b", "site": {"name": "y"}}]',
            "devices of 2 sites",
        ),
    ],
)
def test_what_is_not_netbox_s_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        from_netbox(text, "netbox.json")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("infrastructures:", "infra:", "it has no infrastructures"),
        ("height: 4u", "height: tall", "'tall' is not a height from 1u to 100u"),
        ("width: 1/2", "width: 1/0", "'1/0' is not a width like full, 1/2 or 0.25"),
        ("slot: 3", "slot: low", "'low' is not a whole number"),
        ("cn[01-04]", "cn[1-999999]", "too many names"),
    ],
)
def test_what_is_not_racksdb_s_is_refused(before: str, after: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        from_racksdb(RACKSDB.replace(before, after), "racksdb.yml")


_leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
_words = st.sampled_from(
    ["devices", "results", "name", "rack", "position", "infrastructures", "layout", "nodes", "types"]
)
_trees = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=80)
@given(_trees)
def test_any_tree_is_taken_over_or_refused_in_a_sentence(tree: object) -> None:
    for read, text in (
        (from_netbox, json.dumps(tree)),
        (from_netbox, json.dumps({"devices": [tree, {"name": "a", "rack": tree, "position": tree}]})),
        (from_racksdb, yaml.safe_dump({"infrastructures": tree})),
        (from_racksdb, yaml.safe_dump({"infrastructures": [{"layout": tree}], "types": tree})),
    ):
        try:
            places(read(text, "export"))
        except BadInput as error:
            one_sentence(error)
