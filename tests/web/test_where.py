"""The page of the map: a site with a layout file and one machine that is there, from far and from near."""

import csv
import io
import json
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client import Client
from muster.layout.geometry import gpu_id, node_id
from servers import Server, until
from visitor import Answer, Visitor

HERE = platform.node()
HOSTILE = "</title><script>alert(1)</script>"
LAYOUT = f"""\
muster_layout: 1
site: delta
kinds:
  big: {{u: 2, gpus: {{model: A40, count: 4, mem: 48G, numa: [3, 2, 1, 0]}}}}
racks:
  - {{name: "R[01-03]", room: main, row: A}}
place:
  - {{nodes: "{HERE}", kind: big, racks: "R01"}}
  - {{nodes: "g[01-20]", kind: big, racks: "R[02-03]", per_rack: 10}}
"""
CONFIG = """\
[node]
cpus = 8
gpus = 3
gpu_model = "A40"
layout = "layout.yaml"
"""


def started(home: Path, config: str, layout: str = "") -> Server:
    (home / "muster.toml").write_text(config)
    if layout:
        (home / "layout.yaml").write_text(layout)
    return Server("--http", "127.0.0.1:0", home=home)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(tmp_path_factory.mktemp("where"), CONFIG, LAYOUT) as made:
        yield made


@pytest.fixture(scope="module")
def visitor(server: Server) -> Visitor:
    return Visitor(server)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with server.client() as made:
        yield made


@pytest.fixture(scope="module")
def job(client: Client) -> str:
    """It holds two of the three GPUs that are there."""
    made = client.submit(["sleep", "300"], gpus=2, cpus=1, name="fine", purpose=f"{HOSTILE} Does 8B beat 3B?")
    until(lambda: client.job(made["id"])["state"] == "RUNNING", "it to run")
    return str(made["id"])


def elements(page: Answer, kind: str) -> list[dict[str, str | None]]:
    return [attrs for _, attrs in page.tags() if kind in (attrs.get("class") or "").split()]


def cells(page: Answer) -> dict[str, str | None]:
    """What the cells of the map show, by their ids."""
    return {
        str(one["id"]): one["data-state"]
        for one in elements(page, "gpu")
        if (one["id"] or "").startswith("gpu-")
    }


def test_every_gpu_of_the_site_is_drawn_and_what_nobody_sees_is_unknown(visitor: Visitor, job: str) -> None:
    page = visitor.get("/where")
    found = cells(page)
    assert len(found) == 84
    assert [found[gpu_id(HERE, n)] for n in range(4)].count("working") == 2
    assert [found[gpu_id(HERE, n)] for n in range(4)].count("unknown") == 1
    assert {found[gpu_id("g01", n)] for n in range(4)} == {"unknown"}
    assert "84 GPUs: 2 work, 1 is free, 81 are unknown." in page.words
    assert job


def test_each_mark_has_the_number_by_which_ticks_name_it(visitor: Visitor) -> None:
    page = visitor.get("/where")
    numbers = [one["data-n"] for one in elements(page, "gpu")]
    assert len(set(numbers)) == len(numbers) == 84
    assert next(attrs for tag, attrs in page.tags() if tag == "body")["data-level"] == "gpus"


def test_a_contradiction_is_told_and_drawn(visitor: Visitor) -> None:
    page = visitor.get("/where")
    assert "1 contradiction" in page.words
    assert "says 4 , " in page.words
    assert "sees 3" in page.words
    assert [one["id"] for one in elements(page, "node") if "data-odd" in one] == [node_id(HERE)]


def test_one_looks_from_as_near_as_one_wants(visitor: Visitor, job: str) -> None:
    from_far, nearer = visitor.get("/where?zoom=site"), visitor.get("/where?zoom=rack")
    assert not elements(from_far, "gpu")
    assert [one["id"] for one in elements(from_far, "rack")] == ["rack-R01", "rack-R02", "rack-R03"]
    assert len(elements(nearer, "node")) == 21
    assert elements(nearer, "node")[0]["data-k"] == "2,0,1,0,0,1"
    assert job


def test_the_way_leads_from_the_site_to_the_row_the_rack_and_the_node(visitor: Visitor) -> None:
    page = visitor.get("/where?rack=R02")
    assert len(cells(page)) == 40
    assert "delta › main row A › rack R02".replace(" › ", " ") in page.words
    links = {attrs.get("href") for _, attrs in page.tags()}
    assert {"/where", "/where?row=main%3AA", "/where?rack=R02&node=g01"} <= links
    assert len(cells(visitor.get("/where?row=main:A"))) == 84


def test_the_panel_tells_of_a_node_its_gpus_its_jobs_and_their_processes(visitor: Visitor, job: str) -> None:
    until(lambda: "1 process" in visitor.get(f"/where?node={HERE}").words, "its process to be found")
    page = visitor.get(f"/where?node={HERE}")
    for word in ("R01 · U1", "gpu0", "numa 3", "48G", f"{job} fine", "Does 8B beat 3B?", "sleep 300"):
        assert word in page.words
    assert f"/job/{job}" in {attrs.get("href") for _, attrs in page.tags()}


