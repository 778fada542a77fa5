"""``muster node``: the nodes, what they have, and what of it is held."""

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

_ABOUT = "The nodes: what they have, and what of it is held."
_EXAMPLES = """
muster node
muster node gpub001 -o json
"""
_HEADINGS = ("NAME", "HEALTH", "GPU", "CPUS", "MEM", "DISK", "JOBS", "MODELS")
_WIDE = (*_HEADINGS, "LIMITS")


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("names", metavar="NODE", nargs="*", help="only these")
    add_output(parser, "table", "wide", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        nodes = client.nodes()
    unknown = set(given.names) - {node["name"] for node in nodes}
    if unknown:
        raise BadInput(f"there is no node {min(unknown)!r}; 'muster node' lists them")
    chosen = [node for node in nodes if not given.names or node["name"] in given.names]
    wide = given.output == "wide"
    said = structured(chosen, given.output)
    print(table(_WIDE if wide else _HEADINGS, [_row(n, wide=wide) for n in chosen]) if said is None else said)
    return 0


def _row(node: "dict[str, Any]", *, wide: bool) -> list[Cell]:
    held, devices = node["held"], node["devices"]
    healthy = node["health"].lower() in ("ok", "up", "healthy")
    models = dict.fromkeys(device["model"] for device in devices)
    cells = [
        Cell(node["name"]),
        Cell(node["health"], "green" if healthy else "red"),
        Cell(f"{held['gpus']:g}/{len(devices)}" if devices else None),
        Cell(f"{held['cpus']:g}/{node['cpus']:g}"),
        Cell(f"{size(held['memory_bytes'])}/{size(node['memory_bytes'])}"),
        Cell(size(node["disk_bytes"]) if node["disk_bytes"] else None),
        Cell(node["jobs"]),
        Cell(", ".join(models)),
    ]
    limits = ", ".join(f"{one['what']} {one['how']}" for one in node["limits"])
    return [*cells, Cell(limits)] if wide else cells
