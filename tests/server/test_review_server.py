"""Reviews with a real server and real jobs: told, defended or stopped, and brought back with a checkpoint."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client import Client, Refused
from muster.model.review import ReviewClosed, ReviewOpened, Stopped
from muster.store.journal import Journal
from muster.store.rows import Batch
from servers import Server, View, until

CONFIGURATION = """
[monitor]
period = "1s"
[review]
schedule = "daily 03:00"
opens = "2d"
notice = "0.5s"
timezone = "Europe/Berlin"
"""
NOTICE_SECONDS = 0.5
SAVES = """
cd $MUSTER_CHECKPOINT_DIR
[ -e state ] && { echo "goes on from $(cat state)"; exit 0; }
trap 'echo step-7 > state; exit 0' TERM
echo started > begun
while :; do sleep 0.05; done
"""
LATER = time.strftime("%Y-%m-%d", time.localtime(time.time() + 20 * 86_400))


def configured(text: str = CONFIGURATION) -> Server:
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text(text)
    return server


@pytest.fixture
def server() -> Iterator[Server]:
    with configured() as made:
        yield made


def item_of(client: Client, job: str) -> View:
    [item] = [one for one in client.review()["items"] if job in one["jobs"]]
    return item


def running(client: Client, job: str) -> None:
    until(lambda: client.job(job)["state"] == "RUNNING", "its start")


def closed(client: Client) -> View:
    """Close the review, once people have had their notice."""
    until(lambda: client.review()["number"] is not None, "a review to open")
    until(lambda: all(one["told_at"] for one in client.review()["items"] if one["stops"]), "all to be told")
    told = [one["told_at"] for one in client.review()["items"] if one["stops"]]
    last = max([client.review()["opened_at"], *told])
    until(lambda: time.time() > last + NOTICE_SECONDS, "the notice to pass")
    return client.close_review()


def submit(server: Server, script: str, **options: object) -> str:
    job = str(server.sh(script, cpus=0.1, **options)["id"])
    with server.client() as client:
        running(client, job)
    return job


def test_who_is_not_defended_is_stopped_and_comes_back_with_its_checkpoint(server: Server) -> None:
    old = submit(server, SAVES, name="old", checkpoint_every="1h")
    kept = submit(server, "sleep 100", name="kept")
    charted = submit(server, "sleep 100", name="charted", purpose="Does it pay off?", time="1h")
    until((server.home.logs / old / "checkpoint" / "begun").exists, "it to have begun")
    with server.client() as client:
        assert item_of(client, old)["kind"] == "forgotten"
        assert item_of(client, old)["because"] == "nobody said what it is for"
        assert item_of(client, charted)["kind"] == "defended"
        said = client.defend(kept, because="it is the baseline", until=LATER)
        assert (said["subject"], said["times"]) == (f"job:{kept}", 1)
        assert item_of(client, kept)["kind"] == "defended"
        ended = closed(client)
        assert ended["stopped"] == [old]
        view = client.wait(old)
        assert (view["outcome"], view["verdict"], view["review"]) == ("STOPPED", "undefended", None)
        assert "nobody defended it at review 1" in view["reason"]
        assert {client.job(job)["state"] for job in (kept, charted)} == {"RUNNING"}
        assert "## Stopped" in client.minutes(1)
        with pytest.raises(Refused, match="muster revive"):
            client.defend(old, because="but I need it", until=LATER)
        back = client.revive(old, because="it is nearly done", until=LATER)
        assert client.wait(back["id"])["outcome"] == "SUCCEEDED"
        assert b"goes on from step-7" in b"".join(client.logs(back["id"]))
        with pytest.raises(Refused, match=f"already, as job {back['id']}"):
            client.revive(old, because="it is nearly done", until=LATER)
    [minutes] = (server.home.path / "reviews").iterdir()
    assert minutes.read_text() == ended["minutes"]


def test_without_a_reason_it_comes_back_as_it_was_and_is_asked_about_again(server: Server) -> None:
    job = submit(server, "sleep 100", name="old")
    with server.client() as client:
        assert closed(client)["stopped"] == [job]
        client.wait(job)
        with pytest.raises(Refused, match="a defence has an end"):
            client.revive(job, because="it is nearly done")
        done = server.muster("revive", job)
        assert "The next review asks about it" in done.stdout, done.stderr
        back = done.stdout.split()[0]
        assert item_of(client, back)["kind"] != "defended"
        assert client.job(back)["until"] is None


def test_an_effort_that_a_review_has_paused_goes_on_when_somebody_speaks_for_it(server: Server) -> None:
    with server.client() as client:
        for name in ("defended", "revived"):
            client.post("/efforts", {"name": name, "charter": {"for": "Does it pay off?"}})
        first, second = (submit(server, "sleep 100", effort=name) for name in ("defended", "revived"))
        assert sorted(closed(client)["stopped"]) == sorted([first, second])
        client.wait(second)
        waits = client.submit(["sleep", "100"], effort="defended", cpus=0.1)["id"]
        assert client.job(waits)["state"] == "HELD"
        client.defend("defended", because="it is the baseline", until="+7d")
        running(client, waits)
        back = client.revive(second)["id"]
        running(client, back)
        assert [client.effort(name)["paused"] for name in ("defended", "revived")] == [None, None]
        assert client.effort("revived")["story"][-1]["text"] == f"job {second} was brought back"


def test_a_defence_may_say_how_much_longer_and_how_much_more(server: Server) -> None:
    job = submit(server, "sleep 100", name="small", budget="10CPUh")
    with server.client() as client:
        said = client.defend(job, because="it is the baseline", until="+7d", budget="+2CPUh")
        assert time.time() + 6.9 * 86_400 < said["until"] < time.time() + 7.1 * 86_400
        assert client.job(job)["budget"]["text"] == "12 CPUh"


def test_a_spent_budget_is_asked_about_once(server: Server) -> None:
    job = submit(server, "sleep 100", name="spent", purpose="Does it pay off?", budget="0.0001CPUh")
    with server.client() as client:
        until(lambda: client.job(job)["state"] == "SUSPENDED", "its budget to be spent")
        until(lambda: item_of(client, job)["told_at"], "the review to list it")
        [question] = client.digest()["questions"]
    assert question["action"].startswith(f"muster extend {job} ")


def test_an_array_is_one_and_comes_back_as_one_with_what_each_member_tried(server: Server) -> None:
    script = 'echo "$MUSTER_ARRAY_INDEX $MUSTER_PARAM_lr $MUSTER_CHECKPOINT_DIR"; sleep 100'
    view = server.sh(script, name="sweep", params=["lr=a,b,c"], cpus=0.1)
    with server.client() as client:
        for index in (1, 2, 3):
            running(client, f"{view['id']}_{index}")
        client.stop(f"{view['id']}_1")
        assert closed(client)["stopped"] == [view["id"]]
        for index in (2, 3):
            assert client.wait(f"{view['id']}_{index}")["verdict"] == "undefended"
        with pytest.raises(Refused, match="comes back as one"):
            client.revive(f"{view['id']}_2", because="two of three", until=LATER)
        back = client.revive(view["id"], because="two of three", until=LATER)["id"]
        for index, tried in ((2, "b"), (3, "c")):
            running(client, f"{back}_{index}")
            folder = f"{server.home.logs}/{view['id']}_{index}/checkpoint"
            log = f"{index} {tried} {folder}\n".encode()
            until(lambda: b"".join(client.logs(f"{back}_{index}")) == log, "its word")  # noqa: B023


def test_a_stranger_may_not_speak_for_others_and_a_shrug_is_no_reason(server: Server) -> None:
    job = submit(server, "sleep 100", name="mine")
    with server.client() as client:
        stranger = Client(server.url, client.token("eve", "user"))
        with stranger, pytest.raises(Refused, match="only they, a lead"):
            stranger.defend(job, because="I like it", until=LATER)
        with (
            Client(server.url, client.token("eve", "user")) as eve,
            pytest.raises(Refused, match="only a lead"),
        ):
            eve.close_review()
        for because, date, why in (
            ("because", LATER, "say in a sentence"),
            ("it is needed", "2020-01-01", "has passed"),
            ("it is needed", "2099-01-01", "at most"),
            ("it is needed", "soon", "is not a date"),
        ):
            with pytest.raises(Refused, match=why):
                client.defend(job, because=because, until=date)
        with pytest.raises(Refused, match="there is no effort"):
            client.defend("llama", because="it is needed", until=LATER)
        with pytest.raises(Refused, match="was not stopped"):
            client.revive(job, because="it is needed", until=LATER)


def test_a_lead_closes_a_review_only_if_it_stops_nobody_else_s_work() -> None:
    teams = '[team.red]\nleads = ["lea"]\n[team.blue]\nleads = ["leo"]\n'
    with configured(CONFIGURATION + teams) as server:
        job = submit(server, "sleep 100", name="reds", team="red")
        with server.client() as client, Client(server.url, client.token("leo", "lead")) as leo:
            until(lambda: client.review()["number"] is not None, "a review to open")
            until(lambda: item_of(client, job)["told_at"], "its owner to be told")
            told_at = item_of(client, job)["told_at"]
            until(lambda: time.time() > told_at + NOTICE_SECONDS, "the notice to pass")
            with pytest.raises(Refused, match="not of a team that you lead"):
                leo.close_review()
            assert client.job(job)["state"] == "RUNNING"
            with Client(server.url, client.token("lea", "lead")) as lea:
                assert lea.close_review()["stopped"] == [job]


def test_the_same_work_again_is_a_habit_and_marked_in_the_queue(server: Server) -> None:
    charter = {"purpose": "Does it pay off?", "time": "1h", "name": "weekly"}
    first = submit(server, "sleep 100", **charter)
    with server.client() as client:
        closed(client)
        until(lambda: client.review()["number"] == 2, "the next review")
        assert item_of(client, first)["kind"] == "defended", "one job that runs on is no habit"
        again = submit(server, "sleep 100", **charter)
        item = item_of(client, again)
        assert (item["kind"], sorted(item["stops"])) == ("habit", sorted([first, again]))
        until(lambda: (client.job(again)["review"] or "").startswith("undefended, review "), "its mark")
        [*_, marked] = server.muster("ps", again).stdout.splitlines()
        assert "? undefended, review " in marked
        client.defend(again, because="the data is new", until=LATER)
        assert item_of(client, first)["kind"] == "defended"
        assert client.job(again)["review"] is None


def test_the_items_of_a_review_add_up_to_what_was_held(server: Server) -> None:
    submit(server, "sleep 100", name="a")
    server.sh("sleep 100", name="b", array="1-3", cpus=0.2)
    with server.client() as client:
        client.wait(server.sh("true", name="c")["id"])
        found = client.review()
        total = client.use(since=str(found["since"]))["total"]
        held = sum(item["cpu_held_seconds"] for item in found["items"])
    assert len(found["items"]) == 3
    assert 0 < held <= total["cpu_held_seconds"] < held + 60


def test_who_was_to_be_stopped_when_the_server_was_killed_is_stopped_when_it_is_back(server: Server) -> None:
    job, other = submit(server, "sleep 100", name="old"), submit(server, "sleep 100", name="other")
    server.kill()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    [*_] = journal.load()[1]
    now = time.time()
    review = ReviewOpened(now, 7, now - 60, now) if _open_review(server) is None else None
    number = 7 if review is not None else _open_review(server)
    closes = ReviewClosed(now, number or 7, "", (Stopped(job, 0.0, 1.0),), "# Review\n")
    asyncio.run(_written(journal, [event for event in (review, closes) if event is not None]))
    journal.close()
    server.start()
    with server.client() as client:
        assert client.wait(job)["verdict"] == "undefended"
        assert client.job(other)["state"] == "RUNNING"
    assert [path.read_text() for path in (server.home.path / "reviews").iterdir()] == ["# Review\n"]


def _open_review(server: Server) -> int | None:
    """The number of the review that is open, by the events that were written."""
    with sqlite3.connect(server.home.database) as store:
        kinds = [row[0] for row in store.execute("SELECT kind FROM events ORDER BY seq")]
    return 1 if "ReviewOpened" in kinds else None


async def _written(journal: Journal, events: list[object]) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    journal.write(Batch(events=events), lambda _: loop.call_soon_threadsafe(done.set))  # type: ignore[arg-type]
    await done.wait()


def test_the_command_line_shows_defends_closes_and_reads_the_minutes(server: Server) -> None:
    job = submit(server, "sleep 100", name="night")
    with server.client() as client:
        until(lambda: item_of(client, job)["told_at"], "its owner to be told")
    shown = server.muster("review")
    assert shown.returncode == 0, shown.stderr
    assert f"{job} night" in shown.stdout
    assert f"muster defend {job} --because" in shown.stdout
    assert json.loads(server.muster("review", "-o", "json").stdout)["items"][0]["stops"] == [job]
    assert "no review was closed yet" in server.muster("review", "--minutes").stderr
    said = server.muster("defend", job, "--because", "it ends by itself", "--until", LATER)
    assert f"{job} goes on until {LATER[:4]}" in said.stdout
    again = server.muster("defend", job, "--because", "it ends by itself", "--until", LATER)
    assert "the 2nd time" in again.stdout
    with server.client() as client:
        closed(client)
    minutes = server.muster("review", "--minutes").stdout
    assert "Defended 2 times, 2 times in a row with the same words." in minutes
    assert minutes == server.muster("review", "--minutes", "1").stdout
    assert "there is no review '9'" in server.muster("review", "--minutes", "9").stderr


def test_a_schedule_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    del tmp_path
    server = configured('[review]\nschedule = "sometimes"\n')
    try:
        done = server.muster("up", "--home", str(server.home.path))
        assert done.returncode == 2
        assert "line 2: review.schedule" in done.stderr
    finally:
        server.close()
