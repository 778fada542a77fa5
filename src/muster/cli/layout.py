"""``muster layout``: the physical map; found, drawn, checked, compared and taken over from elsewhere.

Nothing here asks a server: a map is made of files and of this machine.
"""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage, nearest
from muster.cli.table import painted
from muster.cli.text import one_line, remark
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from muster.layout.file import File
    from muster.layout.parts import Found, Layout

_ABOUT = """The map of racks, nodes and GPUs: layout.yaml, laid over what can be found on this machine.

discover  writes what is found here, as a layout; with --from slurm, the nodes of the cluster and the
          switches that its topology names
show      draws a layout: that of Muster's home over what is found here, or a FILE, by itself unless it
          names this machine
check     says what is wrong in it (exit 1), or doubtful
diff      tells what changes from one file to another (exit 1, if anything)
import    makes a layout of a database of RacksDB (YAML) or of what NetBox answers (JSON)

No server is needed."""
_EXAMPLES = """
muster layout discover > layout.yaml
muster layout discover --from slurm > layout.yaml
muster layout show
muster layout show delta.yaml -o json
muster layout check layout.yaml
muster layout diff layout.yaml layout.new.yaml
muster layout import netbox.json --role gpu-node > layout.yaml
"""
WORDS = ("discover", "show", "check", "diff", "import")
_FILES = {"discover": (0, 0), "show": (0, 1), "check": (0, 1), "diff": (2, 2), "import": (1, 1)}
_COLUMNS = 100


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.usage = (
        f"{parser.prog} discover | show [FILE] | check [FILE] | diff OLD NEW | import FILE [-o FORM]"
    )
    parser.first_words = WORDS
    parser.add_argument("what", metavar="WHAT", nargs="?", help=", ".join(WORDS))
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="a layout; by default the one in Muster's home"
    )
    parser.add_argument(
        "--role", metavar="ROLE", help="of import: only NetBox's devices of this role are nodes"
    )
    parser.add_argument(
        "--from", dest="source", choices=("here", "slurm"), help="of discover: what is asked (default: here)"
    )
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    what = given.what or "show"
    if what not in WORDS:
        raise Usage(f"unknown word {what!r}; {nearest(what, WORDS)} (see 'muster layout --help')")
    least, most = _FILES[what]
    if not least <= len(given.files) <= most:
        many = {0: "no file", 1: "one file", 2: "two files"}[most]
        raise Usage(f"{what} takes {many} (see 'muster layout --help')")
    if given.role is not None and what != "import":
        raise Usage("--role goes with import (see 'muster layout --help')")
    if given.source is not None and what != "discover":
        raise Usage("--from goes with discover (see 'muster layout --help')")
    doing = {"discover": _discover, "show": _show, "check": _check, "diff": _diff, "import": _import}
    return doing[what](given)


# --- What each does -------------------------------------------------------------------------------------


def _discover(given: Namespace) -> int:
    from muster.layout.discover import discover_here
    from muster.layout.write import as_file, sources, to_yaml

    if given.source == "slurm":
        return _discover_slurm(given)
    found = discover_here()
    if given.output == "json":
        print(structured(_plain(found), "json"))
    else:
        print(to_yaml(as_file(found, found.name), [f"Found on {found.name}.", *sources(found)]), end="")
    return 0


def _discover_slurm(given: Namespace) -> int:
    """The cluster that Slurm's commands show here. In which rack a node stands, Slurm does not know."""
    from muster.engines.slurm.commands import Commands
    from muster.engines.slurm.shape import SOURCE, node_of, read_topology, switch_of
    from muster.layout.found import found_by
    from muster.layout.write import as_one_file, to_yaml

    slurm = Commands()
    switches = switch_of(read_topology(slurm.topology()))
    found = [found_by(SOURCE, node_of(one, switches, slurm.notices)) for one in slurm.nodes()]
    if given.output == "json":
        print(structured([_plain(one) for one in found], "json"))
        return 0
    said = (
        "Found by Slurm: cores and ram are what it gives to jobs.",
        "In which racks they stand: racks, per_rack.",
    )
    print(to_yaml(as_one_file(found, "slurm"), said), end="")
    return 0


