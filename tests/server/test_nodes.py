"""Nodes and GPUs out of service: who may, what is told, and that nothing brings them back but a person."""

import asyncio
import getpass
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from muster.client import Client, Refused
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.events import Event, NodeSeen, Placed, Seat, Submitted
from muster.model.job import Job, JobId, Shape, single
from muster.model.node import Device, Health, Node
from muster.model.plan import Start
from muster.model.policy import Policy
from muster.model.run import Run
from muster.server.errors import NotFound
from muster.server.service import Service
from muster.store.fold import Fold
from muster.store.journal import Journal
from servers import PATIENCE_SECONDS, Server, View, until

HERE = socket.gethostname().split(".")[0]
ME = getpass.getuser()
GPUS = '[node]\ncpus = 4\ngpus = 3\ngpu_model = "{model}"\n'


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    made = Server("--http", "127.0.0.1:0")
    configure(made)
    with made:
        yield made


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    """Of which everything is in service."""
    yield one_server
    with one_server.client() as client:
        for g, device in enumerate(node_of(client)["devices"]):
            if not device["healthy"]:
                client.resume_node(HERE, g)
        if node_of(client)["health"] == "drained":
            client.resume_node(HERE)


def configure(server: Server, model: str = "A40") -> None:
    (server.home.path / "muster.toml").write_text(GPUS.format(model=model))


def node_of(client: Client) -> View:
    (node,) = client.nodes()
    return node


def health(client: Client) -> tuple[str, str | None]:
    node = node_of(client)
    return node["health"], node["reason"]


def gpus(client: Client) -> list[str | None]:
    """Of each, why it is drained; None if it is not."""
    return [None if d["healthy"] else d["reason"] for d in node_of(client)["devices"]]


def refused(status: int, ask: Callable[[], object]) -> str:
    with pytest.raises(Refused) as error:
        ask()
    assert error.value.status == status, error.value
    return str(error.value)


# --- With a real server -------------------------------------------------------------------------------


def test_a_drained_node_keeps_what_runs_and_takes_nothing_new_until_it_is_resumed(server: Server) -> None:
    with server.client() as client:
        assert health(client) == ("up", None)
        running = server.sh("sleep 60")["id"]
        until(lambda: client.job(running)["state"] == "RUNNING", "the job to run")
        assert client.drain_node(HERE, "fan is broken")["reason"] == f"{ME}: fan is broken"
        waiting = server.sh("true")["id"]
        said = f"only what is out of service could take it: {HERE} is drained ({ME}: fan is broken)"
        until(lambda: client.job(waiting)["reason"] == said, lambda: str(client.job(waiting)))
        assert client.why(waiting)["text"].splitlines() == [
            f"Waiting: {said}.",
            f"What helps: bring it back, as an admin: muster node resume {HERE}.",
        ]
        assert (client.job(running)["state"], health(client)[0]) == ("RUNNING", "drained")
        assert client.resume_node(HERE)["health"] == "up"
        assert client.wait(waiting)["outcome"] == "SUCCEEDED"
        assert health(client) == ("up", None)
        client.stop(running, grace_seconds=0.0)
        client.wait(running)


def test_a_restart_keeps_what_is_drained_and_why(server: Server) -> None:
    with server.client() as client:
        client.drain_node(HERE, "fan is broken")
        client.drain_node(HERE, "falls off the bus", 1)
        before = node_of(client)
        for stop in (server.kill, server.terminate):
            stop()
            server.start()
            assert node_of(client) == before
        server.terminate()
        configure(server, model="A40")
        with (server.home.path / "muster.toml").open("a") as file:
            file.write('labels = ["new"]\n')  # another change of the node does not mend it either
        server.start()
        assert node_of(client) == before
        job = server.sh("true")["id"]
        client.resume_node(HERE)
        assert client.wait(job)["outcome"] == "SUCCEEDED"
        assert gpus(client) == [None, f"{ME}: falls off the bus", None]


def test_a_gpu_of_another_model_in_its_place_is_not_drained(server: Server) -> None:
    with server.client() as client:
        client.drain_node(HERE, "falls off the bus", 1)
        client.drain_node(HERE, "fan is broken")
        server.terminate()
        configure(server, model="H100")
        server.start()
        assert gpus(client) == [None] * 3
        assert health(client) == ("drained", f"{ME}: fan is broken")


