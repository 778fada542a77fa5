"""``muster demo`` as a newcomer runs it: all pages have something on them, and nothing is left afterwards."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.cli.main import run
from muster.client import Client
from muster.model.errors import BadInput
from servers import until

PATIENCE_SECONDS = 60
View = dict[str, Any]


class Demo:
    """The command, until it has greeted; then its server."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "muster", "demo", "--http", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "(good once" in line:
                break
        found = re.search(r"MUSTER_HOME=([^;]+);", self.said)
        assert found, self.said
        self.home = Path(found[1])

    def __enter__(self) -> "Demo":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


def test_a_newcomer_finds_every_page_full_and_nothing_is_left_afterwards() -> None:
    with Demo() as demo:
        assert "SIMULATED" in demo.said
        assert "http://127.0.0.1:" in demo.said
        with Client(home=demo.home) as client:
            health = client.health()
            assert (health["engine"], health["simulated"]) == ("sim", True)
            assert client.whoami()["role"] == "admin"
            see_jobs(client)
            see_stewardship(client)
            see_the_site(client)
            see_something_move(client, demo.home)
        assert demo.interrupt() == 0
        assert not demo.home.exists()


def see_jobs(client: Client) -> None:
    jobs = client.jobs(all=True)
    assert {"RUNNING", "QUEUED", "HELD", "ENDED"} <= {job["state"] for job in jobs}
    assert len([job for job in jobs if job["state"] != "ENDED"]) > 80
    waiting = named(jobs, "stairs")
    assert client.why(waiting["id"])["reasons"]
    mine = client.jobs(mine=True)
    assert {"lens-ablation", "notebook"} <= {job["name"] for job in mine}
    trained = named(jobs, "finetune-8b")
    assert len(client.metrics_of(trained["id"])["series"][0]["points"]) > 10
    assert "simulated" in b"".join(client.logs(trained["id"])).decode()
    assert len(client.use_of(trained["id"])["points"]) > 10


def see_stewardship(client: Client) -> None:
    assert {effort["name"] for effort in client.efforts()} >= {"llama-eval", "city-seg", "whisper"}
    story = [line["what"] for line in client.effort("llama-eval")["story"]]
    assert {"opened", "note", "job"} <= set(story)
    assert client.reviews()
    assert {"defended", "habit", "forgotten"} == {item["kind"] for item in client.review()["items"]}
    until(lambda: len(client.digest(peek=True)["questions"]) >= 3, lambda: "questions for the visitor")


def see_the_site(client: Client) -> None:
    assert len(client.teams()) == 8
    nodes = client.nodes()
    assert {node["health"] for node in nodes} == {"up", "down", "drained"}
    assert sum(len(node["devices"]) for node in nodes) == 399
    use = client.use(since="7d")
    assert 0.4 < use["total"]["gpu_used_seconds"] / use["total"]["gpu_held_seconds"] < 0.9


def see_something_move(client: Client, home: Path) -> None:
    """Within a few looks the meters show what each uses; and logs grow."""
    until(lambda: len(working(client)) > 40, lambda: "use of what runs")
    said = written(home)
    until(lambda: written(home) > said, lambda: "a line in a log")
    assert [d for node in client.nodes() for d in node["devices"] if (d["busy"] or 0) > 0.5]


def working(client: Client) -> list[View]:
    return [job for job in client.jobs(state="RUNNING") if job["used"] is not None]


def written(home: Path) -> int:
    return sum(log.stat().st_size for log in (home / "logs").glob("*.log"))


def named(jobs: list[View], name: str) -> View:
    return next(job for job in jobs if job["name"] == name)


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "1e9"])
def test_no_speed_that_makes_no_sense(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", f"--speed={speed}"]) == BadInput.exit_code
    assert "--speed" in capsys.readouterr().err


def test_who_is_told_to_end_while_the_week_is_made_leaves_nothing_behind(tmp_path: Path) -> None:
    script = (
        "import os, signal, tempfile; from muster.demo import run\n"
        "from pathlib import Path; from muster.server.config_values import parse_address\n"
        f"run._MEMORY = Path({str(tmp_path)!r})\n"
        "run.relive = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "run.demonstrate(run.Demo(parse_address('127.0.0.1:0')), print)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=PATIENCE_SECONDS)
    assert ended.returncode == 0
    assert list(tmp_path.iterdir()) == []
