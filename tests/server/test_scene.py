"""What every GPU does, from a real fold and real samples; whoever looked before, it is as of now."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.layout.file import parse_layout
from muster.layout.found import found_by
from muster.layout.geometry import gpu_id, node_id, rack_id
from muster.layout.merge import merge
from muster.layout.states import State
from muster.model.charter import Charter
from muster.model.events import (
    DeviceHealth,
    Event,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Seat,
    Started,
    Submitted,
    Suspended,
)
from muster.model.job import Job, Shape, single
from muster.model.node import Device, Health, Node
from muster.model.policy import Policy
from muster.model.units import GIB
from muster.model.usage import Sample
from muster.monitor.lately import Lately
from muster.server.answers_map import PlaceGpu, PlaceView, ProcessView
from muster.server.seeing import tracking
from muster.server.seeing.places import Map, Places
from muster.server.seeing.saying import sentence
from muster.server.seeing.scene import GpuNow, NodeNow, Scene, Tally
from muster.server.seeing.scene import sentence as said_of
from muster.server.seeing.tracking import Facts, Tracker
from muster.steward.findings import Finding
from muster.steward.rules import Rules
from muster.store.fold import Fold

TEXT = """\
muster_layout: 1
site: lab
kinds:
  box: {u: 2, gpus: {count: 4, model: A40, numa: [3, 2, 1, 0]}}
racks: [{name: "R[1-2]", row: A}]
place:
  - {nodes: "a[1-4]", kind: box, racks: "R[1-2]", per_rack: 2}
