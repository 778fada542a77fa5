"""The bench on small traces of each family, as a person types it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import bound, write
from bench.__main__ import run
from bench.figures import Figure
from muster.model.job import Shape
from muster.model.node import Device, Node
from muster.model.units import GIB, MILLI

Bench = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an excerpt of every family."""
    monkeypatch.delenv("MUSTER_TRACES", raising=False)
    _openb(tmp_path / "openb")
    _hpc(tmp_path / "hpc")
    _muri(tmp_path / "muri")
    _philly(tmp_path / "philly")
    return tmp_path


@pytest.fixture
def bench(data: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    """``bench("jct", ...)`` → its figures."""

    def _bench(*arguments: str) -> list[dict[str, Any]]:
        assert run([*arguments, "--data", str(data), "-o", "json"]) == 0
        figures: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return figures

    return _bench


def _openb(folder: Path) -> None:
    """Three nodes of two GPUs, and pods that ask for a third of a GPU to two."""
    nodes = [f"node-{n},32000,131072,2,{model}" for n, model in enumerate(("T4", "T4", "P100"))]
    asked = (("1", "330"), ("1", "660"), ("1", "1000"), ("2", "1000"), ("0", "0"))
    pods = [f"pod-{n},4000,8192,{','.join(asked[n % 5])},,LS" for n in range(15)]
    _lines(folder / "openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model", *nodes)
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos"
    _lines(folder / "openb_pod_list_tiny.csv", header, *pods)
    _lines(
        folder / "published.csv",
        "trace,policy,arrived_percent,allocated_percent_mean",
        "tiny,FGD,100,12.5",
        "tiny,FGD,130,50.0",
        "tiny,Unheard,130,50.0",
    )


def _hpc(folder: Path) -> None:
    """A log with limits and users, one that knows neither nor its size, and an outcome."""
    full = [f"{n} {n * 10} -1 {50 + n} {n % 4 + 1} -1 -1 -1 99 -1 1 3 1 1 0 -1 -1 -1" for n in range(20)]
    bare = [f"{n} {n * 10} -1 {50 + n} {n % 4 + 1}{' -1' * 13}" for n in range(20)]
    _lines(folder / "full.swf", "; MaxProcs: 4", *full)
    _lines(folder / "bare.swf", *bare)
    _lines(folder / "full.res_easy.swf", *full)
    _lines(folder / "published.csv", "log,policy,avebsld", "full,easy true times,2.0")


def _muri(folder: Path) -> None:
    header = "job_id,num_gpu,submit_time,iterations,model_name,iteration_time"
    jobs = [f"{n},{(4, 8, 32)[n % 3]},{n * 1000},{100 * (n + 1)},vgg,1000" for n in range(12)]
    _lines(folder / "tiny.csv", header, *jobs)
    _lines(folder / "ref_tiny.csv", header, *jobs)
    _lines(folder / "other.csv", "a,b", "1,2")


def _philly(folder: Path) -> None:
    jobs = [f"2017-10-09 07:0{n}:00,{60 * n},{n % 3 + 1},c1" for n in range(1, 9)]
    _lines(folder / "tiny.csv", "timestamp,duration,num_gpus,cluster", *jobs)


def _lines(path: Path, *lines: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def _by_policy(figures: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {figure["policy"]: figure for figure in figures if figure["name"] == name}


# --- Families ----------------------------------------------------------------------------------------


def test_placement_tells_what_is_allocated_and_what_was_published(bench: Bench) -> None:
    figures = _by_policy(bench("placement", "--seeds", "2"), "placement")
    assert set(figures) == {"default", "fgd", "best-fit"}
    for figure in figures.values():
        assert (figure["variant"], figure["unit"]) == ("tiny", "% allocated")
        assert 50 < figure["value"] <= 100
        assert figure["beside"]["gpus_left"] == pytest.approx(6 * (1 - figure["value"] / 100))
    assert figures["fgd"]["published"] == 50.0
    assert figures["fgd"]["ratio"] == pytest.approx(figures["fgd"]["value"] / 50.0)
    assert "published" not in figures["default"]


def test_placement_of_one_seed_is_the_same_every_time(bench: Bench) -> None:
    asked = ("placement", "--seeds", "1", "--policy", "random,fgd")
    assert bench(*asked) == bench(*asked)


def test_all_placements_are_measured_when_asked_for(bench: Bench) -> None:
    figures = bench("placement", "--seeds", "1", "--policy", "all")
    assert len(_by_policy(figures, "placement")) == 7


def test_placement_with_departures_is_told_with_moves_and_without(bench: Bench) -> None:
    figures = _by_policy(bench("placement", "--seeds", "1"), "placement-departures")
    assert set(figures) == {"compact=false", "compact=true"}
    assert figures["compact=false"]["beside"]["moves"] == 0
    for figure in figures.values():
        assert 0 < figure["value"] <= 100
        assert figure["beside"].keys() >= {"mean_wait_seconds", "gpu_hours_lost"}


def test_backfill_compares_large_jobs_with_easy(bench: Bench) -> None:
    figures = _by_policy(bench("backfill", "--variant", "full"), "backfill")
    assert set(figures) == {"default", "easy-asked", "easy-true", "easy-sjbf-true"}
    assert figures["easy-asked"]["beside"]["widest_tenth_wait_ratio"] == 1.0
    assert figures["easy-asked"]["beside"]["largest_tenth_wait_ratio"] == 1.0
    assert figures["easy-true"]["ratio"] == pytest.approx(figures["easy-true"]["value"] / 2.0)
    assert all(figure["value"] >= 1 for figure in figures.values())


def test_a_log_without_limits_users_or_size_is_measured_and_outcomes_are_not(bench: Bench) -> None:
    figures = bench("backfill")
    assert {figure["variant"] for figure in figures} == {"bare", "full"}
    assert "unfinished" not in figures[0]["beside"]


def test_jct_says_who_knows_durations_and_charges_for_stopping_apart(bench: Bench) -> None:
    figures = bench("jct")
    free = _by_policy(figures, "jct")
    assert {p for p, figure in free.items() if figure["knows_durations"]} == {
        "srtf",
        "srtf-nodes",
        "srsf",
    }
    assert {p for p, figure in free.items() if not figure["knows_durations"]} == {
        "las",
        "gittins",
        "default",
    }
    expected = {"median_seconds", "p99_seconds", "preemptions_per_job", "jain_slowdown"}
    assert all(figure["beside"].keys() >= expected for figure in figures)
    assert set(_by_policy(figures, "jct-charged")) == {"gittins"}
    assert free["srtf"]["value"] <= free["las"]["value"]


def test_simulate_tells_time_memory_and_size(bench: Bench) -> None:
    (figure,) = bench("simulate")
    assert (figure["name"], figure["unit"]) == ("simulate", "s")
    assert figure["value"] > 0
    assert figure["beside"]["jobs"] == 8
    assert figure["beside"]["gpus"] == 480
    assert 10 < figure["beside"]["peak_mb"] < 10_000


# --- Asking ------------------------------------------------------------------------------------------


def test_the_folder_of_a_family_may_be_given_itself(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jct", "--data", str(data / "muri"), "--policy", "srtf", "-o", "json"]) == 0
    (figure,) = json.loads(capsys.readouterr().out)
    assert (figure["variant"], figure["policy"]) == ("tiny", "srtf")


def test_the_folder_may_be_named_in_the_environment(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_TRACES", str(data))
    assert run(["jct", "--policy", "srtf"]) == 0
    assert capsys.readouterr().out.startswith("jct ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["jct"], "name it with --data"),
        (["jct", "--data", "/nowhere"], "expected *.csv of the Muri study in /nowhere"),
        (["placement", "--data", "{data}/muri"], "expected openb_pod_list_*.csv"),
        (["jct", "--data", "{data}", "--variant", "huge"], "unknown variant 'huge'; known: tiny"),
        (["jct", "--data", "{data}", "--policy", "luck"], "unknown policy 'luck'"),
        (["all", "--data", "{data}", "--policy", "srtf"], "within one family"),
        (["jct", "--data", "{data}", "--write", "{data}/none.md"], "expected a page"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_sentence(
    arguments: list[str], said: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([argument.format(data=data) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("bench: ")
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_a_list_of_pods_without_nodes_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "openb" / "openb_node_list_gpu_node.csv").unlink()
    assert run(["placement", "--data", str(data)]) == 2
    assert "expected a list of nodes with GPUs beside" in capsys.readouterr().err


# --- The page ----------------------------------------------------------------------------------------

PAGE = """Before.

<!-- figures:jct jct-charged -->
old
<!-- /figures -->

Between.

<!-- figures:backfill -->
kept
<!-- /figures -->
"""


def test_the_page_gets_the_tables_that_were_measured_and_keeps_the_rest(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = data / "page.md"
    page.write_text(PAGE)
    asked = ["jct", "--data", str(data), "--policy", "srtf,gittins", "--write", str(page)]
    assert run(asked) == run(asked) == 0
    written = page.read_text()
    assert "old" not in written
    assert "kept" in written
    assert written.startswith("Before.\n")
    assert written.count("Between.") == 1
    assert written.count("| jct | tiny | srtf | yes |") == 1
    assert written.count("| jct-charged | tiny | gittins | no |") == 1
    assert capsys.readouterr().err == ""


def test_figures_that_the_page_has_no_table_for_are_named() -> None:
    assert write.homeless(PAGE, [Figure("jct", "", "", 1.0, "s")]) == []
    assert write.homeless(PAGE, [Figure("lost", "", "", 1.0, "s")]) == ["lost"]


def test_a_table_has_only_columns_that_say_something() -> None:
    figures = [
        Figure("jct", "tiny", "las", 1234.5, "s", published=1000.0),
        Figure("jct", "tiny", "srtf", 12.5, "s", beside={"mean_wait_seconds": 0.25}),
    ]
    assert write.table(figures) == (
        "| variant | policy | s | published | ratio | mean wait (s) |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| tiny | las | 1,234 | 1,000 | 1.2345 | – |\n"
        "| tiny | srtf | 12.500 | – | – | 0.250 |\n"
    )


# --- The bound ---------------------------------------------------------------------------------------


def _node(gpus: int, cpus: int = 100, model: str = "T4") -> Node:
    return Node("n", cpus * MILLI, 64 * GIB, devices=(Device(model),) * gpus)


def _shares(*milli: int, cpus: int = 1) -> list[Shape]:
    return [Shape(cpus_milli=cpus * MILLI, gpus=1, gpu_milli=share) for share in milli]


@pytest.mark.parametrize(
    ("nodes", "arrivals", "left"),
    [
        # two of three go to a device each, and leave 0.4 on either
        ([_node(2)], _shares(600, 600, 600), 0.8),
        # 0.6 and 0.4 go together
        ([_node(2)], _shares(600, 600, 400), 0.4),
        # only with patterns of three sizes is nothing left
        ([_node(2)], _shares(500, 300, 200, 500, 300, 200), 0.0),
        # cpus for two of them only
        ([_node(4, cpus=4)], _shares(1000, 1000, 1000, cpus=2), 2.0),
        # nobody has the model asked for, so it need not be placed
        ([_node(1)], [Shape(gpus=1, gpu_models=("A100",)), *_shares(700)], 0.3),
    ],
)
def test_the_bound_is_what_one_works_out_by_hand(
    nodes: list[Node], arrivals: list[Shape], left: float
) -> None:
    pytest.importorskip("scipy")
    assert bound.gpus_left(nodes, arrivals) == pytest.approx(left, abs=1e-6)


def test_our_placement_is_set_against_the_bound(bench: Bench) -> None:
    pytest.importorskip("scipy")
    ours = _by_policy(bench("placement", "--seeds", "2"), "placement")["default"]["beside"]
    assert 0 <= ours["bound_gpus_left"] <= ours["gpus_left"] + 1e-6
