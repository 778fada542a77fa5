"""A frame for a terminal, as a real server tells it: small, in order, narrowed, and true."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from muster.client import Client
from muster.demo.sites import stress_text
from muster.layout.file import parse_layout
from muster.layout.geometry import gpu_id, node_id, rack_id
from muster.layout.merge import merge
from muster.layout.states import State
from muster.server.answers_top import Grain
from muster.server.seeing.places import Map
from muster.server.seeing.scene import GpuNow, NodeNow, Scene, Tally, tally_of
from muster.server.seeing.strip import Strips, doing
from muster.wire import Refused
from servers import Server, until

HERE = socket.gethostname().split(".")[0]
CONFIGURATION = '[node]\ncpus = 8\ngpus = 4\ngpu_model = "A40"\n[monitor]\nperiod = "1s"\n'
LAYOUT = f"""\
muster_layout: 1
site: lab
kinds: {{box: {{u: 2, gpus: {{count: 4, model: A40}}}}}}
racks: [{{name: "R[1-2]", row: A}}]
place:
  - {{nodes: {HERE}, kind: box, racks: R1, from_u: 3}}
  - {{nodes: "gpu[1-2]", kind: box, racks: R2, from_u: 3}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    server.home.configuration.write_text(CONFIGURATION)
    server.home.layout.write_text(LAYOUT)
    with server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.clearing() as client:
        yield client


def runs(server: Server, name: str, **options: object) -> str:
    asked = {"cpus": 1, "memory": "20M", "name": name, "purpose": f"Does {name} help?", **options}
    return str(server.sh("sleep 100", **asked)["id"])


def ids(client: Client, **asked: object) -> list[str]:
    return [job["id"] for job in client.top(**asked)["jobs"]]


def test_who_holds_most_comes_first_then_who_waits(server: Server, client: Client) -> None:
    small, large, cpu = (runs(server, n, gpus=g) for n, g in (("small", 1), ("large", 3), ("cpu", 0)))
    waits = runs(server, "waits", gpus=2)
    until(lambda: client.top()["running"] == 3, "their start")
    assert ids(client) == [large, small, cpu, waits]
    assert ids(client, order="new") == [cpu, large, small, waits]
    assert ids(client, which="holding", limit=1) == [large]
    assert ids(client, which="waiting") == [waits]
    assert ids(client, match="LARGE does") == [large]
    assert ids(client, match="nobody") == []
    told = client.top(limit=1)
    assert (told["more"], told["running"], told["waiting"]) == (3, 3, 1)
    assert "GPUs" in client.top(which="waiting")["jobs"][0]["reason"]
    assert client.top(limit=0)["jobs"] == []


def test_a_line_has_what_a_person_asks_about_a_job(server: Server, client: Client) -> None:
    job = runs(server, "fit", gpus=2, time="2h", budget="10 GPUh")
    until(lambda: client.job(job)["state"] == "RUNNING", "its start")
    [line] = client.top()["jobs"]
    view = client.job(job)
    assert (line["owner"], line["purpose"], line["gpus"], line["nodes"]) == (
        view["owner"],
        "Does fit help?",
        2,
        HERE,
    )
    assert line["ends_at"] == pytest.approx(view["started_at"] + 7200)
    assert (line["budget"], line["defended_at"]) == (0, None)
    client.defend(job, because="it still improves", until="+7d")
    assert client.top()["jobs"][0]["defended_at"] is not None


def test_narrowed_to_people_and_teams(server: Server, client: Client) -> None:
    job = runs(server, "fit")
    assert ids(client, mine=True) == [job]
    assert ids(client, owner=client.whoami()["name"]) == [job]
    assert ids(client, owner="somebody-else") == []
    assert ids(client, team="vision") == []


def test_the_place_is_told_in_glyphs_as_fine_as_asked_for(server: Server, client: Client) -> None:
    runs(server, "fit", gpus=2)
    until(lambda: client.top()["counts"]["working"] == 2, "its GPUs to work")
    gpus = client.top(by="gpu")["strips"]
    assert gpus[0] == {"name": "R1", "use": ["■■··"], "states": ["■■□□"]}
    assert gpus[1] == {"name": "R2", "use": ["????", "????"], "states": ["????", "????"]}
    assert client.top(by="node")["strips"][1] == {"name": "R2", "use": ["??"], "states": ["??"]}
    assert [strip["name"] for strip in client.top(by="rack")["strips"]] == ["row A"]
    assert client.top(by="none")["strips"] == []


def test_what_is_asked_wrongly_is_refused(client: Client) -> None:
    for asked in ({"by": "house"}, {"order": "best"}, {"limit": 1001}, {"match": "x" * 201}):
        with pytest.raises(Refused, match="not as expected"):
            client.top(**asked)


def test_sparks_are_true_use_by_the_hour(server: Server, client: Client) -> None:
    script = "while :; do :; done"
    job = str(server.sh(script, cpus=1, memory="20M", purpose="Does it spin?")["id"])

    def last() -> float:
        return client.sparks([job, "999"])["sparks"].get(job, [None])[-1] or 0.0

    until(lambda: last() > 0.2, "what it used")
    told = client.sparks([job, "999"])
    assert list(told["sparks"]) == [job]
    assert (len(told["sparks"][job]), told["step_seconds"]) == (24, 3600)
    assert set(told["sparks"][job][:-2]) == {None}


# --- From far away --------------------------------------------------------------------------------------


def scene_of(here: Map) -> Scene:
    """All work at half of what they could."""
    now = GpuNow(State.WORKING, 0.5)
    gpus = {gpu_id(spot.name, gpu.number): now for spot in here.layout.spots for gpu in spot.gpus}
    four = tally_of([now] * 4)
    nodes = {node_id(s.name): NodeNow(s.name, State.WORKING, "up", tally=four) for s in here.layout.spots}
    racks: dict[str, Any] = {}
    for spot in here.layout.spots:
        racks[rack_id(spot.rack)] = racks.get(rack_id(spot.rack), Tally()) + four
    return Scene(0.0, 1, gpus, nodes, racks)


@pytest.mark.parametrize(
    ("by", "strips", "glyphs"), [("gpu", 250, 10_000), ("node", 250, 2500), ("rack", 25, 250)]
)
def test_ten_thousand_gpus_are_fewer_glyphs_from_farther_away(by: str, strips: int, glyphs: int) -> None:
    here = Map.of(merge(parse_layout(stress_text()), ()))
    told = Strips(here).of(scene_of(here), Grain(by))
    assert len(told) == strips
    assert sum(len(word) for strip in told for word in strip.use) == glyphs
    assert {glyph for strip in told for word in strip.use for glyph in word} == {"▅"}


def test_one_that_is_down_is_told_from_any_distance() -> None:
    rack = tally_of([GpuNow(State.WORKING, 1.0)] * 39 + [GpuNow(State.DOWN)])
    assert doing(rack) == ("█", State.DOWN)
    assert doing(tally_of([GpuNow(State.FREE)] * 3 + [GpuNow(State.WORKING, 0.2)])) == ("▂", State.FREE)
    assert doing(tally_of([GpuNow(State.UNKNOWN)] * 4)) == ("?", State.UNKNOWN)
