"""The command line as a person types it, against a server that answers what it was told."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Any

import pytest
from canned import Canned, Chunks, Refusal, ended, view

from muster.cli.main import GROUPS, VERBS, run
from muster.cli.views import span

MUSTER = [sys.executable, "-c", "from muster.cli.main import main; main()"]
Said = pytest.CaptureFixture[str]


def body(server: Canned) -> dict[str, Any]:
    (_, path, sent) = server.asked[-1]
    assert path.startswith(("/jobs", "/plan"))
    assert isinstance(sent, dict)
    return sent


def refusal(said: Said, *arguments: str, code: int = 2) -> str:
    """The one line of a refused command, which prints nothing else."""
    assert run(list(arguments)) == code
    out, err = said.readouterr()
    assert out == ""
    assert err.startswith("muster: ")
    assert err.count("\n") == 1
    return err


def test_what_a_refusal_points_at_is_shown_below_it(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs"] = Refusal(400, "'a >> 1' is wrong here\n  a >> 1\n     ^", 2)
    assert run(["submit", "--success", "a >> 1", "--", "true"]) == 2
    assert capsys.readouterr().err == "muster: 'a >> 1' is wrong here\n  a >> 1\n     ^\n"


# --- submit -------------------------------------------------------------------------------------------


def test_submit_sends_options_as_typed_and_the_command_after_dashes(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs"] = view()
    typed = (
        "submit --gpus 1 --mem 8G --time 2h --after-ok 3,4 --hold --param lr=1,2 -- python train.py --lr 3"
    )
    assert run(typed.split()) == 0
    sent = body(server)
    assert sent["command"] == ["python", "train.py", "--lr", "3"]
    assert sent["options"] == {
        "gpus": "1",
        "memory": "8G",
        "time": "2h",
        "after_ok": ["3,4"],
        "hold": True,
        "params": ["lr=1,2"],
    }
    assert capsys.readouterr().out == "12 fit  queued in vision.  Why? muster why 12\n"


def test_submit_o_name_prints_the_id_alone(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs"] = view(warnings=["--qos is passed over"])
    assert run(["submit", "-o", "name", "--", "true"]) == 0
    said = capsys.readouterr()
    assert said.out == "12\n"
    assert said.err == "muster: --qos is passed over\n"


def test_submit_sends_a_script_with_its_arguments(server: Canned, home: Path) -> None:
    server.answers["POST /jobs"] = view()
    (home / "train.sh").write_text("#SBATCH --mem=1G\necho\n")
    assert run(["submit", "--name", "x", "train.sh", "--epochs", "3"]) == 0
    sent = body(server)
    assert (sent["script"], sent["script_name"]) == ("#SBATCH --mem=1G\necho\n", "train.sh")
    assert (sent["args"], sent["options"]) == (["--epochs", "3"], {"name": "x"})


def test_submit_sends_a_file_whose_command_may_be_replaced(server: Canned, home: Path) -> None:
    server.answers["POST /jobs"] = view()
    (home / "application.yaml").write_text("run: x\n")
    assert run(["submit", "-f", "application.yaml", "--", "true"]) == 0
    sent = body(server)
    assert (sent["yaml"], sent["yaml_name"], sent["command"]) == ("run: x\n", "application.yaml", ["true"])


def test_a_command_needs_no_dashes_where_no_file_is_meant(server: Canned) -> None:
    server.answers["POST /jobs"] = view()
    assert run(["submit", "python", "train.py"]) == 0
    assert body(server)["command"] == ["python", "train.py"]


FORECAST = {"feasible": True, "sentence": "", "text": "Starts now\n  on here", "starts_at": 1.0}


def test_a_dry_run_and_a_plan_say_what_would_happen(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs?dry_run=true"] = FORECAST
    server.answers["POST /plan"] = {**FORECAST, "feasible": False, "text": "Can never run"}
    assert run(["submit", "--dry-run", "--", "true"]) == 0
    assert run(["plan", "--", "true"]) == 2
    assert capsys.readouterr().out == "Starts now\n  on here\nCan never run\n"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["submit"], "nothing to run; give a command"),
        (["submit", "--gpu", "1", "--", "true"], "unknown option '--gpu'; did you mean '--gpus'?"),
        (["submit", "--gpus"], "--gpus: expected one argument (see 'muster submit --help')"),
        (["submit", "-z", "--", "true"], "unknown option '-z'"),
        (["submit", "--after-ok", "../x", "--", "true"], "not a job's id"),
        (["submit", "-f", "absent.yaml"], "absent.yaml can't be read: No such file or directory"),
        (["submit", "-f", "."], ". can't be read: Is a directory"),
        (["submit", "-f", "a\0b"], "can't be read"),
        (["submit", "absent.sh"], "there is no script absent.sh"),
        (["submit", "-o", "xml", "--", "true"], "invalid choice: 'xml'"),
        (["stop", "../../etc"], "not a job's id"),
        (["stop"], "missing: ID"),
        (["stop", "1", "--grace", "long"], "write it like 90s or 2m"),
        (["ps", "--limit", "-3"], "not a whole number"),
        (["ps", "--state", "GONE"], "invalid choice"),
        (["why"], "name a job, or ask for --accuracy"),
        (["frobnicate"], "unknown verb 'frobnicate'"),
        (["sbumit"], "did you mean 'submit'?"),
        (["--frob"], "unknown option '--frob'"),
    ],
)
def test_wrong_words_get_a_sentence_and_exit_2(typed: list[str], words: str, capsys: Said) -> None:
    assert words in refusal(capsys, *typed)


def test_a_file_that_is_too_large_is_not_read(home: Path, capsys: Said) -> None:
    with (home / "big.yaml").open("wb") as file:
        file.truncate(1 << 30)
    assert "larger than a megabyte" in refusal(capsys, "submit", "-f", "big.yaml")
    (home / "binary.sh").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in refusal(capsys, "submit", "binary.sh")


def test_options_are_not_abbreviated(capsys: Said) -> None:
    assert "unknown option '--nam'" in refusal(capsys, "submit", "--nam", "x", "--", "true")


def test_the_servers_refusal_is_the_answer(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs"] = Refusal(422, "can never run: asks 4000 GPUs", 2)
    assert "can never run" in refusal(capsys, "submit", "--gpus", "4000", "--", "true")
    server.answers["GET /jobs/999"] = Refusal(404, "there is no job 999", 1)
    assert "there is no job 999" in refusal(capsys, "show", "999", code=1)


@pytest.mark.parametrize("verb", ["ps", "whoami", "node", "team", "down"])
def test_without_a_server_every_verb_says_how_to_start_one(verb: str, capsys: Said) -> None:
    assert "start one with: muster up" in refusal(capsys, verb, code=1)


# --- looking ------------------------------------------------------------------------------------------


def test_ps_looks_like_squeue(server: Canned, capsys: Said) -> None:
    running = view(id="7", state="RUNNING", nodes=["gpub031", "gpub032"], started_at=1.0, ended_at=None)
    server.answers["GET /jobs"] = {"jobs": [running, view(id="12_[3-9]", purpose=None)], "more": 0}
    assert run(["ps", "-a", "--mine", "--state", "queued"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "ID",
        "NAME",
        "OWNER",
        "TEAM",
        "ST",
        "GPU",
        "WHERE",
        "TIME",
        "USED",
        "FOR",
        "ENDS",
    ]
    assert first.split()[:7] == ["7", "fit", "ana", "vision", "R", "4", "gpub[031-032]"]
    assert "(no node has 4 GPUs free together)" in second
    assert "(nobody said)" in second
    assert server.paths() == ["GET /jobs?all=true&mine=true&state=QUEUED"]


def test_ps_json_is_a_list_and_names_are_ids(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs"] = {"jobs": [view(), view(id="13")], "more": 0}
    assert run(["ps", "-o", "json"]) == 0
    assert [job["id"] for job in json.loads(capsys.readouterr().out)] == ["12", "13"]
    assert run(["ps", "-o", "name"]) == 0
    assert capsys.readouterr().out == "12\n13\n"
    assert run(["ps", "-o", "yaml"]) == 0
    assert "\n  name: fit\n" in capsys.readouterr().out
    assert run(["ps", "-o", "wide"]) == 0
    assert "python train.py" in capsys.readouterr().out


def test_ps_says_how_many_it_leaves_out(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs"] = {"jobs": [view()], "more": 1234}
    assert run(["ps"]) == 0
    assert capsys.readouterr().err == "muster: 1,234 more are not shown; --limit 0 shows all\n"


def test_an_empty_queue_is_no_error(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs"] = {"jobs": [], "more": 0}
    assert run(["ps"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert run(["ps", "-o", "name"]) == 0
    assert capsys.readouterr().out == ""


def test_names_can_t_paint_the_terminal(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs"] = {"jobs": [view(name="a\x1b[31m\nb")], "more": 0}
    assert run(["ps"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


def test_show_tells_what_is_known(server: Canned, capsys: Said) -> None:
    amounts = {
        "cpu share": 1.0,
        "memory": 8.0 * (1 << 30),
        "pids": 4096.0,
        "time": 7200.0,
        "log": 256.0 * (1 << 20),
    }
    limits = [{"what": w, "amount": a, "how": "enforced", "by": "cgroup v2"} for w, a in amounts.items()]
    server.answers["GET /jobs/12"] = {**ended("FAILED", exit_code=3), "limits": limits}
    assert run(["show", "12"]) == 0
    out = capsys.readouterr().out
    assert "FAILED, exit code 3" in out
    assert "asks        4 GPUs, 1 cpu, 8G memory\n" in out
    assert (
        "cpu share 1 enforced, memory 8G enforced, pids 4096 enforced, time 2h enforced, log 256M enforced\n"
        in out
    )
    assert run(["show", "12", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 3


def test_logs_are_written_as_they_are(server: Canned) -> None:
    server.answers["GET /jobs/12/log"] = Chunks(b"line\n", b"\xff")
    done = subprocess.run([*MUSTER, "logs", "-f", "12"], capture_output=True, check=True)
    assert done.stdout == b"line\n\xff"
    assert server.paths() == ["GET /jobs/12/log?follow=true"]


def test_why_prints_the_servers_words(server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs/12/why"] = {"text": "Waiting: no room.\n  quota  ok\n"}
    server.answers["GET /accuracy"] = {"text": "Off by 9 minutes."}
    assert run(["why", "12"]) == 0
    assert run(["why", "--accuracy"]) == 0
    assert capsys.readouterr().out == "Waiting: no room.\n  quota  ok\nOff by 9 minutes.\n"


NODE: dict[str, Any] = {
    "name": "here",
    "health": "up",
    "reason": None,
    "cpus": 8.0,
    "memory_bytes": 16 << 30,
    "disk_bytes": 0,
    "devices": [{"model": "A40", "memory_bytes": 48 << 30, "healthy": True, "reason": None}],
    "held": {"cpus": 0.0, "memory_bytes": 0, "gpus": 0.0},
    "jobs": 1,
    "limits": [],
}


def node(**changed: Any) -> dict[str, Any]:
    return {**NODE, **changed}


def test_nodes_and_teams_are_tables(server: Canned, capsys: Said) -> None:
    held = {"cpus": 2.0, "memory_bytes": 0, "gpus": 1.0}
    server.answers["GET /nodes"] = {"nodes": [node(held=held)]}
    quota = {"gpus": 4.0, "cpus": None, "memory_bytes": None}
    team = {"name": "vision", "parent": "", "weight": 1.0, "quota": quota, "held": held}
    server.answers["GET /teams"] = {"teams": [{**team, "waiting": 3, "running": 1, "users": ["ana"]}]}
    assert run(["node"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["here", "up", "1/1", "2/8", "0B/16G"]
    assert run(["team"]) == 0
    assert "1/4" in capsys.readouterr().out
    assert "there is no node 'there'" in refusal(capsys, "node", "there")


def test_a_node_says_why_it_is_drained_and_wide_which_of_its_gpus_are(server: Canned, capsys: Said) -> None:
    well, drained = NODE["devices"][0], {**NODE["devices"][0], "healthy": False, "reason": "ana: falls off"}
    gpus = [well, drained, {**drained, "reason": None}]
    server.answers["GET /nodes"] = {
        "nodes": [node(health="drained", reason="ana: fan", devices=gpus), node(name="there")]
    }
    assert run(["node"]) == 0
    head, here, there = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["MODELS", "REASON"]
    assert here.endswith("ana: fan; GPU 1, 2 drained")
    assert there.split()[-1] == "–"
    assert run(["node", "here", "-o", "wide"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.endswith("ana: fan; GPU 1 is drained (ana: falls off); GPU 2 is drained")


def test_whoami_and_a_token(server: Canned, capsys: Said) -> None:
    server.answers["GET /whoami"] = {"name": "ana", "role": "user", "teams": ["vision"]}
    server.answers["POST /tokens"] = {"token": "secret"}
    assert run(["whoami"]) == 0
    assert "ana" in capsys.readouterr().out
    assert run(["token", "bo", "--days", "7"]) == 0
    assert capsys.readouterr().out == "secret\n"
    assert server.asked[-1][2] == {"user": "bo", "role": "user", "days": 7}


# --- acting -------------------------------------------------------------------------------------------


def test_stop_takes_several_and_any_failure_counts(server: Canned, capsys: Said) -> None:
    server.answers["POST /jobs/12/stop"] = view()
    server.answers["POST /jobs/13_4/stop"] = Refusal(404, "there is no job 13_4", 1)
    server.answers["POST /jobs/14/stop"] = view()
    assert run(["stop", "12", "13_4", "14", "--because", "wrong", "--now"]) == 1
    assert capsys.readouterr().err == "muster: there is no job 13_4\n"
    assert server.asked[-1] == ("POST", "/jobs/14/stop", {"because": "wrong", "grace_seconds": 0.0})


@pytest.mark.parametrize("verb", ["hold", "release", "requeue", "suspend", "resume"])
def test_each_act_is_asked_of_the_server(verb: str, server: Canned) -> None:
    server.answers[f"POST /jobs/12/{verb}"] = view()
    assert run([verb, "12"]) == 0
    assert server.paths() == [f"POST /jobs/12/{verb}"]


def test_nodes_are_drained_and_resumed_and_shown_as_they_are_then(server: Canned, capsys: Said) -> None:
    server.answers["POST /nodes/gpu1/drain"] = node(name="gpu1", health="drained", reason="me: fan")
    server.answers["POST /nodes/gpu2/drain"] = Refusal(409, "node gpu2 is drained already", 1)
    assert run(["node", "drain", "gpu1", "gpu2", "--because", "fan"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[1].split()[:2] == ["gpu1", "drained"]
    assert said.err == "muster: node gpu2 is drained already\n"
    assert [sent for _, _, sent in server.asked] == [{"because": "fan"}] * 2
    server.answers["POST /nodes/resume/resume"] = node(name="resume")
    assert run(["node", "resume", "resume", "--gpu", "2", "-o", "name"]) == 0
    assert capsys.readouterr().out == "resume\n"
    assert server.asked[-1] == ("POST", "/nodes/resume/resume", {"device": 2})


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["node", "drain", "gpu1"], 'say why, like: --because "fan is broken"'),
        (["node", "drain", "gpu1", "--because", " "], "say why"),
        (["node", "drain", "--because", "fan"], "name the node to drain"),
        (["node", "resume"], "name the node to resume"),
        (["node", "resume", "gpu1", "--because", "mended"], "--because goes with drain"),
        (["node", "gpu1", "--because", "fan"], "--because goes with drain"),
        (["node", "gpu1", "--gpu", "1"], "--gpu goes with drain or resume"),
        (["node", "resume", "gpu1", "--gpu", "-1"], "not a whole number"),
        (["node", "resume", "../jobs"], "not a node's name"),
    ],
)
def test_wrong_words_about_nodes_get_a_sentence(typed: list[str], words: str, capsys: Said) -> None:
    assert words in refusal(capsys, *typed)


def finishing(server: Canned, last: dict[str, Any], *log: bytes) -> None:
    """The job runs, writes, and ends as told."""
    server.answers["POST /jobs"] = view()
    server.answers["GET /jobs/12/log"] = Chunks(*log)
    server.answers["GET /events"] = Chunks(b": hello\n\n")
    server.answers["GET /jobs/12"] = last


@pytest.mark.parametrize(
    ("last", "code", "words"),
    [
        (ended("SUCCEEDED", exit_code=0), 0, ""),
        (ended("FAILED", exit_code=3), 3, ""),
        (ended("FAILED", signal=11), 139, ""),
        (ended("TIMEOUT", signal=15), 143, "muster: job 12: timeout\n"),
        (ended("OUT_OF_MEMORY"), 1, "muster: job 12: out of memory\n"),
        (ended("STOPPED", exit_code=0), 1, "muster: job 12: stopped\n"),
        (ended("DEPENDENCY_FAILED"), 1, "muster: job 12: dependency failed\n"),
    ],
)
def test_run_exits_with_the_jobs_code(server: Canned, last: dict[str, Any], code: int, words: str) -> None:
    finishing(server, last, b"hello\n")
    done = subprocess.run([*MUSTER, "run", "--", "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "hello\n", words)


def test_run_goes_on_where_it_was_when_the_server_comes_back(server: Canned) -> None:
    finishing(server, ended("SUCCEEDED", exit_code=0))
    server.answers["GET /jobs/12/log?follow=true"] = Chunks(b"one\n", cut=True)
    server.answers["GET /jobs/12/log?follow=true&offset=4"] = Chunks(b"two\n")
    done = subprocess.run([*MUSTER, "run", "--", "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")


def test_an_interrupt_is_passed_on_as_a_stop_and_twice_at_once(server: Canned) -> None:
    over, following = threading.Event(), threading.Event()
    stops: list[Any] = []

    def stop(asked: Any) -> Any:
        stops.append(asked[2].get("grace_seconds"))
        if len(stops) == 2:
            over.set()
        return view()

    def log(_: Any) -> Chunks:
        following.set()
        over.wait(20)
        return Chunks(b"bye\n")

    finishing(server, ended("STOPPED", signal=9))
    server.answers["POST /jobs/12/stop"] = stop
    server.answers["GET /jobs/12/log"] = log
    process = subprocess.Popen(
        [*MUSTER, "run", "--", "sleep", "9"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert following.wait(20)
    assert process.stderr is not None
    os.kill(process.pid, signal.SIGINT)
    assert b"Ctrl-C again" in process.stderr.readline()
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out, stops) == (130, b"bye\n", [None, 0.0])


# --- help, completion, colours, quickness -------------------------------------------------------------


def test_help_lists_every_verb_with_a_line(capsys: Said) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for verbs in GROUPS.values():
        for verb, about in verbs.items():
            assert f"  {verb:<11} {about}\n" in out


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_each_verb_ends_with_an_example(verb: str, capsys: Said) -> None:
    assert run([verb, "--help"]) == 0
    last = capsys.readouterr().out.rstrip().rpartition("Examples:\n")[2]
    assert f"muster {verb}" in last


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["su"], ["submit", "suspend"]),
        (["submit", "--gpu-"], ["--gpu-memory", "--gpu-model"]),
        (["ps", "-o", "j"], ["json"]),
        (["stop", "1"], ["12", "13"]),
        (["submit", "--after-ok", "13"], ["13"]),
        (["submit", "--", "--g"], []),
        (["node", ""], ["drain", "gpu1", "gpu2", "resume"]),
        (["node", "drain", ""], ["gpu1", "gpu2"]),
        (["node", "drain", "gpu1", "--b"], ["--because"]),
        (["nonsense", ""], []),
    ],
)
def test_the_tab_key_knows(line: list[str], found: list[str], server: Canned, capsys: Said) -> None:
    server.answers["GET /jobs"] = {"jobs": [view(), view(id="13")], "more": 0}
    server.answers["GET /nodes"] = {"nodes": [node(name="gpu1"), node(name="gpu2")]}
    assert run(["completion", "words", "--", *line]) == 0
    assert capsys.readouterr().out.split() == found


def test_the_script_for_bash_completes(server: Canned, home: Path) -> None:
    server.answers["GET /jobs"] = {"jobs": [view()], "more": 0}
    (home / "muster").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from muster.cli.main import main; main()" "$@"\n'
    )
    (home / "muster").chmod(0o755)
    typed = 'eval "$(muster completion bash)";'
    typed += ' COMP_WORDS=(muster stop ""); COMP_CWORD=2; _muster; echo "${COMPREPLY[*]}"'
    env = {**os.environ, "PATH": f"{home}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", typed], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "12\n"


def test_a_table_is_coloured_on_a_terminal_only_and_not_where_that_is_unwanted(
    server: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["GET /jobs"] = {"jobs": [view(state="RUNNING", nodes=["a"], started_at=1.0)], "more": 0}
    for no_colour, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_colour)
        monkeypatch.setenv("TERM", "xterm")
        assert ("\x1b[32mR" in on_terminal("ps")) is coloured


def test_a_terminal_that_does_not_say_how_wide_it_is_gets_whole_lines(server: Canned) -> None:
    server.answers["GET /jobs"] = {"jobs": [view(state="RUNNING", nodes=["a"], started_at=1.0)], "more": 0}
    assert "OWNER" in on_terminal("ps", columns=0)


def test_ps_says_how_work_was_judged_and_extend_its_new_terms(server: Canned, capsys: Said) -> None:
    over = {**ended("STOPPED", signal=15), "verdict": "won"}
    server.answers["GET /jobs"] = {"jobs": [over], "more": 0}
    assert run(["ps", "-a"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(" won")
    budget = {"text": "300 GPUh", "spent": 0.0000012, "share": 0.0, "used": None, "decide_by": None}
    server.answers["POST /jobs/12/extend"] = {**view(), "budget": budget}
    assert run(["extend", "12", "--budget", "+100GPUh", "--because", "it still falls"]) == 0
    assert capsys.readouterr().out.endswith("goes on with 300 GPUh, of which <0.001 are spent.\n")


def on_terminal(*arguments: str, columns: int = 80) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    subprocess.run([*MUSTER, *arguments], stdout=theirs, check=True)
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    return text


HEAVY = ("click", "rich", "numpy", "msgspec", "yaml", "typing", "http", "asyncio", "shutil")


@pytest.mark.parametrize("arguments", [["ps"], ["submit", "--gpus", "1", "--", "true"], ["stop", "12"]])
def test_the_usual_verbs_import_little(arguments: list[str], server: Canned) -> None:
    server.answers["GET /jobs"] = {"jobs": [view()], "more": 0}
    server.answers["POST /jobs"] = server.answers["POST /jobs/12/stop"] = view()
    code = (
        f"import sys; from muster.cli.main import run; code = run({arguments!r}); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[]\n"


def test_times_are_short() -> None:
    assert [span(s) for s in (7, 11_560, 785_460)] == ["0:07", "3:12:40", "9-02:11"]
