"""The commands in the docs work, and the reference names everything there is."""

import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run
from muster.model.policy import PRESETS, Policy
from muster.model.state import diagram

ROOT = Path(__file__).parents[2]
DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = [
    (path.relative_to(ROOT).as_posix(), line)
    for path in DOCS
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
