"""Short jobs are lined up on the same seats, and nobody notices but by how quick it is."""

import pytest

from muster.model.events import (
    DeviceHealth,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Promised,
    Seat,
    Started,
    Submitted,
)
from muster.model.job import ArrayPlace, Job, Shape, single
from muster.model.node import Device, Health, Node
from muster.model.policy import Policy
from muster.server.lineup import LineUp
from muster.store.fold import Fold
from servers import Server, until

ONE = Shape(cpus_milli=1000)


class Place:
    """A node of two cpus, a queue, and what was learned of it."""

    def __init__(self) -> None:
        self.fold, self.line_up, self.now = Fold(Policy()), LineUp(), 0.0
        self.fold.apply(NodeSeen(0.0, Node("here", 2000, 1 << 30)))

    def submit(self, name: str, owner: str = "ana", array: ArrayPlace | None = None) -> None:
        self.now += 0.001
        job = Job(name, single(cpus_milli=1000), self.now, owner=owner, array=array)
        self.fold.apply(Submitted(self.now, job))

    def start(self, name: str) -> None:
        self.fold.apply(Placed(self.now, name, 1, (Seat("here", ONE),)))
        self.fold.apply(Started(self.now, name, 1))

    def end(self, name: str, after: float = 0.003) -> None:
        self.now += after
        running = self.fold.records[name].running
        assert running is not None
        self.line_up.ended(running, self.now)
        self.fold.apply(Exited(self.now, name, 1, Outcome.SUCCEEDED, 0))

    def learn(self, seconds: float = 0.003, runs: int = 4, owner: str = "ana") -> None:
        for number in range(runs):
            self.submit(name := f"before{number}-{self.now:g}", owner)
            self.start(name)
            self.end(name, seconds)

    def decided(self) -> list[tuple[str, str]]:
        """Who comes behind whom."""
        made = self.line_up.decided(self.fold, self.now)
        return [(placed.job, placed.behind or "") for placed, _ in made]


@pytest.fixture
def place() -> Place:
    made = Place()
    made.learn()
    for name in "abcdefgh":
        made.submit(name)
    made.start("a")
    made.start("b")
    return made


def test_those_that_wait_are_lined_up_behind_those_that_run_in_turn(place: Place) -> None:
    assert place.decided() == [("c", "a"), ("d", "b"), ("e", "c"), ("f", "d"), ("g", "e"), ("h", "f")]


def test_who_is_lined_up_holds_nothing_until_the_seats_are_free(place: Place) -> None:
    for placed, _ in place.line_up.decided(place.fold, place.now):
        place.fold.apply(placed)
    assert set(place.fold.running) == {"a", "b"}
    place.end("a")
    assert set(place.fold.running) == {"b", "c"}
    running = place.fold.running["c"]
    assert (running.placed_at, running.behind) == (place.now, None)


def test_nobody_is_lined_up_while_another_kind_of_job_waits(place: Place) -> None:
    place.submit("other", owner="bob")
    assert place.decided() == []


def test_nobody_is_lined_up_while_somebody_was_promised_room(place: Place) -> None:
    place.fold.apply(Promised(place.now, "h"))
    assert place.decided() == []


def test_nobody_is_lined_up_on_a_drained_node(place: Place) -> None:
    place.fold.apply(NodeHealth(place.now, "here", Health.DRAINED))
    assert place.decided() == []


def test_nobody_is_lined_up_on_a_drained_gpu(place: Place) -> None:
    place.fold.apply(NodeSeen(place.now, Node("here", 3000, 1 << 30, devices=(Device(),) * 2)))
    place.fold.apply(Placed(place.now, "c", 1, (Seat("here", ONE, (1,), 1000),)))
    place.fold.apply(Started(place.now, "c", 1))
    assert "c" in {behind for _, behind in place.decided()}
    place.fold.apply(DeviceHealth(place.now, "here", 1, False))
    assert place.decided() == [("d", "a"), ("e", "b"), ("f", "d"), ("g", "e"), ("h", "f")]


def test_nobody_is_lined_up_behind_a_job_that_takes_longer_than_its_like(place: Place) -> None:
    place.now += 1.0
    assert place.decided() == []


def test_nobody_is_lined_up_before_enough_is_known() -> None:
    place = Place()
    place.learn(runs=3)
    place.submit("a")
    place.submit("b")
    place.start("a")
    assert place.decided() == []


def test_nobody_is_lined_up_where_one_lately_took_long() -> None:
    place = Place()
    place.learn()
    place.learn(seconds=60.0, runs=1)
    place.submit("a")
    place.submit("b")
    place.start("a")
    assert place.decided() == []


def test_of_an_array_that_runs_so_many_at_once_one_makes_room_for_another_only() -> None:
    place = Place()
    place.learn()
    for index in range(3):
        place.submit(f"m{index}", array=ArrayPlace("m", index, most_at_once=1))
    place.submit("alone")
    place.start("m0")
    place.start("alone")
    assert place.decided() == [("m1", "m0")]


def test_more_work_than_a_moments_is_not_lined_up() -> None:
    place = Place()
    place.learn(seconds=0.04)
    for name in "abcdefgh":
        place.submit(name)
    place.start("a")
    assert place.decided() == [("b", "a"), ("c", "b")]


# --- With a real server ------------------------------------------------------------------------------


@pytest.fixture
def server() -> "Server":  # type: ignore[misc]
    made = Server()
    (made.home.path / "muster.toml").write_text("[node]\ncpus = 2\n")
    with made:
        yield made


def test_many_short_jobs_all_run_once_and_are_told_apart(server: Server) -> None:
    ran = server.work / "ran"
    script = f"echo $MUSTER_JOB_ID >> {ran}; test $((MUSTER_JOB_ID % 7)) != 0 && echo $MUSTER_JOB_ID"
    with server.client() as client:
        ids = client.submit_many([{"command": ["sh", "-c", script]}] * 120)
        until(lambda: not client.jobs(), "the end of all")
        views = {view["id"]: view for view in client.jobs(all=True)}
        assert sorted(ran.read_text().split(), key=int) == ids
        for job in ids:
            good = int(job) % 7 != 0
            assert views[job]["outcome"] == ("SUCCEEDED" if good else "FAILED")
            assert (views[job]["exit_code"], views[job]["attempt"]) == (0 if good else 1, 1)
            assert b"".join(client.logs(job)).decode() == (f"{job}\n" if good else "")


def test_who_was_lined_up_behind_a_long_job_starts_elsewhere(server: Server) -> None:
    gate = server.work / "gate"
    script = f"test $MUSTER_ARRAY_INDEX != 40 || until test -e {gate}; do sleep 0.02; done"
    with server.client() as client:
        array = client.submit(["sh", "-c", script], array="1-200")["id"]
        until(lambda: client.job(array)["counts"].get("ENDED") == 199, "the end of all but one")
        assert client.job(f"{array}_40")["state"] == "RUNNING"
        gate.touch()
        assert client.wait(array)["outcome"] == "SUCCEEDED"
        assert {view["attempt"] for view in client.jobs(all=True, members=True)} == {1}


def test_all_of_many_are_submitted_or_none(server: Server) -> None:
    with server.client() as client:
        with pytest.raises(Exception, match=r"job 2 of 3: .*none was submitted"):
            client.submit_many(
                [{"command": ["true"]}, {"command": ["true"], "cpus": 900}, {"command": ["true"]}]
            )
        assert client.jobs(all=True) == []
        assert client.submit_many([]) == []
        assert client.submit_many([{"command": ["true"]}, {"command": ["true"], "array": "1-3"}]) == [
            "1",
            "2",
        ]
