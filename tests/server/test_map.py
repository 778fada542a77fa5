"""The map and the place of a job, as a real server tells them."""

import re
import socket
from collections.abc import Iterator

import pytest

from muster.client import Client
from muster.wire import Refused
from servers import Server, View, until

HERE = socket.gethostname().split(".")[0]
WHY = "Does 8B beat 3B on the held-out set?"
CONFIGURATION = '[node]\ncpus = 8\ngpus = 4\ngpu_model = "A40"\n[review]\nschedule = "off"\n'
LAYOUT = f"""\
muster_layout: 1
site: lab
kinds: {{box: {{u: 2, gpus: {{count: 4, model: A40}}}}}}
racks: [{{name: "R[1-2]", room: main, row: A}}]
place:
  - {{nodes: {HERE}, kind: box, racks: R1, from_u: 3}}
  - {{nodes: "gpu[1-2]", kind: box, racks: R2, from_u: 3}}
groups: [{{type: switch, name: leaf, members: "@R1"}}]
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


def runs(server: Server, client: Client, script: str = "sleep 100", **options: object) -> str:
    asked = {"cpus": 1, "memory": "20M", "name": "fit", "purpose": WHY, **options}
    job = str(server.sh(script, **asked)["id"])
    until(lambda: client.job(job)["state"] == "RUNNING", "its start")
    return job


def node_of(seen: View, name: str) -> View:
    found: View = next(node for node in seen["nodes"] if node["name"] == name)
    return found


def test_the_map_has_places_states_and_who_holds_what(server: Server, client: Client) -> None:
    job = runs(server, client, gpus=2)
    seen = client.map()
    assert (seen["site"], seen["generation"], seen["contradictions"]) == ("lab", 1, [])
    assert seen["sentence"] == "12 GPUs: 2 work, 2 are free, 8 are unknown."
    assert seen["counts"] == {
        "working": 2,
        "held idle": 0,
        "free": 2,
        "down": 0,
        "drained": 0,
        "unknown": 8,
    }
    assert seen["racks"][0] == {"name": "R1", "room": "main", "row": "A", "units": 42}
    assert seen["switches"] == [{"name": "leaf", "nodes": [HERE], "up": None}]
    here = node_of(seen, HERE)
    assert (here["rack"], here["at_u"], here["units"], here["health"]) == ("R1", 3, 2, "up")
    assert (here["cpus"], here["cpus_held"], here["jobs"]) == (8, 1, [job])
    first = here["gpus"][0]
    assert (first["number"], first["model"], first["state"], first["held"]) == (0, "A40", "working", 1)
    assert (first["jobs"], first["purpose"], first["owner"]) == ([job], WHY, client.job(job)["owner"])
    assert first["since"] == pytest.approx(client.job(job)["started_at"])
    assert node_of(seen, "gpu1")["health"] is None


def test_the_map_is_narrowed_and_its_sentence_with_it(server: Server, client: Client) -> None:
    job = runs(server, client, gpus=1)
    mine = client.map(owner=client.job(job)["owner"])
    assert [node["name"] for node in mine["nodes"]] == [HERE]
    assert (mine["sentence"], [rack["name"] for rack in mine["racks"]]) == ("1 GPU: 1 works.", ["R1"])
    assert client.map(state="free")["sentence"] == "3 GPUs: 3 are free."
    assert client.map(rack="R2")["counts"]["unknown"] == 8
    assert len(client.map(node="gpu2")["nodes"]) == 1
    assert client.map(owner="nobody")["sentence"] == "There is nothing on the map."
    for asked, said in (
        ({"rack": "R9"}, "there is no rack 'R9' on the map"),
        ({"node": "x"}, "there is no node"),
    ):
        with pytest.raises(Refused, match=said):
            client.map(**asked)
    with pytest.raises(Refused, match="Invalid enum value 'busy'"):
        client.map(state="busy")


def test_drained_and_down_are_told_with_the_reason(client: Client) -> None:
    client.drain_node(HERE, "falls off the bus", 1)
    try:
        gpu = node_of(client.map(), HERE)["gpus"][1]
        assert (gpu["state"], "falls off the bus" in gpu["words"]) == ("drained", True)
    finally:
        client.resume_node(HERE, 1)


def test_where_a_job_is_down_to_its_processes(server: Server, client: Client) -> None:
    job = runs(server, client, "sleep 100 & sleep 100", gpus=2, name="finetune-8b")
    until(lambda: len(client.where(job)["places"][0]["processes"] or ()) == 3, "its processes")
    where = client.where(job)
    assert where["sentence"] == (
        f"{job} finetune-8b runs on GPUs 0-1 (A40) of {HERE}, rack R1 unit 3, main, row A, as 3 processes."
    )
    (place,) = where["places"]
    assert (place["node"], place["rack"], place["row"], place["at_u"]) == (HERE, "R1", "A", 3)
    assert [gpu["number"] for gpu in place["gpus"]] == [0, 1]
    assert sorted(one["command"] for one in place["processes"])[1:] == ["sleep 100", "sleep 100"]
    assert all(one["memory_bytes"] > 0 for one in place["processes"])
    assert {one["pid"] for one in place["processes"]} <= set(server.processes())
    assert any(re.fullmatch(rf"│●●□□ {HERE[:11]}.*◀ *│", line) for line in where["drawing"])


def test_where_a_job_without_gpus_and_an_array_are(server: Server, client: Client) -> None:
    job = runs(server, client, cpus=0.5)
    assert re.match(rf"{job} fit runs on 0\.5 cpus of {HERE}, rack R1", client.where(job)["sentence"])
    array = runs(server, client, array="1-2", gpus=1)
    until(lambda: client.job(array)["counts"] == {"RUNNING": 2}, "both")
    said = client.where(array)["sentence"]
    assert said.startswith(f"2 jobs of {array} fit are on GPUs 0-1 (A40) of {HERE}, rack R1")
    assert client.where(f"{array}_2")["sentence"].startswith(f"{array}_2 fit runs on GPU 1 (A40)")


def test_where_a_job_that_does_not_run_would_be_or_was(server: Server, client: Client) -> None:
    ended = client.wait(server.sh("true", gpus=1, cpus=1, memory="20M", purpose=WHY)["id"])["id"]
    assert client.where(ended)["sentence"] == f"{ended} sh has ended; it last ran on GPU 0 of {HERE}."
    running = runs(server, client, gpus=3)
    waits = server.sh("true", gpus=4, cpus=1, memory="20M", purpose=WHY)["id"]
    where = client.where(waits)
    assert where["places"] == []
    assert where["sentence"].startswith(f"{waits} sh does not run: ")
    held = server.sh("true", hold=True)["id"]
    assert client.where(held)["sentence"].startswith(f"{held} sh does not run: ")
    client.stop(held)
    assert client.where(held)["sentence"] == f"{held} sh has ended, and never ran."
    assert client.where(running)["places"]
    with pytest.raises(Refused, match="there is no job 9999"):
        client.where("9999")


def test_a_layout_that_is_changed_is_drawn_anew_without_a_restart(server: Server, client: Client) -> None:
    before = client.map()["generation"]
    server.home.layout.write_text(LAYOUT.replace("site: lab", "site: hall").replace("R[1-2]", "R[1-3]"))
    after = client.map()
    assert (after["site"], after["generation"]) == ("hall", before + 1)
    assert [rack["name"] for rack in after["racks"]] == ["R1", "R2", "R3"]
    server.home.layout.write_text(LAYOUT)


def test_a_plain_laptop_is_on_the_map_and_the_command_line_draws_it() -> None:
    server = Server()
    server.home.configuration.write_text("[node]\ncpus = 4\n")
    with server, server.client() as client:
        job = runs(server, client)
        seen = client.map()
        assert seen["site"] == HERE
        assert re.match(r"1 node without GPUs: 1 of 4 cpus is held", seen["sentence"])
        drawn = server.muster("where").stdout
        assert "unplaced" in drawn
        assert re.search(rf"^{HERE} +working +4 +1 ", drawn, re.MULTILINE)
        said = server.muster("where", job).stdout
        assert said.startswith(f"{job} fit runs on 1 cpu of {HERE}")
        assert "sleep 100" in said
