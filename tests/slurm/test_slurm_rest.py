"""Slurm by slurmrestd, the real one: it says what the commands say, and does what they do."""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from slurm_bench import SlurmBench, SlurmLab, until
from slurm_cluster import ORDINARY, Cluster
from slurm_rests import Rests
from slurm_server import SlurmServer

from muster.engines.check import CHECKS, Check
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.connecting import connect
from muster.engines.slurm.errors import (
    BadConfiguration,
    ControllerDown,
    Denied,
    NotAuthenticated,
    Refused,
    SlurmError,
    Unreachable,
)
from muster.engines.slurm.settings import SlurmSettings
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.job import Shape

SCRIPT = "#!/bin/sh\n"
QUIET = ("--output=/dev/null", "--chdir=/", "--export=ALL", "--no-requeue")


@pytest.fixture(scope="module")
def rests(cluster: Cluster) -> Iterator[Rests]:
    rests = Rests(cluster)
    yield rests
    rests.kill()


@pytest.fixture(scope="module")
def place(rests: Rests) -> str:
    return rests.start()


@pytest.fixture
def rest(cluster: Cluster, place: str) -> Iterator[Slurm]:
    with contextlib.closing(connect(SlurmSettings(rest=place, conf=cluster.conf))) as slurm:
        yield slurm


@pytest.fixture
def commands(cluster: Cluster) -> Commands:
    return Commands(cluster.conf)


@pytest.fixture
def alone(cluster: Cluster, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Slurm]:
    """On a machine without any command of Slurm's."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with contextlib.closing(connect(SlurmSettings(rest=place, conf=cluster.conf))) as slurm:
        yield slurm


@pytest.fixture
def lab(cluster: Cluster, place: str) -> Iterator[SlurmLab]:
    with contextlib.closing(SlurmLab(cluster, SlurmSettings(rest=place))) as lab:
        yield lab


def ended(slurm: Slurm, number: int) -> None:
    def over() -> bool:
        return any(one.id == number and one.ended_at is not None for one in slurm.jobs())

    until(over, f"{number} to end")


# --- The same cluster ------------------------------------------------------------------------------


def test_jobs_nodes_and_attempts_are_those_of_the_commands(
    cluster: Cluster, rest: Slurm, commands: Commands
) -> None:
    cluster.ask("sbatch", *QUIET, "--gres=gpu:a40:2", "-J", 'a "b" | c', "--wrap", "sleep 60")
    cluster.ask("sbatch", *QUIET, "-a", "1-4%1", "--wrap", "sleep 60")
    failed = int(cluster.ask("sbatch", *QUIET, "--parsable", "--wrap", "exit 3"))
    ended(rest, failed)
    until(lambda: rest.jobs() == commands.jobs(), "nothing to change between two questions")
    assert len(rest.jobs()) >= 4
    until(lambda: rest.nodes() == commands.nodes(), "nodes to be told alike")
    until(lambda: any(one.job == failed and one.over for one in rest.attempts(0)), "accounting to know")
    assert [one.exit for one in rest.attempts(0) if one.job == failed] == [
        one.exit for one in commands.attempts(0) if one.job == failed
    ]


def test_partitions_and_reservations_are_told_alike(
    cluster: Cluster, rest: Slurm, commands: Commands
) -> None:
    said = [msgspec.structs.replace(one, preempt_mode="") for one in commands.partitions()]
    assert list(rest.partitions()) == said
    cluster.ask(
        *("scontrol", "create", "reservation", "ReservationName=r", "StartTime=now", "Duration=5"),
        *("Users=root", "Nodes=node4", "Flags=MAINT"),
    )
    try:
        said_too = [msgspec.structs.replace(one, state="") for one in commands.reservations()]
        assert list(rest.reservations()) == said_too
    finally:
        cluster.ask("scontrol", "delete", "reservation", "r")


def test_each_option_means_what_it_means_to_sbatch(cluster: Cluster, rest: Slurm, commands: Commands) -> None:
    """As Slurm shows the two jobs that came of them."""
    for options in (
        ("--ntasks=1", "--cpus-per-task=2", "--mem=300M", "--gres=gpu:a40:2", "--nodes=1", "--time=7"),
        ("--ntasks=4", "--cpus-per-task=1", "--mem-per-cpu=50M", "--gpus-per-task=a40:1", "--nodes=2",
         "--ntasks-per-node=2", "--nodelist=node1,node2"),
        ("--ntasks=2", "--nodes=1-2", "--constraint=a40&rack1", "--tmp=10M", "--signal=10@60", "--time=9"),
        ("--partition=gpu,cpu", "--account=ml", "--qos=low", "--nice=5", "--dependency=singleton"),
        ("--comment=muster:x:1.1", "--open-mode=append", "--error=/dev/null", "--requeue"),
    ):  # fmt: skip
        said = ("--hold", "--job-name=same", *QUIET, *options)
        shown = [_shown(cluster, slurm.submit(said, SCRIPT)) for slurm in (rest, commands)]
        assert shown[0] == shown[1]


def _shown(cluster: Cluster, number: int) -> dict[str, str]:
    """All but who and when, and sbatch's own limits of memory locks and the like."""
    pairs = (word.partition("=") for word in cluster.ask("scontrol", "show", "job", str(number)).split())
    found = {key: value for key, _, value in pairs}
    own = ("JobId", "Priority", "SubmitTime", "AccrueTime", "AllocNode:Sid", "LastSchedEval", "Command")
    return {key: value for key, value in found.items() if key not in own}


