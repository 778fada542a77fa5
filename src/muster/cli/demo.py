"""``muster demo``: a simulated site with a week behind it, to look around in."""

from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from muster.cli.parse import Parser
    from muster.demo.run import Shown
    from muster.home import Home

_HTTP = "127.0.0.1:6878"
_SITES = ("delta", "stress")
EXAMPLES = """
muster demo
muster demo --speed 10 --seed 7
muster demo --http 127.0.0.1:0 --site stress
"""


def define(parser: "Parser") -> None:
    from muster.cli.parse import whole_number

    parser.describe(
        "Show a simulated site: 400 GPUs, thirty people, a week behind it, and work going on. The server is "
        "the real one; nodes, people and jobs are made up, and nothing is computed. Needs nothing, touches "
        "nothing of yours, and leaves nothing behind.",
        EXAMPLES,
    )
    add = parser.add_argument
    add("--http", metavar="HOST:PORT", default=_HTTP, help=f"where the page is served (default: {_HTTP})")
    add("--seed", metavar="N", type=whole_number(0), default=1, help="another week (default: 1)")
    add("--speed", metavar="X", type=float, default=1.0, help="jobs and people are so many times as quick")
    add("--site", choices=_SITES, default="delta", help="which site; stress has 10,000 GPUs (default: delta)")


def run(given: "argparse.Namespace") -> int:
    import logging

    from muster.demo.run import Demo, demonstrate
    from muster.model.errors import BadInput
    from muster.server.config_values import parse_address

    if not 0 < given.speed <= 1000:
        raise BadInput(f"--speed {given.speed:g} is not possible; it is above 0, and at most 1000")
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s muster: %(message)s", datefmt="%H:%M:%S")
    demonstrate(Demo(parse_address(given.http), given.site, given.seed, given.speed), _greet)
    return 0


def _greet(shown: "Shown") -> None:
    from muster import __version__

    print(f"Muster {__version__} shows a SIMULATED site of {shown.nodes:,} nodes and {shown.gpus:,} GPUs:")
    print("nodes, people and jobs are made up, and nothing is computed.")
    print(f"In a terminal: export MUSTER_HOME={shown.home.path}; muster ps; muster digest; muster review")
    print("Ctrl-C ends it and leaves nothing behind.", flush=True)
    Thread(target=_tell_link, args=(shown.home,), daemon=True).start()  # it answers when this has returned


def _tell_link(home: "Home") -> None:
    from muster.client import Client

    with Client(home=home.path) as client:
        links = client.web_link()["urls"]
    for link in links:
        print(f"In a browser:  {link}")
        print("(good once, for ten minutes; in that terminal, muster web makes another)", flush=True)
