"""``muster simulate`` as a person types it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli.main import run

GENERATED = ["simulate", "--generate", "jobs=40,seed=1,gpus=16"]
_OF_THE_MACHINE = {"wall_seconds", "cycles_per_second"}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a refused command says, which exits with 2 and prints nothing."""
    assert run(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("muster: ")
    assert said.err.count("\n") == 1
    return said.err


def test_help_has_an_example_and_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--help"]) == 0
    said = capsys.readouterr().out
    assert "muster simulate --generate jobs=400,seed=1 --nodes '6x8 A40' --compare" in said
    for option in ("--policy", "--html", "--limit", "--set", "--format", "--seed", "--no-progress"):
        assert option in said


def test_help_is_quick_because_it_loads_neither_numpy_nor_rich() -> None:
    code = (
        "import sys; from muster.cli.main import run; run(['simulate', '--help']); "
        "sys.exit('numpy' in sys.modules or 'rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_one_policy_is_a_table_of_figures_under_headings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(GENERATED) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "\x1b" not in said.out
    lines = said.out.splitlines()
    assert "40 jobs on 2 nodes with 16 GPUs." in lines[0]
    assert lines[3].split() == ["fair"]
    assert re.fullmatch(r"  finished +40", lines[lines.index("Jobs") + 1])


def test_several_policies_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GENERATED, "--compare", "fifo, fair,srtf"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["fifo", "fair", "srtf"]
    assert re.fullmatch(r"  finished +40 +40 +40", lines[lines.index("Jobs") + 1])


def test_json_is_a_list_of_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GENERATED, "--compare", "fifo,fair", "-o", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [report["policy"] for report in reports] == ["fifo", "fair"]
    assert all(report["finished"] == 40 for report in reports)
    assert all(0 < report["gpu_utilisation"] <= 1 for report in reports)


def test_the_same_seed_gives_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for _ in range(2):
        assert run([*GENERATED, "-o", "json", "--seed", "7"]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        told.append({k: v for k, v in report.items() if k not in _OF_THE_MACHINE})
    assert told[0] == told[1]


def test_limit_takes_the_first_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GENERATED, "--limit", "5", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["jobs"] == 5


def test_a_knob_can_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GENERATED, "--set", "place=best-fit", "--set", "reservations=2"]) == 0
    capsys.readouterr()
    assert "best-fit" in refusal(capsys, *GENERATED, "--set", "place=nowhere")
    assert "KEY=VALUE" in refusal(capsys, *GENERATED, "--set", "place")


def test_the_page_is_one_file_that_needs_no_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    assert run([*GENERATED, "--compare", "fifo,fair", "--html", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().err
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert not re.search(r"https?://|<script|<link|<img|@import|url\((?!#)|\bsrc=|\bhref=", text)


def test_a_page_in_no_folder_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "no folder nowhere" in refusal(capsys, *GENERATED, "--html", "nowhere/page.html")


def test_an_unknown_policy_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, *GENERATED, "--policy", "bogus")
    assert "'bogus'" in said
    assert "fair" in said
    assert "fifo" in said


def test_without_a_trace_it_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "simulate")
    assert "TRACE" in said
    assert "--generate" in said


def test_a_trace_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.csv" in refusal(capsys, "simulate", "nowhere.csv", "--nodes", "2x8")


def test_a_trace_and_a_generated_one_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "one of the two" in refusal(capsys, *GENERATED, "some.csv")


def test_policy_and_compare_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, *GENERATED, "--policy", "fair", "--compare", "fifo,fair")
    assert "exclude each other" in said


def test_a_broken_line_is_named_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "broken.swf"
    good = "1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1"
    trace.write_text(f"; made by hand\n{good}\n{good.replace('60', 'sixty')}\n")
    said = refusal(capsys, "simulate", str(trace), "--nodes", "1x0 cpus=4")
    assert "broken.swf, line 3:" in said


def test_a_trace_without_nodes_asks_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "few.swf"
    trace.write_text("1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n")
    assert "--nodes" in refusal(capsys, "simulate", str(trace))


def test_jobs_that_the_log_knows_too_little_of_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "gaps.swf"
    known = "1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n"
    trace.write_text(known + known.replace("1 0 -1 60", "2 0 -1 -1"))
    assert run(["simulate", str(trace), "--nodes", "1x0 cpus=4"]) == 0
    assert "muster: 1 job passed over" in capsys.readouterr().err


def test_jobs_that_can_never_run_are_counted_and_the_first_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "wide.swf"
    sizes = (1, 64, 64)
    trace.write_text(
        "".join(f"{i} {i} -1 60 {n} -1 -1 {n} 60 -1 1 1 1 -1 -1 -1 -1 -1\n" for i, n in enumerate(sizes, 1))
    )
    assert run(["simulate", str(trace), "--nodes", "1x0 cpus=4", "--policy", "fifo"]) == 0
    said = capsys.readouterr()
    assert re.search(r"^muster: 2 jobs can never run, first: 2", said.err)
    assert re.search(r"can never run +2", said.out)


def test_a_misspelt_verb_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'simulate'?" in refusal(capsys, "simulte")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"muster \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_reader_that_leaves_early_is_no_error_to_shout_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from muster.cli.main import main; main()", "--help"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.stderr == b""


_STRIKES = """
import signal, sys
from muster.cli.main import run

def strike(_signal, frame, seen=[0]):
    while frame is not None and frame.f_code.co_name != "replay":
        frame = frame.f_back
    seen[0] += frame is not None
    if seen[0] == 4:  # the replay has been at work for a while
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, strike)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
sys.exit(run(sys.argv[1:]))
"""


def test_an_interrupt_prints_what_is_known_so_far_and_exits_with_130() -> None:
    long = ["simulate", "--generate", "jobs=20000,seed=1", "--compare", "fair,fifo", "-o", "json"]
    said = subprocess.run(
        [sys.executable, "-c", _STRIKES, *long], capture_output=True, text=True, timeout=120, check=False
    )
    assert said.returncode == 130
    assert said.stderr == "muster: interrupted; these are the figures so far\n"
    assert [report["interrupted"] for report in json.loads(said.stdout)] == [True]
