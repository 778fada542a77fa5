"""What jobs find around them on this machine, and what they are held to."""

import json
import os
import pwd
import signal
import sys
import time
from pathlib import Path

import pytest
from local_bench import LocalLab, needs, until

from muster.model.errors import MusterError
from muster.model.events import Exited, Outcome
from muster.model.job import ArrayPlace, Shape
from muster.model.node import Device, Node
from muster.model.plan import Start, Stop
from muster.model.run import Notice
from muster.model.units import MIB

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


# --- What it runs, and what it finds --------------------------------------------------------------


def test_a_job_finds_its_submissions_environment_and_what_muster_says(lab: LocalLab) -> None:
    job = lab.add("7_3", "env", array=ArrayPlace("7", 3), params=(("lr", "0.1"),))
    lab.start(job, attempt=2)
    lab.wait(Exited, job, attempt=2)
    found = dict(line.split("=", 1) for line in lab.log("7_3", "2").splitlines())
    wanted = {
        "GREETING": "hello",
        "MUSTER_JOB_ID": "7_3",
        "MUSTER_ATTEMPT": "2",
        "MUSTER_HOME": str(lab.home.path),
        "MUSTER_ARRAY_ID": "7",
        "MUSTER_ARRAY_INDEX": "3",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_JOB_ID": "7_3",
        "MUSTER_PARAM_lr": "0.1",
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert "RANK" not in found
    assert "CUDA_VISIBLE_DEVICES" not in found


def test_the_params_of_a_sweep_are_filled_in_where_they_are_named(lab: LocalLab) -> None:
    lab.run("a", "echo", "--lr={lr}", "{other}", params=(("lr", "0.1"),))
    assert lab.log("a") == "--lr=0.1 {other}\n"


def test_a_script_runs_by_its_first_line_with_its_arguments(lab: LocalLab) -> None:
    script = f"#!{sys.executable}\nimport sys\nprint('python', sys.argv[1:])\n"
    lab.run("a", "x", "y z", script=script)
    lab.run("b", "one", script="echo shell $1\n")
    assert lab.log("a") == "python ['x', 'y z']\n"
    assert lab.log("b") == "shell one\n"


def test_it_runs_in_its_folder_with_its_umask_and_nothing_to_read(lab: LocalLab, tmp_path: Path) -> None:
    lab.run("a", "sh", "-c", "pwd; umask; cat", cwd=str(tmp_path), umask=0o027)
    assert lab.log("a") == f"{tmp_path}\n0027\n"


def test_a_job_has_nothing_of_the_keepers_priority(lab: LocalLab) -> None:
    lab.run("a", "nice")
    assert lab.log("a") == f"{os.getpriority(os.PRIO_PROCESS, 0)}\n"


def test_a_job_gets_no_ignored_signals_and_none_of_the_keepers_files(lab: LocalLab) -> None:
    lab.run("a", "sh", "-c", "ls /proc/self/fd | wc -l; grep -E 'Sig(Ign|Blk)' /proc/self/status")
    count, *masks = lab.log("a").split("\n")[:3]
    assert int(count) <= 4  # ls has the folder open that it lists
    ours = (1 << 31) - 1  # beyond are those that the C library keeps to itself
    assert [int(mask.split()[1], 16) & ours for mask in masks] == [0, 0]


@pytest.mark.parametrize(
    ("argv", "code"), [(("no-such-command",), 127), (("/etc/passwd",), 126), (("/no/such",), 127)]
)
def test_what_cant_be_executed_says_so_in_the_log(lab: LocalLab, argv: tuple[str, ...], code: int) -> None:
    exited = lab.run("a", *argv)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, code)
    assert f"can't execute '{argv[0]}'" in lab.log("a")


def test_a_folder_that_is_not_there_is_told_in_the_log(lab: LocalLab) -> None:
    assert lab.run("a", "true", cwd="/no/such").exit_code == 126
    assert "can't enter the folder '/no/such': No such file or directory" in lab.log("a")


def test_a_signal_that_ends_a_job_is_told(lab: LocalLab) -> None:
    exited = lab.run("a", "sh", "-c", "kill -SEGV $$")
    assert (exited.outcome, exited.exit_code, exited.signal) == (Outcome.FAILED, None, signal.SIGSEGV)


