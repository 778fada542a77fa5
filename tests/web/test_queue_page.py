"""The queue as people look at it: who waits, why, when it starts, and what may be done about it."""

import json
from collections.abc import Iterator

import pytest

from muster.client import Client
from muster.model.state import State
from muster.server.answers import BesideView, ReasonView, Why
from muster.server.seeing.queue_answers import QueueView, ReasonCount
from muster.web.pages.queue import Asked, asked_in, sentence_of
from muster.web.pages.why import lines_of
from servers import Server, until
from visitor import Visitor

CONFIGURATION = """
[node]
gpus = 2
[review]
schedule = "off"
[team.vision]
quota = { gpus = 2 }
[team.speech]
users = ["eve"]
"""
EVIL = '"><script>alert(1)<img src=x onerror=alert(2)>'
RTL = "עברית مرحبا"


class World:
    """A server with two GPUs, both held, and who waits for them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        small = {"cpus": 0.1, "memory": "20M"}
        self.holder = server.sh("sleep 600", name="holder", gpus=2, team="vision", time="2h", **small)["id"]
        with server.client() as client:
            until(lambda: client.job(self.holder)["state"] == "RUNNING", "the holder's start")
        wants: dict[str, object] = {"gpus": 1, "team": "vision", "time": "1h", **small}
        self.evil = server.sh("true", name=EVIL, purpose=f"{EVIL} why", **wants)["id"]
        self.rtl = server.sh("true", name=RTL, purpose="Does it fit? " * 15, **wants)["id"]
        self.array = server.sh("true", name="sweep", array="1-5", **wants)["id"]
        self.held = server.sh("true", name="held", hold=True, **wants)["id"]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    with server:
        yield World(server)


@pytest.fixture
def visitor(world: World) -> Visitor:
    return Visitor(world.server)


@pytest.fixture(scope="module")
def eve(world: World) -> Visitor:
    """Somebody to whom none of it belongs."""
    with world.server.client() as client:
        token = client.token("eve")
    return Visitor(world.server, Client(world.server.url, token=token))


def test_who_waits_is_listed_in_the_order_of_the_turns(world: World, visitor: Visitor) -> None:
    page = visitor.get("/queue")
    assert page.status == 200
    assert "8 jobs are in the queue: " in page.words
    assert "1 is held" in page.words
    rows = [attrs["id"] for tag, attrs in page.tags() if tag == "tr" and attrs.get("id")]
    assert rows[0] == f"row-{world.evil}"
    assert rows[-1] == f"row-{world.held}"
    assert f"{world.array}_[1-5]" in page.words
    assert "1 × GPU" in page.words
    assert "ask when" in page.words


def test_nothing_that_people_wrote_becomes_markup(world: World, visitor: Visitor) -> None:
    paths = ("/queue", f"/queue?job={world.evil}", f"/queue/why/{world.evil}", "/queue?owner=%3Cscript%3E")
    for path in paths:
        page = visitor.get(path)
        tags = page.tags()
        assert page.status == 200
        scripts = [attrs for tag, attrs in tags if tag == "script"]
        assert all(one.get("src", "").startswith("/static/") for one in scripts)
        assert not [tag for tag, attrs in tags if "onerror" in attrs or "style" in attrs or tag == "img"]


def test_the_twins_have_the_same_jobs(world: World, visitor: Visitor) -> None:
    data = json.loads(visitor.get("/queue.json").text)
    assert (data["waiting"], data["jobs"][0]["id"]) == (8, world.evil)
    table = visitor.get("/queue.csv").text.splitlines()
    assert table[0].startswith("position,id,name,owner,team,state,jobs,wants,reason")
    assert len(table) == 1 + len(data["jobs"])
    assert "8 jobs are in the queue" in visitor.get("/queue.txt").text


def test_one_job_is_opened_at_once_and_the_rest_is_fetched_later(world: World, visitor: Visitor) -> None:
    page = visitor.get(f"/queue?job={world.rtl}")
    [section] = [attrs for tag, attrs in page.tags() if attrs.get("id") == "why"]
    assert section["data-later"] == f"/queue/why/{world.rtl}"
    links = [attrs["href"] for tag, attrs in page.tags() if tag == "a" and "href" in attrs]
    assert f"/queue/why/{world.rtl}" in links, "without script a link leads there"


def test_why_says_what_decides_when_it_starts_and_what_else_was_looked_at(
    world: World, visitor: Visitor
) -> None:
    page = visitor.get(f"/queue/why/{world.rtl}")
    assert page.status == 200
    assert "Waiting because" in page.words
    assert "decides" in page.words
    assert "quota: 2 of 2 GPUs used by vision" in page.words
    assert f"when {world.holder} ends" in page.words
    assert "by time limits" in page.words
    pictures = [attrs for tag, attrs in page.tags() if tag == "svg" and attrs.get("role") == "img"]
    assert any("likely" in (one.get("aria-label") or "") for one in pictures)
    assert "of 8 in vision" in page.words
    data = json.loads(visitor.get(f"/queue/why/{world.rtl}.json").text)
    assert data["why"]["estimate"]["follows"] == world.holder


def test_an_array_a_running_and_an_unknown_job_are_answered_as_well(world: World, visitor: Visitor) -> None:
    assert "Waiting because" in visitor.get(f"/queue/why/{world.array}").words
    assert "Running on" in visitor.get(f"/queue/why/{world.holder}").words
    assert visitor.get("/queue/why/99999").status == 404
    assert visitor.get("/queue?job=99999").status == 404


def test_the_address_says_whose_jobs_are_shown(visitor: Visitor, eve: Visitor) -> None:
    assert "8 jobs" in visitor.get("/queue?mine=1").words
    assert "Nothing of what you asked about waits" in visitor.get("/queue?team=speech").words
    assert "Nothing of what you asked about waits" in eve.get("/queue?mine=1").words
    grouped = visitor.get("/queue?by=team&team=&owner=")
    assert "vision" in [attrs.get("value") for tag, attrs in grouped.tags() if tag == "option"]
    assert "<h2><bdi>vision</bdi></h2>" in grouped.text


def test_who_may_not_act_is_not_offered_to(world: World, eve: Visitor) -> None:
    for path in ("/queue", f"/queue/why/{world.rtl}"):
        doable = [attrs for tag, attrs in eve.get(path).tags() if "/do/" in (attrs.get("action") or "")]
        assert doable == []
    refused = eve.post(f"/do/jobs/{world.rtl}/stop", {}, accept="application/json")
    assert refused.status == 403


def test_a_job_is_held_released_and_withdrawn_from_the_page(world: World, visitor: Visitor) -> None:
    job = world.server.sh("true", name="mine", gpus=1, cpus=0.1, memory="20M", team="vision")["id"]
    with world.server.client() as client:
        for verb, state in (("hold", "HELD"), ("release", "QUEUED"), ("stop", "ENDED")):
            actions = [attrs.get("action") for _, attrs in visitor.get("/queue?limit=2000").tags()]
            assert f"/do/jobs/{job}/{verb}" in actions
            answer = visitor.post(f"/do/jobs/{job}/{verb}", {"back": "/queue"})
            assert (answer.status, answer.headers["location"]) == (303, "/queue")
            assert client.job(job)["state"] == state


def test_who_is_not_listed_is_counted(visitor: Visitor) -> None:
    page = visitor.get("/queue?limit=1")
    assert "7 more wait and are not listed" in page.words
    assert "limit=2000" in page.text


def test_an_empty_queue_is_a_good_sentence() -> None:
    empty = QueueView("", 0.0, 0, [], 0, [], 0)
    assert sentence_of(empty, 0, Asked()) == "Nothing waits: what is submitted now, and fits, starts at once."


@pytest.mark.parametrize(
    ("mine", "end"), [(0, "room."), (1, "1 of them is yours."), (2, "All of them are yours.")]
)
def test_the_sentence_says_how_many_are_yours(mine: int, end: str) -> None:
    two = QueueView("", 0.0, 2, [ReasonCount("NoRoom", "wait for room", 2)], 2, [], 0)
    said = sentence_of(two, mine, Asked())
    assert said.startswith("2 jobs are in the queue: 2 wait for room.")
    assert said.endswith(end)


def test_an_address_that_says_nothing_means_the_usual_and_many_are_bounded() -> None:
    assert asked_in({"team": " ", "limit": "", "by": " "}) == Asked()
    assert asked_in({"limit": "999999"}).limit == 2000
    assert asked_in({"mine": "1", "job": "5"}).url(job="") == "/queue?mine=1"


def test_the_first_reason_decides_and_what_is_met_comes_last() -> None:
    why = Why(
        "5",
        State.QUEUED,
        [ReasonView("NoRoom", "no room"), ReasonView("Other", "nor there", "wait")],
        None,
        [],
        "",
        [BesideView("quota", "ok", "1 of 4"), BesideView("budget", "spent", "9 of 9")],
    )
    lines = lines_of(why)
    assert [line.sentence for line in lines] == ["no room", "nor there", "budget: 9 of 9", "quota: 1 of 4"]
    assert [line.met for line in lines] == [False, False, False, True]
    assert [line.decides for line in lines] == [True, False, False, False]
