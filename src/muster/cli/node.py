"""``muster node``: the nodes, what they have, and what of it is held; and taking them out of service."""

import time
from argparse import Namespace

from muster.cli.act import on_each
from muster.cli.output import add_output, structured
from muster.cli.parse import NODE, Parser, Usage, whole_number
from muster.cli.table import Cell, table
from muster.cli.text import one_line
from muster.cli.views import size
from muster.client import Client
from muster.model.errors import BadInput
from muster.model.units import show_seconds

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """The nodes: what they have, what of it is held, and why one is out of service. On a cluster where
agents run ('muster agent'), AGENT is how long ago each spoke.

'drain' lets nothing new start on nodes, or on one GPU of each; what runs goes on. 'resume' brings them back.
Both are for admins. The first word is taken for what to do, even if a node is called so."""
_EXAMPLES = """
muster node
muster node gpub001 -o json
muster node drain gpub001 --because "fan is broken"
muster node drain gpub001 --gpu 2 --because "falls off the bus"
muster node resume gpub001 --gpu 2
"""
DRAIN, RESUME = "drain", "resume"
_HEADINGS = ("NAME", "HEALTH", "GPU", "CPUS", "MEM", "DISK", "JOBS", "MODELS")


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.usage = f"{parser.prog} [drain --because REASON [--gpu N] | resume [--gpu N]] [-o FORM] [NODE ...]"
    parser.first_words = (DRAIN, RESUME)
    parser.add_argument("names", metavar=NODE, nargs="*", help="only these; after drain or resume, which")
    parser.add_argument("--because", metavar="REASON", help="of drain: why, for those who find it so")
    parser.add_argument(
        "--gpu", metavar="N", type=whole_number(0), help="of drain and resume: only this GPU, counted from 0"
    )
    add_output(parser, "table", "wide", "json", "yaml", "name")


def run(given: Namespace) -> int:
    first, *names = given.names or [""]
    if given.because is not None and first != DRAIN:
        raise Usage("--because goes with drain (see 'muster node --help')")
    if first in (DRAIN, RESUME):
        return _act(first, names, given)
    if given.gpu is not None:
        raise Usage("--gpu goes with drain or resume (see 'muster node --help')")
    with Client() as client:
        _show(_chosen(client.nodes(), given.names), given.output)
    return 0


def _act(verb: str, names: list[str], given: Namespace) -> int:
    if not names:
        raise Usage(f"name the node to {verb}, like: muster node {verb} gpub001")
    if verb == DRAIN and not (given.because or "").strip():
        raise Usage('say why, like: --because "fan is broken"')
    done: list[dict[str, Any]] = []
    with Client() as client:
        if verb == DRAIN:
            code = on_each(names, lambda name: done.append(client.drain_node(name, given.because, given.gpu)))
        else:
            code = on_each(names, lambda name: done.append(client.resume_node(name, given.gpu)))
    if done:
        _show(done, given.output)
    return code


def _chosen(nodes: "list[dict[str, Any]]", names: list[str]) -> "list[dict[str, Any]]":
    unknown = set(names) - {node["name"] for node in nodes}
    if unknown:
        raise BadInput(f"there is no node {min(unknown)!r}; 'muster node' lists them")
    return [node for node in nodes if not names or node["name"] in names]


def _show(nodes: "list[dict[str, Any]]", form: str) -> None:
    wide = form == "wide"
    said = structured(nodes, form)
    if said is None:
        agents = any(node.get("agent") for node in nodes)
        headings = (*_HEADINGS, *["AGENT"] * agents, *["LIMITS"] * wide, "REASON")
        rows = table(headings, [_row(n, wide=wide, agents=agents) for n in nodes])
        said = "\n".join([rows, *(line for node in nodes for line in _foreign(node))])
    print(said)


def _foreign(node: "dict[str, Any]") -> "list[str]":
    """Processes on its GPUs that Muster has not started."""
    return [
        one_line(f"! {node['name']}, GPU {number}: {_stranger(one)}")
        for number, device in enumerate(node["devices"])
        for one in device.get("foreign") or ()
    ]


def _stranger(one: "dict[str, Any]") -> str:
    command = one["command"] or "its command is not known"
    return f"process {one['pid']} of {one['user'] or 'somebody'} is not Muster's ({command}; {_taken(one)})"


def _taken(one: "dict[str, Any]") -> str:
    return "its memory is not known" if one["memory_bytes"] is None else size(one["memory_bytes"])


def _row(node: "dict[str, Any]", *, wide: bool, agents: bool) -> list[Cell]:
    held, devices = node["held"], node["devices"]
    healthy = node["health"].lower() in ("ok", "up", "healthy")
    models = dict.fromkeys(device["model"] for device in devices)
    limits = ", ".join(f"{one['what']} {one['how']}" for one in node["limits"])
    return [
        Cell(node["name"]),
        Cell(node["health"], "green" if healthy else "red"),
        Cell(f"{held['gpus']:g}/{len(devices)}" if devices else None),
        Cell(f"{held['cpus']:g}/{node['cpus']:g}"),
        Cell(f"{size(held['memory_bytes'])}/{size(node['memory_bytes'])}"),
        Cell(size(node["disk_bytes"]) if node["disk_bytes"] else None),
        Cell(node["jobs"]),
        Cell(", ".join(models)),
        *([_agent(node)] if agents else []),
        *([Cell(limits)] if wide else []),
        Cell(_reason(node, wide=wide)),
    ]


def _agent(node: "dict[str, Any]") -> Cell:
    """How long ago it spoke, and which of its meters do not answer; red if it speaks no more."""
    agent = node.get("agent")
    if agent is None:
        return Cell(None)
    ago = f"{show_seconds(float(round(max(0.0, time.time() - agent['said_at']))))} ago"
    silent = ", ".join(agent["silent"])
    return Cell(f"{ago}, without {silent}" if silent else ago, "" if agent["is_fresh"] else "red")


def _reason(node: "dict[str, Any]", *, wide: bool) -> str:
    """Why the node is not up, and which of its GPUs are drained; where there is room for it, why."""
    said = [node["reason"]] if node.get("reason") else []
    drained = [(g, device.get("reason")) for g, device in enumerate(node["devices"]) if not device["healthy"]]
    if wide:
        said += [f"GPU {g} is drained" + (f" ({why})" if why else "") for g, why in drained]
    elif drained:
        said.append(f"GPU {', '.join(str(g) for g, _ in drained)} drained")
    return "; ".join(said)