def test_the_members_of_a_gang_know_their_ranks_and_have_a_log_each(lab: LocalLab) -> None:
    said = "echo $RANK $WORLD_SIZE $LOCAL_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT"
    assert lab.run("a", "sh", "-c", said, parts=2).outcome is Outcome.SUCCEEDED
    first, second = (lab.log("a", f"1.{i}").split() for i in range(2))
    assert first[:5] == ["0", "2", "0", "0", "127.0.0.1"]
    assert second[:3] == ["1", "2", "1"]
    assert first[5] == second[5]


def test_a_part_that_fails_ends_the_gang_with_its_code(lab: LocalLab) -> None:
    exited = lab.run("a", "sh", "-c", "test $RANK = 1 && exit 7; sleep 60", parts=3)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, 7)


def test_gpus_are_shown_by_number_and_none_is_said_too(tmp_path: Path) -> None:
    lab = LocalLab()
    try:
        node = Node("here", 8000, 1 << 30, devices=(Device(),) * 4)
        lab.engine._machine = type(lab.engine._machine)(node)
        job = lab.add("a", "sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]", shape=Shape(gpus=2))
        seat = lab.seat(job)
        lab.engine.act(Start("a", 1, (type(seat)("here", seat.shape, (1, 3), 1000),)))
        lab.wait(Exited, job)
        lab.run("b", "sh", "-c", "echo [${CUDA_VISIBLE_DEVICES-unset}]")
        assert (lab.log("a"), lab.log("b")) == ("[1,3]\n", "[]\n")
    finally:
        lab.close()


@needs_root
def test_a_job_runs_as_its_user_who_owns_its_log(lab: LocalLab) -> None:
    nobody = pwd.getpwnam("nobody")
    exited = lab.run("a", "sh", "-c", "id -u; id -G; umask", user="nobody", umask=0o077)
    assert exited.outcome is Outcome.SUCCEEDED
    assert lab.log("a").split() == [str(nobody.pw_uid), str(nobody.pw_gid), "0077"]
    assert lab.log_path("a").stat().st_uid == nobody.pw_uid
    assert not lab.folder("a").exists()


@needs_root
def test_a_users_script_runs_and_what_cant_be_executed_is_told(lab: LocalLab) -> None:
    assert lab.run("a", script="id -un\n", user="nobody").outcome is Outcome.SUCCEEDED
    assert lab.log("a") == "nobody\n"
    assert lab.run("b", "no-such-command", user="nobody").exit_code == 127
    assert "can't execute 'no-such-command'" in lab.log("b")
    assert lab.run("c", "true", user="no-such-user").exit_code == 126


@pytest.mark.parametrize("name", ["../a", "a/b", "", "a.b", "a\n"])
def test_an_id_that_could_be_a_path_is_refused(lab: LocalLab, name: str) -> None:
    with pytest.raises(MusterError, match="can't be the id of a job"):
        lab.start(lab.add(name, "true"))


def test_a_job_without_a_command_is_refused(lab: LocalLab) -> None:
    with pytest.raises(MusterError, match="has no command"):
        lab.start(lab.add("a"))


# --- Logs -----------------------------------------------------------------------------------------


