"""``muster top``: the place and its jobs, live on the terminal; ``--once`` prints one frame."""

import os
import sys
import time
from argparse import ArgumentTypeError, Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage, whole_number
from muster.cli.table import COLOURS, coloured
from muster.client import Client
from muster.model.errors import MusterError

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from muster.tui.spans import Line

_ABOUT = """The place, one glyph for each GPU, as high as what is truly used of it; and the jobs: who holds
what, for what, how well it is used, its budget, its end, and when somebody last defended it (? nobody does).
It follows the server, and says how old it is. Keys: ? tells them. Needs Textual: pip install
'passmuster[tui]'. With --once, or where there is no terminal, one frame is printed, and nothing is needed."""
_EXAMPLES = """
muster top
muster top --mine
muster top --once
muster top --once -o json
"""
_COLUMNS = 120
_JSON = ("json", "yaml")
MISSING = "muster top needs Textual; install it with: pip install 'passmuster[tui]' (--once needs nothing)"


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("-m", "--mine", action="store_true", help="only your own jobs")
    add("-u", "--owner", metavar="NAME", help="only this person's")
    add("-t", "--team", metavar="TEAM", help="only this team's")
    add("--limit", metavar="N", type=whole_number(1), help="at most so many jobs")
    add("--interval", metavar="SECONDS", type=_seconds, default=1.0, help="how often to look (default: 1)")
    add("--once", action="store_true", help="print one frame, and end")
    add_output(parser, "table", *_JSON)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.2 <= seconds <= 3600:
        raise ArgumentTypeError(f"{text!r} is not possible; it is a number of seconds, from 0.2 to 3600")
    return seconds


def run(given: Namespace) -> int:
    narrowed = {"mine": given.mine or None, "owner": given.owner, "team": given.team}
    is_once = given.once or not (sys.stdout.isatty() and sys.stdin.isatty())
    if given.output != "table" and not given.once:
        raise Usage(f"-o {given.output} is of one frame; add --once")
    with Client() as client:
        if is_once:
            print(_once(client, given, narrowed))
            return 0
    return _live(given, narrowed)


def _once(client: Client, given: Namespace, narrowed: "dict[str, object]") -> str:
    from muster.tui.frame import frame
    from muster.tui.looking import Looking
    from muster.tui.seen import Gaze

    seen = Looking(client, **narrowed).look(Gaze(), _columns(), None, given.limit or 50)
    told = structured({**seen.top, "sparks": dict(seen.sparks)}, given.output)
    if told is not None:
        return told
    return _painted(frame(seen, Gaze(), _columns(), time.time()).lines)


def _columns() -> int:
    """As wide as the terminal; for files and programs always the same."""
    if not sys.stdout.isatty():
        return _COLUMNS
    return os.get_terminal_size(sys.stdout.fileno()).columns or _COLUMNS


def _painted(lines: "list[Line]") -> str:
    if not coloured():
        from muster.tui.spans import plain

        return plain(lines)
    codes = {**COLOURS, "magenta": "35", "reverse": "7"}
    return "\n".join(
        "".join(f"\x1b[{codes[style]}m{text}\x1b[0m" if style else text for text, style in line).rstrip()
        for line in lines
    )


def _live(given: Namespace, narrowed: "dict[str, object]") -> int:
    try:
        import textual  # noqa: F401
    except ImportError:
        raise MusterError(MISSING) from None
    from muster.tui.app import TopApp

    with Client() as client:
        client.health()  # who can't be asked at all is told so at once, and not on a screen
    app = TopApp(narrowed, given.interval, given.limit)
    app.run()
    return app.return_code or 0
