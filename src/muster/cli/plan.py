"""``muster plan``: what would happen if this were submitted."""

from argparse import Namespace

from muster.cli.asking import add_asking, body_of
from muster.cli.output import add_output
from muster.cli.parse import Parser
from muster.cli.submit import show_forecast
from muster.client import Client

_ABOUT = """What would happen if this were submitted now: when and where it would start, who would
yield to it, or why it can never run (exit code 2). Nothing is changed."""
_EXAMPLES = """
muster plan -f application.yaml
muster plan --gpus 8 --time 2d -- python train.py
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_asking(parser)
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    body = body_of(given)
    with Client() as client:
        return show_forecast(client.post("/plan", body), given.output)
