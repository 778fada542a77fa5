"""What stands on what: sums that agree from the bottom up, and an honest word where nothing is known."""

from muster.model.events import Seat
from muster.model.job import Job, Shape, single
from muster.model.node import Device, Node
from muster.model.room import held_by
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.units import GIB
from muster.model.usage import GpuReading, NodeReading
from muster.monitor.meters.parts import PartSeen
from muster.monitor.meters.processes import ProcessShown
from muster.server.answers import Used
from muster.server.seeing.stack import (
    Part,
    Place,
    bottom_of,
    sentence_of_job,
    sentence_of_place,
    with_processes,
    words_of,
)
from muster.server.seeing.stack_answers import Layer, UsedNow

NODES = {
    name: Node(name, 8000, 64 * GIB, devices=(Device("A40"), Device("A40")), rack=rack)
    for name, rack in (("a", "R1"), ("b", "R1"), ("c", None))
}
USED = Used(0.5, 1.0, 2.0, 4 * GIB, [0.5])


def running(job_id: str, *nodes: str, gpus: int = 1) -> Running:
    seats = tuple(Seat(node, Shape(2000, 8 * GIB, gpus), tuple(range(gpus)), 1000) for node in nodes)
    job = Job(
        job_id, single(gpus=gpus, parts=len(nodes)), 0.0, name="fit", owner="ana", team="nlp", effort="llama"
    )
    return Running(job, 1, seats, held_by(seats), 0.0, 9.0, 9.0, 0.0, State.RUNNING)


def place(*jobs: Running, reading: NodeReading | None = None, nodes: dict[str, Node] = NODES) -> Place:
    readings = {} if reading is None else dict.fromkeys(nodes, reading)
    return Place("ncsa", nodes, jobs, {one.job.id: USED for one in jobs}, readings)


def every(layer: Layer, word: str) -> list[Layer]:
    return [layer] * (layer.layer == word) + [one for child in layer.children for one in every(child, word)]


def test_a_rack_and_a_site_hold_what_stands_on_them() -> None:
    jobs = (running("1", "a", "b"), running("2", "c", gpus=2))
    bottom = bottom_of(place(*jobs), list(NODES.values()), 10)
    assert [rack.name for rack in bottom.children] == ["R1", "unplaced"]
    assert [rack.held.gpus for rack in bottom.children if rack.held] == [2.0, 2.0]
    assert bottom.held is not None
    assert bottom.has is not None
    assert (bottom.held.gpus, bottom.held.cpus, bottom.has.gpus) == (4.0, 6.0, 6.0)
    assert words_of(bottom) == ["site", "rack", "node", "job"]
    assert sentence_of_place(bottom, 2) == "On 3 nodes 2 jobs run and hold 4 of 6 GPUs."


def test_what_a_job_on_several_nodes_uses_on_one_of_them_is_not_known() -> None:
    bottom = bottom_of(place(running("1", "a", "b"), running("2", "c")), list(NODES.values()), 10)
    spread, alone = every(bottom, "job")[0], every(bottom, "job")[-1]
    assert (spread.used, alone.used) == (None, UsedNow(2.0, 4 * GIB, 0.5))
    assert spread.unknown == ["what it uses here: that is measured of the whole job"]
    assert bottom.used is None


def test_the_one_node_that_is_metered_uses_what_its_meter_says() -> None:
    gpus = (GpuReading(index=0, busy=0.25), GpuReading(index=1, busy=0.0))
    reading = NodeReading(at=1.0, memory_used_bytes=10 * GIB, gpus=gpus)
    alone = {"a": NODES["a"]}
    bottom = bottom_of(place(running("1", "a"), reading=reading, nodes=alone), list(alone.values()), 10)
    node = every(bottom, "node")[0]
    assert node.used == UsedNow(2.0, 10 * GIB, 0.25)
    assert [(gpu.busy, gpu.jobs) for gpu in node.devices] == [(0.25, ["1"]), (0.0, [])]


def test_of_more_nodes_than_can_be_told_there_are_racks_and_how_many() -> None:
    bottom = bottom_of(place(running("1", "a")), list(NODES.values()), 2)
    assert [(rack.left_out, rack.children) for rack in bottom.children] == [(2, []), (1, [])]
    assert sentence_of_place(bottom, 1) == "On 3 nodes 1 job runs and holds 1 of 6 GPUs."


PROCESS = ProcessShown(42, 1, "python train.py --token secret", 3, 10.0, GIB, 100.0)


def of_job(parts: list[Part] | None, *, sees_words: bool = True) -> tuple[Running, Layer]:
    one = running("1", "a")
    bottom = bottom_of(place(one, running("2", "a")), [NODES["a"]], 10)
    return one, with_processes(bottom, one, parts, [], sees_words=sees_words)


def test_of_a_job_it_goes_through_its_group_up_to_its_processes() -> None:
    where = PartSeen(42, group={"": "/sys/fs/cgroup/muster/1.1.0"}, version=2)
    one, bottom = of_job([Part(where, [PROCESS])])
    assert words_of(bottom) == ["site", "rack", "node", "group", "attempt", "job", "process"]
    group, process = every(bottom, "group")[0], every(bottom, "process")[0]
    assert (group.kind, group.id) == ("cgroup v2", "/sys/fs/cgroup/muster/1.1.0")
    assert (process.kind, process.name, process.used) == ("main", PROCESS.command, UsedNow(0.1, GIB, None))
    node = every(bottom, "node")[0]
    assert node.held is not None
    assert node.held.gpus == 2.0  # with the other job, that is not told
    said = sentence_of_job(bottom, one, [Part(where, [PROCESS])])
    assert said == "Job 1 stands on a in rack R1, in a control group with 8G of memory: 1 process."


def test_a_command_is_for_who_may_read_the_log() -> None:
    _, bottom = of_job([Part(PartSeen(42), [PROCESS])], sees_words=False)
    process = every(bottom, "process")[0]
    assert process.name == ""
    assert process.unknown == ["its command: that is for who may read its log"]
    assert every(bottom, "group")[0].kind == "processes without a control group"


def test_processes_that_the_engine_has_not_told_of_are_unknown_and_not_none() -> None:
    one, bottom = of_job(None)
    assert "ask again" in every(bottom, "job")[0].unknown[-1]
    assert (
        sentence_of_job(bottom, one, None) == "Job 1 stands on a in rack R1; its processes are not known yet."
    )
