"""``muster token``: a token for someone who comes over the network."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, whole_number
from muster.cli.text import remark
from muster.client import Client

_ABOUT = """Make a token with which somebody comes over the network. It is told once, and kept only as a hash.
Whoever has it sets MUSTER_URL=http://HOST:PORT and MUSTER_TOKEN.

With --role agent it is for 'muster agent' on the nodes that are named, in Slurm's way. Whoever has it can
tell what jobs use there, and do nothing else."""
_EXAMPLES = """
muster token ana
muster token ci --role user --days 7
muster token 'gpub[001-100]' --role agent --days 365
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("user", metavar="USER", help="for whom; with --role agent, for which nodes")
    roles = ["user", "lead", "admin", "agent"]
    parser.add_argument("--role", choices=roles, default="user", help="what it allows")
    parser.add_argument(
        "--days", metavar="N", type=whole_number(1), help="how long it is good for (default: 90)"
    )
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    with Client() as client:
        token = client.token(given.user, given.role, given.days)
    print(structured({"user": given.user, "role": given.role, "token": token}, given.output) or token)
    who = (
        "the agent has it in a file (--token-file)"
        if given.role == "agent"
        else f"{given.user} sets MUSTER_TOKEN to it"
    )
    remark(f"this is told once; {who}")
    return 0
