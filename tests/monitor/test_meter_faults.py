"""Ends, and what goes wrong: nothing that one meter does is felt by another."""

import contextlib
import os
import shutil
import threading
from pathlib import Path

import pytest
from meter_lab import Worker, burn, indented, read, until, used, v1, worker

from muster.engines.local.cgroups import Group
from muster.model.units import KIB, MIB
from muster.model.usage import GpuShown
from muster.monitor.meters import Attended, Meters, PartSeen, census, host
from muster.monitor.meters.files import Room
from muster.monitor.meters.lives import TICKS
from muster.monitor.meters.nvml import Gpu
from muster.monitor.meters.shown import Shown
from muster.monitor.meters.trees import ALL, TreeMeter

_RECORDED = Path(__file__).parent / "recorded" / "proc"
_FORK = "held.append(os.fork())\nif not held[0]: time.sleep(60)"


# --- Ends -----------------------------------------------------------------------------------------


def test_counters_stay_when_the_job_has_ended(meters: Meters, seen: tuple[Worker, PartSeen]) -> None:
    working, part = seen
    working.does(burn(0.1) + f"held.append(b'x' * {8 * MIB})")
    before = read(meters, part)
    working.end()
    after = read(meters, part)
    assert used(before, after) >= 0
    assert after.memory_peak_bytes == before.memory_peak_bytes
    assert after.processes == 0


def test_counters_never_fall_while_children_come_and_go(
    meters: Meters, seen: tuple[Worker, PartSeen]
) -> None:
    """Some are waited for, and some have nobody who does."""
    working, part = seen
    working.does("import signal")
    last = read(meters, part)
    for handler in ("SIG_DFL", "SIG_IGN") * 4:
        child = f"if not pid:\n{indented(burn(0.02))}    os._exit(0)\n"
        working.does(f"signal.signal(signal.SIGCHLD, signal.{handler})\npid = os.fork()\n{child}")
        for step in ("pass", "try: os.waitpid(pid, 0)\nexcept ChildProcessError: pass"):
            working.does(step)
            now = read(meters, part)
            assert used(last, now) >= 0
            last = now


def test_kept_descriptors_do_not_keep_a_group_from_being_removed(meters: Meters) -> None:
    with v1() as (working, part):
        before = read(meters, part)
        working.end()
        until(Group(1, dict(part.group or {})).remove)
        after = read(meters, part)
    assert before.memory_bytes
    assert (after.memory_bytes, after.processes) == (0, 0)
    assert after.cpu_seconds == before.cpu_seconds


def test_descriptors_are_kept_within_bounds_and_closed_with_the_attempt(tmp_path: Path) -> None:
    room = Room(6)
    with contextlib.closing(Meters(tmp_path, gpus=tuple, room=room)) as meters, worker() as working:
        meters.read(())
        left, before = room.left, _descriptors()
        for _ in range(2):
            shown = read(meters, working.part)
            assert 0 <= room.left < left
            assert _descriptors() == before + left - room.left
            assert None not in (shown.cpu_seconds, shown.memory_bytes, shown.written_bytes)
        meters.read(())
        assert (room.left, _descriptors()) == (left, before)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# --- What throws or lies --------------------------------------------------------------------------


@pytest.mark.parametrize("group", [{}, {"pids": "/no/such"}, {"memory": "/proc/self"}, {"cpu": "/dev/null"}])
def test_a_group_that_is_none_is_not_known_and_nothing_else_follows(
    meters: Meters, group: dict[str, str]
) -> None:
    with worker() as working:
        strange = PartSeen(1, None, group, 1)
        attended = [Attended("1", 1, (strange,)), Attended("2", 1, (working.part,))]
        one, other = meters.read(attended).readings
    assert (one.throttled_seconds, one.memory_stalled_seconds) == (None, None)
    assert other.cpu_seconds is not None


