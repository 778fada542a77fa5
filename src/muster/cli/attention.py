"""``muster attention``: what everybody's attention is asked for."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser
from muster.cli.table import NOTHING, Cell, table
from muster.cli.views import span
from muster.client import Client
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """Per person: efforts that are open, interruptions in the last seven days, questions that wait for
an answer and how long the oldest has, and messages that a channel would not take."""
_EXAMPLES = """
muster attention
muster attention ana -o json
"""
_HEADINGS = ("USER", "EFFORTS", "INTERRUPTED", "QUESTIONS", "OLDEST", "UNDELIVERED", "CHANNELS")


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("names", metavar="USER", nargs="*", help="only these")
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    with Client() as client:
        people = client.attention()
    unknown = set(given.names) - {person["user"] for person in people}
    if unknown:
        raise BadInput(f"nobody called {min(unknown)!r} has an effort or a message")
    chosen = [person for person in people if not given.names or person["user"] in given.names]
    said = structured(chosen, given.output)
    print(table(_HEADINGS, [_row(person) for person in chosen]) if said is None else said)
    return 0


def _row(person: "dict[str, Any]") -> list[Cell]:
    oldest = person["oldest_question_seconds"]
    return [
        Cell(person["user"]),
        Cell(len(person["efforts"])),
        Cell(person["interruptions"]),
        Cell(person["questions"], "yellow" if person["questions"] else ""),
        Cell(NOTHING if oldest is None else span(oldest)),
        Cell(person["undelivered"], "red" if person["undelivered"] else ""),
        Cell(", ".join(person["channels"])),
    ]
