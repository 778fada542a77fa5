"""What the kernel writes is understood, and what it can't have meant is not believed.

The texts in ``recorded`` are real: version 1 and /proc from a 6.18 kernel, version 2 from a 6.1 kernel;
pressure is that of a machine, which a group writes in the same words.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.units import KIB, MIB
from muster.monitor.meters import census, groups, host, lives, texts
from muster.monitor.meters.files import Room
from muster.monitor.meters.groups import GroupMeter, Peak
from muster.monitor.meters.shown import Shown

_RECORDED = Path(__file__).parent / "recorded"


def _recorded(name: str) -> bytes:
    return (_RECORDED / name).read_bytes()


def _read(version: int, folders: dict[str, Path]) -> Shown:
    meter = GroupMeter(version, {controller: str(folder) for controller, folder in folders.items()}, Room(0))
    shown = Shown()
    meter.read(shown)
    return shown


# --- Groups ---------------------------------------------------------------------------------------


def test_a_group_of_version_2_shows_everything() -> None:
    shown = _read(2, {"pids": _RECORDED / "v2"})
    assert shown == Shown(
        cpu_seconds=2.54,
        throttled_seconds=5.4,
        memory_bytes=46_383_104 - 41_943_040,
        memory_peak_bytes=91_901_952 - 41_943_040,
        read_bytes=41_949_184,
        written_bytes=41_943_040,
        refaulted_bytes=0,
        cpu_stalled_seconds=5124.366549,
        memory_stalled_seconds=12.837243,
        io_stalled_seconds=136.141865,
    )


def test_a_group_of_version_1_shows_what_its_trees_do() -> None:
    v1 = _RECORDED / "v1"
    shown = _read(1, dict.fromkeys(("pids", "cpu", "memory", "blkio"), v1))
    assert shown == Shown(
        cpu_seconds=32199.550981306,
        throttled_seconds=0.339266028,
        memory_bytes=102_866_944 - 41_943_040,
        memory_peak_bytes=145_059_840 - 41_943_040,
        read_bytes=41_943_040,
        written_bytes=41_955_328,
        refaulted_bytes=4096,
    )
    assert _read(1, {"pids": v1}) == Shown()


def test_in_version_1_cpu_time_is_told_where_cpuacct_is(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_bytes(_recorded("v1/cpu.stat"))
    alone = GroupMeter(1, {"cpu": str(tmp_path)}, Room(0))
    assert groups.CPU not in alone.shows
    apart = _read(1, {"cpu": tmp_path, "cpuacct": _RECORDED / "v1"})
    assert apart.cpu_seconds == 32199.550981306


def test_members_are_listed() -> None:
    assert groups.parse_pids(_recorded("v1/cgroup.procs")) == {12405}
    assert groups.parse_pids(b"0\n7\n12\n") == {7, 12}


def test_bytes_are_summed_over_disks() -> None:
    text = b"8:0 rbytes=10 wbytes=1 rios=1\n8:16 rbytes=5 wbytes=2 rios=1\n7:0 \n"
    assert groups.parse_io_stat(text) == (15, 3)
    assert groups.parse_io_stat(b"") == (0, 0)
    assert groups.parse_blkio(b"8:0 Read 10\n8:16 Read 5\n8:0 Write 1\nTotal 16\n") == (15, 1)
    assert groups.parse_blkio(b"Total 0\n") == (0, 0)


@pytest.mark.parametrize(
    "lie", [b"", b"-1\n", b"18446744073709551615\n", b"garbage\n", b"1 2\n", b"\xff\xfe"]
)
def test_a_group_that_lies_of_one_thing_is_believed_in_the_others(tmp_path: Path, lie: bytes) -> None:
    for name in ("cpu.stat", "memory.peak", "memory.stat", "io.stat"):
        (tmp_path / name).write_bytes(_recorded(f"v2/{name}"))
    (tmp_path / "memory.current").write_bytes(lie)
    shown = _read(2, {"memory": tmp_path})
    assert (shown.memory_bytes, shown.memory_peak_bytes) == (None, None)
    assert (shown.cpu_seconds, shown.read_bytes) == (2.54, 41_949_184)


def test_a_lie_about_one_disk_is_not_summed() -> None:
    assert groups.parse_io_stat(b"8:0 rbytes=-5 wbytes=1\n8:16 rbytes=5 wbytes=2\n") == (None, 3)
    assert groups.parse_blkio(b"8:0 Read 18446744073709551615\n8:0 Write 1\n") == (None, 1)


def test_a_figure_that_the_kernel_does_not_have_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_bytes(b"usage_usec 2540000\nuser_usec 1\nsystem_usec 1\n")
    assert _read(2, {"pids": tmp_path}) == Shown(cpu_seconds=2.54)


# --- The peak -------------------------------------------------------------------------------------


def test_the_peak_is_without_what_could_be_taken_back() -> None:
    peak = Peak()
    assert peak.add(10, 10, 0) == 10
    assert peak.add(10, 50, 40) == 10  # a file was read
    assert peak.add(10, 90, 40) == 50  # and something was held for a moment
    assert peak.add(10, 90, 0) == 50


def test_without_the_kernels_peak_it_is_the_most_that_was_seen() -> None:
    peak = Peak()
    assert [peak.add(used, None, 0) for used in (3, 9, 4)] == [3, 9, 9]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))))
def test_the_peak_never_falls_and_is_never_less_than_what_is_used(
    looks: list[tuple[int, int, int]],
) -> None:
    peak, last = Peak(), 0
    for used, kernels, spare in looks:
        now = peak.add(used, kernels, spare)
        assert now >= max(last, used)
        last = now


# --- Processes ------------------------------------------------------------------------------------


def test_a_process_tells_its_own_time_and_that_of_children_it_has_waited_for() -> None:
    life = lives.parse_stat(_recorded("proc/stat"))
    assert life is not None
    assert (life.parent, life.session, life.started, life.threads) == (12394, 7108, 2392512, 1)
    assert (life.own_seconds, life.inherited_seconds) == ((19 + 64) / lives.TICKS, (7 + 13) / lives.TICKS)
    assert not life.is_dead


def test_a_process_whose_name_looks_like_its_own_line_is_read_right() -> None:
    text = _recorded("proc/stat")
    assert lives.parse_stat(text.replace(b"(python)", b"(a) Z 9 9 9 (b))")) == lives.parse_stat(text)


def test_memory_of_a_process_is_told_apart_in_its_own_and_what_it_shares() -> None:
    assert lives.parse_status(_recorded("proc/status")) == (59124 * KIB, 6784 * KIB, 105816 * KIB)
    assert lives.parse_status(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n") == (0, 0, 0)
    assert lives.parse_status(b"") is None


def test_bytes_of_a_process_are_those_of_disks() -> None:
    assert lives.parse_io(_recorded("proc/io")) == (41_943_040, 41_955_328)
    assert lives.parse_io(b"") == (None, None)


def test_waiting_for_a_cpu_is_believed_if_the_main_thread_does_the_work() -> None:
    life = lives.parse_stat(_recorded("proc/stat"))
    assert life is not None
    assert lives.parse_queued(_recorded("proc/schedstat"), life) == 0.891597049
    others_work = life._replace(threads=8, own_seconds=10.0)
    assert lives.parse_queued(_recorded("proc/schedstat"), others_work) is None
    assert lives.parse_queued(b"", life) is None


@given(st.binary(max_size=200))
def test_no_text_whatever_breaks_a_parser(text: bytes) -> None:
    life = lives.parse_stat(_recorded("proc/stat"))
    assert life is not None
    for parse in (lives.parse_stat, lives.parse_status, lives.parse_io, groups.parse_io_stat):
        parse(text)
    groups.parse_blkio(text)
    groups.parse_pids(text)
    lives.parse_queued(text, life)
    texts.pressure_seconds(b"some " + text)
    host.parse_busy_seconds(b"cpu " + text)
    host.parse_memory(b"MemTotal: " + text)
    census.parse_mark(text, b"/home")


@given(st.integers())
def test_a_number_is_not_negative_and_not_absurd(number: int) -> None:
    assert texts.count(str(number).encode()) == (number if 0 <= number < 1 << 62 else None)


# --- The node -------------------------------------------------------------------------------------


def test_the_node_tells_its_cpus_and_memory() -> None:
    words = _recorded("host/stat").split()
    ticks = sum(int(words[index]) for index in (1, 2, 3, 6, 7))
    assert host.parse_busy_seconds(_recorded("host/stat")) == ticks / lives.TICKS
    used, total = host.parse_memory(b"MemTotal:  4096 kB\nMemFree: 1 kB\nMemAvailable:  1024 kB\n")
    assert (used, total) == (3 * MIB, 4 * MIB)
    assert host.parse_memory(b"MemTotal:  4096 kB\nMemAvailable:  9999 kB\n") == (None, 4 * MIB)
    assert host.parse_memory(b"") == (None, None)
    assert host.parse_busy_seconds(b"") is None
    used, total = host.parse_memory(_recorded("host/meminfo"))
    assert used is not None
    assert total is not None
    assert 0 < used < total


def test_pressure_is_the_time_in_which_someone_waited() -> None:
    assert texts.pressure_seconds(_recorded("host/pressure-io")) == 136.141865
    assert texts.pressure_seconds(b"full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n") is None
    assert texts.pressure_seconds(b"some avg10=0.00\n") is None
    assert texts.pressure_seconds(b"") is None


# --- Marks ----------------------------------------------------------------------------------------


def test_a_mark_is_of_a_job_of_the_same_home() -> None:
    environ = b"A=1\0MUSTER_JOB_ID=17\0MUSTER_ATTEMPT=2\0MUSTER_HOME=/var/m\0RANK=3\0"
    assert census.parse_mark(environ, b"/var/m") == ("17", 2)
    assert census.parse_mark(environ, b"/home/else") is None
    assert census.parse_mark(b"MUSTER_JOB_ID=17\0MUSTER_HOME=/var/m\0", b"/var/m") is None
    assert census.parse_mark(b"MUSTER_JOB_ID=17\0MUSTER_ATTEMPT=x\0MUSTER_HOME=/m\0", b"/m") is None