def test_a_meter_that_throws_is_not_known_and_nothing_else_follows(
    meters: Meters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = TreeMeter.read

    def throws(self: TreeMeter, told: set[int]) -> Shown:
        if broken.pid in told:
            raise ZeroDivisionError
        return reads(self, told)

    monkeypatch.setattr(TreeMeter, "read", throws)
    with worker() as broken, worker() as working:
        attended = [Attended("1", 1, (broken.part,)), Attended("2", 1, (working.part,))]
        one, other = meters.read(attended).readings
    assert one.cpu_seconds is None
    assert other.cpu_seconds is not None


@pytest.mark.parametrize("lie", [b"", b"garbage", b"1 (x) S -1 -1", b"1 (x) S " + b"9" * 5000])
def test_a_process_that_is_not_understood_makes_its_tree_unknown(tmp_path: Path, lie: bytes) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(lie)
    assert TreeMeter(ALL, Room(0), str(tmp_path)).read({7}) == Shown()


def test_a_process_that_is_understood_again_has_lost_nothing(tmp_path: Path) -> None:
    shutil.copytree(_RECORDED, tmp_path / "12405")
    meter = TreeMeter(ALL, Room(0), str(tmp_path))
    before = meter.read({12405})
    (tmp_path / "12405" / "stat").write_bytes(b"garbage")
    assert meter.read({12405}) == Shown()
    shutil.copy(_RECORDED / "stat", tmp_path / "12405")
    assert meter.read({12405}) == before


def test_a_kernel_that_does_not_tell_everything_is_believed_in_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "12405").mkdir()
    for name in ("stat", "status"):
        shutil.copy(_RECORDED / name, tmp_path / "12405")
    shown = TreeMeter(ALL, Room(0), str(tmp_path)).read({12405})
    assert shown.cpu_seconds == pytest.approx((19 + 64 + 7 + 13) / TICKS)
    assert shown.memory_peak_bytes == 105816 * KIB
    assert (shown.read_bytes, shown.cpu_stalled_seconds, shown.io_stalled_seconds) == (None, None, None)


def test_delays_are_told_where_the_kernel_accounts_for_them(tmp_path: Path) -> None:
    shutil.copytree(_RECORDED, tmp_path / "12405")
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/task_delayacct").write_text("1\n")
    stat = (_RECORDED / "stat").read_bytes().split()
    stat[41] = b"50"
    (tmp_path / "12405" / "stat").write_bytes(b" ".join(stat))
    assert TreeMeter(ALL, Room(0), str(tmp_path)).read({12405}).io_stalled_seconds == 50 / TICKS


# --- Who does not answer --------------------------------------------------------------------------


def test_a_gpu_meter_that_hangs_or_throws_holds_up_nobody(tmp_path: Path) -> None:
    stuck, calls = threading.Event(), []

    def gpus() -> tuple[Gpu, ...]:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("broken")
        stuck.wait()
        return ()

    meters = Meters(tmp_path, gpus=gpus, now=lambda: 5.0, patience_seconds=0.05)
    with contextlib.closing(meters), worker() as working:
        attended = [Attended("1", 1, (working.part,), (0,))]
        for _ in range(4):
            shown = meters.read(attended)
            assert "gpu" in meters.silent
            assert shown.readings[0].gpus == (GpuShown(0),)
            assert shown.readings[0].cpu_seconds is not None
        assert meters.silent["gpu"] == 5.0
        assert len(calls) == 2  # nobody is asked again who has not answered yet
        stuck.set()
        until(lambda: meters.read(attended) and "gpu" not in meters.silent)


def test_a_disk_that_does_not_answer_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(host, "disk_of", lambda _: stuck.wait() and None)
    with contextlib.closing(Meters(tmp_path, gpus=tuple, patience_seconds=0.05)) as meters:
        node = meters.read(()).node
        assert (node.disk_used_bytes, node.disk_total_bytes) == (None, None)
        assert node.memory_used_bytes is not None
        assert "disk" in meters.silent
        stuck.set()


def test_an_environment_that_can_not_be_read_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(census, "read_marks", lambda *_: stuck.wait() and {})
    meters = Meters(tmp_path, gpus=tuple, patience_seconds=0.05)
    with contextlib.closing(meters), worker() as working:
        working.does(_FORK)
        assert read(meters, working.part).processes == 2
        assert "environment" in meters.silent
        stuck.set()


def test_of_an_attempt_that_nobody_ever_saw_nothing_is_known(meters: Meters) -> None:
    with worker() as working:
        part = working.part
    for seen in ((), (part,)):
        (shown,) = meters.read([Attended("1", 1, seen)]).readings
        assert (shown.cpu_seconds, shown.memory_bytes, shown.processes) == (None, None, None)


def test_readings_are_in_the_order_they_were_asked_for_and_dated(meters: Meters) -> None:
    with worker() as one, worker() as other:
        attended = [Attended("9", 2, (one.part,)), Attended("1", 7, (other.part,))]
        first, second = meters.read(attended).readings
    assert [(reading.job, reading.attempt) for reading in (first, second)] == [("9", 2), ("1", 7)]
    assert first.since_boot_seconds <= second.since_boot_seconds
