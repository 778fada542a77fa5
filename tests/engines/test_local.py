"""What jobs find around them on this machine, and how they are held, told and ended."""

import json
import os
import pwd
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_bench import LocalLab, until

from muster.engines.local import processes
from muster.home import Home
from muster.model.errors import MusterError
from muster.model.events import Exited, Outcome, Resumed, Started, Suspended, Vacated
from muster.model.job import ArrayPlace, Checkpoint, Shape
from muster.model.node import Device, Node
from muster.model.plan import Evict, Resume, Start, Stop, Suspend
from muster.model.run import Notice
from muster.model.units import MIB

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def lab() -> Iterator[LocalLab]:
    lab = LocalLab()
    yield lab
    lab.close()


@pytest.fixture(params=[True, False], ids=["groups", "no groups"])
def either(request: pytest.FixtureRequest) -> Iterator[LocalLab]:
    """With groups, if there are any here, and without."""
    lab = LocalLab(cgroups=request.param)
    if request.param and not lab.engine.means:
        lab.close()
        pytest.skip("groups can't be made here")
    yield lab
    lab.close()


def needs(lab: LocalLab, controller: str) -> None:
    if controller not in lab.engine.means:
        pytest.skip(f"there is no {controller} controller here that we may use")


def lives(pid: int) -> bool:
    process = processes.look(pid)
    return process is not None and process.state != "Z"


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip() != "", f"{path}")
    return int(path.read_text())


# --- What it runs, and what it finds --------------------------------------------------------------


def test_a_job_finds_its_submissions_environment_and_what_muster_says(lab: LocalLab) -> None:
    job = lab.add("7_3", "env", array=ArrayPlace("7", 3), params=(("lr", "0.1"),))
    lab.start(job, attempt=2)
    lab.wait(Exited, job, attempt=2)
    found = dict(line.split("=", 1) for line in lab.log("7_3", "2.log").splitlines())
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
    first, second = (lab.log("a", f"1.{i}.log").split() for i in range(2))
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
    for path in (lab.folder("a"), lab.folder("a") / "1.log"):
        assert path.stat().st_uid == nobody.pw_uid


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
    for name in ("1.log", "1.script"):
        (lab.folder("a") / name).symlink_to(precious)
    assert lab.run("a", script="echo here\n").outcome is Outcome.SUCCEEDED
    assert precious.read_text() == "untouched"
    assert lab.log("a") == "here\n"


def test_a_symlink_where_the_folder_of_a_job_should_be_is_not_followed(lab: LocalLab, tmp_path: Path) -> None:
    lab.folder("a").symlink_to(tmp_path)
    assert lab.run("a", "true").exit_code == 126
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


# --- Ending ---------------------------------------------------------------------------------------


