"""``muster top`` as a person types it: one frame without a terminal, a sentence without Textual."""

import json
import subprocess
import sys
from typing import Any

import pytest
from canned import Canned
from test_verbs import on_terminal, refusal

from muster.cli.main import run

Said = pytest.CaptureFixture[str]
TOLD: dict[str, Any] = {
    "site": "lab",
    "at": 1.0,
    "simulated": False,
    "generation": 1,
    "counts": {"working": 2, "held idle": 0, "free": 2},
    "share": 0.5,
    "undefended": 0,
    "by": "gpu",
    "strips": [{"name": "R1", "use": ["▇▄··"], "states": ["■■□□"]}],
    "cpus": None,
    "running": 1,
    "waiting": 0,
    "more": 0,
    "jobs": [
        {
            "id": "12",
            "name": "[red]fit[/red]\x1b[2J",
            "owner": "ana",
            "team": "",
            "purpose": "Does 8B beat 3B?",
            "effort": None,
            "state": "RUNNING",
            "gpus": 2.0,
            "cpus": 2.0,
            "nodes": "a1",
            "share": 0.5,
            "budget": None,
            "started_at": 1.0,
            "ends_at": None,
            "reason": None,
            "undefended": None,
            "defended_at": None,
        }
    ],
}


@pytest.fixture
def told(server: Canned) -> Canned:
    server.answers["GET /top"] = TOLD
    server.answers["GET /sparks"] = {"since": 0.0, "step_seconds": 3600, "sparks": {"12": [0.5] * 24}}
    return server


def test_where_there_is_no_terminal_one_frame_is_printed(told: Canned, capsys: Said) -> None:
    assert run(["top"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("muster top — lab 4 GPU  ■2 □2  used 50 % of held  1 run, 0 wait")
    assert lines[1] == "R1 ▇▄··"
    assert lines[4].split()[:3] == ["12", "ana", "[red]fit[/red]\N{REPLACEMENT CHARACTER}[2J:"]
    assert "▄" * 12 in lines[4]


def test_options_narrow_it_and_json_is_all_that_was_told(told: Canned, capsys: Said) -> None:
    assert run(["top", "--once", "--mine", "--team", "vision", "--limit", "5", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**TOLD, "sparks": {"12": [0.5] * 24}}
    assert told.paths()[0] == "GET /top?by=gpu&which=all&order=held&limit=5&mine=true&team=vision"


def test_what_jobs_used_is_asked_for_all_of_them_together(told: Canned) -> None:
    assert run(["top", "--owner", "ana"]) == 0
    assert [path for path in told.paths() if "sparks" in path] == ["GET /sparks?jobs=12"]


def test_a_place_that_does_not_fit_is_looked_at_from_farther_away(told: Canned) -> None:
    many = [{"name": f"R{n}", "use": ["▇" * 60], "states": ["■" * 60]} for n in range(100)]
    told.answers["GET /top"] = lambda asked: {**TOLD, "strips": many if "by=gpu" in asked[1] else many[:3]}
    assert run(["top"]) == 0
    assert [path.partition("&")[0] for path in told.paths()[:2]] == ["GET /top?by=gpu", "GET /top?by=node"]


def test_a_terminal_has_colours_unless_no_color_is_said(
    told: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[36m" in on_terminal("top", "--once")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in on_terminal("top", "--once")


def test_without_textual_a_sentence_says_what_to_install(told: Canned) -> None:
    code = (
        "import sys; sys.modules['textual'] = None\n"
        "for stream in (sys.stdin, sys.stdout): stream.isatty = lambda: True\n"
        "from muster.cli.main import run; sys.exit(run(['top']))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "pip install 'passmuster[tui]'" in ended.stderr


def test_one_frame_needs_no_textual(told: Canned) -> None:
    code = (
        "import sys; sys.modules['textual'] = None\n"
        "from muster.cli.main import run; sys.exit(run(['top', '--once']))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "R1 ▇▄··" in ended.stdout


def test_what_can_t_be_meant_is_refused(told: Canned, capsys: Said) -> None:
    assert "add --once" in refusal(capsys, "top", "-o", "json")
    assert "from 0.2 to 3600" in refusal(capsys, "top", "--interval", "0")
    assert "whole number" in refusal(capsys, "top", "--limit", "0")
