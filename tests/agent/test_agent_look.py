"""A look at a node, and telling it to a server that comes and goes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from muster.agent.groups import Groups
from muster.agent.look import Looker, NoSlurm
from muster.agent.run import Agent, Wanted
from muster.client import Client, NoServer, Refused
from muster.monitor.agents.message import Told, check
from tests.servers import until

_NUMBER = 987654322
_BURN = "import time\nwhile time.process_time() < 1: pass\nprint(flush=True)\ntime.sleep(60)"


@pytest.fixture
def burnt() -> Iterator[int]:
    """A process of a job without groups, that has used a second of cpu time."""
    environment = {**os.environ, "SLURM_JOB_ID": str(_NUMBER), "SLURMD_NODENAME": "a"}
    with subprocess.Popen(
        [sys.executable, "-c", _BURN], env=environment, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def looker(only: int | None = _NUMBER) -> Looker:
    return Looker("a", only, Groups("a", ""))


def test_without_groups_a_job_is_read_by_its_processes(burnt: int) -> None:
    looking = looker()
    (reading,) = looking.look().readings
    assert (reading.job, reading.processes) == (str(_NUMBER), 1)
    assert reading.cpu_seconds is not None
    assert 0.9 <= reading.cpu_seconds < 3.0
    looking.close()


def test_what_is_told_of_all_jobs_has_the_node_in_it_and_is_as_the_server_wants_it(burnt: int) -> None:
    looking = looker(None)
    told = looking.look()
    check(told)
    assert str(_NUMBER) in {reading.job for reading in told.readings}
    assert told.own is not None
    assert told.own.memory_total_bytes
    assert looking.look().since_boot_seconds > told.since_boot_seconds
    looking.close()


def test_of_one_job_nothing_is_said_of_the_node_and_nothing_of_others(burnt: int) -> None:
    looking = looker(1)
    told = looking.look()
    assert (told.only, told.readings, told.own) == (1, (), None)
    looking.close()


def test_a_group_that_is_gone_before_it_is_read_is_not_told(tmp_path: Path) -> None:
    folder = tmp_path / "slurm" / "uid_0" / "job_5"
    folder.mkdir(parents=True)
    looking = Looker("a", None, Groups("a", f"1 1 0:1 / {tmp_path} rw - cgroup cgroup rw,memory"))
    assert looking.look().readings == ()  # it has no files
    looking.close()


def test_where_nothing_is_slurms_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.agent.look._DAEMONS", ())
    looking = looker()
    monkeypatch.setattr(looking._processes, "jobs", dict)
    with pytest.raises(NoSlurm, match="nothing of Slurm's is on this machine"):
        looking.check()
    looking.close()


# --- Telling ---------------------------------------------------------------------------------------


class Server:
    """Answers, or not, as it is told; when it has no answer left, the agent is told to go."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.told = list(answers), 0

    def tell_readings(self, told: dict[str, Any]) -> Any:
        self.told += 1
        answer = self.answers.pop(0)
        if not self.answers:
            self.agent._go()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self) -> list[str]:
        """What the agent remarks."""
        said: list[str] = []
        self.agent = Agent(Wanted("a"), cast(Client, self), cast(Looker, Blind()), said.append)
        assert self.agent.run() == 0
        return said


class Blind:
    def look(self) -> Told:
        return Told(node="a", since_boot_seconds=1.0)


def heard(**more: object) -> dict[str, object]:
    return {"period_seconds": 0.5, "knows_node": True, "taken": 0, "ignored": 0, **more}


def test_trouble_is_said_once_and_once_when_it_is_over() -> None:
    down = NoServer("nobody answers")
    said = Server(heard(), down, down, heard(), heard()).run()
    assert said == ["nobody answers; the agent goes on looking", "the server hears the agent again"]


def test_what_is_no_answer_is_not_believed() -> None:
    busy = Refused("the store is slow", 507, 1)
    said = Server(heard(), {"hello": 1}, busy, heard(knows_node=False)).run()
    assert [sentence.partition(";")[0] for sentence in said] == [
        "what answers there is no Muster server that hears agents",
        "the store is slow",
        "the server knows no node 'a'",
    ]


def test_what_is_refused_ends_it() -> None:
    server = Server(heard(), Refused("this token is not known", 401, 1), heard())
    with pytest.raises(Refused, match="this token is not known"):
        server.run()
    assert server.told == 2


def test_the_job_of_a_prolog_is_waited_for_and_its_end_is_the_agents(
    burnt: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.agent.run._STAYS_GONE_SECONDS", 0.1)
    server = Server(*[heard()] * 1000)
    server.agent = Agent(Wanted("a", _NUMBER, 0.1), cast(Client, server), looker(), lambda _: None)
    monkeypatch.setattr(server, "tell_readings", _killing_after(3, burnt, server.tell_readings))
    assert server.agent.run() == 0
    assert server.told >= 3


def _killing_after(count: int, pid: int, tell: Any) -> Any:
    told = []

    def killing(message: dict[str, Any]) -> Any:
        told.append(message)
        if len(told) == count:
            os.kill(pid, 9)
            until(lambda: not _lives(pid), "it to be dead")
        return tell(message)

    return killing


def _lives(pid: int) -> bool:
    return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
