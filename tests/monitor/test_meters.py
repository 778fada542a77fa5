"""Meters on real processes, in real groups and without."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from meter_lab import (
    TICKS_SECONDS,
    Worker,
    as_daemon,
    burn,
    found_groups,
    grouped,
    in_child,
    in_group,
    indented,
    read,
    until,
    used,
    v1,
    worker,
)

from muster.engines.local import processes
from muster.engines.local.cgroups import Limits
from muster.model.units import MIB
from muster.monitor.meters import Meters, PartSeen

# --- What is measured -----------------------------------------------------------------------------


def test_cpu_time_is_measured(meters: Meters, seen: tuple[Worker, PartSeen]) -> None:
    working, part = seen
    before = read(meters, part)
    working.does(burn(0.3))
    after = read(meters, part)
    assert before.cpu_seconds is not None
    assert after.cpu_seconds is not None
    assert after.cpu_seconds - before.cpu_seconds == pytest.approx(0.3, abs=TICKS_SECONDS)


def test_children_that_have_ended_are_counted(meters: Meters, seen: tuple[Worker, PartSeen]) -> None:
    working, part = seen
    before = read(meters, part)
    for _ in range(3):
        working.does(in_child(burn(0.1)))
        read(meters, part)
    after = read(meters, part)
    assert before.cpu_seconds is not None
    assert after.cpu_seconds is not None
    assert after.cpu_seconds - before.cpu_seconds == pytest.approx(0.3, abs=TICKS_SECONDS)
    assert after.processes == 1


def test_memory_is_measured_and_its_peak_between_looks(meters: Meters, seen: tuple[Worker, PartSeen]) -> None:
    working, part = seen
    before = read(meters, part)
    working.does(f"held.append(b'x' * {64 * MIB})")
    holding = read(meters, part)
    working.does(f"held.append(b'x' * {64 * MIB}); held.clear()")
    after = read(meters, part)
    assert before.memory_bytes is not None
    assert holding.memory_bytes is not None
    assert after.memory_peak_bytes is not None
    assert holding.memory_bytes - before.memory_bytes == pytest.approx(64 * MIB, rel=0.03)
    assert after.memory_peak_bytes - before.memory_bytes == pytest.approx(128 * MIB, rel=0.03)
    assert after.memory_bytes == pytest.approx(before.memory_bytes, abs=4 * MIB)


def test_processes_are_counted_and_not_threads(meters: Meters, seen: tuple[Worker, PartSeen]) -> None:
    working, part = seen
    working.does("import threading; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
    working.does("held.append(os.fork())\nif not held[0]: time.sleep(60)")
    assert read(meters, part).processes == 2


def test_bytes_to_the_disk_are_counted(meters: Meters, seen: tuple[Worker, PartSeen], tmp_path: Path) -> None:
    if not _is_accounted(tmp_path):
        pytest.skip("the folder of this test is not on a disk whose bytes are counted")
    working, part = seen
    before = read(meters, part)
    working.does(f"held.append(open({str(tmp_path / 'file')!r}, 'wb', 0))\nheld[0].write(bytes({8 * MIB}))")
    after = read(meters, part)
    assert before.written_bytes is not None
    assert after.written_bytes is not None
    assert after.written_bytes - before.written_bytes == pytest.approx(8 * MIB, rel=0.03)


def _is_accounted(folder: Path) -> bool:
    before = Path("/proc/self/io").read_text()
    (folder / "probe").write_bytes(bytes(MIB))
    _, _, written = before.partition("\nwrite_bytes: ")
    return f"\nwrite_bytes: {written.split()[0]}\n" not in Path("/proc/self/io").read_text()


def test_throttling_is_told_where_a_group_caps_cpus(meters: Meters) -> None:
    limits = Limits(cpus_milli=100, pids=100, cpu_cap=True)
    with found_groups() as found:
        if "cpu" not in found.bases:
            pytest.skip("groups that cap cpus can't be made here")
        with grouped(found, limits) as (working, group):
            part = in_group(working, group.folders, group.version)
            working.does(burn(0.05))
            throttled = read(meters, part).throttled_seconds
    assert throttled is not None
    assert throttled > 0.1


def test_the_parts_of_a_gang_are_summed(meters: Meters) -> None:
    with worker() as one, worker() as other:
        before = read(meters, one.part, other.part)
        one.does(burn(0.1))
        other.does(burn(0.2))
        after = read(meters, one.part, other.part)
        ones = read(meters, one.part)
    assert before.cpu_seconds is not None
    assert after.cpu_seconds is not None
    assert after.cpu_seconds - before.cpu_seconds == pytest.approx(0.3, abs=TICKS_SECONDS)
    assert after.processes == 2
    assert ones.cpu_seconds == pytest.approx(after.cpu_seconds, abs=TICKS_SECONDS)  # the other is kept


def test_the_node_isread(meters: Meters) -> None:
    node = meters.read(()).node
    assert node.cpu_seconds is not None
    assert node.memory_used_bytes is not None
    assert node.memory_total_bytes is not None
    assert node.disk_used_bytes is not None
    assert node.disk_total_bytes is not None
    assert 0 < node.memory_used_bytes < node.memory_total_bytes
    assert 0 < node.disk_used_bytes < node.disk_total_bytes
    assert node.gpus == ()


# --- Who belongs to it ----------------------------------------------------------------------------


def test_without_groups_a_daemon_is_known_by_its_environment(meters: Meters, tmp_path: Path) -> None:
    mark = {"MUSTER_JOB_ID": "1", "MUSTER_ATTEMPT": "1", "MUSTER_HOME": str(tmp_path.resolve())}
    with worker(mark) as ours, worker(mark | {"MUSTER_HOME": "/else"}) as theirs:
        before = read(meters, ours.part)
        daemons = [_daemon(working, tmp_path / str(working.pid)) for working in (ours, theirs)]
        after = read(meters, ours.part)
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: _has_ended(pid))
        last = read(meters, ours.part)
    assert [look.processes for look in (before, after, last)] == [1, 2, 1]
    assert used(before, after) == pytest.approx(0.2, abs=TICKS_SECONDS)
    assert used(after, last) == pytest.approx(0.0, abs=TICKS_SECONDS)  # though nobody has waited for it


def _daemon(working: Worker, told: Path) -> int:
    working.does(as_daemon(burn(0.2), told))
    until(told.exists)
    return int(told.read_text())


def _has_ended(pid: int) -> bool:
    process = processes.look(pid)
    return process is None or process.state == "Z"


def test_who_was_found_to_belong_goes_on_to_when_its_parent_ends(meters: Meters) -> None:
    with worker() as working:
        working.does("pid = os.fork()\nif not pid:\n    held.append(os.fork())\n    time.sleep(60)\n")
        working.does("held.append(pid)")
        until(lambda: read(meters, working.part).processes == 3)
        working.does("os.kill(held[0], 9)\nos.waitpid(held[0], 0)")
        assert read(meters, working.part).processes == 2


def test_groups_that_a_job_makes_below_its_own_belong_to_it(meters: Meters) -> None:
    with v1() as (working, part):
        below = f"{part.group['pids']}/below"
        os.mkdir(below)
        working.does("held.append(os.fork())\nif not held[0]: time.sleep(60)")
        children = Path(f"/proc/{working.pid}/task/{working.pid}/children").read_text()
        Path(f"{below}/cgroup.procs").write_text(children)
        assert read(meters, part).processes == 2


def test_a_process_that_has_the_number_of_one_that_ended_is_not_mistaken(meters: Meters) -> None:
    with worker() as stranger:
        stranger.does(burn(0.1))
        part = PartSeen(stranger.pid, stranger.started - 1)
        shown = read(meters, part)
    assert (shown.processes, shown.cpu_seconds, shown.memory_bytes) == (None, None, None)


def test_a_number_that_is_given_again_between_looks_is_told_apart(meters: Meters) -> None:
    last = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last, os.W_OK):
        pytest.skip("only root can say which number the next process gets")
    with worker() as working:
        working.does("held.append(os.fork())\nif not held[0]:\n" + indented(burn(0.3) + "time.sleep(60)"))
        (child,) = _children(working.pid)
        until(lambda: (read(meters, working.part).cpu_seconds or 0) > 0.28)
        before = read(meters, working.part)
        working.does("os.kill(held[0], 9)\nos.waitpid(held[0], 0)")
        with _process_with(child) as again:
            shown = read(meters, working.part)
            assert again not in meters._attempts["1", 1].members
    assert shown.processes == 1
    assert used(before, shown) == pytest.approx(0.0, abs=TICKS_SECONDS)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def _process_with(number: int) -> Iterator[int]:
    """Another process with this number, that is not of the job."""
    for _ in range(100):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
        process = subprocess.Popen(["sleep", "60"])
        try:
            if process.pid == number:
                yield number
                return
        finally:
            with process:
                process.kill()
    pytest.skip("the number was always given to someone else")
