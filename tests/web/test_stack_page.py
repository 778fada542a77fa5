"""What stands on what, as people look at it: hardware at the bottom, processes at the top."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from muster.layout.geometry import gpu_id, rack_id
from muster.layout.states import State
from muster.server.answers import Amounts, Grant
from muster.server.seeing.scene import GpuNow, Scene, Tally
from muster.server.seeing.stack_answers import Layer, StackDevice, UsedNow
from muster.web.bands import Band, bands_of, load_bar, words_of
from muster.web.loads import Load, Loads, added
from muster.web.pages.stack import Asked, asked_in, layers_of
from servers import Server, until
from visitor import Visitor

EVIL = '"><script>alert(1)<img src=x onerror=alert(2)>'
LAYERS = ["site", "rack", "node", "job"]


def amounts(gpus: float, cpus: float = 0.0) -> Amounts:
    return Amounts(cpus, 0, gpus)


def job(name: str, gpus: float, **more: object) -> Layer:
    return Layer(layer="job", kind="job", id=name, name=f"n{name}", held=amounts(gpus, gpus * 4), **more)


def machine(name: str, *jobs: Layer) -> Layer:
    """Of four GPUs and 16 cpus."""
    holders = [one.id for one in jobs for _ in range(int(one.held.gpus if one.held else 0))]
    devices = [StackDevice(n, "A40", None, True, None, holders[n : n + 1]) for n in range(4)]
    held = amounts(float(len(holders)))
    parts = {"has": amounts(4, 16), "held": held, "devices": devices, "children": list(jobs)}
    return Layer(layer="node", kind="A40", id=name, name=name, **parts)


def place(*nodes: Layer) -> Layer:
    total, held = amounts(4.0 * len(nodes)), amounts(sum(n.held.gpus for n in nodes if n.held))
    rack = Layer(layer="rack", kind="rack", id="R1", name="R1", has=total, held=held, children=list(nodes))
    return Layer(layer="site", kind="site", id="here", name="here", has=total, held=held, children=[rack])


def scene(shares: dict[tuple[str, int], float | None], racks: dict[str, Tally] | None = None) -> Scene:
    gpus = {gpu_id(*key): GpuNow(State.WORKING, share) for key, share in shares.items()}
    return Scene(0.0, 1, gpus, {}, racks or {})


def bands(bottom: Layer, now: Scene, *, as_strips: bool = True) -> dict[str, Band]:
    return {one.layer: one for one in bands_of(bottom, LAYERS, Loads(now), as_strips=as_strips)}


# --- Loads ----------------------------------------------------------------------------------------------


def test_what_gpus_do_is_what_stands_on_them_uses() -> None:
    bottom = place(machine("n1", job("7", 2)))
    now = scene({("n1", 0): 0.5, ("n1", 1): 1.0, ("n1", 2): None})
    found = bands(bottom, now)
    assert found["job"].load == Load("GPU", 2.0, 2.0, 2.0, 1.5)
    assert found["node"].load == Load("GPU", 4.0, 2.0, 2.0, 1.5)
    assert found["site"].load == Load("GPU", 4.0, 2.0, 2.0, 1.5)
    assert str(found["site"].load) == "2 of 4 GPUs held, 75% used"


def test_what_is_not_measured_is_neither_used_nor_idle() -> None:
    found = bands(place(machine("n1", job("7", 2))), scene({("n1", 0): 0.5, ("n1", 1): None}))
    assert found["node"].load == Load("GPU", 4.0, 2.0, 1.0, 0.5)
    assert "of the 1 measured" in str(found["node"].load)
    unseen = bands(place(machine("n1", job("7", 2))), scene({}))["job"]
    assert str(unseen.load) == "2 GPUs held, use not known"
    classes = [one.get("class") for one in ET.fromstring(unseen.strip).iter("rect")]
    assert classes == ["unmeasured", "frame"]


def test_what_the_api_knows_of_a_job_counts() -> None:
    known = job("7", 2, used=UsedNow(1.0, 5, 1.2))
    found = bands(place(machine("n1", known)), scene({("n1", 0): 0.1, ("n1", 1): 0.1}))
    assert found["job"].load == Load("GPU", 2.0, 2.0, 2.0, 1.2)


def test_of_a_rack_that_is_too_large_to_be_told_the_map_knows() -> None:
    rack = Layer(
        layer="rack", kind="rack", id="R1", name="R1", has=amounts(40), held=amounts(20), left_out=10
    )
    bottom = place()
    bottom.children = [rack]
    tally = Tally((20, 0, 20, 0, 0, 0), 20, 10.0)
    found = bands_of(bottom, ["site", "rack"], Loads(scene({}, {rack_id("R1"): tally})), as_strips=True)
    assert [(one.layer, one.words) for one in found] == [
        ("node", "10 nodes"),
        ("rack", "1 rack"),
        ("site", "1 site"),
    ]
    assert found[1].load == Load("GPU", 40.0, 20.0, 20.0, 10.0)


def test_loads_are_added_in_one_unit() -> None:
    assert added([None]) is None
    assert added([Load("GPU", 1, 1, 1, 0.5), Load("cpu", 9, 9, 9, 9), Load("GPU", 1, 1, 0, 0)]) == Load(
        "GPU", 2, 2, 1, 0.5
    )


# --- Bands ----------------------------------------------------------------------------------------------


def test_what_stands_on_something_is_right_above_it_and_no_wider() -> None:
    nodes = [
        machine("n1", job("7", 4)),
        machine("n2", job("7", 4)),
        machine("n3", job("8", 1)),
        machine("n4"),
    ]
    found = bands(place(*nodes), scene({}))
    assert list(found) == ["job", "node", "rack", "site"]
    assert [(one.x, one.wide) for one in found["node"].blocks] == [(0, 25), (25, 25), (50, 25), (75, 25)]
    assert [(one.layer.id, one.x, one.wide) for one in found["job"].blocks] == [("7", 0, 50), ("8", 50, 6.25)]
    assert found["job"].words == "2 jobs"


def test_choosing_a_thing_leads_nearer_and_to_the_same_thing_on_the_map() -> None:
    found = bands(place(machine("n1", job("7", 1))), scene({}))
    assert [(one.blocks[0].url, one.blocks[0].where) for one in found.values()] == [
        ("/stack?job=7", "/where?job=7"),
        ("/stack?node=n1", "/where?node=n1"),
        ("/where?rack=R1", "/where?rack=R1"),
        ("/where", "/where"),
    ]


def test_a_job_on_several_nodes_is_one_card() -> None:
    nodes = [machine("n1", job("7", 4)), machine("n2", job("7", 2))]
    found = bands(place(*nodes), scene({}), as_strips=False)
    [card] = found["job"].blocks
    assert (card.places, card.on, card.load) == (2, "2 places", Load("GPU", 6, 6, 0, 0))
    assert card.layer.held == amounts(6.0, 24.0)


def test_limits_are_told_by_who_enforces_them() -> None:
    grants = [Grant("memory", 2**34, "enforced", "cgroup"), Grant("time", 3600, "advisory")]
    group = Layer(layer="group", kind="cgroup v2", id="/a", name="part 0", limits=grants)
    [band] = bands_of(group, ["group"], Loads(scene({})), as_strips=False)
    assert band.blocks[0].limits == ["memory 16G: enforced by cgroup", "time 1h: advisory"]


def test_words_are_escaped_in_pictures() -> None:
    bottom = place(machine(EVIL, Layer(layer="job", kind="job", id="7", name=EVIL, held=amounts(4))))
    for band in bands(bottom, scene({})).values():
        assert "<script" not in band.strip
        ET.fromstring(band.strip)
    block = bands(bottom, scene({}))["job"].blocks[0]
    assert "<script" not in load_bar(Load("GPU", 4, 2, 1, 0.5), words_of(block))


def test_layers_are_in_order_also_where_some_things_lack_one() -> None:
    group = Layer(layer="group", kind="cgroup v2", id="/g", children=[job("8", 1)])
    assert layers_of(place(machine("n1", job("7", 1), group))) == ["site", "rack", "node", "group", "job"]


def test_what_an_address_says_is_read_kindly() -> None:
    assert asked_in({"job": " ", "node": "n1"}) == Asked(None, "n1")


# --- The page -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text("[node]\ngpus = 2\n")
    with server:
        script = f"echo '{EVIL}' >/dev/null; sleep 600"
        made = server.sh(script, name=EVIL, gpus=1, cpus=0.1, memory="20M", purpose="Does it stand?")["id"]
        with server.client() as client:
            until(lambda: client.job(made)["state"] == "RUNNING", "its start")
            until(lambda: "process" in client.stack(job=made)["layers"], "its processes")
        yield server


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)


@pytest.mark.parametrize("query", ["", "?job=1"])
def test_one_machine_is_shown_from_its_processes_down(visitor: Visitor, query: str) -> None:
    page = visitor.get(f"/stack{query}")
    assert page.status == 200
    tags = page.tags()
    found = [
        (a.get("id") or "").removeprefix("band-")
        for tag, a in tags
        if "band" in (a.get("class") or "").split()
    ]
    assert found == ["process", "job", "attempt", "group", "node", "rack", "site"]
    assert "sleep 600" in page.words
    links = [a.get("href") for tag, a in tags if tag == "a"]
    assert "/where?job=1" in links
    assert "/job/1" in links
    assert all(a.get("src", "").startswith("/static/") for tag, a in tags if tag == "script")
    assert not [tag for tag, a in tags if "onerror" in a or "style" in a or tag == "img"]
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_twins_have_the_same_layers(visitor: Visitor) -> None:
    data = json.loads(visitor.get("/stack.json").text)
    assert data["layers"][0] == "site"
    assert "process" in data["layers"]
    lines = visitor.get("/stack.csv").text.splitlines()
    assert lines[0].startswith("layer,id,name,kind,state,stands_on,gpus,gpus_held,gpus_used")
    assert any(line.startswith("job,1,") for line in lines)
    assert data["sentence"] in visitor.get("/stack.txt").text


def test_what_does_not_exist_is_refused(visitor: Visitor) -> None:
    assert visitor.get("/stack?job=99999").status == 404
    assert visitor.get("/stack?node=nowhere").status == 404


def test_a_machine_on_which_nothing_stands_says_so() -> None:
    with Server("--http", "127.0.0.1:0") as server:
        page = Visitor(server).get("/stack")
    assert page.status == 200
    assert "nothing runs" in page.words
    assert "Nothing stands on it now." in page.words
