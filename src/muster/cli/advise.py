"""``muster advise``: requests that are far from the truth, and what to ask for instead."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser
from muster.cli.text import safe_lines
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """Requests that are far from what was measured, those that cost most first, with the options to use
instead. They rest on past runs of the same work; 'muster submit --right-size' uses them by itself."""
_EXAMPLES = """
muster advise
muster advise --mine
muster advise --owner ana -o json
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("--mine", action="store_true", help="only those of your own jobs")
    parser.add_argument("--owner", metavar="NAME", help="only those of this person's jobs")
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    with Client() as client:
        found = client.advice(owner=given.owner, mine=given.mine)
    said = structured(found, given.output)
    if said is None:
        said = "\n".join(map(_told, found)) or "No request is far from what was measured."
    print(said)
    return 0


def _told(one: "dict[str, Any]") -> str:
    return safe_lines("\n".join([one["text"], *(f"    {sentence}" for sentence in one["because"])]))
