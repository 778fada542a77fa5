"""Jobs that people gave to Slurm themselves, on a real cluster: seen, reviewed, and left alone."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster

from tests.servers import Server, until
from tests.visitor import Visitor

_QUICK = '[engine]\nkind = "slurm"\n[slurm]\nperiod = "500ms"\n'
_REVIEWED = """
stop_adopted = true
[review]
schedule = "daily 12:00"
opens = "1d"
notice = "1s"
"""
_SAYS = """#!/bin/sh
#MUSTER --for "Does 8B beat 3B on held-out data?" --success "val_acc >= 0.9"
sleep 600
"""


@pytest.fixture(autouse=True)
def _its_configuration(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", cluster.conf)


def server(*options: str, configuration: str = _QUICK) -> Server:
    made = Server(*options)
    made.home.path.mkdir(exist_ok=True)
    made.home.configuration.write_text(configuration)
    return made


@pytest.fixture
def observing() -> Iterator[Server]:
    with server("--observe") as made:
        yield made


@pytest.fixture
def governing() -> Iterator[Server]:
    with server(configuration=f"{_QUICK}stop_adopted = false\n") as made:
        yield made


def sbatch(cluster: Cluster, *options: str, script: str = "sleep 600", user: str | None = None) -> str:
    """What somebody submits without Muster; its id there."""
    body = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *options]
    if user is not None:
        words = ["runuser", "-u", user, "--", *words]
    done = subprocess.run(
        words, input=body, env=cluster.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(made: Server, job: str) -> str:
    with made.client() as client:
        found = [view for view in client.jobs(all=True) if view["id"] == job]
    return found[0]["outcome"] or found[0]["state"] if found else "not seen"


def wait_for(made: Server, job: str, *states: str) -> None:
    until(lambda: state(made, job) in states, lambda: f"{job} to be {states}, it is {state(made, job)}")


# --- Seeing ----------------------------------------------------------------------------------------


def test_everybodys_jobs_appear_with_owner_account_purpose_and_reason(
    cluster: Cluster, observing: Server
) -> None:
    runs = sbatch(cluster, "--gres=gpu:a40:2", "--job-name=train", user="games", script=_SAYS)
    held = sbatch(cluster, "--hold", "--job-name=later")
    array = sbatch(cluster, "--array=1-5%2", "--job-name=sweep")
    wait_for(observing, f"s{runs}", "RUNNING")
    wait_for(observing, f"s{held}", "HELD")
    wait_for(observing, f"s{array}_1", "RUNNING")
    with observing.client() as client:
        until(lambda: client.job(f"s{runs}")["purpose"], "its script to be read")
        view = client.job(f"s{runs}")
        assert (view["owner"], view["team"], view["adopted"], view["gpus"]) == ("games", "ml", "slurm", 2)
        assert (view["success"], len(view["devices"])) == (["val_acc >= 0.9"], 2)
        assert client.job(f"s{held}")["reason"].startswith("its owner holds it")
        assert client.job(f"s{array}")["counts"] == {"RUNNING": 2, "QUEUED": 3}
        assert [node["name"] for node in client.nodes()] == ["node1", "node2", "node3", "node4"]
        assert sum(node["held"]["gpus"] for node in client.nodes()) == 2
    assert "Waits in Slurm: its owner holds it" in observing.muster("why", f"s{held}").stdout
    cluster.ask("scancel", array)


def test_every_end_is_told_as_slurm_tells_it(cluster: Cluster, observing: Server) -> None:
    good = sbatch(cluster, script="sleep 2")  # what ended in the second in which Muster began is not told of
    bad = sbatch(cluster, script="sleep 2; exit 3")
    gone = sbatch(cluster)
    wait_for(observing, f"s{gone}", "RUNNING")
    cluster.ask("scancel", gone)
    for job, outcome in ((good, "SUCCEEDED"), (bad, "FAILED"), (gone, "STOPPED")):
        wait_for(observing, f"s{job}", outcome)
    with observing.client() as client:
        assert client.job(f"s{bad}")["exit_code"] == 3
        assert client.job(f"s{gone}")["reason"] == "cancelled in Slurm"


def test_a_job_that_is_preempted_waits_and_runs_again_as_another_attempt(
    cluster: Cluster, observing: Server
) -> None:
    low = sbatch(cluster, "--qos=low", "--partition=cpu", "--exclusive", "--mem=0")
    wait_for(observing, f"s{low}", "RUNNING")
    high = sbatch(cluster, "--qos=high", "--partition=cpu", "--exclusive", "--mem=0")
    wait_for(observing, f"s{high}", "RUNNING")
    wait_for(observing, f"s{low}", "QUEUED")
    cluster.ask("scancel", high)
    wait_for(observing, f"s{low}", "RUNNING")
    with observing.client() as client:
        assert client.job(f"s{low}")["attempt"] == 2


def test_what_happened_while_muster_was_away_is_told(cluster: Cluster, observing: Server) -> None:
    ends, stays = sbatch(cluster), sbatch(cluster)
    wait_for(observing, f"s{ends}", "RUNNING")
    wait_for(observing, f"s{stays}", "RUNNING")
    observing.kill()
    cluster.ask("scancel", ends)
    new = sbatch(cluster)
    observing.start()
    wait_for(observing, f"s{ends}", "STOPPED")
    wait_for(observing, f"s{new}", "RUNNING")
    assert state(observing, f"s{stays}") == "RUNNING"


def test_without_a_controller_it_starts_and_says_so_and_goes_on_when_there_is_one(cluster: Cluster) -> None:
    cluster.kill_controller()
    try:
        with server("--observe") as made:
            until(lambda: "Slurm's controller does not answer" in made.said(), "it to be said")
            cluster.start_controller()
            job = sbatch(cluster)
            wait_for(made, f"s{job}", "RUNNING")
            until(lambda: "Slurm answers again" in made.said(), "that to be said, too")
    finally:
        if "down" in cluster.ask_anyway("scontrol", "ping").lower():
            cluster.start_controller()


# --- Leaving alone ---------------------------------------------------------------------------------


def _all_of(cluster: Cluster) -> str:
    """Everything that Slurm shows, without what passes by itself."""
    said = "\n".join(
        cluster.ask("scontrol", "--oneliner", "show", what) for what in ("job", "node", "partition", "config")
    )
    passing = r"(RunTime|LastSchedEval|CPULoad|FreeMem|AccrueTime|SlurmdStartTime|LastBusyTime)=\S+"
    said = re.sub(r"Configuration data as of \S+|Slurmctld\(primary\).*", "", said)
    return re.sub(passing, "", said)


def test_who_only_observes_changes_nothing_whatever_is_tried(cluster: Cluster, observing: Server) -> None:
    runs, waits = sbatch(cluster, user="games"), sbatch(cluster, "--hold")
    wait_for(observing, f"s{runs}", "RUNNING")
    wait_for(observing, f"s{waits}", "HELD")
    before = _all_of(cluster)
    said = [
        observing.muster("stop", f"s{runs}"),
        observing.muster("stop", f"s{waits}"),
        observing.muster("hold", f"s{runs}"),
        observing.muster("release", f"s{waits}"),
        observing.muster("requeue", f"s{runs}"),
        observing.muster("suspend", f"s{runs}"),
        observing.muster("submit", "--", "true"),
        observing.muster("node", "drain", "node1", "--because", "fan"),
        observing.muster("extend", f"s{runs}", "--time", "1h", "--because", "it needs more"),
    ]
    assert all(done.returncode for done in said)
    assert all(done.stderr.count("\n") == 1 for done in said), [done.stderr for done in said]
    assert f"stop it there with `scancel {runs}`" in said[0].stderr
    assert "submit it with sbatch" in said[6].stderr
    assert _all_of(cluster) == before


def test_teams_that_are_written_down_later_count_for_who_comes_later(
    cluster: Cluster, governing: Server
) -> None:
    before = sbatch(cluster, user="games")
    wait_for(governing, f"s{before}", "RUNNING")
    said = governing.home.configuration.read_text()
    governing.home.configuration.write_text(f'{said}\n[team.play]\nusers = ["games"]\n')
    until(lambda: "play" in governing.muster("team").stdout, "the configuration to be read again")
    after = sbatch(cluster, user="games")
    wait_for(governing, f"s{after}", "RUNNING")
    with governing.client() as client:
        assert [client.job(f"s{one}")["team"] for one in (before, after)] == ["ml", "play"]


# --- Answering for it ------------------------------------------------------------------------------


def test_a_job_is_adopted_with_a_purpose_and_somebody_who_answers_for_it(
    cluster: Cluster, observing: Server
) -> None:
    job = sbatch(cluster, "--job-name=night", user="games")
    wait_for(observing, f"s{job}", "RUNNING")
    assert "nobody has said what it is for" in observing.muster("adopt").stdout
    done = observing.muster("adopt", f"s{job}", "--for", "Does the nightly model still beat the baseline?")
    assert "is adopted; games answers for it." in done.stdout, done.stderr
    with observing.client() as client:
        assert client.job(f"s{job}")["purpose"] == "Does the nightly model still beat the baseline?"
    until(lambda: _kind(observing, f"s{job}") == "forgotten", "the review to ask how it ends")
    done = observing.muster("defend", f"s{job}", "--because", "it runs until Friday", "--until", "+3d")
    assert done.returncode == 0, done.stderr
    assert _kind(observing, f"s{job}") == "defended"


def test_a_job_is_adopted_into_an_effort_that_it_spends_of(cluster: Cluster, observing: Server) -> None:
    job, other = (sbatch(cluster, "--gres=gpu:1", user="games") for _ in range(2))
    array = sbatch(cluster, "--array=1-2", user="games")
    wait_for(observing, f"s{job}", "RUNNING")
    assert "there is no effort 'night'" in observing.muster("adopt", f"s{job}", "--effort", "night").stderr
    asked = ("--for", "Does the nightly model still beat the baseline?", "--budget", "10 GPUh")
    for name in ("night", "day"):
        assert observing.muster("effort", "new", name, *asked).returncode == os.EX_OK
    me = _whoami(observing)
    done = observing.muster("adopt", f"s{job}", f"s{array}", "--effort", "night")
    assert f"is adopted; {me} answers for it." in done.stdout, done.stderr
    with observing.client() as client:
        views = [client.job(one) for one in (f"s{job}", f"s{array}_2", f"s{other}")]
        assert [view["effort"] for view in views] == ["night", "night", None]
        assert views[0]["purpose"] == "Does the nightly model still beat the baseline?"
        until(lambda: client.effort("night")["spending"]["share"] > 0, "its budget to be spent of")
        assert client.effort("day")["spending"]["share"] == 0
    moved = observing.muster("adopt", f"s{job}", "--effort", "day")
    assert f"job s{job} is part of effort night, and stays there" in moved.stderr
    observing.muster("effort", "close", "day", "--lost", "--because", "nobody needs it")
    assert "effort day is closed" in observing.muster("adopt", f"s{other}", "--effort", "day").stderr


def _whoami(made: Server) -> str:
    with made.client() as client:
        return str(client.whoami()["name"])


def _kind(made: Server, job: str) -> str:
    with made.client() as client:
        return str(next(item["kind"] for item in client.review()["items"] if job in item["jobs"]))


def test_a_page_offers_what_can_be_done_with_it_and_gives_it_a_charter(
    cluster: Cluster, observing: Server
) -> None:
    job = f"s{sbatch(cluster, '--job-name=plain')}"
    wait_for(observing, job, "RUNNING")
    visitor = Visitor(observing)
    page = visitor.get(f"/job/{job}").words
    assert "Say what it is for…" in page
    assert "Stop…" not in page
    assert f"Job {job} is Slurm's, which this Muster only observes" in page
    purpose = "Does plain beat the baseline on held-out data?"
    form = {"options.for": purpose, "options.until": "+7d", "options.success[]": ""}
    answer = visitor.post(f"/do/jobs/{job}/adopt", form)
    assert answer.status in (200, 303), answer.words
    with observing.client() as client:
        assert (client.job(job)["purpose"], client.job(job)["answers"]) == (purpose, "root")
    assert "layout discover --from slurm" in visitor.get("/where").words


def test_a_review_lists_what_others_submitted_and_stops_it_only_where_that_is_allowed(
    cluster: Cluster,
) -> None:
    spared = sbatch(cluster, "--job-name=spared")
    with server(configuration=f"{_QUICK}{_REVIEWED.replace('true', 'false', 1)}") as made:
        wait_for(made, f"s{spared}", "RUNNING")
        _close(made)
        assert _kind(made, f"s{spared}") == "forgotten"
    assert cluster.ask("squeue", "-h", "-j", spared, "-o", "%T").strip() == "RUNNING"
    with server(configuration=f"{_QUICK}{_REVIEWED}") as made:
        wait_for(made, f"s{spared}", "RUNNING")
        until(lambda: _told(made, f"s{spared}"), "its owner to be told")
        until(lambda: made.muster("review", "close").returncode == 0, "the notice to pass")
        wait_for(made, f"s{spared}", "STOPPED")
        with made.client() as client:
            assert client.job(f"s{spared}")["verdict"] == "undefended"
    assert "CANCELLED" in cluster.ask("scontrol", "show", "job", spared)


def _told(made: Server, job: str) -> object:
    with made.client() as client:
        return next((item["told_at"] for item in client.review()["items"] if job in item["jobs"]), None)


def _close(made: Server) -> None:
    with made.client() as client:
        until(lambda: client.review()["number"] is not None, "a review to open")
    until(lambda: made.muster("review", "close").returncode == 0, "the notice to pass")


# --- Acting, with the right to ---------------------------------------------------------------------


def test_an_operator_stops_what_others_submitted_whether_it_runs_or_waits(
    cluster: Cluster, governing: Server
) -> None:
    runs, waits = sbatch(cluster, user="games"), sbatch(cluster, "--hold", user="news")
    wait_for(governing, f"s{runs}", "RUNNING")
    wait_for(governing, f"s{waits}", "HELD")
    for job in (runs, waits):
        done = governing.muster("stop", f"s{job}", "--because", "not needed")
        assert done.returncode == 0, done.stderr
    for job in (runs, waits):
        wait_for(governing, f"s{job}", "STOPPED")
        with governing.client() as client:
            assert client.job(f"s{job}")["reason"] == "stopped by root: not needed"


def test_a_node_is_drained_in_slurm_and_brought_back_and_what_others_do_is_followed(
    cluster: Cluster, governing: Server
) -> None:
    until(lambda: _health(governing, "node2") == "up", "node2")
    done = governing.muster("node", "drain", "node2", "--because", "fan is broken")
    assert "root: fan is broken" in done.stdout, done.stderr
    assert "DRAIN" in cluster.ask("scontrol", "show", "node", "node2")
    assert "leave the GPU out" in governing.muster("node", "resume", "node2", "--gpu", "1").stderr
    governing.muster("node", "resume", "node2")
    until(lambda: _health(governing, "node2") == "up", "node2 to be back")
    cluster.ask("scontrol", "update", "NodeName=node3", "State=DRAIN", "Reason=disk")
    until(lambda: _health(governing, "node3") == "drained", "node3")
    cluster.ask("scontrol", "update", "NodeName=node3", "State=RESUME")
    until(lambda: _health(governing, "node3") == "up", "node3 to be back")


def _health(made: Server, node: str) -> str:
    with made.client() as client:
        return next((str(one["health"]) for one in client.nodes() if one["name"] == node), "not seen")


# --- Where it can't be -----------------------------------------------------------------------------


def _up(tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    made = Server("--engine", "slurm", "--observe", home=tmp_path)
    return subprocess.run(
        made.command(),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_wrong_slurm_conf_is_one_sentence(tmp_path: Path) -> None:
    done = _up(tmp_path, SLURM_CONF="/nowhere/slurm.conf")
    assert done.returncode != 0
    assert done.stderr.startswith("muster: SLURM_CONF names /nowhere/slurm.conf, which is no file")
    assert done.stderr.count("\n") == 1


def test_no_commands_of_slurm_are_one_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = _up(tmp_path, PATH=str(empty))
    assert done.returncode != 0
    assert done.stderr.startswith("muster: there is no command sinfo here: run Muster where")
    assert done.stderr.count("\n") == 1


def test_observing_goes_with_a_queue_of_others(tmp_path: Path) -> None:
    made = Server("--observe", home=tmp_path)
    done = subprocess.run(made.command(), capture_output=True, text=True, check=False, timeout=60)
    assert "muster: --observe goes with --engine slurm" in done.stderr
