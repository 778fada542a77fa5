"""GPUs as the driver tells them, and all the ways in which it does not."""

import os
import pwd
import subprocess
import sys

import pytest
from meter_lab import Driver, until, worker

from muster.model.units import GIB, MIB
from muster.model.usage import ForeignProcess, GpuReading, GpuShown
from muster.monitor.meters import Attended
from muster.monitor.meters.nvml import (
    Gpu,
    GpuMeter,
    numbers_are_the_machines,
    shown_to,
    strangers,
    with_foreign,
)

_ONE = f"""
    gpu 0 uuid GPU-a
    gpu 0 name NVIDIA A40
    gpu 0 bus 00000000:01:00.0
    gpu 0 minor 0
    gpu 0 total {48 * GIB}
    gpu 0 used {3 * GIB}
    gpu 0 busy 37
    gpu 0 milliwatts 61500
    gpu 0 celsius 44
    gpu 0 errors 2
"""
_ANOTHER = """
    gpu 1 uuid GPU-b
    gpu 1 name NVIDIA A40
    gpu 1 busy 5
"""
_NOBODY = () if numbers_are_the_machines() else None  # where they are not, nobody knows
_SHOWN = GpuReading(
    index=0,
    minor=0,
    uuid="GPU-a",
    name="NVIDIA A40",
    metric="nvml-utilization",
    busy=0.37,
    memory_used_bytes=3 * GIB,
    memory_total_bytes=48 * GIB,
    power_watts=61.5,
    temperature_celsius=44.0,
    uncorrected_errors=2,
    is_mig=False,
    foreign=_NOBODY,
)

tells_whose = pytest.mark.skipif(
    not numbers_are_the_machines(), reason="in a container the driver's process numbers are not ours"
)


def _gpu(driver: Driver, index: int = 0) -> GpuReading:
    return driver.read().node.gpus[index]


def test_a_device_is_told_with_the_name_of_the_metric(driver: Driver) -> None:
    driver.has(_ONE)
    assert driver.read().node.gpus == (_SHOWN,)


def test_without_gpus_nothing_is_known_of_them(driver: Driver) -> None:
    with worker() as working:
        shown = driver.read([Attended("1", 1, (working.part,), (0, 1))])
    assert shown.node.gpus == ()
    assert shown.readings[0].gpus == (GpuShown(0), GpuShown(1))
    assert driver.silent == []
    assert GpuMeter(lambda: None).read() == ()


# --- Whose processes ------------------------------------------------------------------------------


@tells_whose
def test_memory_is_attributed_to_the_job_whose_process_takes_it(driver: Driver) -> None:
    with worker() as one, worker() as other:
        driver.has(f"{_ONE}{_ANOTHER}gpu 0 compute {one.pid} {MIB}\ngpu 0 compute {other.pid} {2 * MIB}")
        attended = [Attended("1", 1, (one.part,), (1, 0)), Attended("2", 1, (other.part,), (0,))]
        shown = driver.read(attended)
    assert shown.readings[0].gpus == (GpuShown(0, 0.37, MIB), GpuShown(1, 0.05, 0))
    assert shown.readings[1].gpus == (GpuShown(0, 0.37, 2 * MIB),)
    assert shown.node.gpus[0].foreign == ()


@tells_whose
def test_a_child_of_the_job_is_of_the_job(driver: Driver) -> None:
    with worker() as one:
        one.does("held.append(__import__('subprocess').Popen(['sleep', '60']))")
        until(lambda: _children(one.pid))
        (child,) = _children(one.pid)
        driver.has(f"{_ONE}gpu 0 compute {child} {MIB}\ngpu 0 compute {one.pid} {MIB}")
        shown = driver.read([Attended("1", 1, (one.part,), (0,))])
    assert shown.readings[0].gpus == (GpuShown(0, 0.37, 2 * MIB),)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@tells_whose
