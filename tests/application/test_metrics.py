"""Where a job tells how it is doing, as options and files say it."""

import pytest
from wants import job, refusal

from muster.model.run import Metrics


@pytest.mark.parametrize(
    ("text", "table", "meant"),
    [
        ("json-lines", "{from: json-lines}", Metrics("json-lines")),
        ("report", "{from: report}", Metrics("report")),
        ("auto", "{from: auto}", Metrics("auto")),
        ("pattern: loss {loss}", "{pattern: 'loss {loss}'}", Metrics("pattern", "loss {loss}")),
        ("pattern:a: {a}", "{from: pattern, pattern: 'a: {a}'}", Metrics("pattern", "a: {a}")),
        (
            "tensorboard:runs/x",
            "{from: tensorboard, path: runs/x}",
            Metrics("tensorboard", path="/home/ana/runs/x"),
        ),
        ("tensorboard:/data", "{path: /data}", Metrics("tensorboard", path="/data")),
        ("mlflow:http://ml:5000", "{url: 'http://ml:5000'}", Metrics("mlflow", url="http://ml:5000")),
    ],
)
def test_an_option_and_a_file_mean_the_same(text: str, table: str, meant: Metrics) -> None:
    assert job(options={"metrics": text}).metrics == meant
    assert job(yaml=f"run: x\nmetrics: {table}").metrics == meant
    assert job(yaml=f"run: x\nmetrics: {text!r}").metrics == meant


def test_who_says_nothing_has_said_nothing() -> None:
    assert job().metrics is None


def test_a_folder_is_meant_from_where_the_job_runs() -> None:
    made = job(options={"metrics": "tensorboard:../runs", "cwd": "work"})
    assert made.metrics == Metrics("tensorboard", path="/home/ana/runs")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("json-line", "did you mean 'json-lines'?"),
        ("", "unknown source of metrics"),
        ("pattern", "pattern needs its pattern"),
        ("pattern:loss", "no number to find"),
        ("tensorboard:", "needs its path"),
        ("tensorboard:a\tb", "printable"),
        ("mlflow:file:///etc/passwd", "not where an MLflow server answers"),
        ("mlflow:http://[", "not where an MLflow server answers"),
        ("report:x", "report stands alone"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, why: str) -> None:
    assert why in refusal(options={"metrics": text})


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("{from: report, pattern: 'a {a}'}", "pattern does not go with metrics from report"),
        ("{pattern: 'a {a}', path: x}", "come from one place"),
        ("{}", "come from one place"),
        ("{from: pattern, pattern: '{a}{b}'}", "put text between"),
        ("[report]", "metrics should be"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(table: str, why: str) -> None:
    said = refusal(yaml=f"run: x\nmetrics: {table}")
    assert why in said
    assert "line 2" in said or ":2" in said
