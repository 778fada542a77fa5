"""``muster team``: the teams, what they own, and what they hold."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser
from muster.cli.table import Cell, table
from muster.cli.views import size
from muster.client import Client
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = "The teams: held of owned, how many jobs run and wait, and who is in them."
_EXAMPLES = """
muster team
muster team vision -o json
"""
_HEADINGS = ("NAME", "PARENT", "WEIGHT", "GPU", "CPUS", "MEM", "RUNNING", "WAITING", "USERS")


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("names", metavar="TEAM", nargs="*", help="only these")
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        teams = client.teams()
    unknown = set(given.names) - {team["name"] for team in teams}
    if unknown:
        raise BadInput(f"there is no team {min(unknown)!r}; 'muster team' lists them")
    chosen = [team for team in teams if not given.names or team["name"] in given.names]
    said = structured(chosen, given.output)
    print(table(_HEADINGS, [_row(team) for team in chosen]) if said is None else said)
    return 0


def _row(team: "dict[str, Any]") -> list[Cell]:
    held, quota = team["held"], team["quota"]
    owned = quota["memory_bytes"]
    return [
        Cell(team["name"]),
        Cell(team["parent"]),
        Cell(f"{team['weight']:g}"),
        Cell(_of(held["gpus"], quota["gpus"])),
        Cell(_of(held["cpus"], quota["cpus"])),
        Cell(size(held["memory_bytes"]) + ("" if owned is None else f"/{size(owned)}")),
        Cell(team["running"]),
        Cell(team["waiting"]),
        Cell(", ".join(team["users"])),
    ]


def _of(held: float, owned: float | None) -> str:
    return f"{held:g}" if owned is None else f"{held:g}/{owned:g}"
