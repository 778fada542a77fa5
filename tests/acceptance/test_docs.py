"""The commands in the docs work, and the reference names everything there is."""

import importlib
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_docs_sessions import SAYS_SO

from muster.application.build import Built, build
from muster.application.document import Document, Table
from muster.application.request import Request
from muster.cli.main import VERBS, run
from muster.cli.parse import Parser
from muster.engines.local.inventory import Machine
from muster.engines.local.orders import start_order
from muster.home import Home
from muster.layout.check import check
from muster.layout.file import parse_layout
from muster.model.events import ArraySubmitted, Outcome, Seat
from muster.model.job import Shape
from muster.model.node import Device, Node
from muster.model.plan import Start
from muster.model.policy import PRESETS, Policy
from muster.model.run import Metrics
from muster.model.state import State, diagram
from muster.server.answers import JobView
from muster.server.routes import Routes
from muster.server.seeing.routes import SeeingRoutes
from muster.server.seeing.table import seeing_table
from muster.server.stewardship.charters import Charters
from muster.server.stewardship.costs import CostRoutes
from muster.server.stewardship.effort_routes import EffortRoutes
from muster.server.stewardship.extending import Extending
from muster.server.stewardship.hindsight_routes import HindsightRoutes
from muster.server.stewardship.post_routes import PostRoutes
from muster.server.stewardship.routes_review import ReviewRoutes
from muster.wire import BASE

ROOT = Path(__file__).parents[2]
DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = [
    (path.relative_to(ROOT).as_posix(), line)
    for path in DOCS
    if SAYS_SO not in path.read_text()  # sessions with a server have a test of their own
    for line in re.findall(r"^ *\$ (?:\.venv/bin/)?muster (.*)$", path.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_command_in_the_docs_works(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs/examples", tmp_path / "docs/examples")
    monkeypatch.chdir(tmp_path)
    assert run([*shlex.split(command)]) == 0, f"{page}: muster {command}"


def test_the_docs_have_commands_to_try() -> None:
    assert len(COMMANDS) >= 8


def test_every_knob_and_preset_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/policies.md").read_text()
    knobs = {field.name for field in msgspec.structs.fields(Policy)} - {"name"}
    assert {k for k in knobs | set(PRESETS) if f"`{k}`" not in text} == set()


def test_the_architecture_page_shows_the_table_of_states_as_it_is() -> None:
    assert diagram() in (ROOT / "docs/architecture.md").read_text()


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in DOCS
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


# --- The reference names everything there is --------------------------------------------------------


def _reference(name: str) -> str:
    return (ROOT / f"docs/reference/{name}.md").read_text()


def _section_of(verb: str) -> str:
    found = re.search(rf"^### `muster {verb}`\n(.*?)(?=^#|\Z)", _reference("cli"), re.MULTILINE | re.DOTALL)
    assert found, f"muster {verb} has no section"
    return found[1]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_in_its_section(verb: str) -> None:
    parser = Parser(verb)
    importlib.import_module(VERBS[verb]).define(parser)
    section = _section_of(verb) + (_section_of("submit") if verb in ("run", "plan") else "")
    assert {o for o in parser.takes_value if f"`{o}`" not in section} <= {"-h", "--help"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example(verb: str) -> None:
    assert re.search(rf"^(\$ |eval.*)?muster {verb}\b|\(muster {verb}\b", _section_of(verb), re.MULTILINE)


def test_every_route_is_in_the_reference_with_what_can_be_asked() -> None:
    text = _reference("api")
    nobody = [None] * 2
    steward = [
        *EffortRoutes(*nobody).table(),  # type: ignore[arg-type]
        *Charters(*nobody).table(),  # type: ignore[arg-type]
        *PostRoutes(None).table(),  # type: ignore[arg-type]
        *Extending(*nobody).routes(),  # type: ignore[arg-type]
        *ReviewRoutes(*nobody).table(),  # type: ignore[arg-type]
        *HindsightRoutes(None).table(),  # type: ignore[arg-type]
        *SeeingRoutes(None, None, Home()).table(),  # type: ignore[arg-type]
        *CostRoutes(*nobody).table(),  # type: ignore[arg-type]
        *seeing_table(None),  # type: ignore[arg-type]
    ]
    for route in Routes(*[None] * 4, steward).table():  # type: ignore[arg-type]
        row = re.search(
            rf"^\| `{route.method} {re.escape(route.path.removeprefix(BASE))}` .*", text, re.MULTILINE
        )
        assert row, f"{route.method} {route.path} is not there"
        told = () if route.body in (None, Request) else route.body.__struct_fields__
        asked = (*route.query.__struct_fields__, *told)
        assert {name for name in asked if name not in row[0]} == set(), route.path


@pytest.mark.parametrize("kind", [Request, JobView])
def test_every_key_of_a_request_and_a_view_is_in_the_reference(kind: type[msgspec.Struct]) -> None:
    assert {f for f in kind.__struct_fields__ if f"`{f}`" not in _reference("api")} == set()


def test_every_key_of_an_application_file_is_in_the_reference() -> None:
    text = _reference("application")
    tables = [Document, *Table.__subclasses__()]
    keys = {field.encode_name for table in tables for field in msgspec.structs.fields(table)}
    assert {key for key in keys if f"`{key}`" not in text} == set()


YAML = [
    (path.relative_to(ROOT).as_posix(), text)
    for path in DOCS
    for text in re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
]


LAYOUTS = [(page, text) for page, text in YAML if text.startswith("muster_layout:")]


@pytest.mark.parametrize(("page", "text"), LAYOUTS)
def test_a_layout_in_the_docs_has_no_flaws(page: str, text: str) -> None:
    assert check(parse_layout(text, page)) == []


@pytest.mark.parametrize(("page", "text"), [one for one in YAML if one not in LAYOUTS])
def test_an_application_file_in_the_docs_can_be_built(page: str, text: str) -> None:
    assert _built(yaml=text, yaml_name=page).job.run is not None


def test_every_variable_of_a_job_is_in_the_reference() -> None:
    made = _built(command=("true",), options={"params": ["name=a,b"], "nodes": 2})
    tracked = msgspec.structs.replace(made.job, metrics=Metrics("mlflow", url="http://127.0.0.1:5000"))
    [job, *_] = ArraySubmitted(0.0, tracked, made.indices, None, made.sweep).members()
    machine = Machine(Node("lab7", cpus_milli=1000, memory_bytes=1, devices=(Device("A40"),)))
    seat = Seat("lab7", Shape(cpus_milli=1000))
    order = start_order(job, Start(job.id, 1, (seat, seat)), Home("/home"), machine, lambda _: {})
    variables = order["variables"] | order["parts"][0]["environment"]
    assert {name for name in variables if f"`{name}`" not in _reference("environment")} == set()


def test_every_state_and_outcome_is_in_the_reference() -> None:
    assert {s for s in (*State, *Outcome) if f"`{s}`" not in _reference("states")} == set()


def test_the_architecture_page_has_the_layers_that_are_kept() -> None:
    contract = (ROOT / ".importlinter").read_text().partition("layers =\n")[2].partition("\n\n")[0]
    layers = [re.findall(r"(?<!\()muster\.(\w+)", line) for line in contract.splitlines()]
    assert " → ".join(", ".join(layer) for layer in layers) in (ROOT / "docs/architecture.md").read_text()


def _built(**given: Any) -> Built:
    request = Request(cwd="/home/ana", **given)
    return build(request, job_id="7", owner="ana", team="", user="", environment_key="", now=1_790_000_000.0)
