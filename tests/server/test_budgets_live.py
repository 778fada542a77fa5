"""Budgets of real jobs on a real server: paused at the crossing, extended, ended, and through a SIGKILL."""

import os
import pwd
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.client import Client, Refused
from muster.home import Home
from muster.model.charter import Charter
from muster.model.events import Event, Submitted
from muster.model.job import Job, single
from muster.model.run import Run
from muster.model.stewardship import Effort, EffortOpened, of_job
from muster.store.journal import Journal
from muster.store.rows import Batch
from servers import Server, View, until

CONFIGURATION = """
[node]
cpus = 8
[budgets]
decide_suspended = "20s"
"""
SECONDS = 3600.0  # of a cpu, in a CPUh
SLEEPS = "sleep 60"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    (home / "muster.toml").write_text(CONFIGURATION)
    with Server("--http", "127.0.0.1:0", home=home) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


def cpu_hours(seconds: float) -> str:
    return f"{seconds / SECONDS:.9f} CPUh"


def is_in(client: Client, job: str, *states: str) -> View:
    until(lambda: client.job(job)["state"] in states, lambda: f"{states}; it is {client.job(job)}")
    return client.job(job)


def test_a_job_is_paused_when_its_budget_is_spent_and_goes_on_when_it_is_extended(
    server: Server, client: Client
) -> None:
    job = server.sh(SLEEPS, budget=cpu_hours(1.0), purpose="Does it stop?")["id"]
    paused = is_in(client, job, "SUSPENDED")
    assert paused["budget"]["share"] >= 1
    assert "its budget of 0.000277778 CPUh is spent" in paused["reason"]
    assert paused["budget"]["decide_by"] > time.time()
    for refused in ("release", "resume"):
        with pytest.raises(Refused, match="muster extend"):
            client.act(job, refused)
    with pytest.raises(Refused, match="spent already"):
        client.extend(job, budget=cpu_hours(0.5), because="less")
    extended = client.extend(job, budget=f"+{cpu_hours(60)}", because="the loss still falls")
    assert extended["budget"]["decide_by"] is None
    is_in(client, job, "RUNNING")  # the keeper may tell only now that it stood still
    shown = server.muster("show", job).stdout
    assert "of 0.016944" in shown, shown
    assert "CPUh held (" in shown
    client.stop(job, grace_seconds=0)


def test_what_nobody_extends_ends_out_of_budget(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text('[budgets]\ndecide_suspended = "1s"\n')
    with Server(home=tmp_path) as server, server.client() as client:
        job = server.sh("sleep 60", budget=cpu_hours(0.3), purpose="Does it end?", grace="1s")["id"]
        ended = client.wait(job)
        assert (ended["outcome"], ended["verdict"]) == ("STOPPED", "out-of-budget")
        assert "nobody extended it" in ended["reason"]


def test_who_checkpoints_leaves_its_seats_and_waits(server: Server, client: Client) -> None:
    saves = "trap 'echo saved; exit 0' TERM; sleep 60 & wait"
    job = server.sh(saves, budget=cpu_hours(0.5), checkpoint_every="1h")["id"]
    held = is_in(client, job, "HELD")
    assert "is spent" in held["reason"]
    assert b"saved" in b"".join(client.logs(job))
    with pytest.raises(Refused, match="is spent"):
        client.release(job)
    client.extend(job, budget=cpu_hours(90), because="once more")
    assert is_in(client, job, "RUNNING")["attempt"] == 2
    client.stop(job, grace_seconds=0)


def test_only_who_may_act_on_a_job_may_extend_it(server: Server, client: Client) -> None:
    job = client.submit(["true"], hold=True, budget="1 CPUh")["id"]
    only = pytest.raises(Refused, match="only they, a lead of their team or an admin")
    with Client(server.url, token=client.token("eve")) as stranger, only:
        stranger.extend(job, budget="2 CPUh", because="why not")
    with Client(server.url, token=client.token("boss", "admin")) as admin:
        assert admin.extend(job, budget="2 CPUh", because="it is fine")["budget"]["text"] == "2 CPUh"
    client.stop(job)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"budget": "lots"}, "is not a budget"),
        ({"budget": "+1 GPUh"}, "the budget is in CPUh"),
        ({"budget": "5 EUR"}, "nothing has a price here"),
        ({"until": "yesterday"}, "is not a date"),
        ({"until": "2001-01-01"}, "has passed"),
        ({}, "nothing to extend"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    client: Client, asked: dict[str, Any], said: str
) -> None:
    job = client.submit(["true"], hold=True, budget="1 CPUh")["id"]
    with pytest.raises(Refused, match=said):
        client.extend(job, because="it learns", **asked)
    client.stop(job)


def test_a_member_is_extended_with_its_array(client: Client) -> None:
    array = client.submit(["true"], hold=True, budget="1 CPUh", array="1-3")["id"]
    with pytest.raises(Refused, match=f"muster extend {array}"):
        client.extend(f"{array}_2", budget="2 CPUh", because="it learns")
    assert client.extend(array, budget="2 CPUh", because="it learns")["budget"]["text"] == "2 CPUh"
    assert client.job(f"{array}_2")["budget"]["text"] == "2 CPUh"
    client.stop(array)