def test_a_gang_finds_around_it_what_sbatch_would_give_it(
    cluster: Cluster, rest: Slurm, commands: Commands, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    script = f"{SCRIPT}env | grep -E '^SLURM_(NTASKS|CPUS_|GPUS_|NPROCS|MEM)' | sort\n"
    options = ("--ntasks=2", "--cpus-per-task=2", "--gpus-per-task=a40:1", "--nodes=1", "--chdir=/")
    for slurm, name in ((rest, "rest"), (commands, "commands")):
        more = ("--export=ALL", "--no-requeue", "--ntasks-per-node=2", f"--output={tmp_path}/{name}")
        ended(rest, slurm.submit((*options, *more), script))
    until((tmp_path / "commands").read_text, "the output")
    assert (tmp_path / "rest").read_text() == (tmp_path / "commands").read_text()


def test_what_has_no_word_there_is_said_by_sbatch(cluster: Cluster, rest: Slurm) -> None:
    number = rest.submit((*QUIET, "--hold", "--switches=1", "--exclude=node1"), SCRIPT)
    assert "ExcNodeList=node1" in cluster.ask("scontrol", "show", "job", str(number))


def test_where_there_are_no_commands_it_is_refused_by_name(alone: Slurm) -> None:
    with pytest.raises(Refused, match="slurmrestd has no word for --switches, and there is no sbatch here"):
        alone.submit((*QUIET, "--switches=1"), SCRIPT)
    with pytest.raises(SlurmError, match="slurmrestd can't suspend a job, and there is no command scontrol"):
        alone.control("suspend", [1])
    with pytest.raises(SlurmError, match="can't drain a node, and there is no command scontrol here"):
        alone.drain("node1", "why")
    with pytest.raises(SlurmError, match="can't tell what running jobs use"):
        alone.use([1])


def test_without_commands_a_job_is_handed_over_followed_and_cancelled(alone: Slurm) -> None:
    failed = alone.submit((*QUIET, "--job-name=x@muster:h:1.1"), f"{SCRIPT}exit 3\n")
    long = alone.submit((*QUIET, "--job-name=x@muster:h:2.1"), f"{SCRIPT}exec /bin/sleep 60\n")
    ended(alone, failed)
    (job,) = (one for one in alone.jobs() if one.id == failed)
    assert job.exit is not None
    assert job.exit.code == 3
    until(lambda: alone.named(["x@muster:h:1.1"], 0), "accounting to know it")
    assert alone.named(["x@muster:h:1.1", "nobody"], 0) == ((failed, "root", "x@muster:h:1.1"),)
    assert {one.exit for one in alone.attempts(0)} == {None}
    alone.limit(long, 120.0)
    assert [one.time_limit_seconds for one in alone.jobs() if one.id == long] == [120.0]
    alone.cancel([long, failed, 99_999])
    ended(alone, long)
    assert (alone.topology(), alone.script(long), alone.kill_wait_seconds()) == ("", None, 30.0)
    assert len(alone.notices.take()) == 4


def test_what_slurm_refuses_is_one_sentence_that_says_what_to_do(rest: Slurm) -> None:
    with pytest.raises(Refused, match="Invalid partition name specified; name one that `sinfo` lists"):
        rest.submit((*QUIET, "--partition=nope"), SCRIPT)
    with pytest.raises(BadInput, match="no job of Slurm"):
        rest.cancel(["1/../../x"])


# --- The engine on it ------------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_slurm_engine_keeps_the_protocol_over_slurmrestd(
    check: Check, cluster: Cluster, place: str
) -> None:
    bench = SlurmBench(cluster, SlurmSettings(mode="place", soon_seconds=5.0, rest=place))
    try:
        if (why_not := check.why_not(bench)) is not None:
            pytest.skip(why_not)
        check(bench)
    finally:
        bench.close()


