"""The pages of efforts: one charter, many jobs, the story; and all of them, the open ones first."""

import json
import sys
from collections.abc import Iterator

import pytest

from muster.client import Client
from servers import Server, until
from visitor import Answer, Visitor

FOR = "Does 8B beat 3B on the held-out set?"
TELLS = "import muster, time; muster.report(step=1, val_acc=%s); time.sleep(100)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0") as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Of whom nothing is under way afterwards."""
    with server.client() as made:
        yield made
        for effort in made.efforts():
            made.on_effort(effort["name"], "close", {"verdict": "lost"})


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)


def opened(client: Client, name: str, **charter: object) -> str:
    client.post("/efforts", {"name": name, "charter": {"for": FOR, **charter}})
    return name


def running(client: Client, effort: str, command: list[str]) -> str:
    job = str(client.submit(command, cpus=0.1, effort=effort)["id"])
    until(lambda: client.job(job)["state"] == "RUNNING", f"job {job} to run")
    return job


def forms(page: Answer) -> set[str]:
    return {str(attrs.get("action")) for tag, attrs in page.tags() if tag == "form"}


def test_an_effort_is_told_with_its_charter_its_jobs_and_its_story(client: Client, visitor: Visitor) -> None:
    name = opened(client, "whole", budget="2 CPUh", success=["val_acc >= 0.9"], until="+3d")
    job = running(client, name, ["sleep", "100"])
    client.wait(str(client.submit(["sh", "-c", "exit 3"], cpus=0.1, effort=name)["id"]))
    until(lambda: "1 failed" in visitor.get(f"/effort/{name}").words, "the end to be told")
    page = visitor.get(f"/effort/{name}")
    for word in (
        FOR,
        "of 2 CPUh",
        "val_acc >= 0.9",
        "1 live",
        "1 failed",
        "opened",
        "nobody has reported it",
    ):
        assert word in page.words
    assert f"/job/{job}" in {attrs.get("href") for tag, attrs in page.tags() if tag == "a"}


def test_who_is_nearest_to_a_condition_is_named(client: Client, visitor: Visitor) -> None:
    name = opened(client, "nearest", success=["val_acc >= 0.99"])
    running(client, name, [sys.executable, "-c", TELLS % 0.5])
    best = running(client, name, [sys.executable, "-c", TELLS % 0.7])
    until(lambda: client.job(best)["metrics"].get("val_acc") == 0.7, "the report")
    until(lambda: f"nearest is 0.7 , by job {best}" in visitor.get(f"/effort/{name}").words, "it to be shown")


def test_it_is_paused_resumed_noted_extended_defended_and_closed_from_its_page(
    client: Client, visitor: Visitor
) -> None:
    name = opened(client, "acts", budget="1 CPUh")
    do = f"/do/efforts/{name}"
    assert {f"{do}/{verb}" for verb in ("pause", "note", "extend", "defend", "close")} <= forms(
        visitor.get(f"/effort/{name}")
    )
    assert visitor.post(f"{do}/pause", {"because": "new data first"}).status == 303
    paused = visitor.get(f"/effort/{name}")
    assert "new data first" in paused.words
    assert f"{do}/pause" not in forms(paused)
    assert visitor.post(f"{do}/resume", {}).status == 303
    assert visitor.post(f"{do}/note", {"text": "<b>void</b> before Tuesday"}).status == 303
    terms = {
        "charter.budget": "+2 CPUh",
        "charter.failure[]": "acc < 0.1 after 1h\nloss is nan",
        "because": "a third seed",
    }
    assert visitor.post(f"{do}/extend", terms).status == 303
    assert visitor.post(f"{do}/defend", {"because": "two sizes are left", "until": "+2d"}).status == 303
    view = client.effort(name)
    assert (view["budget"], view["failure"]) == ("3 CPUh", ["acc < 0.1 after 1h", "loss is nan"])
    assert visitor.post(f"{do}/close", {"verdict": "won", "because": "by 2.1 points"}).status == 303
    closed = visitor.get(f"/effort/{name}")
    assert "by 2.1 points" in closed.words
    assert "&lt;b&gt;void&lt;/b&gt;" in closed.text
    assert {action for action in forms(closed) if "/do/" in action} == {f"{do}/note"}


def test_an_extension_of_nothing_is_refused_in_a_sentence(client: Client, visitor: Visitor) -> None:
    name = opened(client, "nothing")
    answer = visitor.post(f"/do/efforts/{name}/extend", {"because": "so"}, accept="application/json")
    assert answer.status == 400
    assert "nothing would change" in json.loads(answer.text)["error"]


def test_all_efforts_are_listed_the_open_ones_first(client: Client, visitor: Visitor) -> None:
    opened(client, "done")
    client.on_effort("done", "close", {"verdict": "won", "because": "it works"})
    opened(client, "going", budget="1 CPUh")
    page = visitor.get("/efforts")
    assert page.text.index('id="effort-going"') < page.text.index('id="effort-done"')
    assert "it works" in page.words
    names = [one["name"] for one in json.loads(visitor.get("/efforts.json").text)]
    assert names.index("going") < names.index("done")
    assert visitor.get("/efforts?who=mine").status == 200
    assert "going" in visitor.get("/efforts.csv").text


def test_what_it_cost_is_what_its_jobs_held(client: Client) -> None:
    name = opened(client, "cost")
    job = str(client.submit(["sleep", "0.3"], cpus=0.1, effort=name)["id"])
    client.wait(job)
    until(
        lambda: [one["id"] for one in client.get(f"/efforts/{name}/cost")["ended"]] == [job],
        "it to be written down",
    )
    cost = client.get(f"/efforts/{name}/cost")
    assert (
        cost["total"]["cpu_held_seconds"] == client.get(f"/jobs/{job}/cost")["total"]["cpu_held_seconds"] > 0
    )
    assert [row["group"] for row in cost["by_verdict"]] == ["succeeded"]


def test_only_the_jobs_of_an_effort_are_listed_if_it_is_asked_for(client: Client) -> None:
    name = opened(client, "filter")
    job = running(client, name, ["sleep", "100"])
    other = str(client.submit(["sleep", "100"], cpus=0.1)["id"])
    assert [view["id"] for view in client.jobs(effort=name)] == [job]
    client.stop(other)


def test_an_effort_that_is_not_there_is_not_found(visitor: Visitor) -> None:
    assert visitor.get("/effort/nothing-like-it").status == 404