def test_what_people_wrote_is_never_markup(visitor: Visitor, job: str) -> None:
    for path in ("/where", f"/where?node={HERE}", f"/where?job={job}", f"/where?find={HOSTILE}"):
        page = visitor.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.text


def test_what_is_found_stands_out_and_is_counted(visitor: Visitor, job: str) -> None:
    page = visitor.get("/where?find=8b%20BEAT")
    assert "2 GPUs on 1 node match “8b BEAT”." in page.words
    hit = {str(one["id"]) for one in elements(page, "gpu") if "data-hit" in one}
    assert hit < {gpu_id(HERE, n) for n in range(4)}
    assert "4 GPUs on 1 node match" in visitor.get("/where?find=g17").words
    assert "Nothing in view is called “nobody-has-this”" in visitor.get("/where?find=nobody-has-this").words
    assert job


def test_where_one_job_runs_is_marked_and_said(visitor: Visitor, job: str) -> None:
    page = visitor.get(f"/where?job={job}")
    assert f"{job} fine runs on GPUs" in page.words
    assert len([one for one in elements(page, "gpu") if "data-hit" in one]) == 2
    assert "mine" in (elements(page, "map")[0]["class"] or "").split()


def test_colours_tell_of_people_efforts_and_use_with_a_legend(visitor: Visitor, job: str) -> None:
    by_owner = visitor.get("/where?colour=owner")
    assert [one.get("data-c") for one in elements(by_owner, "gpu") if "data-c" in one] == ["c0", "c0"]
    assert elements(by_owner, "key")[-1]["data-kind"] == "c0"
    assert "(no effort) 2" in visitor.get("/where?colour=effort").words
    assert "not measured" in visitor.get("/where?colour=use").words
    assert job


def test_the_legend_filters_by_its_links(visitor: Visitor) -> None:
    page = visitor.get("/where?show=idle,unknown")
    assert elements(page, "map")[0]["data-show"] == "idle unknown"
    keys = {one["data-key-state"]: one for one in elements(page, "key") if "data-key-state" in one}
    assert keys["unknown"]["href"] == "/where?show=idle"
    assert keys["working"]["data-on"] == "0"
    assert keys["free"]["href"] == "/where?show=idle%2Cfree%2Cunknown"


def test_the_twins_have_what_is_in_view(visitor: Visitor, job: str) -> None:
    rows = list(csv.DictReader(io.StringIO(visitor.get("/where.csv?rack=R01").text)))
    assert [row["gpu"] for row in rows] == ["0", "1", "2", "3"]
    assert sorted(row["state"] for row in rows) == ["free", "unknown", "working", "working"]
    assert {row["job"] for row in rows} == {job, ""}
    only = visitor.get("/where.csv?show=working").text.splitlines()
    assert len(only) == 3
    view = json.loads(visitor.get("/where.json?row=main:A").text)
    assert len(view["nodes"]) == 21
    assert view["counts"]["working"] == 2
    assert visitor.get("/where.txt").text.startswith("84 GPUs: 2 work")


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("rack=R9", 404, "here is no rack 'R9'"),
        ("node=g21", 404, "did you mean"),
        ("row=B", 404, "here is no row"),
        ("zoom=atom", 400, "known: site, rack, node"),
        ("colour=pink", 400, "known: state, owner, effort, use"),
        ("show=busy", 400, "working, idle, free, down, drained or unknown"),
        ("job=999", 404, "999"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    visitor: Visitor, query: str, status: int, sentence: str
) -> None:
    answer = visitor.get(f"/where?{query}")
    assert answer.status == status
    assert sentence in answer.words


def test_an_admin_drains_a_node_from_its_panel_and_lets_jobs_start_again(
    visitor: Visitor, client: Client
) -> None:
    assert visitor.post(f"/do/nodes/{HERE}/drain", {"because": "new cables"}).status == 303
    page = visitor.get(f"/where?node={HERE}")
    assert "new cables" in page.words
    assert "drained" in cells(page).values()
    assert f"/do/nodes/{HERE}/resume" in {attrs.get("action") for _, attrs in page.tags()}
    assert visitor.post(f"/do/nodes/{HERE}/resume", {}).status == 303
    assert client.get(f"/map?node={HERE}")["nodes"][0]["health"] == "up"


def test_one_machine_without_gpus_is_shown_large_with_its_jobs(tmp_path: Path) -> None:
    with started(tmp_path, "[node]\ncpus = 4\n") as alone:
        visitor = Visitor(alone)
        empty = visitor.get("/where")
        assert not elements(empty, "map")
        assert "0 of 4 held" in empty.words
        assert "None. Whatever starts here shows with its processes." in empty.words
        made = alone.sh("sleep 300", cpus=1, name="quiet")
        until(lambda: "1 of 4 held" in visitor.get("/where").words, "it to be shown")
        until(lambda: "sleep 300" in visitor.get("/where").words, "its processes")
        assert f"{made['id']} quiet" in visitor.get("/where").words