"""
FILE = parse_layout(TEXT)


def node(name: str, *numa: int) -> Node:
    return Node(name, 8000, 64 * GIB, devices=tuple(Device("A40", 48 * GIB, n) for n in numa))


class World:
    """Three nodes of four GPUs each, one of them with a GPU less; a fourth that nobody sees; a laptop."""

    def __init__(self) -> None:
        self.fold = Fold(Policy())
        self.newest: dict[tuple[str, int], Sample] = {}
        self.lately: dict[str, Lately] = {}
        self.marks: dict[str, str] = {}
        self.findings: dict[str, tuple[Finding, ...]] = {}
        self.lost: frozenset[tuple[str, int]] = frozenset()
        self.rules = Rules()
        self.places = Places(lambda: None)
        nodes = [node("a1", 3, 2, 1, 0), node("a2", 3, 2, 1, 0), node("a3", 3, 2, 0), node("laptop")]
        self.happens(*(NodeSeen(0.0, one) for one in nodes))
        self.map = Map.of(merge(FILE, tuple(found_by("e", one) for one in nodes)))
        self.tracker = Tracker(self.map)

    def happens(self, *events: Event) -> None:
        for event in events:
            self.fold.apply(event)

    def runs(
        self, job: str, *seats: tuple[str, tuple[int, ...]], milli: int = 1000, owner: str = "ana"
    ) -> None:
        shape = Shape(2000, 8 * GIB, gpus=len(seats[0][1]))
        placed = tuple(Seat(where, shape, devices, milli if devices else 0) for where, devices in seats)
        made = Job(
            job,
            single(cpus_milli=2000),
            1.0,
            name="fit",
            owner=owner,
            team="nlp",
            charter=Charter(purpose="Why?"),
        )
        self.happens(Submitted(1.0, made), Placed(2.0, job, 1, placed), Started(3.0, job, 1))

    def measures(self, job: str, *busy: float | None, cpus: float = 1.0, at: float = 10.0) -> None:
        sample = Sample(job=job, attempt=1, at=at, seconds=60.0, cpus=cpus, memory_bytes=GIB, gpu_busy=busy)
        self.newest[job, 1] = sample
        self.lately.setdefault(job, Lately()).add(sample)

    def facts(self, speaks_from: float = 0.0) -> Facts:
        return Facts(
            at=100.0,
            wall_ahead_seconds=self.fold.wall_ahead_seconds,
            nodes=self.fold.nodes,
            running=self.fold.running,
            rules=self.rules,
            lately=lambda running: self.lately.get(running.job.id),
            newest=self.newest,
            speaks_from=speaks_from,
            marks=self.marks,
            findings=dict(self.findings),
            lost=self.lost,
        )

    def scene(self, **more: float) -> Scene:
        return self.tracker.look(self.facts(**more))

    def gpu(self, name: str, number: int) -> GpuNow:
        return self.scene().gpus[gpu_id(name, number)]

    def states(self, name: str) -> list[State]:
        return [self.gpu(name, number).state for number in range(4)]


@pytest.fixture
def world() -> World:
    return World()


W, I, F, U = State.WORKING, State.IDLE, State.FREE, State.UNKNOWN  # noqa: E741 - idle


def test_what_nobody_holds_is_free_and_what_nobody_sees_is_unknown(world: World) -> None:
    assert world.states("a1") == [F, F, F, F]
    assert world.states("a4") == [U, U, U, U]
    assert world.scene().sentence == (
        "16 GPUs: 11 are free, 5 are unknown. 1 node without GPUs: 0 of 8 cpus are held, 0 used."
    )


def test_held_and_used_works_held_and_unused_is_idle(world: World) -> None:
    world.runs("1", ("a1", (0, 1)))
    world.measures("1", 0.8, 0.0)
    assert world.states("a1") == [W, I, F, F]
    assert (world.gpu("a1", 0).share, world.gpu("a1", 1).share) == (0.8, 0.0)


def test_a_missing_meter_counts_as_busy(world: World) -> None:
    world.runs("1", ("a1", (0, 1)))
    assert (world.gpu("a1", 0).state, world.gpu("a1", 0).share) == (W, None)
    world.measures("1", None, 0.5)
    assert (world.gpu("a1", 0).state, world.gpu("a1", 0).share) == (W, None)
    world.measures("1", 0.5)  # of one, while it holds two: nobody knows which
    assert [world.gpu("a1", n).share for n in (0, 1)] == [None, None]


def test_a_sample_of_long_ago_tells_nothing(world: World) -> None:
    world.runs("1", ("a1", (0,)))
    world.measures("1", 0.0)
    box = gpu_id("a1", 0)
    assert world.scene().gpus[box].state is I
    assert world.scene(speaks_from=50.0).gpus[box].state is W


def test_who_is_suspended_holds_idle(world: World) -> None:
    world.runs("1", ("a1", (0,)))
    world.happens(Suspended(5.0, "1", 1))
    assert world.gpu("a1", 0).state is I


def test_of_a_gang_on_several_nodes_each_gpu_has_its_own_share(world: World) -> None:
    """Seats come in any order; figures by node and number."""
    world.runs("1", ("a2", (0, 1)), ("a1", (0, 1)))
    world.measures("1", 0.1, 0.2, 0.3, 0.4)
    shares = [world.gpu(name, number).share for name in ("a1", "a2") for number in (0, 1)]
    assert shares == [0.1, 0.2, 0.3, 0.4]


def test_a_gpu_that_the_map_has_elsewhere_is_found_by_the_number_it_was_granted_by(world: World) -> None:
    """Of a3's four, the third is missing: the engine's GPU 2 is the map's GPU 3."""
    world.runs("1", ("a3", (2,)))
    assert world.states("a3") == [F, F, U, W]


def test_jobs_that_share_a_gpu_are_all_named(world: World) -> None:
    world.runs("1", ("a1", (0,)), milli=500)
    world.runs("2", ("a1", (0,)), milli=250, owner="ben")
    world.measures("1", 0.0)
    world.measures("2", 0.4)
    now = world.gpu("a1", 0)
    assert (now.state, now.share, now.held_milli) == (W, 0.4, 750)
    assert [holder.id for holder in now.holders] == ["1", "2"]
    assert now.words == "1 fit, ana; 2 fit, ben"


def test_drained_is_what_takes_nothing_new_and_down_what_is_lost(world: World) -> None:
    world.runs("1", ("a1", (0,)))
    world.happens(
        NodeHealth(4.0, "a1", Health.DRAINED, "ana: fans"), DeviceHealth(4.0, "a2", 1, False, "ecc")
    )
    assert world.states("a1") == [W, *[State.DRAINED] * 3]  # what runs goes on
    assert world.gpu("a1", 1).words == "ana: fans"
    assert world.states("a2") == [F, State.DRAINED, F, F]
    world.happens(NodeHealth(5.0, "a1", Health.DOWN, "no answer"))
    assert world.states("a1") == [State.DOWN] * 4
    assert world.gpu("a1", 0).words == "no answer; 1 fit, ana"
    world.lost = frozenset({("a2", 3)})
    assert world.states("a2") == [F, State.DRAINED, F, State.DOWN]


