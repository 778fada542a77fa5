"""What is written about metrics is true: the reference, the dashboard, the rules. Names tell units."""

import json
import re
import textwrap
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.server.metrics import METRICS
from muster.server.prometheus import Metric

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs/reference/metrics.md").read_text()
HOW_TO = (ROOT / "docs/how-to/watch-with-grafana.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs/grafana/muster.json").read_text())
KNOWN = {metric.name: metric for metric in METRICS}

UNITS = ("seconds", "bytes", "ratio", "watts", "celsius", "cpus", "gpus", "byte_seconds", "info")
THINGS = (
    "jobs",
    "jobs_ended",
    "findings",
    "cycles",
    "errors",
    "processes",
    "meters_silent",
)  # that are counted
FLAGS = ("failing", "health", "healthy", "lost")  # 0 or 1


def row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "–"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"


# --- Names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_called_by_its_unit_and_explained(metric: Metric) -> None:
    assert re.fullmatch(r"muster_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") is (metric.kind == "counter")
    assert metric.name.removesuffix("_total").endswith(
        tuple(f"_{last}" for last in (*UNITS, *THINGS, *FLAGS))
    )
    assert re.fullmatch(r"[A-Z0-9].*\.", metric.help)
    assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
    assert "job" not in metric.labels, "there would be no end of them"


def test_no_two_metrics_have_one_name() -> None:
    assert len(KNOWN) == len(METRICS) > 50


# --- The reference --------------------------------------------------------------------------------------


def test_the_reference_has_every_metric_as_it_is() -> None:
    assert [metric.name for metric in METRICS if row(metric) not in REFERENCE.splitlines()] == []


@pytest.mark.parametrize("page", [REFERENCE, HOW_TO], ids=["reference", "how-to"])
def test_no_page_speaks_of_a_metric_that_there_is_not(page: str) -> None:
    assert {name for name in re.findall(r"\bmuster_\w+[a-z]", page) if name not in KNOWN} == set()


# --- The dashboard --------------------------------------------------------------------------------------


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[str]:
    yield from (target["expr"] for panel in panels() for target in panel["targets"])
    yield from (each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query")


def metrics_in(query: str) -> list[tuple[str, set[str]]]:
    """Each metric that is asked for, with the labels that it is chosen by."""
    found = re.findall(r"\b([a-z]+(?:_[a-z]+)+)\b(?:\{([^}]*)\})?", re.sub(r"\$__\w+", "", query))
    return [
        (name, set(re.findall(r"(\w+)\s*[=!]", chosen))) for name, chosen in found if name != "label_values"
    ]


def test_every_query_of_the_dashboard_asks_for_what_is_told() -> None:
    asked = [each for query in queries() for each in metrics_in(query)]
    assert {name for name, _ in asked if name not in KNOWN} == set()
    assert [(name, labels) for name, labels in asked if not labels <= set(KNOWN[name].labels)] == []
    assert len({name for name, _ in asked}) > 30


def test_what_is_grouped_by_is_a_label_of_what_is_asked_for() -> None:
    for query in queries():
        grouped = {name.strip() for some in re.findall(r"by \(([^)]*)\)", query) for name in some.split(",")}
        for name, _ in metrics_in(query):
            assert grouped <= set(KNOWN[name].labels), query


def test_the_dashboard_shows_what_it_is_for() -> None:
    titles = " ".join(panel["title"] for panel in panels())
    for what in (
        "held and used, by team",
        "GPUs busy",
        "GPU memory",
        "Oldest wait",
        "by outcome",
        "Coverage",
        "Pressure",
    ):
        assert what in titles
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource", "team", "node"]
    assert any(panel["type"] == "table" for panel in panels())


def test_every_panel_asks_the_data_source_that_was_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    asking = [*panels(), *(target for panel in panels() for target in panel["targets"])]
    assert all(one["datasource"] == chosen for one in asking)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in panels():
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs))


def test_no_panel_lies_over_another() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]


# --- What Prometheus is told ----------------------------------------------------------------------------


def test_the_configuration_for_prometheus_is_readable_and_its_rules_ask_for_what_is_told() -> None:
    blocks = re.findall(r"^ *```yml\n(.*?)^ *```", HOW_TO, re.MULTILINE | re.DOTALL)
    scraping, alerting = (yaml.safe_load(textwrap.dedent(block)) for block in blocks)
    (job,) = scraping["scrape_configs"]
    assert job["authorization"] == {"credentials_file": "/etc/prometheus/muster.token"}
    for rule in alerting["groups"][0]["rules"]:
        for name, labels in metrics_in(rule["expr"]):
            assert labels <= set(KNOWN[name].labels)
