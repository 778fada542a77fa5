"""The review on a page: the evidence, three things to do about it, closing it, and the minutes."""

import json
import time
from collections.abc import Iterator

import pytest

from muster.client import Client
from muster.server.stewardship.review_answers import ReviewView
from muster.web.pages.review import sentence_of
from servers import Server, View, until
from visitor import Answer, Visitor

CONFIGURATION = """
[node]
gpus = 8
[monitor]
period = "1s"
[review]
schedule = "daily 03:00"
opens = "2d"
notice = "0.5s"
[team.vision]
leads = ["cleo"]
[team.speech]
users = ["eve"]
"""
NOTICE_SECONDS = 0.5
EVIL = '"><script>alert(1)<img src=x onerror=alert(2)>'
LATER = time.strftime("%Y-%m-%d", time.localtime(time.time() + 20 * 86_400))
JSON = {"accept": "application/json"}


def submit(server: Server, name: str, **options: object) -> str:
    given = {"cpus": 0.1, "memory": "20M", "team": "vision", **options}
    job = str(server.sh("sleep 600", name=name, **given)["id"])
    with server.client() as client:
        until(lambda: client.job(job)["state"] == "RUNNING", "its start")
    return job


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server("--http", "127.0.0.1:0")
    (made.home.path / "muster.toml").write_text(CONFIGURATION)
    with made:
        yield made


def told(client: Client) -> None:
    """A review is open, everybody has heard of it, and has had their notice."""

    def is_told() -> bool:
        review = client.review()
        return review["number"] is not None and all(one["told_at"] for one in review["items"] if one["stops"])

    until(is_told, "all to be told")
    last = max([client.review()["opened_at"], *(one["told_at"] or 0 for one in client.review()["items"])])
    until(lambda: time.time() > last + NOTICE_SECONDS, "the notice to pass")


def item_of(client: Client, job: str) -> View:
    [item] = [one for one in client.review()["items"] if job in one["jobs"]]
    return item


def actions(page: Answer) -> list[str]:
    return [attrs["action"] or "" for tag, attrs in page.tags() if tag == "form" and "action" in attrs]


def test_items_come_with_their_evidence_and_what_may_be_done(server: Server) -> None:
    job = submit(server, EVIL, gpus=2, purpose=f"Does {EVIL} beat مرحبا?")
    good = submit(server, "good", gpus=1, purpose="Does it pay off?", time="1h", budget="10 GPUh")
    with server.client() as client:
        told(client)
    visitor = Visitor(server)
    page = visitor.get("/review")
    assert page.status == 200
    assert "2 items hold 3 GPUs (72 GPU·h a day)." in page.words
    assert "Nobody defends 1 of them: it stops" in page.words
    assert "? undefended" in page.words
    assert "nobody said how it ends" in page.words
    assert "10 GPUh, 100% left" in page.words
    assert {f"/do/jobs/{job}/{verb}" for verb in ("defend", "stop", "extend")} <= set(actions(page))
    assert f"/do/jobs/{good}/extend" in actions(page)
    assert "Kept: its checkpoint, its volumes, its log." in page.words
    scripts = [attrs for tag, attrs in page.tags() if tag == "script"]
    assert all((one.get("src") or "").startswith("/static/") for one in scripts)
    assert not [tag for tag, attrs in page.tags() if tag == "img" or "onerror" in attrs or "style" in attrs]
    shown = [attrs for tag, attrs in visitor.get("/review?undefended=1").tags() if tag == "article"]
    assert len(shown) == 1
    assert "None of the 2 items" in visitor.get("/review?team=speech").words
    assert json.loads(visitor.get("/review.json?undefended=1").text)["items"][0]["living"] == [job]
    assert len(visitor.get("/review.csv").text.splitlines()) == 3