def test_jobs_run_log_and_exit_as_by_command(lab: SlurmLab) -> None:
    job = lab.job("a", "echo $GREETING from $SLURMD_NODENAME; exit 7")
    lab.start(job)
    exited = lab.exited(job)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, 7)
    assert lab.log(job).startswith("hello from node")


def test_a_gang_has_its_ranks_and_gpus(lab: SlurmLab) -> None:
    job = lab.job("g", "echo $RANK of $WORLD_SIZE", shape=Shape(cpus_milli=1000, gpus=1), parts=2)
    lab.start(job)
    assert lab.exited(job).outcome is Outcome.SUCCEEDED
    assert {lab.log(job, part=f".{part}").strip() for part in (0, 1)} == {"0 of 2", "1 of 2"}


def test_a_slurmrestd_that_is_killed_and_comes_back_loses_nothing(
    rests: Rests, lab: SlurmLab, caplog: pytest.LogCaptureFixture
) -> None:
    running = lab.job("a", "sleep 4; exit 5")
    lab.start(running)
    lab.started(running)
    rests.kill()
    try:
        late = lab.job("b", "true")
        lab.start(late)
        until(lambda: "slurmrestd does not answer at" in caplog.text, "it to be said")
    finally:
        rests.start()
    assert lab.exited(running).exit_code == 5
    assert lab.exited(late).outcome is Outcome.SUCCEEDED


def test_a_controller_that_is_down_is_said_as_by_command(cluster: Cluster, rest: Slurm) -> None:
    cluster.kill_controller()
    try:
        for ask in (rest.jobs, rest.nodes, lambda: rest.submit(QUIET, SCRIPT), lambda: rest.cancel([1])):
            with pytest.raises(ControllerDown, match="scontrol ping"):
                ask()
    finally:
        cluster.start_controller()
    assert len(rest.nodes()) == 4


def test_who_only_observes_changes_nothing_over_slurmrestd(cluster: Cluster, place: str) -> None:
    settings = SlurmSettings(rest=place, conf=cluster.conf, observe=True)
    with contextlib.closing(connect(settings)) as slurm:
        _changes_nothing(cluster, slurm)


def _changes_nothing(cluster: Cluster, rest: Slurm) -> None:
    number = int(cluster.ask("sbatch", *QUIET, "--parsable", "--wrap", "sleep 60"))
    before = cluster.ask("squeue", "-h", "-o", "%i %l %T")
    for order in (
        lambda: rest.submit(QUIET, SCRIPT),
        lambda: rest.limit(number, 60.0),
        lambda: rest.cancel([number]),
        lambda: rest.cancel([number], signal="TERM", steps_only=True),
        lambda: rest.control("suspend", [number]),
        lambda: rest.drain("node1", "why"),
        lambda: rest.undrain("node1"),
    ):
        with pytest.raises(Denied, match="only observes Slurm"):
            order()
    assert cluster.ask("squeue", "-h", "-o", "%i").split() == before.split()[:1]
    assert number in {one.id for one in rest.jobs()}


