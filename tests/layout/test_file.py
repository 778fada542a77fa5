"""``layout.yaml``: what it says, and what is said against it."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import delta, documents, one_sentence, stress

from muster.layout.check import check
from muster.layout.file import MOST_GPUS, File, parse_layout
from muster.layout.geometry import geometry
from muster.layout.merge import merge
from muster.layout.parts import Gpus
from muster.layout.svg import svg
from muster.layout.terminal import bare, draw
from muster.layout.write import to_yaml
from muster.model.errors import BadInput
from muster.model.units import GIB

HEAD = "muster_layout: 1\n"


def test_delta_is_four_hundred_gpus_in_ten_racks() -> None:
    file = delta()
    (kind,) = file.kinds
    assert (kind.u, kind.cores, kind.ram_bytes) == (2, 64, 256 * GIB)
    assert kind.gpus == Gpus(4, "A40", 48 * GIB, (3, 2, 1, 0), "pcie")
    assert [rack.name for line in file.racks for rack in line.racks] == [f"R{n:02}" for n in range(1, 11)]
    assert len(file.place[0].nodes) == 100
    assert file.place[0].line == 9
    assert merge(file).gpu_count == 400
    assert check(file) == []


def test_the_stress_site_is_ten_thousand_gpus() -> None:
    assert merge(stress()).gpu_count == 10_000
    assert check(stress()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("site: x\n", "line 1: this does not say that it is a layout; begin it with 'muster_layout: 1'"),
        ("muster_layout: 2\n", "line 1: layouts of version 1 are read here"),
        (HEAD + "rack: []\n", "line 2: unknown key 'rack'; did you mean 'racks'?"),
        (HEAD + "kinds:\n  k: {u: 2, core: 64}\n", "line 3: unknown key 'core'; did you mean 'cores'?"),
        (HEAD + "kinds: {k: {u: two}}\n", "line 2: u: a whole number from 1 to 100 is expected"),
        (HEAD + "kinds: {k: {u: 0}}\n", "u: 0 is not from 1 to 100"),
        (HEAD + "kinds: {k: {ram: much}}\n", "ram: 'much' is not a size; write it like"),
        (HEAD + "kinds: {k: {gpus: {model: A40}}}\n", "count is missing; write it like count: 4"),
        (HEAD + "kinds: {k: {gpus: {count: 4, numa: [0, 1]}}}\n", "numa has 2 numbers for 4 GPUs"),
        (HEAD + "kinds: {k: {gpus: {count: 65}}}\n", "count: 65 is not from 0 to 64"),
        (HEAD + "kinds: []\n", "line 2: kinds should be names with keys and values below each"),
        (HEAD + "racks: {}\n", "line 2: racks should be a list; begin each of its lines with '-'"),
        (HEAD + "racks:\n  - R1\n", "line 3: 'racks' has something else than keys and values"),
        (HEAD + "racks:\n  - {row: A}\n", 'line 3: name is missing; write it like name: "R[01-10]"'),
        (HEAD + "racks:\n  - {name: unplaced}\n", "line 3: 'unplaced' is the rack of nodes without a place"),
        (HEAD + 'racks:\n  - {name: "R[1-10"}\n', "line 3: name: 'R[1-10' has brackets that don't close"),
        (HEAD + 'racks:\n  - {name: "R[1-10001]"}\n', "too many names: 10,001"),
        (HEAD + "place:\n  - {nodes: n1, from_u: 3}\n", "say which, with racks"),
        (HEAD + "place:\n  - {nodes: ../n1}\n", "a name has no slashes"),
        (HEAD + "groups:\n  - {type: rack, name: a, members: b}\n", "'rack' is no type of group"),
        (HEAD + 'groups:\n  - {type: switch, name: "s[1-2]", members: n1}\n', "of others write a line each"),
        (HEAD + "site: &a x\n", "line 2: anchors and aliases (& and *) are not read here"),
        ("- a\n", "line 1: expected keys and values"),
        ("[" * 50, "levels of nesting"),
        ("\x00", "this is not YAML"),
        ("", "expected keys and values"),
    ],
)
def test_what_can_t_be_read_is_refused_with_its_line_and_what_to_write(text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_layout(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("layout.yaml")


def test_a_small_file_can_t_mean_more_than_there_is_room_for() -> None:
    place = "".join(f'  - {{nodes: "n{i}[1-9000]", kind: k}}\n' for i in range(6))
    kinds = "kinds: {k: {gpus: {count: 64}}}\n"
    with pytest.raises(BadInput, match=f"more than {MOST_GPUS:,} GPUs"):
        parse_layout(HEAD + kinds + "place:\n" + place)
    with pytest.raises(BadInput, match="too many names"):
        parse_layout(HEAD + "place:\n" + place)
    racks = "".join(f'  - {{nodes: "m{i}", racks: "R[1-9999]"}}\n' for i in range(40))
    with pytest.raises(BadInput, match="too many names"):
        parse_layout(HEAD + "place:\n" + racks)


# --- What can be read and can't be right ----------------------------------------------------------------

KINDS = "kinds:\n  k: {u: 2, gpus: {count: 1}}\n"  # lines 2 and 3
RACKS = 'racks:\n  - {name: "R[1-2]", units: 8}\n'  # lines 4 and 5; place begins at 7


def flaws(*place: str, groups: str = "") -> list[tuple[int | None, str, bool]]:
    text = HEAD + KINDS + RACKS + "place:\n" + "".join(f"  - {{{line}}}\n" for line in place) + groups
    return [(flaw.line, flaw.said, flaw.wrong) for flaw in check(parse_layout(text))]


FULL = 'nodes: "n[1-8]", kind: k, racks: "R[1-2]"'


def test_a_sound_layout_has_no_flaws() -> None:
    assert flaws(FULL) == []


@pytest.mark.parametrize(
    ("place", "line", "words"),
    [
        (
            [FULL, "nodes: m, kind: k, racks: R1, from_u: 2"],
            8,
            "'m' would stand where 'n1' is, in rack 'R1' at U2",
        ),
        ([FULL, "nodes: n3, kind: k, racks: R1"], 8, "'n3' has a place already, at line 7"),
        (['nodes: "n[1-10]", kind: k, racks: "R[1-2]"'], 7, "'n5' would reach U10 of rack 'R1', which has 8"),
        (
            ['nodes: "n[1-10]", kind: k, racks: "R[1-2]", per_rack: 4'],
            7,
            "2 racks of 4 leave out nodes n[9-10]",
        ),
        (['nodes: "n[1-8]", kind: kk, racks: "R[1-2]"'], 7, "there is no kind 'kk'; did you mean 'k'?"),
        ([FULL, "nodes: m, kind: k, racks: R3"], 8, "rack R3 is not among racks; describe it there"),
    ],
)
def test_what_can_t_stand_so_is_wrong(place: list[str], line: int, words: str) -> None:
    assert (line, words, True) in flaws(*place)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ([FULL, "nodes: m, kind: k"], "node m has no rack, and is drawn in 'unplaced'"),
        (['nodes: "n[1-8]", racks: "R[1-2]"'], "of nodes n[1-8] nobody says the kind: add kind"),
        (['nodes: "n[1-2]", kind: k, racks: R1'], "nothing stands in rack R2"),
        (['nodes: "n[1-2]", kind: k, racks: "R[1-2]", per_rack: 2'], "2 nodes do not reach rack R2"),
    ],
)
def test_what_may_be_meant_is_doubtful(place: list[str], words: str) -> None:
    assert words in [said for _, said, wrong in flaws(*place) if not wrong]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (
            'name: "s[1-3]", members: "@rack"',
            "there are 3 names for 2 racks; '@rack' means one for each rack, in order",
        ),
        ("name: s, members: '@R9'", "there is no rack R9"),
        ("name: s, members: ghost", "node ghost has no line in place"),
        ("name: s, members: n1, up: s", "switch 's' is above itself, or below 16 others"),
        ("name: R1, members: n1", "a switch is called like rack R1, and is not one; call it otherwise"),
    ],
)
def test_switches_are_checked(group: str, words: str) -> None:
    assert words in [said for _, said, _ in flaws(FULL, groups=f"groups:\n  - {{type: switch, {group}}}\n")]


def test_a_hundred_alike_are_told_three_times_and_counted() -> None:
    said = [said for _, said, _ in flaws('nodes: "n[1-100]", kind: k, racks: R1')]
    assert sum("would reach" in one for one in said) == 3
    assert "and 93 more of this line can't stand where it says" in said


# --- Anything at all ------------------------------------------------------------------------------------


def whole(text: str) -> File | None:
    """All that is done with a file; None if it is refused, in one sentence."""
    try:
        file = parse_layout(text)
    except BadInput as error:
        one_sentence(error)
        return None
    layout = merge(file)
    boxes = geometry(layout)
    check(file)
    draw(layout, bare(layout))
    svg(boxes, {})
    return file


@given(st.text(max_size=200))
def test_any_text_is_a_layout_or_one_clear_error(text: str) -> None:
    whole(text)
    whole(HEAD + text)


_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["n[1-3]", "@rack"])
)
_keys = st.sampled_from(
    ["kinds", "racks", "place", "groups", "name", "nodes", "gpus", "count", "u", "members", "type"]
)
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["site", "kinds", "racks", "place", "groups"]), _trees))
def test_any_yaml_is_a_layout_or_one_clear_error(tree: dict[str, object]) -> None:
    whole(yaml.safe_dump({"muster_layout": 1, **tree}, allow_unicode=True))


@settings(max_examples=60)
@given(documents)
def test_what_is_written_down_again_is_read_as_the_same(document: dict[str, object]) -> None:
    file = whole(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
    if file is not None:
        again = to_yaml(file)
        assert to_yaml(parse_layout(again)) == again
        assert [(s.name, s.rack, s.at_u, s.switch) for s in merge(parse_layout(again)).spots] == [
            (s.name, s.rack, s.at_u, s.switch) for s in merge(file).spots
        ]
