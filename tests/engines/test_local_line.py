"""Jobs that are lined up on the same seats: what is handed on, and what must not be."""

import os
from pathlib import Path

from local_bench import LocalLab, needs

from muster.engines.local.line import Line
from muster.model.events import Exited, Outcome, Started, StoodDown
from muster.model.job import Job, Shape
from muster.model.plan import Recall, Stop
from muster.model.units import MIB


def in_line(lab: LocalLab, *scripts: str, **terms: object) -> list[Exited]:
    """Run them behind one that ends when all the others are lined up."""
    gate = lab.home.path / "gate"
    os.mkfifo(gate)
    first = lab.begin("first", "sh", "-c", f"read line < {gate}", **terms)
    jobs: list[Job] = [first]
    for number, script in enumerate(scripts):
        jobs.append(lab.add(f"j{number}", "sh", "-c", script, **terms))  # type: ignore[arg-type]
        lab.start(jobs[-1], behind=jobs[-2])
    lab.engine.flush()
    gate.write_text("go\n")
    gate.unlink()
    return [lab.wait(Exited, job) for job in jobs[1:]]


def test_each_starts_when_the_one_before_it_has_left_and_has_its_own_exit_code(either: LocalLab) -> None:
    ended = in_line(either, "exit 0", "exit 3", "exit 0", "kill -9 $$")
    assert [(e.exit_code, e.signal) for e in ended] == [(0, None), (3, None), (0, None), (None, 9)]
    times = [(f.job, type(f)) for f in either.facts if f.job.startswith("j")]  # type: ignore[attr-defined]
    assert times == [(f"j{i}", kind) for i in range(4) for kind in (Started, Exited)]


def test_everybody_has_the_log_that_is_its_own(either: LocalLab) -> None:
    in_line(either, "echo zero", "true", "echo two", "true", "true", "echo five")
    said = [either.log(f"j{i}") if either.log_path(f"j{i}").exists() else "" for i in range(6)]
    assert said == ["zero\n", "", "two\n", "", "", "five\n"]


def test_a_log_that_stayed_empty_is_the_next_ones(either: LocalLab) -> None:
    in_line(either, "true", "true", "echo here")
    logs = {path.name for path in either.home.logs.iterdir()}
    assert logs - {"first.1.log"} == {"j2.1.log"}  # the first may be over before anybody is behind it


def test_a_log_whose_owner_asked_for_a_copy_is_not_handed_on(either: LocalLab, tmp_path: Path) -> None:
    in_line(either, "true", "echo here", output=f"{tmp_path}/%j.out")
    assert (tmp_path / "j0.out").read_text() == ""
    assert (tmp_path / "j1.out").read_text() == "here\n"


def test_what_a_job_leaves_behind_is_gone_before_the_next_starts(either: LocalLab, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    leaves = f"setsid sleep 100 & echo $! > {pid}; exit 0"
    looks = f"read pid < {pid}; grep -q 'State:.[RS]' /proc/$pid/status && exit 1; exit 0"
    assert [e.exit_code for e in in_line(either, leaves, looks)] == [0, 0]


def test_a_group_is_handed_on_to_a_job_with_the_same_limits_only(lab: LocalLab) -> None:
    needs(lab, "pids")
    where = "sed -n 's/.*:pids://p' /proc/self/cgroup; true"
    in_line(lab, f"{where}; exit 0", where, f"{where}; exit 1", where)
    groups = [lab.log(f"j{i}").strip() for i in range(4)]
    assert groups[0] == groups[1] == groups[2]
    assert groups[3] != groups[2], "of one that failed nothing is handed on"
    other = lab.add("other", "sh", "-c", where, pids=77)
    lab.start(other, behind=lab.jobs["j3"])
    lab.wait(Exited, other)
    assert lab.log("other").strip() != groups[3]


def test_memory_that_the_job_before_has_used_is_not_held_against_the_next(lab: LocalLab) -> None:
    needs(lab, "memory")
    shape = Shape(cpus_milli=100, memory_bytes=64 * MIB)
    takes = "head -c {} /dev/zero | tail -c 1000000000 > /dev/null"
    ended = in_line(lab, *[takes.format("40M")] * 3, takes.format("100M"), takes.format("40M"), shape=shape)
    outcomes = [e.outcome for e in ended]
    assert outcomes[:3] == [Outcome.SUCCEEDED] * 3
    assert outcomes[4] is Outcome.SUCCEEDED, "what the one before was killed for is not its own"


def test_a_line_outlives_the_server_and_the_keeper(either: LocalLab) -> None:
    first = either.begin("first", "sleep", "0.5")
    second = either.add("second", "sh", "-c", "exit 4")
    either.start(second, behind=first)
    either.engine.flush()
    either.engine.observe(either.engine.now() + 0.05)
    os.kill(either.engine.keeper_pid, 9)
    assert either.wait(Exited, second).exit_code == 4
    kinds = [type(f) for f in either.facts if getattr(f, "job", None) == "second"]
    assert kinds == [Started, Exited]


def test_a_server_that_comes_back_orders_the_same_and_it_runs_once(either: LocalLab, tmp_path: Path) -> None:
    first = either.begin("first", "sleep", "0.3")
    second = either.add("second", "sh", "-c", f"echo ran >> {tmp_path}/ran")
    either.start(second, behind=first)
    either.engine.flush()
    either.reconnect()
    either.start(second, behind=first)
    either.wait(Exited, second)
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_server_that_comes_back_can_stop_and_recall_who_is_in_line(either: LocalLab) -> None:
    first = either.begin("first", "sleep", "100")
    second, third = either.add("second", "sleep", "100"), either.add("third", "sleep", "100")
    either.start(second, behind=first)
    either.start(third, behind=second)
    either.engine.flush()
    either.reconnect()
    either.start(second, behind=first)
    either.start(third, behind=second)
    either.engine.observe(either.engine.now() + 0.2)  # the keeper says that it knows
    either.engine.act(Stop("second", 1, "asked"))
    either.engine.act(Recall("third", 1))
    assert either.wait(Exited, second).outcome is Outcome.STOPPED
    either.wait(StoodDown, third)


def test_who_is_behind_one_that_is_stopped_starts_once_it_is_gone(either: LocalLab) -> None:
    first = either.begin("first", "sh", "-c", "trap '' TERM; sleep 100 & wait; wait")
    second = either.add("second", "true")
    either.start(second, behind=first)
    either.engine.act(Stop("first", 1, "asked", 0.1))
    assert either.wait(Started, second).at >= either.wait(Exited, first).at


def test_a_line_closes_up_when_someone_is_struck_out() -> None:
    line = Line()
    for number in range(1, 5):
        line.append((f"{number - 1}", 1), {"job": f"{number}", "attempt": 1})
    assert line.strike(("2", 1))
    assert not line.strike(("2", 1))
    assert line.is_shorter(4, ("0", 1))
    assert not line.is_shorter(3, ("0", 1))
    order = []
    key = ("0", 1)
    while (told := line.next_after(key)) is not None:
        key = (told["job"], 1)
        order.append(told["job"])
    assert order == ["1", "3", "4"]
