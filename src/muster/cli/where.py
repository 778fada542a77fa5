"""``muster where``: rack, node, GPU and process of a job; or the whole map, and what every GPU on it does."""

import re
from argparse import Namespace

from muster.cli.output import add_output, add_watch, shown, structured
from muster.cli.parse import JOB, Parser, Usage, job_id
from muster.cli.table import Cell, painted, table
from muster.cli.text import one_line, safe_lines
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    from muster.layout.parts import Layout

_ABOUT = """Where a job physically runs: its rack, node, GPUs and processes, in a sentence and a small drawing
(● are its own GPUs). Without an ID the map of the whole place, with what every GPU does: ■ works, ▨ is held
and not used, □ is free, ✕ down, ◌ drained, ? nobody sees it."""
_EXAMPLES = """
muster where 12
muster where
muster where --owner ana --state idle
muster where --rack R04 -o json
"""
STATES = {
    "working": "working",
    "idle": "held idle",
    "free": "free",
    "down": "down",
    "drained": "drained",
    "unknown": "unknown",
}
_COLOURS = {"●": "green", "■": "cyan", "▨": "yellow", "✕": "red", "◌": "dim", "?": "dim"}
_RUNS = re.compile("|".join(f"{re.escape(glyph)}+" for glyph in _COLOURS))
_COLUMNS = 100


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("job", metavar=JOB, nargs="?", type=job_id, help="the job, as 'muster ps' shows it")
    add("--rack", metavar="RACK", help="of the map: only this rack")
    add("--node", metavar="NODE", help="only this node")
    add("-u", "--owner", metavar="NAME", help="only what this person holds")
    add("-s", "--state", choices=tuple(STATES), metavar="STATE", help=f"only these: {', '.join(STATES)}")
    add_watch(parser)
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    asked = {name: getattr(given, name) for name in ("rack", "node", "owner") if getattr(given, name)}
    if given.state is not None:
        asked["state"] = STATES[given.state]
    if given.job is not None and asked:
        raise Usage("a job is in its own place; --rack, --node, --owner and --state are of the map")
    with Client() as client:
        shown(lambda: _answer(client, given, asked), watch=given.watch)
    return 0


def _answer(client: Client, given: Namespace, asked: "dict[str, str]") -> str:
    if given.job is not None:
        where = client.where(given.job)
        return structured(where, given.output) or _of_job(where)
    seen = client.map(**asked)
    return structured(seen, given.output) or _of_map(seen)


# --- A job ----------------------------------------------------------------------------------------------


def _of_job(where: "dict[str, Any]") -> str:
    lines = [one_line(where["sentence"])]
    if where["drawing"]:
        lines += ["", *(_coloured(safe_lines(line)) for line in where["drawing"])]
    running = [(place["node"], one) for place in where["places"] for one in place["processes"] or ()]
    if running:
        lines += ["", table(_HEADINGS, [_process(node, one) for node, one in running])]
    return "\n".join(lines)


_HEADINGS = ("NODE", "PID", "MEM", "GPU MEM", "COMMAND")


def _process(node: str, one: "dict[str, Any]") -> list[Cell]:
    sizes = [Cell(_size(one[key])) for key in ("memory_bytes", "gpu_memory_bytes")]
    return [Cell(node), Cell(one["pid"]), *sizes, Cell(one["command"])]


def _size(value: int | None) -> str | None:
    from muster.model.units import show_bytes

    return None if value is None else show_bytes(value)


# --- The map --------------------------------------------------------------------------------------------


def _of_map(seen: "dict[str, Any]") -> str:
    from muster.layout.states import LOOKS, State
    from muster.layout.terminal import draw

    glyphs = {
        (node["name"], gpu["number"]): LOOKS[State(gpu["state"])].glyph
        for node in seen["nodes"]
        for gpu in node["gpus"]
    }
    lines = draw(_layout(seen), lambda node, number: glyphs[node, number], _columns())
    said = [one_line(f"{seen['site']}: {seen['sentence']}"), "", *map(_coloured, lines)]
    plain = [node for node in seen["nodes"] if not node["gpus"]]
    if plain:
        said += ["", table(("NODE", "STATE", "CPUS", "HELD", "USED"), [_plain(node) for node in plain])]
    if glyphs:
        said += ["", _legend(seen)]
    said += [painted(one_line(f"! {one}"), "yellow") for one in seen["contradictions"]]
    return "\n".join(said)


def _layout(seen: "dict[str, Any]") -> "Layout":
    """The map that the server has told, to be drawn here, as wide as this terminal is."""
    from muster.layout.parts import Gpu, Layout, Rack, Spot

    racks = tuple(Rack(**rack) for rack in seen["racks"])
    spots = tuple(
        Spot(
            node["name"],
            node["rack"],
            node["at_u"],
            node["column"],
            node["units"],
            node["across"],
            gpus=tuple(Gpu(gpu["number"]) for gpu in node["gpus"]),
        )
        for node in seen["nodes"]
    )
    return Layout(seen["site"], racks, spots)


def _plain(node: "dict[str, Any]") -> list[Cell]:
    """A node that has nothing but cpus is told by these."""
    share = node["cpu_share"]
    amounts = [None if node["cpus"] is None else f"{node[key]:g}" for key in ("cpus", "cpus_held")]
    used = None if share is None else f"{100 * share:.0f} %"
    return [Cell(text) for text in (node["name"], node["state"], *amounts, used)]


def _legend(seen: "dict[str, Any]") -> str:
    """Glyphs, how many there are, and what they mean; those that are not there are left out."""
    from muster.layout.states import LOOKS, State

    counts = {State(state): count for state, count in seen["counts"].items() if count}
    parts = [_coloured(f"{LOOKS[state].glyph} {count:,} {state.value}") for state, count in counts.items()]
    if seen["undefended"]:
        parts.append(painted(f"{seen['undefended']:,} undefended", "yellow"))
    if seen["share"] is not None:
        parts.append(f"{100 * seen['share']:.0f} % of what is held is used")
    return "  ".join(parts)


def _coloured(line: str) -> str:
    return _RUNS.sub(lambda run: painted(run[0], _COLOURS[run[0][0]]), line)


def _columns() -> int:
    """As wide as the terminal; for files and programs always the same."""
    import os
    import sys

    return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _COLUMNS