def test_a_symlink_where_a_log_should_be_is_not_followed(lab: LocalLab, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    lab.folder("a").mkdir(mode=0o700)
    for path in (lab.log_path("a"), lab.folder("a") / "1.script"):
        path.symlink_to(precious)
    assert lab.run("a", script="echo here\n").outcome is Outcome.SUCCEEDED
    assert precious.read_text() == "untouched"
    assert lab.log("a") == "here\n"


def test_a_symlink_where_the_folder_of_a_job_should_be_is_not_followed(lab: LocalLab, tmp_path: Path) -> None:
    lab.folder("a").symlink_to(tmp_path)
    assert lab.run("a", script="true\n").exit_code == 126
    assert not list(tmp_path.iterdir())


def test_a_job_that_fills_its_log_goes_on_and_the_log_says_that_it_is_full(lab: LocalLab) -> None:
    script = "yes & sleep 1.7; kill $!; exit 5"
    assert lab.run("a", "sh", "-c", script, log_bytes=100_000).exit_code == 5
    text = lab.log("a")
    assert len(text) < 100_100
    assert text.startswith("y\ny\n")
    assert "beyond 100000 bytes all is dropped" in text


def test_a_link_to_the_log_is_where_the_owner_wants_it(lab: LocalLab, tmp_path: Path) -> None:
    lab.run("a", "echo", "here", output="out-%j.txt", cwd=str(tmp_path))
    assert (tmp_path / "out-a.txt").read_text() == "here\n"


# --- Limits ---------------------------------------------------------------------------------------

_EATS = "import time; x = bytearray(200 << 20); time.sleep(20)"


def test_a_job_that_takes_too_much_memory_is_ended_for_it(either: LocalLab) -> None:
    shape = Shape(cpus_milli=100, memory_bytes=64 * MIB)
    exited = either.run("a", sys.executable, "-c", _EATS, shape=shape)
    assert exited.outcome is Outcome.OUT_OF_MEMORY
    assert exited.signal == signal.SIGKILL


def test_a_job_within_its_memory_is_left_alone(either: LocalLab) -> None:
    shape = Shape(cpus_milli=100, memory_bytes=64 * MIB)
    script = "import time; x = bytearray(20 << 20); time.sleep(1.2)"
    assert either.run("a", sys.executable, "-c", script, shape=shape).outcome is Outcome.SUCCEEDED


_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def test_a_fork_bomb_is_bounded_and_stopped(lab: LocalLab) -> None:
    needs(lab, "pids")
    bomb = lab.begin("a", sys.executable, "-c", _BOMB, pids=40)
    group = Path(f"{lab.pids_group('a')}/pids.current")
    until(lambda: int(group.read_text()) >= 40, "the bomb to go off")
    time.sleep(0.2)
    assert int(group.read_text()) <= 40
    lab.engine.act(Stop("a", 1, "enough", 0.0))
    assert lab.wait(Exited, bomb).outcome is Outcome.STOPPED
    assert not group.exists()


def test_a_job_with_too_many_processes_is_ended_where_there_are_no_groups() -> None:
    lab = LocalLab(cgroups=False)
    try:
        script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait"
        exited = lab.run("a", "sh", "-c", script, pids=5)
        assert exited.outcome is Outcome.FAILED
    finally:
        lab.close()


def test_cpu_is_a_share_and_a_cap_where_asked(lab: LocalLab) -> None:
    needs(lab, "cpu")
    lab.sh("a", "sleep 60", shape=Shape(cpus_milli=2000))
    lab.sh("b", "sleep 60", shape=Shape(cpus_milli=500), cpu_cap=True)
    if lab.engine.means["cpu"] != "cgroup v1":
        pytest.skip("these are the names of version 1")
    base = lab.group_base("cpu")
    assert (base / "a.1.0" / "cpu.shares").read_text() == "2048\n"
    assert (base / "a.1.0" / "cpu.cfs_quota_us").read_text() == "-1\n"
    assert (base / "b.1.0" / "cpu.cfs_quota_us").read_text() == "50000\n"
    assert (base / "a.1.0" / "cgroup.procs").read_text().split()


def test_the_time_limit_ends_a_job_after_notice_and_grace(lab: LocalLab) -> None:
    on_term = "echo told; cat $MUSTER_STOP_FILE"
    script = f"trap 'echo noticed' USR1; trap '{on_term}' TERM; while :; do sleep 0.05; done"
    began = time.time()
    exited = lab.run(
        "a", "sh", "-c", script, time_limit_seconds=0.6, notice=Notice(signal.SIGUSR1, 0.3), grace_seconds=0.3
    )
    assert (exited.outcome, exited.signal) == (Outcome.TIMEOUT, signal.SIGKILL)
    noticed, told, stop = [line for line in lab.log("a").splitlines() if line != "Terminated"][:3]
    assert (noticed, told) == ("noticed", "told")
    assert json.loads(stop)["reason"] == "its time limit is reached"
    assert 0.5 < json.loads(stop)["deadline"] - began < 3


def test_the_notice_of_a_script_goes_to_what_the_script_has_started(lab: LocalLab) -> None:
    child = f"{sys.executable} -c 'import signal; signal.sigwait([signal.SIGUSR1])' || echo died; sleep 60"
    script = f"trap '' TERM\n{child}\n".replace("sigwait", "pthread_sigmask(0, [10]); signal.sigwait")
    notice = Notice(signal.SIGUSR1, 0.5)
    exited = lab.run("a", script=script, time_limit_seconds=1.0, notice=notice, grace_seconds=0.1)
    assert exited.outcome is Outcome.TIMEOUT
    assert "died" not in lab.log("a")
