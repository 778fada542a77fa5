"""Verdicts and hindsight on a real server: what was spent on what, and what of it came too late."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from muster.client import Client, Refused
from servers import Server, View, until

CONFIGURATION = """
[monitor]
period = "1s"
hindsight = "1s"
[node]
cpus = 16
gpus = 4
[team.lab]
[team.vision]
parent = "lab"
"""
# So many reports, a tenth of a second apart.
TELLING = """
import json, time
for i in range({count}):
    print(json.dumps(dict({values})), flush=True)
    time.sleep(0.1)
"""
AMOUNTS = (
    "jobs",
    "judged",
    "late",
    *(f"{w}_{k}_seconds" for w in ("gpu", "cpu") for k in ("held", "judged", "after")),
)


def telling(client: Client, values: str, count: int = 40, **options: object) -> str:
    program = TELLING.format(values=values, count=count)
    asked: dict[str, Any] = {"purpose": "What comes too late?", "cpus": 1, **options}
    return str(client.submit([sys.executable, "-c", program], **asked)["id"])


def told(client: Client, job: str) -> View:
    """Its hindsight, as soon as it is there."""
    until(lambda: client.job(job)["hindsight"], f"hindsight of job {job}")
    found: View = client.job(job)["hindsight"]
    return found


def figures(rows: list[View]) -> list[int]:
    """Added up, in whole units."""
    return [sum(round((row[name] or 0) * 1000) for row in rows) for name in AMOUNTS]


class World:
    """Jobs that ended in different ways, and were looked at."""

    def __init__(self, server: Server) -> None:
        self.server, self.client = server, server.client()
        self.since = time.time()
        stalls, better = "loss=1 + (i > 0)", "loss=1 / (i + 1)"
        self.late = telling(self.client, stalls, 60, gpus=2, team="vision")
        self.better = telling(self.client, better, 20, gpus=1, team="vision")
        self.won = telling(self.client, "acc=i / 10", 100, success=["acc >= 0.5"], team="lab")
        self.lost = telling(self.client, "loss=1.0", 100, failure=["loss stalls for 2s"], team="lab")
        self.quiet = str(self.client.submit(["sleep", "1"], cpus=2)["id"])
        self.failed = str(self.client.submit(["false"], cpus=2)["id"])
        self.jobs = [self.late, self.better, self.won, self.lost, self.quiet, self.failed]
        self.ended = {job: self.client.wait(job) for job in self.jobs}
        self.until = time.time()
        self.judged = 4
        until(lambda: self.asked("job")["total"]["judged"] == self.judged, "all to be looked at")

    def asked(self, by: str, **more: object) -> View:
        return self.client.hindsight(by=by, **{"since": self.since, "until": self.until, **more})


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    server = Server()
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    with server:
        world = World(server)
        yield world
        world.client.close()


# --- Verdicts -------------------------------------------------------------------------------------------


def test_use_by_verdict_has_a_row_for_each_and_for_each_outcome_without_one(world: World) -> None:
    asked = {"since": world.since, "until": world.until}
    rows = {row["group"]: row for row in world.client.use(by="verdict", **asked)["rows"]}
    by_job = {row["group"]: row for row in world.client.use(by="job", **asked)["rows"]}
    words = {"won": [world.won], "lost": [world.lost], "failed": [world.failed]}
    words["succeeded"] = [world.late, world.better, world.quiet]
    assert set(rows) == set(words)
    for word, jobs in words.items():
        for name in ("held_seconds", "gpu_held_seconds", "cpu_held_seconds", "memory_held_byte_seconds"):
            unit = 1024 * 1000
            parts = sum(round(by_job[job][name] * unit) for job in jobs)
            assert round(rows[word][name] * unit) == parts


def test_what_has_not_ended_is_running_until_it_has(world: World) -> None:
    job = str(world.client.submit(["sleep", "60"], cpus=1)["id"])
    until(lambda: world.client.job(job)["state"] == "RUNNING", "the job to run")
    asked = {"by": "verdict", "since": "1h", "mine": True}
    assert "running" in {row["group"] for row in world.client.use(**asked)["rows"]}
    world.client.stop(job)
    world.client.wait(job)
    assert "stopped" in {row["group"] for row in world.client.use(**asked)["rows"]}


# --- Hindsight ------------------------------------------------------------------------------------------


def test_a_job_that_ran_on_after_it_had_stopped_improving_is_told_so(world: World) -> None:
    found = told(world.client, world.late)
    view = world.ended[world.late]
    ran = view["ended_at"] - view["started_at"]
    assert found["because"] == "loss had stopped improving"
    assert found["verdict"] == "lost"
    assert 0.6 * ran < found["after_seconds"] < 0.76 * ran  # it stalled from the first report, for a quarter
    assert found["gpu_after_seconds"] == pytest.approx(2 * found["after_seconds"], abs=0.01)
    assert found["cpu_after_seconds"] == pytest.approx(found["after_seconds"], abs=0.01)
    said = world.server.muster("show", world.late).stdout
    line = next(line for line in said.splitlines() if line.startswith("hindsight"))
    assert "after loss had stopped improving (" in line
    assert line.endswith(f"by what it reported; next time: --fail '{found['condition']}'")


def test_nothing_is_held_against_who_got_better_was_ended_by_its_exit_or_said_nothing(world: World) -> None:
    for job in (world.better, world.won, world.lost, world.quiet, world.failed):
        assert world.client.job(job)["hindsight"] is None
        assert "hindsight" not in world.server.muster("show", job).stdout


def test_sums_agree_exactly_and_what_is_not_known_is_told_apart(world: World) -> None:
    jobs = {row["group"]: row for row in world.asked("job")["rows"]}
    total = world.asked("job")["total"]
    assert set(jobs) == set(world.jobs)
    assert (total["jobs"], total["judged"], total["late"]) == (6, world.judged, 1)
    for by in ("job", "owner", "effort", "verdict"):
        answer = world.asked(by)
        assert answer["total"] == total
        assert figures(answer["rows"]) == figures([total])
    found = told(world.client, world.late)
    assert total["gpu_after_seconds"] == jobs[world.late]["gpu_after_seconds"] == found["gpu_after_seconds"]
    assert (jobs[world.quiet]["judged"], jobs[world.quiet]["gpu_after_seconds"]) == (0, None)
    assert jobs[world.late]["because"] == "loss had stopped improving"
    assert [(one["because"], one["jobs"]) for one in world.asked("job")["reasons"]] == [
        ("loss had stopped improving", 1)
    ]
    held = world.client.use(by="job", since=world.since, until=world.until)["total"]
    assert total["gpu_held_seconds"] == held["gpu_held_seconds"]
    assert total["cpu_held_seconds"] == held["cpu_held_seconds"]


def test_teams_contain_those_below_and_can_be_asked_for(world: World) -> None:
    rows = {row["group"]: row for row in world.asked("team")["rows"]}
    assert {team: row["parent"] for team, row in rows.items()} == {"lab": "", "vision": "lab", "": None}
    assert (rows["lab"]["jobs"], rows["vision"]["jobs"]) == (4, 2)
    vision = world.asked("owner", team="vision")
    assert figures([vision["total"]]) == figures([rows["vision"]])
    assert world.asked("owner", owner="nobody-at-all")["rows"] == []
    with pytest.raises(Refused, match="of jobs, not of GPUs"):
        world.asked("gpu")


def test_the_command_line_says_what_it_comes_to(world: World) -> None:
    said = world.server.muster("use", "--by", "owner", "--hindsight", "--last", "1h").stdout
    assert "were spent after the moment at which an exit would have ended the work:" in said
    assert "loss had stopped improving (1 job)" in said
    assert "An estimate, on what the jobs reported." in said
    assert "reported no metrics" in said


def test_a_server_that_is_killed_before_it_has_looked_looks_when_it_is_back() -> None:
    server = Server()
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    with server:
        with server.client() as client:
            job = telling(client, "loss=1.0", 30)
            client.wait(job)
        server.kill()
        server.start()
        with server.client() as client:
            assert told(client, job)["because"] == "loss had stopped improving"


def test_attempts_before_the_last_count_too() -> None:
    server = Server()
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    with server, server.client() as client:
        since = time.time()
        job = telling(client, "loss=1.0", 600)
        until(lambda: client.job(job)["metrics"], "a report")
        time.sleep(3.0)
        client.requeue(job)
        until(lambda: client.job(job)["attempt"] == 2, "another attempt")
        until(lambda: client.job(job)["state"] == "RUNNING", "it to run again")
        client.stop(job)
        view, found = client.wait(job), told(client, job)
        assert found["after_seconds"] > 1.0
        assert found["after_seconds"] > view["ended_at"] - view["started_at"]  # of the last attempt
        rows = client.use(by="verdict", since=since)["rows"]
        assert [row["group"] for row in rows] == ["stopped"]
        assert rows[0]["held_seconds"] > found["after_seconds"]
        whole = client.hindsight(by="job", since=since)["rows"][0]
        assert whole["cpu_held_seconds"] == rows[0]["cpu_held_seconds"]