def test_a_process_that_muster_has_not_started_is_foreign(driver: Driver) -> None:
    driver.has(f"{_ONE}gpu 0 compute {os.getpid()} {MIB}")
    (stranger,) = _gpu(driver).foreign
    assert (stranger.pid, stranger.memory_bytes) == (os.getpid(), MIB)
    assert stranger.user == pwd.getpwuid(os.getuid()).pw_name
    assert stranger.command is not None
    assert stranger.command.split()[0] == sys.orig_argv[0]


@tells_whose
def test_who_computes_and_draws_is_counted_once(driver: Driver) -> None:
    pid = os.getpid()
    driver.has(f"{_ONE}gpu 0 compute {pid} {MIB}\ngpu 0 graphics {pid} {MIB}\ngpu 0 graphics 1 {GIB}")
    assert [(f.pid, f.memory_bytes) for f in _gpu(driver).foreign] == [(1, GIB), (pid, MIB)]


@tells_whose
def test_a_process_that_has_ended_by_now_is_not_foreign(driver: Driver) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    driver.has(f"{_ONE}gpu 0 compute {ended.pid} {MIB}\ngpu 0 compute 4294967294 {MIB}")
    assert _gpu(driver).foreign == ()


@tells_whose
def test_bytes_that_are_not_told_are_not_zero(driver: Driver) -> None:
    with worker() as one:
        driver.has(f"{_ONE}gpu 0 compute {one.pid} {2**64 - 1}\ngpu 0 compute {os.getpid()} {2**64 - 1}")
        shown = driver.read([Attended("1", 1, (one.part,), (0,))])
    assert shown.readings[0].gpus == (GpuShown(0, 0.37, None),)
    assert [f.memory_bytes for f in shown.node.gpus[0].foreign] == [None]


def test_where_process_numbers_mean_nothing_nobody_is_accused() -> None:
    gpu = Gpu(GpuReading(index=0, busy=0.37), None)
    assert shown_to({0: gpu}, (0,), {1}) == (GpuShown(0, 0.37, None),)
    assert strangers([gpu], ()) == set()
    assert with_foreign(gpu, {}).foreign is None


def test_of_a_stranger_that_can_not_be_looked_at_the_number_is_told() -> None:
    told = with_foreign(Gpu(_SHOWN, {7: MIB}), {7: (None, None)})
    assert told.foreign == (ForeignProcess(7, None, None, MIB),)


# --- Divided devices ------------------------------------------------------------------------------


@tells_whose
def test_a_divided_device_tells_no_utilisation_but_its_processes(driver: Driver) -> None:
    with worker() as one:
        lines = f"gpu 0 mig 1\ngpu 0 compute {one.pid} {MIB}\ngpu 0 compute {one.pid} {MIB}"
        driver.has(f"{_ONE.replace('gpu 0 busy 37', '')}{lines}")
        shown = driver.read([Attended("1", 1, (one.part,), (0,))])
    assert shown.node.gpus[0].is_mig is True
    assert shown.readings[0].gpus == (GpuShown(0, None, 2 * MIB),)


def test_a_device_that_could_be_divided_and_is_not_says_so(driver: Driver) -> None:
    driver.has(f"{_ONE}gpu 0 mig 0")
    assert _gpu(driver).is_mig is False


# --- What is missing, and what is wrong -----------------------------------------------------------


@tells_whose
def test_an_old_driver_tells_what_it_knows(old_driver: Driver) -> None:
    with worker() as one:
        old_driver.has(f"{_ONE}gpu 0 compute {one.pid} {MIB}")
        shown = old_driver.read([Attended("1", 1, (one.part,), (0,))])
    (gpu,) = shown.node.gpus
    assert (gpu.busy, gpu.temperature_celsius, gpu.power_watts) == (0.37, 44.0, 61.5)
    assert (gpu.uncorrected_errors, gpu.is_mig, gpu.lost) == (None, None, False)
    assert shown.readings[0].gpus == (GpuShown(0, 0.37, MIB),)


def test_a_figure_that_the_device_does_not_have_is_not_known(driver: Driver) -> None:
    driver.has("gpu 0 uuid GPU-a")
    known = GpuReading(index=0, uuid="GPU-a", metric="nvml-utilization", is_mig=False, foreign=_NOBODY)
    assert _gpu(driver) == known