def _show(given: Namespace) -> int:
    from muster.layout.terminal import MISSING, PRESENT, bare, draw
    from muster.layout.words import sentence

    layout = _merged(given)
    said = structured(_view(layout), given.output)
    if said is None:
        lines = [one_line(sentence(layout)), "", *draw(layout, bare(layout), _columns()), ""]
        if layout.gpu_count:
            lines.append(f"{PRESENT} a GPU  {MISSING} one that the file has and nobody sees")
        lines += [painted(one_line(f"! {one}"), "yellow") for one in layout.contradictions]
        said = "\n".join(lines)
    print(said)
    return 0


def _check(given: Namespace) -> int:
    from muster.layout.check import Flaw, check

    file = _file(_path(given, needed=True))
    assert file is not None
    flaws = [*check(file), *(Flaw(None, str(one), wrong=False) for one in _merged(given).contradictions)]
    said = structured([_plain(flaw) for flaw in flaws], given.output)
    if said is None:
        lines = [f"{file.source(f.line)}: {'' if f.wrong else 'perhaps: '}{f.said}" for f in flaws]
        said = "\n".join(map(one_line, lines)) or f"{one_line(file.name)}: nothing to say against it"
    print(said)
    return int(any(flaw.wrong for flaw in flaws))


def _diff(given: Namespace) -> int:
    from pathlib import Path

    from muster.layout.diff import diff
    from muster.layout.merge import merge

    old, new = (merge(_file(Path(name))) for name in given.files)
    changes = diff(old, new)
    said = structured([_plain(change) for change in changes], given.output)
    print("\n".join(map(one_line, map(str, changes))) or "nothing differs" if said is None else said)
    return int(bool(changes))


def _import(given: Namespace) -> int:
    from pathlib import Path

    from muster.layout.check import check
    from muster.layout.netbox import from_netbox
    from muster.layout.racksdb import from_racksdb
    from muster.layout.read import read_text
    from muster.layout.write import to_yaml

    path = Path(given.files[0])
    text = read_text(path)
    is_json = text.lstrip()[:1] in ("{", "[")
    if given.role is not None and not is_json:
        raise Usage("--role goes with NetBox's JSON, and this is none (see 'muster layout --help')")
    file = from_netbox(text, path.name, given.role) if is_json else from_racksdb(text, path.name)
    print(to_yaml(file, [f"From {path.name}."]), end="")
    wrong = sum(flaw.wrong for flaw in check(file))
    if wrong:
        remark(f"{wrong} of what it says can't be; save it, and see 'muster layout check FILE'")
    return 0


# --- Files and views ------------------------------------------------------------------------------------


def _path(given: Namespace, *, needed: bool = False) -> "Path | None":
    """The file that was named; otherwise the one in Muster's home, if there is one."""
    from pathlib import Path

    from muster.home import Home

    if given.files:
        return Path(given.files[0])
    usual = Home().layout
    if not usual.exists():
        if needed:
            raise BadInput(f"there is no {usual}; name a file, or make one with 'muster layout discover'")
        return None
    return usual


def _file(path: "Path | None") -> "File | None":
    from muster.layout.read import read_layout

    return None if path is None else read_layout(path)


def _merged(given: Namespace) -> "Layout":
    """The file over what is found here; one that was named and does not name this machine, by itself."""
    from muster.layout.discover import discover_here
    from muster.layout.merge import merge

    file, found = _file(_path(given)), discover_here()
    if given.files and file is not None and not any(found.name in line.nodes for line in file.place):
        return merge(file)
    return merge(file if file is not None else _nameless(found), (found,))


def _nameless(found: "Found") -> "File":
    """Where nobody wrote anything, the site is this machine."""
    from muster.layout.file import File

    return File(site=found.name)


def _view(layout: "Layout") -> "dict[str, Any]":
    """The map as data: racks, nodes with each fact and its source, switches, boxes, contradictions."""
    from muster.layout.geometry import geometry

    return {
        "site": layout.site,
        "gpus": layout.gpu_count,
        "racks": [_plain(rack) for rack in layout.racks],
        "nodes": [_plain(spot) for spot in layout.spots],
        "switches": [_plain(switch) for switch in layout.switches],
        "contradictions": [_plain(one) for one in layout.contradictions],
        "boxes": [_plain(box) for box in geometry(layout)],
    }


def _plain(value: object) -> "Any":
    import msgspec

    return msgspec.to_builtins(value)


def _columns() -> int:
    """As wide as the terminal; for files and programs always the same."""
    import os
    import sys

    return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _COLUMNS
