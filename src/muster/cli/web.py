"""``muster web``: a link with which a browser signs in as you."""

import os
from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser
from muster.cli.text import remark
from muster.client import Client
from muster.model.errors import MusterError

_ABOUT = """Print a link that opens Muster's pages in a browser, signed in as you. It is good once, for ten
minutes; the browser stays signed in for a week, or until it signs out."""
_EXAMPLES = """
muster web
muster web --open
ssh -L 6878:127.0.0.1:6878 gpubox muster web
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("--open", action="store_true", help="open it here, too, in the default browser")
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    with Client() as client:
        link = client.web_link()
    if not link["urls"]:
        raise MusterError("this server serves no pages over TCP; start it with: muster up --http HOST:PORT")
    print(structured(link, given.output) or "\n".join(link["urls"]))
    if given.open:
        _open(link["urls"][0])
    elif os.environ.get("SSH_CONNECTION") and "127.0.0.1" in link["urls"][0]:
        port = link["urls"][0].split("/")[2].rpartition(":")[2]
        remark(f"from elsewhere, first: ssh -L {port}:127.0.0.1:{port} {os.uname().nodename}")
    return 0


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        raise MusterError("there is no browser here; open the link where there is one")
