"""How jobs on this machine are told to end, and how they outlive who has started them."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_bench import LocalLab, lives, needs, pid_in, until

from muster.home import Home
from muster.model.events import Exited, Outcome, Resumed, Started, Suspended, Vacated
from muster.model.job import Checkpoint, Job, Shape
from muster.model.plan import Evict, Resume, Stop, Suspend
from muster.model.run import Notice
from muster.model.units import MIB

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


def test_a_job_of_the_same_id_in_another_home_is_left_alone(tmp_path: Path) -> None:
    mine, yours = LocalLab(cgroups=False), LocalLab(cgroups=False)
    try:
        job = mine.sh("a", "sleep 60")
        yours.sh("a", f"echo $$ >{tmp_path}/pid; exec sleep 60")
        pid = pid_in(tmp_path / "pid")
        mine.engine.act(Stop("a", 1, "enough", 0.0))
        assert mine.wait(Exited, job).outcome is Outcome.STOPPED
        assert lives(pid)
    finally:
        mine.close()
        yours.close()


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


# Says what it hears, and ends when it is asked to.
_LISTENS = "trap 'echo warned' USR1; trap 'echo asked; exit 0' TERM; echo here; while :; do sleep 0.02; done"
_NOTICE = Notice(signal.SIGUSR1, 0.3)


def listening(lab: LocalLab, grace_seconds: float = 0.5) -> Job:
    job = lab.sh("a", _LISTENS, notice=_NOTICE, grace_seconds=grace_seconds)
    until(lambda: lab.log("a") == "here\n", "it to listen")
    return job


def heard(lab: LocalLab) -> list[str]:
    return [line for line in lab.log("a").splitlines() if line in ("warned", "asked")]


def test_who_is_evicted_is_warned_first_as_before_its_time_limit(either: LocalLab) -> None:
    job = listening(either)
    told_at = time.monotonic()
    either.engine.act(Evict("a", 1, "priority"))
    either.wait(Vacated, job)
    assert heard(either) == ["warned", "asked"]
    assert time.monotonic() - told_at >= 0.3


def test_who_is_warned_may_end_before_it_is_asked_to(lab: LocalLab) -> None:
    script = "trap 'echo saved; exit 0' USR1; echo here; while :; do sleep 0.02; done"
    notice = Notice(signal.SIGUSR1, 20.0)
    job = lab.sh("a", script, notice=notice, checkpoint=Checkpoint())
    until(lambda: lab.log("a") == "here\n", "it to listen")
    lab.engine.act(Evict("a", 1, "priority"))
    assert lab.wait(Vacated, job).lost_seconds == 0.0
    assert lab.log("a") == "here\nsaved\n"


@pytest.mark.parametrize(("grace_seconds", "hears"), [(None, ["asked"]), (5.0, ["warned", "asked"])])
def test_a_stop_warns_if_it_leaves_more_time_than_the_grace(
    lab: LocalLab, grace_seconds: float | None, hears: list[str]
) -> None:
    job = listening(lab)
    lab.engine.act(Stop("a", 1, "enough", grace_seconds))
    assert lab.wait(Exited, job).outcome is Outcome.STOPPED
    assert heard(lab) == hears


def test_a_stop_does_not_wait_for_the_warning_of_an_eviction(lab: LocalLab) -> None:
    notice = Notice(signal.SIGUSR1, 30.0)
    job = lab.sh("a", _LISTENS, notice=notice, grace_seconds=5.0)
    until(lambda: lab.log("a") == "here\n", "it to listen")
    lab.engine.act(Evict("a", 1, "priority"))
    lab.engine.flush()
    until(lambda: heard(lab) == ["warned"], "the warning")
    lab.engine.act(Stop("a", 1, "enough"))
    assert lab.wait(Exited, job).outcome is Outcome.STOPPED
    assert heard(lab) == ["warned", "asked"]


def test_a_warning_is_followed_by_the_rest_even_if_the_keeper_is_replaced(lab: LocalLab) -> None:
    job = lab.sh("a", _LISTENS, notice=Notice(signal.SIGUSR1, 1.0), grace_seconds=5.0)
    until(lambda: lab.log("a") == "here\n", "it to listen")
    lab.engine.act(Evict("a", 1, "priority"))
    lab.engine.flush()
    until(lambda: heard(lab) == ["warned"], "the warning")
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    lab.wait(Vacated, job)
    assert heard(lab) == ["warned", "asked"]


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


def test_time_that_a_job_was_suspended_is_not_forgotten_with_the_keeper(lab: LocalLab) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.08; done; echo done"
    job = lab.sh("a", script, time_limit_seconds=1.6)
    lab.engine.act(Suspend("a", 1))
    lab.wait(Suspended, job)
    time.sleep(1.5)
    lab.engine.act(Resume("a", 1))
    lab.wait(Resumed, job)
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    assert lab.wait(Exited, job).outcome is Outcome.FAILED  # since nobody was there to hear the code
    assert lab.log("a") == "done\n"


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
    assert lab.log("a", "2") == "1\n"


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
    lab.engine.settle([("a", 1)])
    lab.engine.flush()
    lab.reconnect()
    assert lab.engine.observe() == ()


def test_a_failed_job_can_be_tried_again_once_its_end_is_settled(lab: LocalLab) -> None:
    lab.run("a", "false")
    lab.start(lab.jobs["a"], attempt=2)
    assert lab.engine.observe() == ()
    lab.engine.settle([("a", 1)])
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


def test_after_a_reboot_attempts_are_vacated(lab: LocalLab, tmp_path: Path) -> None:
    job = lab.sh("a", f"echo $$ >{tmp_path}/pid; exec sleep 60")
    pid = pid_in(tmp_path / "pid")
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    records = lab.home.keeper / "records"
    _, *lines = records.read_text().splitlines()
    groups = [change["set"]["groups"] for change in map(json.loads, lines) if "groups" in change["set"]]
    records.write_text("\n".join(['{"boot":"before"}', *lines, '{"torn']))
    assert lab.wait(Vacated, job).because == "node lost"
    os.kill(pid, signal.SIGKILL)  # since it was not a real reboot
    until(lambda: not lives(pid), "it to end")
    for folder in [folder for kept in groups[0] if kept for folder in kept[1].values()]:
        os.rmdir(folder)


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
    lab.engine.settle([("a", 1)])
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
    lab.engine.flush()
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


def test_what_an_attempt_has_spent_is_told_however_short_it_was(either: LocalLab) -> None:
    burns = "i = 0\nwhile i < 3_000_000: i += 1\nb = bytearray(80_000_000)"
    spent = either.run("a", "python3", "-c", burns).at_end
    assert spent is not None
    assert 0.02 < spent.cpu_seconds < 10
    assert 80_000_000 < spent.largest_bytes < 200_000_000
    idle = either.run("b", "sleep", "0.2").at_end
    assert idle is not None
    assert idle.cpu_seconds < 0.1


def test_where_an_attempt_is_can_be_asked(either: LocalLab) -> None:
    job = either.sh("a", "sleep 100")
    found: dict[tuple[str, int], object] = {}

    def located() -> bool:
        either.engine.observe(either.engine.now() + 0.05)
        found.update(either.engine.locate([("a", 1), ("nobody", 1)]))
        return bool(found)

    until(located, "where it is")
    [part] = found["a", 1]  # type: ignore[misc]
    assert lives(part["pid"])
    assert (part["group"] is None) is (not either.engine.means)
    assert list(found) == [("a", 1)]
    either.engine.act(Stop(job.id, 1, "done", 0.0))