def test_a_server_says_by_what_it_reaches_slurm_and_works(cluster: Cluster, place: str) -> None:
    with SlurmServer(cluster, more=f'rest = "{place}"') as server:
        job = server.sh("echo hi; exit 3", name="train")
        with server.client() as client:
            done = client.wait(job["id"], 60)
            assert (done["outcome"], done["exit_code"]) == ("FAILED", 3)
            assert b"".join(client.logs(job["id"])) == b"hi\n"
        assert f"Slurm is reached by slurmrestd at {place}" in server.said()


def test_who_is_killed_while_handing_over_by_slurmrestd_loses_and_doubles_none(
    cluster: Cluster, place: str
) -> None:
    luck = random.Random(11)
    with SlurmServer(cluster, more=f'rest = "{place}"') as server:
        ids = []
        for number in range(60):
            if number % 12 == 7:
                time.sleep(luck.uniform(0.0, 0.5))
                server.kill()
                server.start()
            ids.append(server.sh("true", name="many")["id"])
        with server.client() as client:
            until(lambda: not client.jobs(), "all to end", 200)
            assert {client.job(one)["outcome"] for one in ids} == {"SUCCEEDED"}
        mark = f"muster:{(server.home.path / 'slurm' / 'id').read_text()}:"
        until(lambda: not cluster.ask("squeue", "-h"), "Slurm's queue to be empty")
        comments = cluster.ask("squeue", "-h", "-t", "all", "-o", "%k").split()
        marked = [one.removeprefix(mark).partition(".")[0] for one in comments if one.startswith(mark)]
        assert sorted(marked) == sorted(ids)


# --- With a token ----------------------------------------------------------------------------------


@pytest.fixture
def token(rests: Rests, tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(rests.token())
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def tcp(rests: Rests) -> str:
    return rests.start_by_token()


@pytest.fixture
def trusted(cluster: Cluster, tcp: str, token: Path) -> Iterator[Slurm]:
    """Whoever the token in the file is for."""
    settings = SlurmSettings(rest=tcp, rest_token=str(token), conf=cluster.conf)
    with contextlib.closing(connect(settings)) as slurm:
        yield slurm


def test_roots_token_hands_over_in_the_name_of_others(trusted: Slurm) -> None:
    trusted.ready()
    assert trusted.is_operator()
    number = trusted.submit((*QUIET, f"--uid={ORDINARY[0]}"), SCRIPT)
    assert [one.user for one in trusted.jobs() if one.id == number] == [ORDINARY[0]]


def test_a_token_that_expires_is_said_and_the_next_is_taken(
    rests: Rests, trusted: Slurm, token: Path
) -> None:
    assert len(trusted.nodes()) == 4
    token.write_text(rests.token(seconds=1))
    time.sleep(2.1)
    for ask in (trusted.nodes, lambda: trusted.submit(QUIET, SCRIPT)):
        with pytest.raises(NotAuthenticated, match=r"it has expired\): renew it with `scontrol token"):
            ask()
    token.write_text(rests.token())
    assert len(trusted.nodes()) == 4


def test_a_token_of_another_cluster_is_not_taken(trusted: Slurm, token: Path) -> None:
    token.write_text("SLURM_JWT=abc.def.ghi\n")
    with pytest.raises(NotAuthenticated, match="does not take the token"):
        trusted.nodes()


def test_a_token_of_another_user_is_for_observing_alone(
    cluster: Cluster, rests: Rests, trusted: Slurm, tcp: str, token: Path
) -> None:
    token.write_text(rests.token(ORDINARY[0]))
    with pytest.raises(BadConfiguration, match=f"is for {ORDINARY[0]}, and this Muster runs as root"):
        trusted.ready()
    settings = SlurmSettings(rest=tcp, rest_token=str(token), conf=cluster.conf, observe=True)
    with contextlib.closing(connect(settings)) as observing:
        observing.ready()
        assert len(observing.nodes()) == 4
        assert not observing.is_operator()


def test_nobody_answers_where_there_is_none(cluster: Cluster) -> None:
    gone = connect(SlurmSettings(rest=f"unix:{os.devnull}x", conf=cluster.conf))
    with pytest.raises(Unreachable, match="start it there, or set rest in"):
        gone.jobs()
