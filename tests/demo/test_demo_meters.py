"""What the simulated meters show: counters that never fall, habits that keep, and silence that is no zero."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.demo import habits
from muster.demo.curves import values_at
from muster.demo.habits import Habit, busy_of, counted
from muster.demo.meters import SimMeters
from muster.demo.work import USUAL
from muster.engines.sim import Life, LiveEngine
from muster.model.events import Seat
from muster.model.job import Job, JobId, Shape, single
from muster.model.node import Device, Node
from muster.model.plan import Start, Suspend
from muster.monitor.meters.gather import Attended
from muster.monitor.meters.parts import PartSeen
from muster.monitor.rates import sample_between

HABITS = [habits.TRAINER, habits.DATA_BOUND, habits.SERVING, habits.NOTEBOOK, habits.IDLE]
NODES = tuple(Node(name, 64_000, 1 << 38, devices=(Device("A40"),) * 4) for name in ("n1", "n2"))
SHAPE = Shape(cpus_milli=8000, memory_bytes=1 << 35, gpus=2)
SEATS = (Seat("n1", SHAPE, (0, 1), 1000), Seat("n2", SHAPE, (2, 3), 1000))
MOMENT = st.floats(0, 4e9)


@given(st.sampled_from(HABITS), st.text(), st.integers(0, 20), MOMENT)
def test_a_device_is_busy_by_a_part_and_always_the_same_at_one_moment(
    habit: Habit, job: str, devices: int, at: float
) -> None:
    busy = busy_of(habit, job, devices, at)
    assert len(busy) == devices
    assert all(0 <= one <= 1 for one in busy)
    assert busy == busy_of(habit, job, devices, at)


@given(st.floats(0, 1e10), st.floats(0, 1e7), st.floats(0, 1e6), st.text())
def test_a_counter_never_falls(rate: float, ran: float, more: float, job: str) -> None:
    assert 0 <= counted(rate, ran, job) <= counted(rate, ran + more, job) * (1 + 1e-12)


@given(st.sampled_from([kind for kind in USUAL if kind.curve]), st.text(), st.floats(0, 1))
def test_what_is_reported_has_names_and_numbers(kind: object, key: str, done: float) -> None:
    assert values_at(kind, key, done)["loss"] > 0  # type: ignore[arg-type]


@pytest.fixture
def engine() -> Iterator[LiveEngine]:
    jobs: dict[JobId, Job] = {"j": Job("j", single(), 0.0), "k": Job("k", single(), 0.0, name="silent")}
    engine = LiveEngine(NODES, jobs.__getitem__, lambda *_: Life(1000.0))
    engine.act(Start("j", 1, SEATS))
    yield engine
    engine.close()


def habit_of(job: Job) -> Habit:
    return habits.SILENT if job.name == "silent" else habits.TRAINER


def attended(job: JobId, *devices: int) -> Attended:
    return Attended(job, 1, (PartSeen(1), PartSeen(2)), devices)


def test_two_looks_make_a_sample_within_what_is_held(engine: LiveEngine) -> None:
    meters = SimMeters(engine, habit_of)
    [before] = meters.read([attended("j", 0, 1)]).readings
    time.sleep(0.02)
    [after] = meters.read([attended("j", 0, 1)]).readings
    sample = sample_between(before, after)
    assert sample is not None
    assert sample.cpus is not None
    assert 0 < sample.cpus < 16
    assert all(busy is not None and busy > 0.5 for busy in sample.gpu_busy)


def test_each_node_shows_its_own_devices(engine: LiveEngine) -> None:
    nodes = SimMeters(engine, habit_of).read([]).nodes
    busy = {(name, gpu.index): bool(gpu.busy) for name, node in nodes.items() for gpu in node.gpus}
    held = {(seat.node, device) for seat in SEATS for device in seat.devices}
    assert {where for where, is_busy in busy.items() if is_busy} == held


def test_a_silent_meter_shows_nothing_and_no_zero(engine: LiveEngine) -> None:
    engine.act(Start("k", 1, (Seat("n1", SHAPE, (2, 3), 1000),)))
    readings = SimMeters(engine, habit_of).read([attended("k", 2, 3)])
    assert readings.readings[0].cpu_seconds is None
    assert readings.readings[0].gpus == ()
    assert [gpu.busy is None for gpu in readings.nodes["n1"].gpus] == [False, False, True, True]


def test_who_stands_still_uses_no_gpu(engine: LiveEngine) -> None:
    engine.act(Suspend("j", 1))
    [reading] = SimMeters(engine, habit_of).read([attended("j", 0, 1)]).readings
    assert [gpu.busy for gpu in reading.gpus] == [0.0, 0.0]
