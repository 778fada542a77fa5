"""``muster whoami``: who the server takes you for."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser
from muster.cli.table import properties
from muster.client import Client


def define(parser: Parser) -> None:
    parser.describe("Who the server takes you for, and what you may do.", "muster whoami")
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        person = client.whoami()
    said = structured(person, given.output)
    pairs = [(key, ", ".join(value) if isinstance(value, list) else value) for key, value in person.items()]
    print(properties(pairs) if said is None else said)
    return 0
