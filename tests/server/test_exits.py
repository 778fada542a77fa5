"""Exits on a real server: what is reported ends work, won or lost, and resources go to the next."""

import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from muster.client import Client, Refused
from servers import Server, View, until

PURPOSE = "Does a report end what it should?"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as made:
        yield made


def printing(client: Client, program: str, **options: object) -> str:
    """A job of Python, in which ``told`` prints a report."""
    head = "import json, time\ndef told(**values): print(json.dumps(values), flush=True)\n"
    command = [sys.executable, "-c", head + textwrap.dedent(program)]
    return str(client.submit(command, purpose=PURPOSE, **options)["id"])


def ended(client: Client, job: str) -> View:
    return client.wait(job)


ON = "import itertools\nfor i in itertools.count():\n    told(acc={acc}, step=i)\n    time.sleep(0.05)\n"


def test_a_success_exit_ends_a_job_as_won_and_says_by_which_report(client: Client) -> None:
    view = ended(client, printing(client, ON.format(acc="i / 10"), success=["acc >= 0.9"]))
    assert (view["outcome"], view["verdict"]) == ("STOPPED", "won")
    assert view["reason"] == "acc was 0.9 at step 9, and acc >= 0.9 ends it as won"


def test_a_failure_exit_ends_a_job_as_lost_once_it_has_run_so_long(client: Client) -> None:
    view = ended(client, printing(client, ON.format(acc="0.3"), failure=["acc < 0.5 after 1s"]))
    assert (view["verdict"], view["ended_at"] - view["started_at"] >= 1.0) == ("lost", True)


def test_what_no_longer_gets_better_is_ended(client: Client) -> None:
    view = ended(client, printing(client, ON.format(acc="0.3"), failure=["acc stalls for 1s"]))
    assert (view["verdict"], "acc stalls for 1s" in view["reason"]) == ("lost", True)


def test_nothing_is_ended_on_the_word_of_a_metric_that_went_silent(client: Client) -> None:
    program = "told(acc=0.3, step=1)\ntime.sleep(3)\n"
    view = ended(client, printing(client, program, failure=["acc stalls for 1s"]))
    assert (view["outcome"], view["verdict"]) == ("SUCCEEDED", None)


def test_a_metric_that_is_no_number_any_more_ends_it_if_that_was_said(client: Client) -> None:
    program = "print('{\"loss\": NaN}', flush=True)\ntime.sleep(100)\n"
    assert ended(client, printing(client, program, failure=["loss is nan"]))["verdict"] == "lost"


def test_the_last_words_of_a_job_count(client: Client) -> None:
    won = ended(client, printing(client, "told(acc=0.95)\n", success=["acc >= 0.9"]))
    assert won["verdict"] == "won"


def test_a_job_that_ends_without_reaching_what_it_was_for_has_lost(client: Client) -> None:
    lost = ended(client, printing(client, "told(acc=0.85)\n", success=["acc >= 0.9"]))
    assert (lost["outcome"], lost["verdict"]) == ("SUCCEEDED", "lost")
    assert lost["reason"] == "it ended, and acc >= 0.9 was never met"


def test_a_metric_that_never_came_judges_nothing(client: Client) -> None:
    view = ended(client, printing(client, "pass\n", success=["acc >= 0.9"]))
    assert (view["outcome"], view["verdict"]) == ("SUCCEEDED", None)


def test_a_job_that_failed_is_not_judged_by_its_exits(client: Client) -> None:
    view = ended(client, printing(client, "told(acc=0.1)\nraise SystemExit(3)\n", success=["acc >= 0.9"]))
    assert (view["exit_code"], view["verdict"]) == (3, None)


def test_a_time_limit_that_is_reached_is_out_of_time(client: Client) -> None:
    view = ended(client, printing(client, "time.sleep(100)\n", time="1s"))
    assert (view["outcome"], view["verdict"]) == ("TIMEOUT", "out-of-time")


def test_what_a_program_reports_by_itself_counts_the_same(server: Server, client: Client) -> None:
    program = "import muster\nmuster.report(acc=0.95, step=7)\ntime.sleep(100)\n"
    assert ended(client, printing(client, program, success=["acc >= 0.9"]))["verdict"] == "won"


def test_what_a_job_writes_for_tensorboard_counts_the_same(server: Server, client: Client) -> None:
    program = """
        from tensorboardX import SummaryWriter
        writer = SummaryWriter("runs", flush_secs=1)
        for step in range(1000):
            writer.add_scalar("val/acc", step / 10, step)
            time.sleep(0.1)
    """
    job = printing(
        client, program, success=["val/acc >= 0.9"], metrics="tensorboard:runs", cwd=str(server.work)
    )
    assert ended(client, job)["verdict"] == "won"


def test_a_tracking_server_that_may_not_be_asked_is_refused(client: Client) -> None:
    with pytest.raises(Refused, match="mlflow_hosts"):
        printing(client, "pass", metrics="mlflow:http://tracker.example:5000")


def test_time_that_a_job_stands_still_does_not_count(client: Client) -> None:
    job = printing(client, ON.format(acc="0.3"), failure=["acc < 0.5 after 2s"])
    until(lambda: client.job(job)["metrics"], "a report")
    client.suspend(job)
    until(lambda: client.job(job)["state"] == "SUSPENDED", "the job to stand still")
    time.sleep(3.0)
    assert client.job(job)["state"] == "SUSPENDED"
    client.resume(job)
    view = ended(client, job)
    assert view["verdict"] == "lost"
    assert view["ended_at"] - view["started_at"] >= 5.0