def test_a_drained_gpu_is_left_out_and_the_rest_goes_on(server: Server) -> None:
    with server.client() as client:
        client.drain_node(HERE, "falls off the bus", 0)
        job = client.wait(server.sh("true", gpus=2)["id"])
        assert job["outcome"] == "SUCCEEDED"
        waiting = server.sh("true", gpus=3)["id"]
        until(
            lambda: f"GPU 0 of {HERE} is drained" in client.job(waiting)["reason"], "the reason why it waits"
        )
        client.resume_node(HERE, 0)
        assert client.wait(waiting)["outcome"] == "SUCCEEDED"


def test_what_makes_no_sense_is_said_in_a_sentence_and_changes_nothing(server: Server) -> None:
    with server.client() as client:
        near = refused(404, lambda: client.drain_node(f"{HERE}x", "fan"))
        assert near == f"there is no node '{HERE}x'; did you mean '{HERE}'?"
        missing = refused(404, lambda: client.resume_node(HERE, 3))
        assert missing == f"node {HERE} has 3 GPUs, counted from 0; there is no GPU 3"
        up = f"node {HERE} is up; only what is drained can be resumed"
        assert refused(409, lambda: client.resume_node(HERE)) == up
        refused(400, lambda: client.drain_node(HERE, ""))
        assert "say why" in refused(400, lambda: client.drain_node(HERE, " \n "))
        assert (health(client), gpus(client)) == (("up", None), [None] * 3)
        client.drain_node(HERE, "fan", 1)
        assert refused(409, lambda: client.resume_node(HERE)) == f"{up} (name its GPU: --gpu 1)"
        twice = refused(409, lambda: client.drain_node(HERE, "another", 1))
        assert twice == f"GPU 1 of {HERE} is drained already ({ME}: fan)"
        client.drain_node(HERE, "fan")
        assert "is drained already" in refused(409, lambda: client.drain_node(HERE, "another"))


@pytest.mark.parametrize("role", ["user", "lead"])
def test_only_an_admin_may(server: Server, role: str) -> None:
    with server.client() as client:
        token = client.token("ana", role)
        with Client(server.url, token) as ana:
            said = refused(403, lambda: ana.drain_node(HERE, "I want it"))
            assert said == "only an admin may drain nodes"
            assert health(client) == ("up", None)
            client.drain_node(HERE, "fan is broken")
            assert refused(403, lambda: ana.resume_node(HERE)) == "only an admin may resume nodes"
            assert health(ana)[0] == "drained"
        with Client(server.url, client.token("boss", "admin")) as boss:
            boss.resume_node(HERE)


def test_the_command_line_drains_shows_and_resumes(server: Server) -> None:
    drained = server.muster("node", "drain", HERE, "--gpu", "2", "--because", "falls off the bus")
    assert (drained.returncode, drained.stderr) == (0, "")
    assert drained.stdout.splitlines()[1].endswith("GPU 2 drained")
    assert server.muster("node", "drain", HERE, "--because", "fan is broken").returncode == 0
    line = server.muster("node", "-o", "wide").stdout.splitlines()[1]
    assert line.split()[:2] == [HERE, "drained"]
    assert line.endswith(f"{ME}: fan is broken; GPU 2 is drained ({ME}: falls off the bus)")
    twice = server.muster("node", "drain", HERE, "--because", "fan is broken")
    assert (twice.returncode, twice.stdout) == (1, "")
    assert "is drained already" in twice.stderr
    assert server.muster("node", "resume", HERE).returncode == 0
    assert server.muster("node", "resume", HERE, "--gpu", "2").returncode == 0
    assert server.muster("node", HERE).stdout.splitlines()[1].split()[1] == "up"


# --- What Muster does itself --------------------------------------------------------------------------

NODE = Node("here", 4000, 1 << 30, devices=(Device("A40"),) * 2)
ONE = Shape(cpus_milli=1000)
SEAT = Seat("here", ONE)
HEAD, NEXT = "1", "2"