@pytest.mark.parametrize(
    ("figure", "lie", "field"),
    [
        ("busy", 101, "busy"),
        ("used", 2**64 - 1, "memory_used_bytes"),
        ("used", 49 * GIB, "memory_used_bytes"),
        ("total", 2**64 - 1, "memory_total_bytes"),
        ("milliwatts", 2**32 - 1, "power_watts"),
        ("celsius", 2**32 - 6, "temperature_celsius"),
        ("errors", 2**64 - 1, "uncorrected_errors"),
    ],
)
def test_a_lie_is_not_told_on(driver: Driver, figure: str, lie: int, field: str) -> None:
    driver.has(f"gpu 0 {figure} {lie}\n{_ONE}")
    shown = _gpu(driver)
    assert getattr(shown, field) is None
    assert (shown.name, shown.lost) == ("NVIDIA A40", False)


def test_a_device_that_falls_off_the_bus_is_lost_and_the_others_are_not(driver: Driver) -> None:
    driver.has(_ONE + _ANOTHER)
    driver.read()
    driver.has(f"gpu 0 lost 1\n{_ONE}{_ANOTHER}")
    lost, other = driver.read().node.gpus
    assert lost == GpuReading(index=0, minor=0, uuid="GPU-a", name="NVIDIA A40", lost=True)
    assert (other.lost, other.busy) == (False, 0.05)


def test_a_device_that_was_lost_from_the_start_is_told_as_lost(driver: Driver) -> None:
    driver.has(f"gpu 0 lost 1\n{_ONE}{_ANOTHER}")
    lost, other = driver.read().node.gpus
    assert (lost.lost, other.lost) == (True, False)


def test_when_one_is_gone_the_others_keep_their_numbers(driver: Driver) -> None:
    driver.has(_ONE + _ANOTHER)
    driver.read()
    driver.has("dead 1")
    driver.read()
    driver.has(_ANOTHER.replace("gpu 1", "gpu 0"))
    first, second = driver.read().node.gpus
    assert (first.index, first.uuid, first.lost) == (0, "GPU-a", True)
    assert (second.index, second.uuid, second.busy) == (1, "GPU-b", 0.05)


def test_a_driver_that_is_replaced_has_lost_no_device(driver: Driver) -> None:
    driver.has(_ONE)
    driver.read()
    driver.has("dead 1")
    assert _gpu(driver) == GpuReading(index=0, minor=0, uuid="GPU-a", name="NVIDIA A40")
    driver.has(_ONE)
    assert _gpu(driver) == _SHOWN


def test_a_driver_that_stands_still_holds_up_nobody(impatient: Driver) -> None:
    impatient.has(_ONE)
    with worker() as one:
        attended = [Attended("1", 1, (one.part,), (0,))]
        until(lambda: impatient.read(attended).node.gpus == (_SHOWN,))
        impatient.has(f"{_ONE}hang nvmlDeviceGetPowerUsage")
        until(lambda: impatient.read(attended) and impatient.silent == ["gpu"])
        shown = impatient.read(attended)
        assert shown.node.gpus == (GpuReading(index=0, minor=0, uuid="GPU-a", name="NVIDIA A40"),)
        assert shown.readings[0].gpus == (GpuShown(0),)
        assert shown.readings[0].cpu_seconds is not None
        impatient.has(_ONE)
        until(lambda: impatient.read(attended).node.gpus == (_SHOWN,))
    assert impatient.silent == []


# --- The inventory --------------------------------------------------------------------------------


def test_the_inventory_is_told_by_the_same_library(driver: Driver) -> None:
    driver.has(f"{_ONE}{_ANOTHER}gpu 1 lost 1")
    ask = "from muster.engines.local import inventory; print(*inventory.gpus(), sep='\\n')"
    told = subprocess.run(
        [sys.executable, "-c", ask], env=driver.environment, capture_output=True, check=True
    )
    one, lost = told.stdout.decode().splitlines()
    assert "model='A40'" in one
    assert f"memory_bytes={48 * GIB}" in one
    assert "minor=0" in one
    assert "healthy=False" in lost