def test_the_next_in_the_queue_gets_what_was_held(server: Server, client: Client) -> None:
    cpus = client.nodes()[0]["cpus"]
    first = printing(client, ON.format(acc="i / 10"), success=["acc >= 0.9"], cpus=cpus)
    then = str(client.submit(["true"], cpus=cpus)["id"])
    assert ended(client, first)["verdict"] == "won"
    assert ended(client, then)["outcome"] == "SUCCEEDED"


# --- Efforts ----------------------------------------------------------------------------------------


def opened(client: Client, name: str, **more: object) -> None:
    charter = {"for": PURPOSE, **{key: more.pop(key) for key in ("success", "failure") if key in more}}
    client.post("/efforts", {"name": name, "charter": charter, **more})


def test_the_exit_of_an_effort_ends_all_its_jobs_whoever_met_it(client: Client) -> None:
    opened(client, "both", success=["acc >= 0.9"])
    slow = printing(client, ON.format(acc="0.1"), effort="both")
    quick = printing(client, ON.format(acc="i / 10"), effort="both")
    assert [ended(client, job)["verdict"] for job in (slow, quick)] == ["won", "won"]
    effort = client.effort("both")
    assert effort["verdict"] == "won"
    assert f"job {quick}: acc was 0.9" in effort["because"]


def test_one_that_fails_does_not_end_the_effort_of_others(client: Client) -> None:
    opened(client, "some", failure=["acc < 0.5 for 3 reports"])
    bad = printing(client, ON.format(acc="0.1"), effort="some")
    good = printing(client, ON.format(acc="0.8"), effort="some")
    until(lambda: client.job(bad)["metrics"] and client.job(good)["metrics"], "both to have reported")
    client.stop(good)
    ended(client, good)
    assert client.effort("some")["verdict"] is None
    client.on_effort("some", "close", {"verdict": "lost"})
    ended(client, bad)


def test_the_first_that_wins_ends_its_siblings_if_the_effort_says_so(client: Client) -> None:
    opened(client, "first", first_wins=True)
    head = "import os, itertools\nx = float(os.environ['MUSTER_PARAM_X'])\n"
    program = head + "for i in itertools.count():\n    told(acc=x * i, step=i)\n    time.sleep(0.05)\n"
    sweep = printing(client, program, effort="first", success=["acc >= 0.9"], params={"X": ["0", "0.1"]})
    client.wait(sweep)
    assert client.effort("first")["ended"] == {"won": 2}


def test_siblings_go_on_if_the_effort_does_not_say_so(client: Client) -> None:
    opened(client, "each")
    slow = printing(client, ON.format(acc="0.1"), effort="each", success=["acc >= 0.9"])
    quick = printing(client, ON.format(acc="i / 10"), effort="each", success=["acc >= 0.9"])
    assert ended(client, quick)["verdict"] == "won"
    assert client.job(slow)["state"] == "RUNNING"
    client.on_effort("each", "close", {"verdict": "lost"})
    assert ended(client, slow)["verdict"] == "lost"


# --- Crashes ----------------------------------------------------------------------------------------


def test_a_server_that_was_killed_knows_what_it_had_learned() -> None:
    """The best was shown before the crash, and nothing better after it."""
    program = (
        "told(acc=0.9, step=1)\nfor i in range(2, 999):\n    told(acc=0.5, step=i)\n    time.sleep(0.1)\n"
    )
    with Server() as server:
        with server.client() as client:
            job = printing(client, program, failure=["acc stops rising for 4s"])
            until(lambda: client.job(job)["metrics"].get("acc") == 0.5, "the second report")
        server.kill()
        server.start()
        with server.client() as client:
            view = ended(client, job)
    assert view["verdict"] == "lost"


def test_a_verdict_that_was_written_before_a_crash_is_carried_out_after_it() -> None:
    """It ignores SIGTERM, so that the server dies between the verdict and the end."""
    program = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntold(acc=1)\ntime.sleep(100)\n"
    with Server() as server:
        with server.client() as client:
            job = printing(client, program, success=["acc >= 0.9"], grace="3s")
            until(lambda: client.job(job)["state"] == "STOPPING", "the verdict")
        server.kill()
        server.start()
        with server.client() as client:
            view = ended(client, job)
    assert (view["outcome"], view["verdict"]) == ("STOPPED", "won")


def test_an_exit_that_is_met_while_the_server_is_down_ends_the_job_when_it_is_back() -> None:
    with Server() as server:
        with server.client() as client:
            job = printing(client, ON.format(acc="i / 40"), success=["acc >= 0.9"])
            until(lambda: client.job(job)["metrics"], "a report")
        server.kill()
        until(lambda: "0.95" in (server.home.path / "logs" / f"{job}.1.log").read_text(), "it to get there")
        server.start()
        with server.client() as client:
            view = ended(client, job)
    assert view["verdict"] == "won"
    assert "acc was 0.9 at step 36" in view["reason"]


def test_why_tells_the_verdict_of_what_has_ended(client: Client) -> None:
    job = printing(client, ON.format(acc="i / 10"), success=["acc >= 0.9"])
    ended(client, job)
    assert ", won: acc was 0.9 at step 9" in client.why(job)["text"]