class Inside:
    """A service that a test can look into, with an engine that runs what it is told."""

    def __init__(self, home: Path, *facts: Event) -> None:
        self.fold = Fold(Policy())
        for fact in facts:
            self.fold.apply(fact)
        journal = Journal.open(f"sqlite:///{home}/muster.db")
        self.engine = LocalEngine(Home(home), self._find, lambda _: {}, node=NODE)
        self.service = Service(Home(home), Policy(), self.fold, journal, self.engine)
        self.service.begin(())

    def _find(self, job_id: JobId) -> Job:
        entry = self.fold.records[job_id].running or self.fold.records[job_id].waiting
        assert entry is not None
        return entry.job

    def submit(self, job_id: JobId) -> None:
        self.service.note(submitted(job_id))

    def waits(self, job_id: JobId) -> bool:
        return self.fold.records[job_id].waiting is not None

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not true():
                await asyncio.sleep(0.005)

    def close(self) -> None:
        self.service.end()
        self.engine.close(end_jobs=True)


def submitted(job_id: JobId, begin_at: float | None = None) -> Submitted:
    run = Run(("sleep", "60"))
    return Submitted(0.0, Job(job_id, single(cpus_milli=1000), 0.0, run=run, begin_at=begin_at))


def inside(story: Callable[[Inside], Awaitable[None]], *facts: Event) -> None:
    async def told() -> None:
        with tempfile.TemporaryDirectory(prefix="muster-") as home:
            made = Inside(Path(home), *facts)
            try:
                await story(made)
            finally:
                made.close()

    asyncio.run(told())


def test_muster_quarantines_says_so_and_keeps_the_first_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def story(here: Inside) -> None:
        here.service.quarantine("here", 1, "3 faults in an hour")
        here.service.quarantine("here", 1, "another fault")
        assert here.fold.nodes["here"].devices[1] == Device(
            "A40", healthy=False, because="3 faults in an hour"
        )
        here.service.quarantine("here", None, "5 jobs in a row were lost")
        assert here.fold.nodes["here"].health is Health.DRAINED
        with pytest.raises(NotFound):
            here.service.quarantine("here", 2, "3 faults in an hour")
        await here.service.durable()

    inside(story)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "GPU 1 of here is drained: 3 faults in an hour; once it is well: muster node resume here --gpu 1",
        "here is drained: 5 jobs in a row were lost; once it is well: muster node resume here",
    ]


def test_who_was_lined_up_on_what_is_drained_waits_again() -> None:
    async def story(here: Inside) -> None:
        here.submit(HEAD)
        await here.until(lambda: HEAD in here.fold.running and (HEAD, 1) in here.engine.running())
        here.service.note(submitted(NEXT, begin_at=1e12))  # it would start at once by itself
        here.service.note(
            Placed(here.service.now(), NEXT, 1, (SEAT,), behind=HEAD),
            Start(NEXT, 1, (SEAT,), behind=(HEAD, 1)),
        )
        assert [one.job.id for one in here.fold.line_behind(HEAD)] == [NEXT]
        here.service.quarantine("here", None, "faults")
        await here.until(lambda: here.waits(NEXT))
        assert set(here.fold.running) == {HEAD}

    inside(story)


def test_who_was_not_recalled_before_the_server_ended_is_when_it_starts_again() -> None:
    async def story(here: Inside) -> None:
        await here.until(lambda: here.waits(NEXT))
        assert set(here.fold.running) == {HEAD}

    inside(
        story,
        NodeSeen(0.0, Node("here", 4000, 1 << 30, devices=NODE.devices, health=Health.DRAINED)),
        submitted(HEAD),
        submitted(NEXT, begin_at=1e12),
        Placed(0.0, HEAD, 1, (SEAT,)),
        Placed(0.0, NEXT, 1, (SEAT,), behind=HEAD),
    )


def test_a_plan_that_was_made_before_a_node_was_drained_starts_nothing_there() -> None:
    async def story(here: Inside) -> None:
        here.service.last_cycle_seconds = 1.0  # so that the next cycle runs in a thread
        here.submit(HEAD)
        await asyncio.sleep(0)
        assert here.service._deciding
        here.service.quarantine("here", None, "faults")
        await here.until(lambda: not here.service._deciding)
        assert here.waits(HEAD)
        assert here.fold.running == {}

    inside(story)
