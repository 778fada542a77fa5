"""What is read from and written to control groups and /proc, on texts of both versions."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engines.local import cgroups, inventory, processes
from muster.engines.local.cgroups import Cgroups, Group, Limits, own_folders, settings
from muster.engines.local.records import Records
from muster.model.node import Node
from muster.model.units import GIB, MIB

V1 = """\
24 30 0:21 / /proc rw,nosuid - proc proc rw
31 24 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid shared:9 - cgroup cgroup rw,name=systemd
34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct
35 31 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:11 - cgroup cgroup rw,memory
36 31 0:31 / /sys/fs/cgroup/pids rw,nosuid shared:12 - cgroup cgroup rw,pids
"""
V1_OWN = """\
12:pids:/user.slice/user-0.slice
11:memory:/
4:cpu,cpuacct:/a b
1:name=systemd:/user.slice
"""
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V2_OWN = "0::/user.slice/user-1000.slice/session-3.scope\n"
HYBRID = V1 + "37 31 0:32 / /sys/fs/cgroup/unified rw shared:13 - cgroup2 cgroup2 rw\n"
CONTAINER = "36 31 0:31 /docker/4f /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"


def test_each_controller_of_version_1_has_a_folder_of_its_own() -> None:
    assert own_folders(V1, V1_OWN) == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/a b",
        "memory": "/sys/fs/cgroup/memory",
        "pids": "/sys/fs/cgroup/pids/user.slice/user-0.slice",
    }


def test_version_2_has_one_folder() -> None:
    own = {"": "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope"}
    assert own_folders(V2, V2_OWN) == own


def test_a_hybrid_has_both() -> None:
    folders = own_folders(HYBRID, V1_OWN + "0::/init.scope\n")
    assert folders["pids"] == "/sys/fs/cgroup/pids/user.slice/user-0.slice"
    assert folders[""] == "/sys/fs/cgroup/unified/init.scope"


def test_in_a_container_the_mounted_part_is_the_root() -> None:
    assert own_folders(CONTAINER, "12:pids:/docker/4f\n") == {"pids": "/sys/fs/cgroup/pids"}
    assert own_folders(CONTAINER, "12:pids:/docker/4f/x\n") == {"pids": "/sys/fs/cgroup/pids/x"}


def test_without_groups_there_are_no_folders() -> None:
    assert own_folders("24 30 0:21 / /proc rw - proc proc rw\n", "0::/\n") == {}


def test_limits_are_written_in_the_words_of_version_1() -> None:
    limits = Limits(1500, 64 * MIB, 10, cpu_cap=True, denied_devices=("c 195:1",))
    assert [(s.file, s.value) for s in settings(1, limits)] == [
        ("pids.max", "10"),
        ("cpu.shares", "1536"),
        ("cpu.cfs_period_us", "100000"),
        ("cpu.cfs_quota_us", "150000"),
        ("memory.limit_in_bytes", "67108864"),
        ("memory.memsw.limit_in_bytes", "67108864"),
        ("devices.deny", "c 195:1 rwm"),
    ]


def test_limits_are_written_in_the_words_of_version_2() -> None:
    limits = Limits(1500, 64 * MIB, 10, cpu_cap=True, denied_devices=("c 195:1",))
    assert [(s.file, s.value) for s in settings(2, limits)] == [
        ("pids.max", "10"),
        ("cpu.weight", "150"),
        ("cpu.max", "150000 100000"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("memory.max", "67108864"),
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_written_where_nothing_is_asked(version: int) -> None:
    assert settings(version, Limits()) == []


def test_a_share_is_never_nothing() -> None:
    assert settings(1, Limits(1))[0].value == "2"
    assert settings(2, Limits(1))[0].value == "1"
    assert settings(2, Limits(10**9))[0].value == "10000"


def test_kills_for_want_of_memory_are_counted_in_both_versions() -> None:
    v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
    v2 = "low 0\nhigh 0\nmax 14\noom 3\noom_kill 3\noom_group_kill 1\n"
    assert cgroups.parse_counter(v1, "oom_kill") == 2
    assert cgroups.parse_counter(v2, "oom_kill") == 3
    assert cgroups.parse_counter("under_oom 0\n", "oom_kill") == 0


# --- Real groups ----------------------------------------------------------------------------------


@pytest.fixture
def unified() -> Iterator[Cgroups]:
    """Groups of version 2; those of a hybrid have no controllers, and all else."""
    folders = own_folders(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    base = f"{folders.get('', '')}/muster-test-{os.getpid()}"
    if "" not in folders or not os.access(folders[""], os.W_OK):
        pytest.skip("there is no tree of version 2 that we may write to")
    os.mkdir(base)
    found = Cgroups(2, {"pids": base}, {"pids": folders[""]})
    yield found
    found.close()
    assert not os.path.exists(base)


def test_in_version_2_a_process_is_born_into_its_group_frozen_and_killed(unified: Cgroups) -> None:
    group = unified.make("a.1.0", Limits())
    assert group is not None
    with unified.inside(group):
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 60 & sleep 60"], {})
    assert pid in group.members()
    assert os.getpid() not in group.members()
    assert not group.remove()
    assert group.freeze(None)
    group.kill()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    while not group.remove():
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can deny devices")
def test_devices_that_were_not_granted_cant_be_opened() -> None:
    found = cgroups.find(f"test-{os.getpid()}")
    if "devices" not in found.bases:
        found.close()
        pytest.skip("there is no devices controller here that we may use")
    limits = Limits(denied_devices=("c 1:7",))
    group = found.make("a.1.0", limits)
    assert group is not None
    with found.inside(group):
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 0.2; read x </dev/full || exit 9"], {})
    assert group.limit(limits) == []
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    assert group.remove()
    found.close()


def test_groups_that_a_job_has_made_below_its_own_go_with_it(unified: Cgroups) -> None:
    group = unified.make("a.1.0", Limits())
    assert group is not None
    os.makedirs(f"{group.folders['pids']}/x/y")
    assert group.remove()


def test_a_group_that_is_gone_has_no_members() -> None:
    group = Group(1, {"pids": "/no/such"})
    assert group.members() == []
    assert group.remove()


# --- The machine ----------------------------------------------------------------------------------


def test_memory_is_read_in_bytes() -> None:
    assert inventory.parse_memory_total("MemTotal:       24681472 kB\nMemFree: 1 kB\n") == 24681472 * 1024


@pytest.mark.parametrize(
    ("text", "limit"),
    [("max\n", None), ("9223372036854771712\n", None), ("1073741824\n", GIB), ("", None)],
)
def test_a_limit_that_is_none_is_none(text: str, limit: int | None) -> None:
    assert inventory.parse_limit_bytes(text) == limit


def test_a_cpu_quota_is_read_in_both_versions() -> None:
    assert inventory.parse_cpu_max_milli("150000 100000\n") == 1500
    assert inventory.parse_cpu_max_milli("max 100000\n") is None
    assert inventory.parse_cpu_max_milli("") is None
    assert inventory.parse_cfs_milli("50000\n", "100000\n") == 500
    assert inventory.parse_cfs_milli("-1\n", "100000\n") is None
    assert inventory.parse_cfs_milli("", "") is None


def test_this_machine_has_what_we_may_use_of_it(tmp_path: Path) -> None:
    node = inventory.here(tmp_path).node
    assert isinstance(node, Node)
    assert 0 < node.cpus_milli <= len(os.sched_getaffinity(0)) * 1000
    assert node.memory_bytes > 0
    assert node.disk_bytes > 0


def test_a_process_whose_name_looks_like_its_own_line_is_read_right() -> None:
    fields = ["S", "1", "5", "7", *["0"] * 15, "4242", "0", "3", "0"]
    process = processes.parse_stat(f"5 (a) Z 9 (b)) {' '.join(fields)}\n")
    assert (process.pid, process.state, process.parent, process.session) == (5, "S", 1, 7)
    assert process.started == 4242
    assert process.resident_bytes == 3 * os.sysconf("SC_PAGE_SIZE")


# --- Records --------------------------------------------------------------------------------------


def test_records_are_remembered_until_they_are_dropped(tmp_path: Path) -> None:
    records = Records(str(tmp_path), "boot")
    for number in (1, 2, 3):
        records.note(("a", number), at=float(number))
        records.note(("a", number), pids=[[5, None]])
    records.drop([("a", 1)])
    records.end(("a", 2), {"tell": "exited"})
    records.close()
    with open(tmp_path / "records", "a") as file:
        file.write('{"job": "a", "attempt": 3, "se')
    again = Records(str(tmp_path), "boot")
    again.close()
    assert again.boot == "boot"
    assert again.entries[("a", 3)] == {"at": 3.0, "pids": [[5, None]]}
    assert again.entries[("a", 2)]["end"] == {"tell": "exited"}
    assert ("a", 1) not in again.entries


def test_records_stay_small_however_many_there_were(tmp_path: Path) -> None:
    records = Records(str(tmp_path), "boot")
    for number in range(200):
        records.note(("a", number), text="x" * 10_000)
        records.drop([("a", number)])
    records.close()
    assert (tmp_path / "records").stat().st_size < 1 << 20 | 20_000