def test_what_nobody_defends_is_marked_and_so_is_since_when_it_is_idle(world: World) -> None:
    world.runs("7", ("a1", (0,)))
    world.measures("7", 0.0)
    world.marks = {"7": "undefended, review Thu"}
    world.findings = {
        "7": (Finding(kind="idle", job="7", attempt=1, since=42.0, seconds=60.0, evidence=(), devices=(0,)),)
    }
    now = world.gpu("a1", 0)
    assert (now.undefended, now.idle_since) == (True, 42.0)
    assert world.scene().tally.undefended == 1


def test_a_laptop_is_told_by_its_cpus(world: World) -> None:
    world.runs("1", ("laptop", ()))
    now = world.scene().nodes[node_id("laptop")]
    assert (now.state, now.cpus_held_milli, now.cpu_share) == (W, 2000, None)
    world.measures("1", cpus=1.2)
    assert world.scene().nodes[node_id("laptop")].cpu_share == 0.15
    assert "2 of 8 cpus are held, 1.2 used." in world.scene().sentence
    world.lately.clear()
    world.measures("1", cpus=0.0)
    assert world.scene().nodes[node_id("laptop")].state is I


@pytest.mark.parametrize(
    ("cpus", "said"), [(0.0, "0"), (0.347, "0.35"), (7.24, "7.2"), (1143.7, "1,144"), (42.0, "42")]
)
def test_what_is_used_has_as_many_digits_as_somebody_reads(cpus: float, said: str) -> None:
    node = NodeNow("n", W, "up", cpus_milli=2_000_000, cpus_held_milli=1_200_000, cpu_share=cpus / 2000)
    assert said_of(Tally(), [node]) == f"1 node without GPUs: 1200 of 2000 cpus are held, {said} used."


def test_racks_and_the_site_sum_up_their_gpus(world: World) -> None:
    world.runs("1", ("a1", (0, 1)))
    world.measures("1", 0.9, 0.5)
    scene = world.scene()
    rack = scene.racks[rack_id("R1")]
    assert (rack.of(W), rack.of(F), rack.share) == (2, 6, 0.7)
    assert scene.counts == {W: 2, I: 0, F: 9, State.DOWN: 0, State.DRAINED: 0, U: 5}
    assert scene.racks[rack_id("unplaced")].total == 0  # the laptop


def test_what_has_not_changed_is_the_same_object(world: World) -> None:
    world.runs("1", ("a1", (0,)))
    world.runs("2", ("a2", (0,)))
    before = world.scene()
    assert world.scene().gpus is before.gpus
    world.measures("2", 0.5)
    after = world.scene()
    changed = [box for box, now in after.gpus.items() if before.gpus[box] is not now]
    assert changed == [gpu_id("a2", 0)]
    assert before.gpus[gpu_id("a2", 0)].share is None  # who has the one before still has it
    assert [b for b, now in after.nodes.items() if before.nodes[b] is not now] == [node_id("a2")]


def test_with_more_new_samples_than_a_look_takes_everybody_gets_a_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_MOST_MEASURED", 3)
    for number in range(8):
        world.runs(str(number), (f"a{1 + number // 4}", (number % 4,)))
    world.scene()
    for _ in range(3):
        for number in range(8):  # samples keep coming
            world.measures(str(number), 0.5, at=20.0)
        world.scene()
    shares = [world.tracker.look(world.facts()).gpus[gpu_id(f"a{1 + n // 4}", n % 4)].share for n in range(8)]
    assert shares == [0.5] * 8


def some_events(luck: Random) -> Iterable[str]:
    return luck.choices(["run", "end", "measure", "health", "device", "suspend", "mark", "lose"], k=25)


