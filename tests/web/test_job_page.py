"""A job's page: whose it is, for what, at what cost, ending when; and what can be done about it."""

import json
import re
import sys
from collections.abc import Iterator

import pytest

from muster.client import Client
from servers import Server, until
from visitor import Answer, Visitor

HOSTILE = "<script>alert(1)<script>\u05e9\u05dc\u05d5\u05dd " + "x" * 80
TOLD = (
    "import muster, time\n"
    "for step in range(3): muster.report(step=step, val_acc=0.5 + step / 10)\n"
    "print('\\x1b[31m<b>said</b>\\x1b[0m'); print('10 %\\r20 %', flush=True); time.sleep(100)"
)
ENDS = {
    "success": ["val_acc >= 0.92"],
    "failure": ["val_acc < 0.4 after 2h"],
    "budget": "3 CPUh",
    "until": "+2d",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0") as made:
        (made.home.path / "muster.toml").write_text('[prices]\ncurrency = "EUR"\ncpu = 3600.0\n')
        made.terminate()
        yield made.start()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Whose jobs are over afterwards: the machine is small."""
    with server.client() as made:
        yield made
        for view in made.jobs():
            made.stop(view["id"], grace_seconds=0)
            made.wait(view["id"])


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)


def running(client: Client, command: list[str], **options: object) -> str:
    job = str(client.submit(command, cpus=0.1, **options)["id"])
    until(lambda: client.job(job)["state"] == "RUNNING", f"job {job} to run")
    return job


def charts(page: Answer) -> list[dict[str, object]]:
    found = [attrs["data-chart"] for tag, attrs in page.tags() if tag == "figure" and "data-chart" in attrs]
    return [json.loads(text or "") for text in found]


def hrefs(page: Answer) -> set[str]:
    return {str(attrs.get("href")) for tag, attrs in page.tags() if tag == "a"}


def forms(page: Answer) -> set[str]:
    return {str(attrs.get("action")) for tag, attrs in page.tags() if tag == "form"}


def test_a_running_job_is_told_with_its_charter_its_cost_and_its_end(
    client: Client, visitor: Visitor
) -> None:
    job = running(client, ["sleep", "100"], name="told", **{"for": "Does 8B beat 3B?"}, **ENDS)
    page = visitor.get(f"/job/{job}")
    assert page.status == 200
    for word in ("Does 8B beat 3B?", "val_acc >= 0.92", "of 3 CPUh", "cpu·h held", "EUR", "its date"):
        assert word in page.words
    assert "job runs, for" in page.words


def test_what_nobody_said_is_said_plainly(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"])
    words = visitor.get(f"/job/{job}").words
    assert "Nobody said what it is for." in words
    assert "Nobody said when it ends" in words


def test_metrics_are_drawn_with_the_exits_in_them_and_have_a_table(client: Client, visitor: Visitor) -> None:
    job = running(client, [sys.executable, "-c", TOLD], **ENDS)
    until(lambda: client.job(job)["metrics"].get("val_acc") == 0.7, "all reports to come in")
    page = visitor.get(f"/job/{job}")
    drawn = next(chart for chart in charts(page) if chart["title"] == "val_acc")
    assert drawn["series"][0]["values"] == pytest.approx([0.5, 0.6, 0.7])  # type: ignore[index]
    marks = {mark["label"]: mark for mark in drawn["marks"]}  # type: ignore[attr-defined]
    assert marks["won if val_acc >= 0.92"]["y"] == 0.92
    assert marks["lost if val_acc < 0.4 after 2h"]["y"] == 0.4
    started = client.job(job)["started_at"]
    assert marks["val_acc < 0.4 after 2h: counts from here"]["x"] == pytest.approx(started + 7200, abs=30)
    assert drawn["low"] < 0.4  # type: ignore[operator]
    assert drawn["high"] > 0.92  # type: ignore[operator]
    assert "val_acc, as a table" in page.text


def test_the_log_is_text_whatever_it_says(client: Client, visitor: Visitor) -> None:
    job = running(client, [sys.executable, "-c", TOLD])
    until(lambda: "said" in visitor.get(f"/log/{job}").text, "it to print")
    page = visitor.get(f"/job/{job}")
    assert "&lt;b&gt;said&lt;/b&gt;\n20 %" in page.text
    assert "\x1b" not in page.text
    assert visitor.get(f"/log/{job}").headers["content-type"].startswith("text/plain")


def test_the_end_of_a_long_log_is_enough(client: Client, visitor: Visitor) -> None:
    job = str(client.submit(["sh", "-c", "seq 1 100000"], cpus=0.1)["id"])
    client.wait(job)
    shown = re.search(r'<pre class="log"[^>]*>([^<]*)</pre>', visitor.get(f"/job/{job}").text)
    assert shown is not None
    assert shown[1].split() == [str(n) for n in range(99_801, 100_001)]
    assert visitor.get(f"/log/{job}?last_bytes=7").text == "100000\n"


def test_names_and_purposes_are_never_markup(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"], name=HOSTILE, **{"for": "<img src=x> مرحبا"})
    client.report(job, {"<img src=x onerror=alert(1)>": 1.0})
    page = visitor.get(f"/job/{job}")
    tags = page.tags()
    assert "img" not in {tag for tag, _ in tags}
    assert all(attrs.get("src") for tag, attrs in tags if tag == "script"), "nothing is inline"
    assert not any("style" in attrs or "onerror" in attrs for _, attrs in tags)
    assert "<bdi>&lt;script&gt;" in page.text


def test_a_failed_job_says_why(client: Client, visitor: Visitor) -> None:
    job = str(client.submit(["sh", "-c", "echo bad luck; exit 3"], cpus=0.1)["id"])
    client.wait(job)
    page = visitor.get(f"/job/{job}")
    for word in ("Why it failed:", "exit code 3", "bad luck", "submit it anew"):
        assert word in page.words
    assert not {action for action in forms(page) if f"/jobs/{job}/" in action}


def test_an_array_lists_its_members_and_each_has_a_page(client: Client, visitor: Visitor) -> None:
    array = str(client.submit(["sleep", "100"], cpus=0.1, array="1-3")["id"])
    until(lambda: client.job(f"{array}_3")["state"] == "RUNNING", "all members to run")
    page, member = visitor.get(f"/job/{array}"), visitor.get(f"/job/{array}_2")
    assert "array of 3: 3 running" in page.words
    assert f"/job/{array}_3" in {attrs.get("href") for tag, attrs in page.tags() if tag == "a"}
    assert f"/do/jobs/{array}_2/extend" not in forms(member)
    assert f"/job/{array}" in {attrs.get("href") for tag, attrs in member.tags() if tag == "a"}
    assert visitor.get(f"/job/{array}_%5B1-2%5D").status == 200


def test_only_what_applies_is_offered_and_it_works(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"])
    page = visitor.get(f"/job/{job}")
    assert {f"/do/jobs/{job}/{verb}" for verb in ("suspend", "requeue", "extend", "defend", "stop")} <= forms(
        page
    )
    assert not {f"/do/jobs/{job}/{verb}" for verb in ("hold", "release", "resume", "revive", "take")} & forms(
        page
    )
    assert (
        visitor.post(f"/do/jobs/{job}/suspend", {"back": f"/job/{job}"}).headers["location"] == f"/job/{job}"
    )
    assert f"/do/jobs/{job}/resume" in forms(visitor.get(f"/job/{job}"))
    visitor.post(f"/do/jobs/{job}/stop", {"because": "wrong data", "grace_seconds": "0"})
    assert "wrong data" in client.wait(job)["reason"]
    assert "wrong data" in visitor.get(f"/job/{job}").words


def test_a_job_is_extended_and_defended_with_several_conditions(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"])
    terms = {"budget": "5 CPUh", "until": "", "time": "4h", "because": "the loss still falls"}
    assert visitor.post(f"/do/jobs/{job}/extend", terms).status == 303
    view = client.job(job)
    assert (view["budget"]["text"], view["time_limit_seconds"]) == ("5 CPUh", 4 * 3600)
    said = {
        "because": "two epochs are left",
        "until": "+2d",
        "success[]": "acc > 0.9\r\n\r\nloss < 0.1",
        "failure[]": "",
    }
    assert visitor.post(f"/do/jobs/{job}/defend", said).status == 303
    assert client.job(job)["success"] == ["acc > 0.9", "loss < 0.1"]


def test_what_is_refused_is_refused_in_a_sentence(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"])
    answer = visitor.post(f"/do/jobs/{job}/extend", {"because": "why not"}, accept="application/json")
    assert answer.status == 400
    assert "nothing to extend" in json.loads(answer.text)["error"]
    answer = visitor.post(
        f"/do/jobs/{job}/defend", {"because": " ", "until": "+2d"}, accept="application/json"
    )
    assert json.loads(answer.text)["error"] == "because: say something here; it can't be left empty"


def test_the_logs_of_all_parts_and_all_attempts_can_be_chosen(client: Client, visitor: Visitor) -> None:
    many = running(client, ["sleep", "100"], nodes=2, together="node")
    assert {f"/job/{many}?part={n}#log" for n in (0, 1)} <= hrefs(visitor.get(f"/job/{many}"))
    chosen = visitor.get(f"/job/{many}?part=1").tags()
    [current] = [a for tag, a in chosen if tag == "a" and a.get("href") == f"/job/{many}?part=1#log"]
    assert current["aria-current"] == "true"
    tried = str(client.submit(["false"], cpus=0.1, retry=1)["id"])
    until(lambda: client.job(tried)["state"] == "ENDED", "its last attempt")
    assert {f"/job/{tried}?attempt={n}#log" for n in (1, 2)} <= hrefs(visitor.get(f"/job/{tried}"))


def test_why_it_waits_is_asked_for_by_itself(client: Client, visitor: Visitor) -> None:
    running(client, ["sleep", "100"])
    waiting = str(client.submit(["sleep", "1"], hold=True, cpus=0.1)["id"])
    page = visitor.get(f"/job/{waiting}")
    assert f"muster release {waiting}" in page.words
    assert f"/job/{waiting}?why=1" in {attrs.get("data-part") for _, attrs in page.tags()}
    assert "release it" in visitor.get(f"/job/{waiting}?why=1").words
    assert f"/do/jobs/{waiting}/release" in forms(page)


def test_who_may_not_act_is_told_so_and_sees_no_log(server: Server, client: Client) -> None:
    job = running(client, [sys.executable, "-c", TOLD])
    with Client(server.url, client.token("eve")) as eve:
        visitor = Visitor(server, eve)
    page = visitor.get(f"/job/{job}")
    assert page.status == 200
    assert "only they, a lead of their team or an admin may act on it" in page.words
    assert not {action for action in forms(page) if "/jobs/" in action}
    assert "the log of job" in page.words
    assert '<pre class="log"' not in page.text
    assert visitor.post(f"/do/jobs/{job}/stop", {}).status == 403


def test_the_twins_say_the_same(client: Client, visitor: Visitor) -> None:
    job = running(client, ["sleep", "100"], name="twin", **ENDS)
    data = json.loads(visitor.get(f"/job/{job}.json").text)
    assert data["job"]["name"] == "twin"
    assert data["cost"]["total"]["cpu_held_seconds"] >= 0
    assert "name,twin" in visitor.get(f"/job/{job}.csv").text
    assert "val_acc >= 0.92" in visitor.get(f"/job/{job}.txt").text


def test_a_job_that_is_not_there_is_not_found(visitor: Visitor) -> None:
    assert visitor.get("/job/99999").status == 404
    assert visitor.get("/job/%3Cscript%3E").status == 400


def test_what_is_held_is_priced(client: Client) -> None:
    job = running(client, ["sleep", "100"])
    until(lambda: client.get(f"/jobs/{job}/cost")["money"] > 0.1, "a second of a tenth of a cpu")
    cost = client.get(f"/jobs/{job}/cost")
    assert cost["currency"] == "EUR"
    assert cost["money"] == pytest.approx(cost["total"]["cpu_held_seconds"], rel=0.01)
    assert [one["attempt"] for one in cost["attempts"]] == [1]