def test_a_date_ends_a_job_out_of_time_unless_it_is_moved(server: Server, client: Client) -> None:
    soon = time.time() + 1.5
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(soon + 1))
    one, other = (server.sh("sleep 60", until=date, grace="1s")["id"] for _ in range(2))
    assert client.extend(other, until="+1d", because="more time")["until"] > soon + 80_000
    ended = client.wait(one)
    assert (ended["outcome"], ended["verdict"]) == ("STOPPED", "out-of-time")
    assert client.job(other)["state"] == "RUNNING"
    assert "until" in server.muster("show", other).stdout
    client.stop(other, grace_seconds=0)


def test_a_time_limit_is_extended_while_it_runs_and_survives_a_restart(tmp_path: Path) -> None:
    with Server(home=tmp_path) as server:
        job = server.sh("sleep 2; echo through", time="1s")["id"]
        waiting = server.sh("true", time="1s", hold=True)["id"]
        with server.client() as client:
            assert client.extend(job, time="+20s", because="it is slow")["time_limit_seconds"] == 21.0
            assert (
                client.extend(waiting, time="unlimited", because="it is slow")["time_limit_seconds"] is None
            )
            with pytest.raises(Refused, match="no time limit that could be extended"):
                client.extend(waiting, time="+2h", because="it is slow")
        server.kill()
        server.start()
        with server.client() as client:
            assert client.wait(job)["outcome"] == "SUCCEEDED"
            client.extend(waiting, time="5s", because="enough")
            client.release(waiting)
            assert client.wait(waiting)["outcome"] == "SUCCEEDED"


def test_a_verb_extends_and_says_why_not(server: Server, client: Client) -> None:
    job = client.submit(["true"], hold=True, budget="1 CPUh")["id"]
    assert server.muster("extend", job, "--budget", "+1CPUh", "--because", "it learns").returncode == 0
    assert client.job(job)["budget"]["text"] == "2 CPUh"
    without = server.muster("extend", job, "--budget", "+1CPUh")
    assert (without.returncode, "--because" in without.stderr) == (2, True)
    client.stop(job)


# --- With what was written down ---------------------------------------------------------------------------


def seeded(home: Path, *events: Event) -> None:
    """A store in which this has happened."""
    Home(home).make()
    journal = Journal.open(f"sqlite:///{Home(home).database}")
    journal.write(Batch(events=list(events)), lambda _: None)
    journal.close()


def member(number: int, now: float, effort: str) -> Job:
    run = Run(argv=("sleep", "60"), cwd="/", grace_seconds=1.0)
    gang = single(cpus_milli=1000)
    return Job(str(number), gang, now, name="member", owner=_me(), run=run, effort=effort)


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def test_the_budget_of_an_effort_binds_two_real_jobs_together(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text("[node]\ncpus = 4\n")
    now = time.time()
    charter = Charter(owner="ana", purpose="Is it enough for two?", budget=cpu_hours(2.0))
    effort = Effort(name="eval", charter=charter, opened_at=now, opened_by="ana")
    jobs = [Submitted(now, member(number, now, "eval")) for number in (1, 2)]
    seeded(tmp_path, EffortOpened(now, effort), *jobs)
    with Server(home=tmp_path) as server, server.client() as client:
        for job in "12":
            is_in(client, job, "SUSPENDED")
        assert all("the budget of effort eval" in client.job(job)["reason"] for job in "12")


def test_a_server_that_is_killed_pauses_what_it_should_have_and_goes_on_with_what_was_decided(
    tmp_path: Path,
) -> None:
    (tmp_path / "muster.toml").write_text("[node]\ncpus = 4\n")
    with Server(home=tmp_path) as server:
        first = server.sh("sleep 60", budget=cpu_hours(1.0))["id"]
        second = server.sh("sleep 60", budget=cpu_hours(0.2))["id"]
        with server.client() as client:
            is_in(client, second, "SUSPENDED")
            decide_by = client.job(second)["budget"]["decide_by"]
        server.kill()  # the first spends its budget while nobody looks
        time.sleep(1.0)
        server.start()
        with server.client() as client:
            is_in(client, first, "SUSPENDED")
            assert client.job(second)["state"] == "SUSPENDED"
            assert client.job(second)["budget"]["decide_by"] == pytest.approx(decide_by, abs=0.01)
            server.kill()
            server.start()
        with server.client() as client:
            client.extend(first, budget=cpu_hours(600), because="go on")
            is_in(client, first, "RUNNING")
            assert client.job(second)["state"] == "SUSPENDED"
        events = _events(server)
        assert [e.subject for e in events if type(e).__name__ == "BudgetReached"] == [
            of_job(second),
            of_job(first),
        ]


def _events(server: Server) -> list[Any]:
    server.kill()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    try:
        return list(journal.events_after(0))
    finally:
        journal.close()