@given(st.integers(0, 10_000))
def test_a_scene_that_follows_is_the_one_that_is_made_at_once(seed: int) -> None:
    """Whatever happened, and whenever somebody looked."""
    luck, world, free = Random(seed), World(), [(f"a{n}", g) for n in (1, 2) for g in range(4)]
    for serial, what in enumerate(some_events(luck)):
        running = list(world.fold.running)
        if what == "run" and free:
            where = free.pop(luck.randrange(len(free)))
            world.runs(str(serial), (where[0], (where[1],)), owner=luck.choice(["ana", "ben"]))
        elif what == "health":
            world.happens(NodeHealth(9.0, "a1", luck.choice(list(Health)), "so"))
        elif what == "device":
            world.happens(DeviceHealth(9.0, "a2", 1, luck.random() < 0.5, "so"))
        elif what == "lose":
            world.lost = frozenset({("a1", 2)}) if luck.random() < 0.5 else frozenset()
        elif running:
            follow(world, what, luck.choice(running), luck)
        if luck.random() < 0.5:
            world.scene()
    anew = Tracker(world.map).look(world.facts())
    assert replace(world.scene(), at=0.0) == replace(anew, at=0.0)


def follow(world: World, what: str, job: str, luck: Random) -> None:
    state = world.fold.running[job].state.value
    if what == "end":
        world.happens(Exited(9.0, job, 1, Outcome.SUCCEEDED, 0))
    elif what == "measure":
        world.measures(job, luck.choice([None, 0.0, 0.3, 0.9]), at=luck.choice([-1.0, 5.0]))
    elif what == "suspend" and state == "RUNNING":
        world.happens(Suspended(9.0, job, 1))
    elif what == "mark":
        world.marks = {} if world.marks else {job: "undefended"}


# --- Places ---------------------------------------------------------------------------------------------


def test_the_map_is_made_anew_when_hardware_or_file_change_and_not_for_health(tmp_path: Path) -> None:
    path = tmp_path / "layout.yaml"
    places = Places(lambda: path if path.exists() else None)
    nodes = {"a1": node("a1", 3, 2, 1, 0)}
    first = places.look(nodes)
    assert (first.generation, first.layout.site) == (1, "a1")
    assert places.look(nodes) is first
    nodes["a1"] = replace(nodes["a1"], health=Health.DOWN)
    assert places.look(nodes) is first
    path.write_text(TEXT)
    second = places.look(nodes)
    assert (second.generation, second.layout.site, len(second.layout.spots)) == (2, "lab", 4)
    nodes["b1"] = node("b1", 0)
    assert places.look(nodes).spots["b1"].rack == "unplaced"


def test_a_file_that_can_t_be_read_leaves_the_map_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text(TEXT)
    places = Places(lambda: path)
    before = places.look({})
    path.write_text("racks: 7\n")
    assert places.look({}) is before
    assert places.look({}) is before
    (said,) = caplog.messages  # once
    assert said.endswith("the map stays as it was")
    path.write_text(TEXT.replace("lab", "hall"))
    assert places.look({}).layout.site == "hall"


# --- Where a job is, in a sentence ----------------------------------------------------------------------


def place(node: str, rack: str | None, *gpus: int, processes: int | None = 1, held: float = 1.0) -> PlaceView:
    return PlaceView(
        node,
        rack,
        "main",
        "A",
        12,
        cpus=1.0,
        memory_bytes=GIB,
        gpus=[PlaceGpu(number, "A40", None, None, held) for number in gpus],
        processes=None if processes is None else [ProcessView(n, None, None, None) for n in range(processes)],
    )


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (
            [place("gpub037", "R04", 0, 1, 2, 3, processes=9)],
            "7 fit runs on GPUs 0-3 (A40) of gpub037, rack R04 unit 12, main, row A, as 9 processes.",
        ),
        ([place("a1", None, 2)], "7 fit runs on GPU 2 (A40) of a1, as 1 process."),
        ([place("a1", None, 2, held=0.5)], "7 fit runs on 0.5 of GPU 2 (A40) of a1, as 1 process."),
        ([place("a1", None)], "7 fit runs on 1 cpu of a1, as 1 process."),
        (
            [place("a1", "R1", 0, 1), place("a2", "R1", 0, 1), place("a3", "R2", 0)],
            "7 fit runs on 5 GPUs (A40) of a[1-3], racks R[1-2], as 3 processes.",
        ),
        (
            [place("a1", "R1", 0), place("a2", "R1", 0, processes=None)],
            "7 fit runs on 2 GPUs (A40) of a[1-2], rack R1; its processes are not known.",
        ),
    ],
)
def test_where_a_job_is_in_a_sentence(places: list[PlaceView], said: str) -> None:
    assert sentence("7 fit runs", places) == said