def test_a_stop_gives_the_program_below_a_shell_its_grace(either: LocalLab, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    inner = f"trap 'sleep 0.3; touch {saved}; exit' TERM; while :; do sleep 0.05; done"
    job = either.sh("a", f"sh -c '{inner.replace(chr(39), chr(34))}'; echo after", grace_seconds=5.0)
    time.sleep(0.2)
    either.engine.act(Stop("a", 1, "enough"))
    assert either.wait(Exited, job).outcome is Outcome.STOPPED
    assert saved.exists()


def test_a_stubborn_tree_is_killed_to_the_last(either: LocalLab, tmp_path: Path) -> None:
    loop = "while :; do sleep 0.05; done"
    script = f"trap '' TERM; sh -c 'echo $$ >{tmp_path}/child; {loop}' & {loop}"
    job = either.sh("a", script, grace_seconds=0.1)
    child = pid_in(tmp_path / "child")
    either.engine.act(Stop("a", 1, "enough"))
    exited = either.wait(Exited, job)
    assert (exited.outcome, exited.signal) == (Outcome.STOPPED, signal.SIGKILL)
    assert not lives(child)


def test_what_daemonises_ends_with_its_job(either: LocalLab, tmp_path: Path) -> None:
    script = f"setsid setsid sh -c 'echo $$ >{tmp_path}/daemon; exec sleep 60' & sleep 0.3; exit 3"
    assert either.run("a", "sh", "-c", script).exit_code == 3
    assert not lives(pid_in(tmp_path / "daemon"))


def test_what_daemonises_and_forgets_who_it_was_is_stopped_too(lab: LocalLab, tmp_path: Path) -> None:
    needs(lab, "pids")
    job = lab.sh("a", f"env -i setsid sh -c 'echo $$ >{tmp_path}/daemon; exec /bin/sleep 60' & sleep 60")
    daemon = pid_in(tmp_path / "daemon")
    lab.engine.act(Stop("a", 1, "enough", 0.0))
    lab.wait(Exited, job)
    assert not lives(daemon)


def test_a_suspended_job_uses_no_cpu_until_it_is_resumed(either: LocalLab, tmp_path: Path) -> None:
    job = either.sh("a", f"echo $$ >{tmp_path}/pid; while :; do :; done")
    pid = pid_in(tmp_path / "pid")
    either.engine.act(Suspend("a", 1))
    either.wait(Suspended, job)
    time.sleep(0.05)
    before = _cpu_ticks(pid)
    time.sleep(0.3)
    assert _cpu_ticks(pid) == before
    either.engine.act(Resume("a", 1))
    either.wait(Resumed, job)
    until(lambda: _cpu_ticks(pid) > before, "it to go on")
    either.engine.act(Stop("a", 1, "enough", 0.0))
    either.wait(Exited, job)


def test_a_suspended_job_can_be_stopped_and_hears_of_it(either: LocalLab) -> None:
    job = either.sh("a", "trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done", grace_seconds=5.0)
    time.sleep(0.1)
    either.engine.act(Suspend("a", 1))
    either.wait(Suspended, job)
    either.engine.act(Stop("a", 1, "enough"))
    assert either.wait(Exited, job).outcome is Outcome.STOPPED
    assert "told\n" in either.log("a")


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_time_that_a_job_is_suspended_does_not_count_against_its_limit(lab: LocalLab) -> None:
    job = lab.begin("a", "sleep", "0.5", time_limit_seconds=0.7)
    lab.engine.act(Suspend("a", 1))
    lab.wait(Suspended, job)
    time.sleep(0.9)
    lab.engine.act(Resume("a", 1))
    assert lab.wait(Exited, job).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("checkpoint", "most", "least"),
    [(None, 9.0, 0.5), (Checkpoint(), 0.0, 0.0), (Checkpoint(every_seconds=0.2, on_signal=False), 0.2, 0.0)],
)
def test_what_an_evicted_job_loses_is_what_it_did_not_save(
    lab: LocalLab, checkpoint: Checkpoint | None, most: float, least: float
) -> None:
    job = lab.begin("a", "sleep", "60", checkpoint=checkpoint)
    time.sleep(0.5)
    lab.engine.act(Evict("a", 1, "priority"))
    vacated = lab.wait(Vacated, job)
    assert vacated.because == "priority"
    assert least <= vacated.lost_seconds <= most


def test_checkpoints_outlast_the_attempt(lab: LocalLab) -> None:
    script = "cd $MUSTER_CHECKPOINT_DIR; cat saved && exit; echo $MUSTER_ATTEMPT >saved; sleep 60"
    job = lab.sh("a", script, checkpoint=Checkpoint())
    until((lab.folder("a") / "checkpoint" / "saved").exists, "it to save")
    lab.engine.act(Evict("a", 1, "priority"))
    lab.wait(Vacated, job)
    lab.start(job, attempt=2)
    lab.wait(Exited, job, attempt=2)
    assert lab.log("a", "2.log") == "1\n"


# --- Outliving ------------------------------------------------------------------------------------

_SERVER = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from local_bench import LocalLab
lab = LocalLab(home=Path({home!r}))
lab.sh("short", "sleep 0.3; exit 4")
lab.sh("long", "sleep 60")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_jobs_outlive_a_server_that_is_killed_and_their_ends_are_told_later(tmp_path: Path) -> None:
    server = _SERVER.format(tests=str(Path(__file__).parent), home=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", server], check=False).returncode == -signal.SIGKILL
    time.sleep(0.5)
    lab = LocalLab(home=tmp_path)
    try:
        short, long = lab.add("short", "true"), lab.add("long", "true")
        exited = lab.wait(Exited, short)
        assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, 4)
        lab.wait(Started, long)
        assert lab.engine.running() == {("long", 1)}
        lab.engine.act(Stop("long", 1, "enough", 0.0))
        assert lab.wait(Exited, long).outcome is Outcome.STOPPED
    finally:
        lab.close()


def test_an_end_is_told_to_every_server_until_it_is_settled(lab: LocalLab) -> None:
    lab.run("a", "sh", "-c", "exit 4")
    for _ in range(2):
        lab.reconnect()
        assert lab.wait(Exited, lab.jobs["a"]).exit_code == 4
    lab.engine.settle("a", 1)
    lab.reconnect()
    assert lab.engine.observe() == ()


def test_a_failed_job_can_be_tried_again_once_its_end_is_settled(lab: LocalLab) -> None:
    lab.run("a", "false")
    lab.start(lab.jobs["a"], attempt=2)
    assert lab.engine.observe() == ()
    lab.engine.settle("a", 1)
    lab.start(lab.jobs["a"], attempt=2)
    assert lab.wait(Exited, lab.jobs["a"], attempt=2).outcome is Outcome.FAILED


