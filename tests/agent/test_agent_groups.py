"""Finding Slurm's jobs on a node: by the groups that slurmd makes, or by their processes."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agent.groups import Groups, parse_mounts
from muster.agent.look import minor_numbers, renumbered
from muster.agent.processes import Processes, parse_number, read_numbers
from muster.model.usage import GpuReading, GpuShown, Reading
from tests.servers import until

_V1_CONTROLLERS = ("freezer", "memory", "cpuacct")


def v1(root: Path, *controllers: str) -> str:
    """The trees of version 1, and how they are mounted."""
    lines = []
    for number, controller in enumerate(controllers or _V1_CONTROLLERS):
        (root / controller).mkdir()
        lines.append(f"{number} 1 0:{number} / {root}/{controller} rw - cgroup cgroup rw,{controller}")
    return "\n".join(lines)


def v2(root: Path) -> str:
    return f"40 1 0:40 / {root} rw - cgroup2 cgroup2 rw"


def job(folder: Path) -> None:
    (folder / "step_batch" / "task_0").mkdir(parents=True)


def test_in_version_1_a_job_has_a_group_in_each_controllers_tree(tmp_path: Path) -> None:
    mounts = v1(tmp_path)
    for controller in ("memory", "cpuacct"):
        job(tmp_path / controller / "slurm" / "uid_1000" / "job_12")
    job(tmp_path / "freezer" / "slurm" / "uid_0" / "job_13")
    found = Groups("a", mounts).jobs()
    assert sorted(found) == [12, 13]
    assert found[12].version == 1
    assert found[12].folders == {c: f"{tmp_path}/{c}/slurm/uid_1000/job_12" for c in ("memory", "cpuacct")}
    assert list(found[13].folders) == ["freezer"]


@pytest.mark.parametrize(
    "place",
    [
        "system.slice/slurmstepd.scope",
        "system.slice/a_slurmstepd.scope",
        "slurmstepd.scope",
        "kubepods/pod/slurmstepd.scope",
    ],
)
def test_in_version_2_they_are_in_the_scope_of_slurmstepd_wherever_that_is(
    tmp_path: Path, place: str
) -> None:
    job(tmp_path / place / "job_7")
    (tmp_path / place / "system").mkdir()
    (found,) = Groups("a", v2(tmp_path)).jobs().values()
    assert (found.version, found.folders) == (2, {"": f"{tmp_path}/{place}/job_7"})


def test_where_several_slurmd_share_a_machine_each_node_has_its_own(tmp_path: Path) -> None:
    mounts = v1(tmp_path, "memory")
    for node, number in (("node1", 1), ("node2", 2)):
        job(tmp_path / "memory" / f"slurm_{node}" / "uid_0" / f"job_{number}")
    job(tmp_path / "memory" / "slurm" / "uid_0" / "job_3")
    assert [list(Groups(node, mounts).jobs()) for node in ("node1", "node2", "other")] == [[1], [2], [3]]


def test_with_both_versions_the_one_that_slurm_uses_counts(tmp_path: Path) -> None:
    mounts = f"{v1(tmp_path)}\n{v2(tmp_path / 'unified')}"
    job(tmp_path / "unified" / "system.slice" / "slurmstepd.scope" / "job_5")
    assert Groups("a", mounts).jobs()[5].version == 2
    job(tmp_path / "memory" / "slurm" / "uid_0" / "job_6")
    assert list(Groups("a", mounts).jobs()) == [6]


def test_a_group_that_was_made_again_is_another_incarnation(tmp_path: Path) -> None:
    mounts, folder = v1(tmp_path, "memory"), tmp_path / "memory" / "slurm" / "uid_0" / "job_1"
    folder.mkdir(parents=True)
    groups = Groups("a", mounts)
    first = groups.jobs()[1].incarnation
    assert groups.jobs()[1].incarnation == first
    folder.rmdir()
    assert groups.jobs() == {}
    (folder.parent / "keeps-the-inode-busy").mkdir()
    folder.mkdir()
    assert groups.jobs()[1].incarnation != first


def test_they_are_found_once_slurmd_has_made_them_and_not_after_it_took_them_away(tmp_path: Path) -> None:
    groups = Groups("a", v1(tmp_path, "memory"))
    assert (groups.are_there, groups.jobs()) == (False, {})
    root = tmp_path / "memory" / "slurm"
    root.mkdir()
    assert (groups.are_there, groups.jobs()) == (True, {})
    root.rmdir()
    assert not groups.are_there


@given(st.text())
def test_no_text_of_mounts_is_too_strange(text: str) -> None:
    assert all(isinstance(point, str) for point in parse_mounts(text).values())


# --- Processes -------------------------------------------------------------------------------------


def test_the_number_of_a_job_stands_in_the_environment_of_its_processes() -> None:
    assert parse_number(b"A=1\0SLURM_JOB_ID=12\0SLURMD_NODENAME=a\0", "a") == 12
    assert parse_number(b"SLURM_JOB_ID=12\0", "a") == 12
    assert parse_number(b"SLURM_JOB_ID=12\0SLURMD_NODENAME=b\0", "a") is None
    assert parse_number(b"SLURM_JOB_ID=-1\0", "a") is None
    assert parse_number(b"HOME=/root\0", "a") is None


@given(st.binary())
def test_no_environment_is_too_strange(environ: bytes) -> None:
    assert parse_number(environ, "a") is None or b"SLURM_JOB_ID" in environ


def test_a_job_without_groups_is_its_first_processes_and_not_their_children() -> None:
    reader, writer = os.pipe()
    first = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", "sleep 60 & echo; wait"],
        {"SLURM_JOB_ID": "987654321", "PATH": os.environ["PATH"]},
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
        setsid=True,
    )
    try:
        os.read(reader, 1)  # its child is there
        processes = Processes(lambda pids: read_numbers("a", pids))
        (part,) = processes.jobs()[987654321]
        assert part.pid == first
        assert processes.jobs()[987654321] == (part,)
    finally:
        os.killpg(first, 9)
        os.waitpid(first, 0)
        os.close(reader)
        os.close(writer)
    until(lambda: 987654321 not in processes.jobs(), "the last of it to be gone")


def test_while_environments_can_not_be_read_nobody_is_found_and_afterwards_all_are() -> None:
    answers: list[dict[int, int | None] | None] = [None, {os.getppid(): 5}]
    processes = Processes(lambda _: answers.pop(0))
    assert processes.jobs() == {}
    assert list(processes.jobs()) == [5]


# --- Devices ---------------------------------------------------------------------------------------


def gpu(index: int, minor: int | None, *, is_mig: bool = False) -> GpuReading:
    return GpuReading(index=index, minor=minor, is_mig=is_mig)


def test_devices_are_told_by_the_kernels_numbers_and_those_without_are_left_out() -> None:
    minors = minor_numbers([gpu(0, 3), gpu(1, 2), gpu(2, None)])
    reading = Reading(
        job="1",
        attempt=1,
        at=0,
        since_boot_seconds=0,
        gpus=(GpuShown(0, 0.5), GpuShown(1, 0.1), GpuShown(2, 0.9)),
    )
    assert renumbered(reading, minors).gpus == (GpuShown(2, 0.1), GpuShown(3, 0.5))


def test_where_numbers_say_nothing_about_slurms_none_is_told() -> None:
    assert minor_numbers([gpu(0, 1), gpu(1, 1)]) == {}
    assert minor_numbers([gpu(0, 0), gpu(1, 1, is_mig=True)]) == {}