def test_defending_and_amending_from_the_page_is_as_from_the_command_line(server: Server) -> None:
    job = submit(server, "old")
    visitor = Visitor(server)
    shrug = {"because": "no", "until": LATER}
    refused = visitor.post(f"/do/jobs/{job}/defend", shrug, **JSON)
    assert (refused.status, "say in a sentence" in refused.text) == (400, True)
    words = {"because": "it is the <b>baseline</b>", "until": LATER, "success[]": "loss < 2\n\nacc > 0.9\n"}
    answer = visitor.post(f"/do/jobs/{job}/defend", {**words, "budget": " ", "back": "/review"})
    assert (answer.status, answer.headers["location"]) == (303, "/review")
    amended = {"because": "it needs more", "budget": "50 CPUh", "until": "", "time": "2h"}
    assert visitor.post(f"/do/jobs/{job}/extend", amended, **JSON).status == 200
    with server.client() as client:
        item = item_of(client, job)
        assert (item["kind"], item["success"], item["budget"]) == (
            "defended",
            ["loss < 2", "acc > 0.9"],
            "50 CPUh",
        )
        assert client.job(job)["time_limit_seconds"] == 7200
    page = visitor.get("/review")
    assert "it is the <b>baseline</b>" in page.words
    assert "<b>" not in page.text


def test_an_effort_is_defended_amended_and_closed_as_one(server: Server) -> None:
    with server.client() as client:
        client.post("/efforts", {"name": "llama", "charter": {"for": "Does 8B beat 3B?", "team": "vision"}})
        job = submit(server, "part", effort="llama")
        visitor = Visitor(server)
        assert "/do/efforts/llama/defend" in actions(visitor.get("/review"))
        words = {"because": "the paper needs it", "charter.until": LATER, "charter.budget": "20 CPUh"}
        assert visitor.post("/do/efforts/llama/extend", words, **JSON).status == 200
        assert client.get("/efforts/llama")["budget"] == "20 CPUh"
        defence = {"because": "the paper still needs it", "until": LATER}
        assert visitor.post("/do/efforts/llama/defend", defence, **JSON).status == 200
        closing = {"verdict": "lost", "because": "it did not"}
        assert visitor.post("/do/efforts/llama/close", closing, **JSON).status == 200
        until(lambda: client.job(job)["state"] == "ENDED", "its end")


def test_who_may_not_answer_is_not_offered_to_and_is_refused(server: Server) -> None:
    job = submit(server, "old")
    with server.client() as client:
        told(client)
        eve = Visitor(server, Client(server.url, token=client.token("eve")))
    page = eve.get("/review")
    assert not [one for one in actions(page) if one.startswith("/do/")]
    assert "Only who answers for it" in page.words
    defence = {"because": "I would like it", "until": LATER}
    assert eve.post(f"/do/jobs/{job}/defend", defence, **JSON).status == 403
    assert eve.post("/do/review/close", {}, **JSON).status == 403


def test_a_review_is_closed_from_the_page_and_has_minutes(server: Server) -> None:
    job = submit(server, EVIL)
    visitor = Visitor(server)
    assert "No review was closed yet" in visitor.get("/reviews").words
    with server.client() as client:
        told(client)
        assert "Close review 1" in visitor.get("/review").words
        closed = visitor.post("/do/review/close", {"back": "/reviews"})
        assert (closed.status, closed.headers["location"]) == (303, "/reviews")
        until(lambda: client.job(job)["state"] == "ENDED", "its end")
    past = visitor.get("/reviews")
    assert "1 review stopped 1 job that nobody defended" in past.words
    assert "as projected" in past.words
    minutes = visitor.get("/review?number=1")
    assert f"muster revive {job} --because" in minutes.words
    assert "Defended by name" not in minutes.words
    assert EVIL in minutes.words
    assert not [tag for tag, attrs in minutes.tags() if tag == "img" or "onerror" in attrs]
    assert json.loads(visitor.get("/review.json?number=1").text)["stopped"] == [job]
    assert visitor.get("/review?number=77").status == 404
    assert visitor.get("/review?number=%3Cscript%3E").status == 404


def test_nothing_consumed_and_reviews_that_are_off_are_sentences() -> None:
    nothing = ReviewView(
        number=None,
        since=0,
        opened_at=None,
        closes_at=None,
        schedule="off",
        items=[],
        recovered_gpu_seconds=0,
        recovered_cpu_seconds=0,
    )
    said = sentence_of(nothing, 0)
    assert said.startswith("Nothing has consumed anything.")
    assert "reviews are off" in said