def test_a_keeper_that_is_killed_is_replaced_by_one_that_takes_over(either: LocalLab, tmp_path: Path) -> None:
    job = either.sh("a", f"echo $$ >{tmp_path}/pid; sleep 60", time_limit_seconds=60.0)
    ends = either.sh("b", "sleep 0.4; exit 0")
    gone = either.sh("c", "sleep 60")
    pid, keeper = pid_in(tmp_path / "pid"), either.engine.keeper_pid
    os.kill(keeper, signal.SIGKILL)
    exited = either.wait(Exited, ends)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, None)  # nobody was there to hear the code
    assert either.engine.keeper_pid != keeper
    assert lives(pid)
    assert either.engine.running() == {("a", 1), ("c", 1)}
    for stopped in (job, gone):
        either.engine.act(Stop(stopped.id, 1, "enough", 0.2))
        assert either.wait(Exited, stopped).outcome is Outcome.STOPPED
    assert not lives(pid)
    assert sum(isinstance(f, Started) for f in either.facts) == 3


def test_an_order_is_given_again_when_the_keeper_is_killed_before_it_is_carried_out(lab: LocalLab) -> None:
    os.kill(lab.engine.keeper_pid, signal.SIGSTOP)
    job = lab.add("a", "sh", "-c", "exit 6")
    lab.start(job)
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    assert lab.wait(Exited, job).exit_code == 6


def test_after_a_reboot_attempts_are_vacated(lab: LocalLab) -> None:
    job = lab.begin("a", "sleep", "60")
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    records = lab.home.keeper / "records"
    _, *lines = records.read_text().splitlines()
    records.write_text("\n".join(['{"boot":"before"}', *lines, '{"torn']))
    vacated = lab.wait(Vacated, job)
    assert vacated.because == "node lost"
    for pid in map(int, (Path(lab.pids_group("a")) / "cgroup.procs").read_text().split()):
        os.kill(pid, signal.SIGKILL)  # it was not a real reboot


def test_a_second_keeper_in_the_same_home_refuses(lab: LocalLab) -> None:
    command = [sys.executable, "-m", "muster.engines.local.keeper", str(lab.home.path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 3
    assert second.stderr == f"another keeper is running in {lab.home.path}\n"
    assert lab.run("a", "true").outcome is Outcome.SUCCEEDED


def test_a_home_with_a_long_name_is_as_good_as_any(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir()
    lab = LocalLab(home=home)
    try:
        assert lab.run("a", "true").outcome is Outcome.SUCCEEDED
    finally:
        lab.close()


def test_others_cant_talk_to_the_keeper(lab: LocalLab) -> None:
    assert lab.home.keeper_socket.stat().st_mode & 0o777 == 0o600


def test_an_idle_keeper_uses_no_cpu(lab: LocalLab) -> None:
    lab.run("a", "true")
    lab.engine.settle("a", 1)
    time.sleep(1.2)
    switches = _switches(lab.engine.keeper_pid)
    time.sleep(0.5)
    assert _switches(lab.engine.keeper_pid) == switches


def _switches(pid: int) -> list[str]:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [line for line in status if "ctxt_switches" in line]


def test_the_keeper_loads_only_the_standard_library() -> None:
    script = (
        "import sys, muster.engines.local.keeper\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('msgspec', 'numpy', 'ctypes', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_its_descriptor_is_readable_when_there_is_something_to_observe(lab: LocalLab) -> None:
    def ready(seconds: float) -> bool:
        return bool(select.select([lab.engine.fileno()], [], [], seconds)[0])

    assert not ready(0)
    job = lab.add("a", "true")
    lab.start(job)
    assert ready(5)
    lab.wait(Exited, job)
    assert not ready(0.05)
    lab.reconnect()
    assert ready(5)  # the end is not settled, and told again
    lab.wait(Exited, job)
    assert not ready(0.05)


def test_what_holds_a_job_is_told_honestly() -> None:
    shape = Shape(cpus_milli=1500, memory_bytes=64 * MIB, gpus=1)
    lab = LocalLab(cgroups=False)
    try:
        job = lab.add("a", "true", shape=shape, time_limit_seconds=60.0)
        told = {g.what: (g.amount, g.how, g.by) for g in lab.engine.grants(job)}
    finally:
        lab.close()
    assert told == {
        "cpu share": (1.5, "advisory", "nothing"),
        "memory": (64 * MIB, "advisory", "watchdog"),
        "gpus": (1, "advisory", "CUDA_VISIBLE_DEVICES"),
        "pids": (4096, "advisory", "nothing"),
        "time": (60.0, "enforced", "keeper"),
        "log": (256 * MIB, "enforced", "keeper"),
    }


def test_nothing_is_left_when_all_is_ended() -> None:
    lab = LocalLab()
    lab.sh("a", "sleep 60")
    group, keeper = lab.pids_group("a"), lab.engine.keeper_pid
    lab.close()
    until(lambda: not lives(keeper), "the keeper to go")
    assert not os.path.exists(os.path.dirname(group))
    assert not Home(lab.home.path).path.exists()
