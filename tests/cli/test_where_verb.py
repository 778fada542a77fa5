"""``muster where`` as a person types it, against a server that answers what it was told."""

import json
from typing import Any

import pytest
from canned import Canned
from test_verbs import on_terminal, refusal

from muster.cli.main import run

Said = pytest.CaptureFixture[str]


def gpu(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {"number": number, "state": state, "model": "A40", "share": None, **more}


def node(name: str, *states: str, at_u: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "rack": "R1",
        "at_u": at_u,
        "units": 1,
        "column": 0,
        "across": 1,
        "state": "free",
        "cpus": 8.0,
        "cpus_held": 2.0,
        "cpu_share": 0.25,
        "gpus": [gpu(number, state) for number, state in enumerate(states)],
        **more,
    }


def seen(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    states = [gpu["state"] for node in nodes for gpu in node["gpus"]]
    return {
        "site": "lab",
        "sentence": "So it is.",
        "counts": {state: states.count(state) for state in ("working", "held idle", "free", "unknown")},
        "share": None,
        "undefended": 0,
        "racks": [{"name": "R1", "room": None, "row": "A", "units": 42}],
        "nodes": list(nodes),
        "contradictions": [],
        **more,
    }


WHERE = {
    "id": "12",
    "name": "fit",
    "state": "RUNNING",
    "sentence": "12 fit runs on GPU 0 of a1.",
    "places": [
        {
            "node": "a1",
            "processes": [
                {"pid": 7, "command": "python x", "memory_bytes": 1 << 30, "gpu_memory_bytes": None}
            ],
        }
    ],
    "drawing": [" R1", "┌────┐", "│●□ 1│", "└────┘"],
}


def test_where_a_job_is_in_a_sentence_a_drawing_and_its_processes(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs/12/where"] = WHERE
    assert run(["where", "12"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "12 fit runs on GPU 0 of a1.",
        "",
        " R1",
        "┌────┐",
        "│●□ 1│",
        "└────┘",
        "",
        "NODE  PID  MEM  GPU MEM  COMMAND",
        "a1    7     1G  –        python x",
    ]
    assert run(["where", "12", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == WHERE


def test_a_job_whose_processes_are_not_known_has_no_table(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs/12/where"] = {**WHERE, "places": [{"node": "a1", "processes": None}]}
    assert run(["where", "12"]) == 0
    assert "PID" not in capsys.readouterr().out


def test_the_map_is_drawn_with_what_every_gpu_does_and_a_legend(server: Canned, capsys: Said) -> None:
    one, two = node("a1", "working", "held idle", "free"), node("a2", "unknown", "free", "free", at_u=2)
    told = {"share": 0.4, "undefended": 1, "contradictions": ["a2: gpus: the file says 3, the engine sees 2"]}
    server.answers["GET /map"] = seen(one, two, **told)
    assert run(["where"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab: So it is.",
        "",
        "row A",
        " R1",
        "┌─────┐",
        "│?□□ 2│",
        "│■▨□ 1│",
        "└─────┘",
        "",
        "■ 1 working  ▨ 1 held idle  □ 3 free  ? 1 unknown  1 undefended  40 % of what is held is used",
        "! a2: gpus: the file says 3, the engine sees 2",
    ]


def test_a_node_without_gpus_is_told_by_its_cpus(server: Canned, capsys: Said) -> None:
    server.answers["GET /map"] = seen(
        node("laptop"), node("other", cpus=None, cpu_share=None, state="unknown")
    )
    assert run(["where"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [
        "NODE    STATE    CPUS  HELD  USED",
        "laptop  free        8     2  25 %",
        "other   unknown     –     –     –",
    ]


def test_the_map_is_narrowed_by_the_server(server: Canned, capsys: Said) -> None:
    server.answers["GET /map"] = seen(node("a1", "held idle"))
    assert run(["where", "--owner", "ana", "--state", "idle", "--rack", "R1", "--node", "a1"]) == 0
    assert server.paths() == ["GET /map?rack=R1&node=a1&owner=ana&state=held%20idle"]
    assert run(["where", "-o", "json"]) == 0
    assert '"site": "lab"' in capsys.readouterr().out


def test_on_a_terminal_glyphs_have_colours(server: Canned) -> None:
    server.answers["GET /map"] = seen(node("a1", "working", "held idle"))
    drawn = on_terminal("where")
    assert "\x1b[36m■\x1b[0m\x1b[33m▨\x1b[0m" in drawn


def test_what_can_t_be_meant_is_refused(server: Canned, capsys: Said) -> None:
    assert "a job is in its own place" in refusal(capsys, "where", "12", "--rack", "R1")
    assert "--state" in refusal(capsys, "where", "--state", "busy")
    assert "not a job's id" in refusal(capsys, "where", "../x")
