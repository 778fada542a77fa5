"""What people see of held and used, from a real server: its sums agree, and they are true.

Jobs do a known thing and say how much of it they did, as nobody knows how fast they can on a machine that is
shared.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from muster.client import Client, Refused
from servers import Server, View, until

MIB = 1 << 20
CONFIGURATION = """
[monitor]
period = "1s"
[node]
cpus = 8
memory = "8G"
gpus = 2
[team.lab]
[team.vision]
parent = "lab"
[team.nlp]
parent = "lab"
[team.ops]
"""
# As long at work as asleep, for so long at least and until a file is there; then how much cpu time that was.
BURN = """
import os, sys, time
end, file = time.monotonic() + float(sys.argv[1]), sys.argv[2]
while time.monotonic() < end or not os.path.exists(file):
    begun, enough = time.monotonic(), time.process_time() + 0.02
    while time.process_time() < enough: pass
    time.sleep(time.monotonic() - begun)
print(time.process_time(), flush=True)
"""
HOLD = f"import time; held = b'x' * {100 * MIB}; time.sleep(4)"
AMOUNTS = (
    "held_seconds",
    "measured_seconds",
    "gpu_held_seconds",
    "gpu_measured_seconds",
    "gpu_used_seconds",
    "cpu_held_seconds",
    "cpu_measured_seconds",
    "cpu_used_seconds",
    "memory_held_byte_seconds",
    "memory_measured_byte_seconds",
    "memory_used_byte_seconds",
)


class Amount(NamedTuple):
    """The figures of a row in whole units, which are compared exactly; None is nothing known."""

    figures: tuple[int, ...]

    @classmethod
    def of(cls, row: View) -> "Amount":
        units = {"held_seconds": 1024, "measured_seconds": 1024}
        return cls(tuple(round((row[name] or 0) * units.get(name, 1000)) for name in AMOUNTS))

    @property
    def gpus(self) -> tuple[int, ...]:
        return self.figures[2:5]


def added(rows: Iterable[View]) -> Amount:
    return Amount(tuple(map(sum, zip(*(Amount.of(row).figures for row in rows), strict=True))))


def configured(**options: Any) -> Server:
    server = Server(*options.get("options", ()))
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    return server


class World:
    """Four jobs of two owners in three teams, all of which have ended.

    Only root may run jobs of others; else both owners are the same.
    """

    def __init__(self, server: Server) -> None:
        self.server, self.client = server, server.client()
        self.since = time.time()
        self.ana = self.bo = self.client.whoami()["name"]
        told: dict[str, Any] = {"cpus": 1, "memory": "512M"}
        enough = server.work / "enough"
        self.burn = self._submit([sys.executable, "-c", BURN, "4", str(enough)], team="vision", **told)
        self.hold = self._submit([sys.executable, "-c", HOLD], team="vision", **told)
        self.sleep = self._of_bo(["sleep", "4"], team="nlp", cpus=0.333, gpus=0.5)
        self.short = self._submit(["true"], team="ops", **told)
        until(lambda: self.client.job(self.burn)["used"], "the first sample of a job")
        self.running = self.client.job(self.burn)
        self.listed = server.muster("ps")
        enough.touch()
        self.ended = [self.client.wait(job) for job in (self.burn, self.hold, self.sleep, self.short)]
        self.until = max(view["ended_at"] for view in self.ended) + 0.01

    def _submit(self, command: list[str], **options: object) -> str:
        return str(self.client.submit(command, **options)["id"])

    def _of_bo(self, command: list[str], **options: object) -> str:
        if os.geteuid() != 0:
            return self._submit(command, **options)
        self.bo = "nobody"
        with Client(self.server.url, self.client.token(self.bo)) as client:
            return str(client.post("/jobs", {"command": command, "cwd": "/", "options": options})["id"])

    def use(self, by: str, **asked: object) -> View:
        return self.client.use(by=by, **{"since": self.since, "until": self.until, **asked})

    def rows(self, by: str) -> dict[str | None, View]:
        return {row["group"]: row for row in self.use(by)["rows"]}

    def said(self, job: str) -> float:
        """How much cpu time it has used, by its own account."""
        return float(b"".join(self.client.logs(job)))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with configured(options=("--http", "127.0.0.1:0")) as server:
        world = World(server)
        yield world
        world.client.close()


# --- Sums -----------------------------------------------------------------------------------------------


def test_sums_agree_exactly_at_every_level(world: World) -> None:
    jobs, owners, teams = world.rows("job"), world.rows("owner"), world.rows("team")
    total = Amount.of(world.use("job")["total"])
    assert set(jobs) == {world.burn, world.hold, world.sleep, world.short}
    assert added(jobs.values()) == total
    for owner, row in owners.items():
        assert Amount.of(row) == added(job for job in jobs.values() if job["owner"] == owner)
    assert Amount.of(teams["vision"]) == added([jobs[world.burn], jobs[world.hold]])
    assert Amount.of(teams["lab"]) == added([teams["vision"], teams["nlp"]])
    assert added(row for row in teams.values() if row["parent"] == "") == total
    for by in ("owner", "team", "effort", "verdict"):
        assert Amount.of(world.use(by)["total"]) == total
    by_gpu = world.use("gpu")
    assert Amount.of(by_gpu["total"]).gpus == added(by_gpu["rows"]).gpus == total.gpus


def test_a_day_is_the_sum_of_its_parts(world: World) -> None:
    middle = (world.since + world.until) / 2
    parts = [world.use("team", until=middle)["total"], world.use("team", since=middle)["total"]]
    assert added(parts) == Amount.of(world.use("team")["total"])


def test_held_is_what_was_granted_for_as_long_as_it_was(world: World) -> None:
    jobs = world.rows("job")
    for view in world.ended:
        row = jobs[view["id"]]
        assert row["held_seconds"] >= view["ended_at"] - view["started_at"] - 0.001
        assert row["cpu_held_seconds"] == pytest.approx(view["cpus"] * row["held_seconds"], abs=0.002)
        assert row["gpu_held_seconds"] == pytest.approx(view["gpus"] * row["held_seconds"], abs=0.002)


def test_teams_and_owners_can_be_asked_for_and_everybody_may(world: World) -> None:
    lab = world.use("owner", team="lab")
    assert {row["group"] for row in lab["rows"]} == {world.ana, world.bo}
    assert Amount.of(lab["total"]) == Amount.of(world.rows("team")["lab"])
    assert [row["group"] for row in world.use("team", team="vision")["rows"]] == ["vision"]
    assert world.sleep in {row["group"] for row in world.use("job", owner=world.bo)["rows"]}
    with Client(world.server.url, world.client.token("cy")) as stranger:
        asked = stranger.use(by="owner", since=world.since, until=world.until)
        assert {row["group"] for row in asked["rows"]} == {world.ana, world.bo}
        assert stranger.use(mine=True)["rows"] == []


def test_who_held_most_comes_first_and_what_is_left_out_is_in_the_total(world: World) -> None:
    everything = world.use("job")
    assert everything["rows"][0]["group"] == world.sleep  # it alone had a GPU
    held = [row["cpu_held_seconds"] for row in everything["rows"][1:]]
    assert held == sorted(held, reverse=True)
    first = world.use("job", limit=1)
    assert (first["rows"], first["more"]) == (everything["rows"][:1], 3)
    assert first["total"] == everything["total"]
    assert (first["rows"][0]["name"], first["rows"][0]["owner"]) == ("sleep", world.bo)


def test_a_question_that_can_t_be_right_gets_a_sentence(world: World) -> None:
    for asked, words in (
        ({"since": "yesterday"}, "'yesterday' is not a moment"),
        ({"since": "nan"}, "'nan' is not a moment"),
        ({"since": "9e99"}, "nothing between since and until"),
        ({"since": 200, "until": 100}, "nothing between since and until"),
        ({"by": "colour"}, "Invalid enum value 'colour'"),
        ({"owner": "\0"}, "the query is not as expected"),
    ):
        with pytest.raises(Refused, match=words):
            world.client.use(**asked)
    assert world.client.use(since="-1e308", by="owner")["since"] == 0.0
    assert world.client.use(since="13w")["until"] == pytest.approx(time.time(), abs=60)


# --- Truth ----------------------------------------------------------------------------------------------


def test_what_was_measured_is_near_the_truth(world: World) -> None:
    jobs = world.rows("job")
    assert jobs[world.burn]["cpu_used_seconds"] == pytest.approx(world.said(world.burn), rel=0.1, abs=0.1)
    assert jobs[world.sleep]["cpu_used_seconds"] < 0.2
    hold, points = jobs[world.hold], world.client.use_of(world.hold)["points"]
    assert 98 * MIB < max(point["memory_bytes"]["most"] for point in points) < 140 * MIB
    mean = hold["memory_used_byte_seconds"] / (hold["memory_measured_byte_seconds"] / (512 * MIB))
    assert 40 * MIB < mean < 140 * MIB  # it took a while to get it
    for row in jobs.values():
        assert 0 <= row["measured_seconds"] <= row["held_seconds"]


def test_what_no_meter_tells_is_unknown_and_not_nothing(world: World) -> None:
    sleep = world.rows("job")[world.sleep]
    assert (sleep["gpu_held_seconds"] > 0, sleep["gpu_used_seconds"]) == (True, None)
    assert world.use("gpu")["metrics"] == {
        "gpu": None,
        "cpu": "cpu time",
        "memory": "working set",
        "sources": {},
    }
    assert world.use("gpu")["total"]["cpu_held_seconds"] is None
    nobody = world.client.use(owner="who?")
    assert (nobody["rows"], nobody["total"]["coverage"], nobody["total"]["cpu_used_seconds"]) == (
        [],
        None,
        None,
    )


def test_a_running_job_says_what_it_uses_and_an_ended_one_does_not(world: World) -> None:
    used = world.running["used"]
    assert 0 < used["share"] == used["cpus"] <= 1.5
    assert (used["coverage"], used["gpu_busy"]) == (1.0, [])
    assert used["memory_bytes"] > MIB
    head, *lines = world.listed.stdout.splitlines()
    line = next(line for line in lines if line.split()[0] == world.burn)
    assert head.split()[7:9] == ["TIME", "USED"]
    assert line.split()[8].endswith("%")
    assert all(view["used"] is None for view in world.ended)


def test_a_job_is_drawn_in_minutes(world: World) -> None:
    series = world.client.use_of(world.burn)
    assert (series["step_seconds"], series["held"]["cpus"]) == (60, 1.0)
    row = world.rows("job")[world.burn]
    assert sum(point["measured_seconds"] for point in series["points"]) == row["measured_seconds"]
    cpu_seconds = sum(point["cpus"]["mean"] * point["cpus"]["seconds"] for point in series["points"])
    assert cpu_seconds == pytest.approx(row["cpu_used_seconds"], abs=0.01)
    array = world.client.submit(["true"], array="1-2", hold=True)["id"]
    assert world.client.use_of(f"{array}_1")["points"] == []
    with pytest.raises(Refused, match="is an array"):
        world.client.use_of(array)


def test_the_command_line_tells_it_in_a_table(world: World) -> None:
    asked = ("--since", str(world.since), "--until", str(world.until))
    table = world.server.muster("use", *asked).stdout.splitlines()
    assert table[0].split() == ["TEAM", "GPUh", "USED", "CPUh", "USED", "GiBh", "USED", "COVERED"]
    assert {line.split()[0] for line in table[1:-1]} == {"lab", "lab/vision", "lab/nlp", "ops", "total"}
    assert table[-1].endswith("used: GPUs by no meter, cpus by cpu time, memory by working set")
    said = world.server.muster("use", "--by", "owner", *asked, "-o", "json").stdout
    assert json.loads(said) == world.use("owner")


# --- A server that is killed ----------------------------------------------------------------------------


def test_a_server_that_is_killed_loses_coverage_and_counts_nothing_twice(tmp_path: Path) -> None:
    with configured() as server:
        enough = tmp_path / "enough"
        with server.client() as client:
            burn = [sys.executable, "-c", BURN, "0", str(enough)]
            job = client.submit(burn, cpus=1, memory="512M")["id"]
        until(lambda: _use(server, job)["cpu_used_seconds"], "something to be measured")
        server.kill()
        server.start()
        until(lambda: _use(server, job)["cpu_used_seconds"], "something to be measured again")
        enough.touch()
        with server.client() as client:
            view = client.wait(job)
            truth = float(b"".join(client.logs(job)))
        row = _use(server, job)
        assert row["held_seconds"] >= view["ended_at"] - view["started_at"] - 0.001
        assert 0 < row["measured_seconds"] <= row["held_seconds"]
        assert 0 < row["cpu_used_seconds"] <= 1.1 * truth + 0.1
        server.kill()
        server.start()
        assert _use(server, job) == row


def _use(server: Server, job: str) -> View:
    with server.client() as client:
        return next(row for row in client.use(by="job")["rows"] if row["group"] == job)
