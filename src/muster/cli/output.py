"""``-o``: the same answer for people, for programs, and for the next command."""

import sys
import time

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from muster.cli.parse import Parser

FORMS = ("table", "wide", "json", "yaml", "name")
WATCH_SECONDS = 2.0


def add_output(parser: "Parser", *forms: str) -> None:
    """``-o``, with these forms; the first is what it is by default."""
    among = ", ".join(forms)
    parser.add_argument(
        "-o", "--output", choices=forms, default=forms[0], metavar="FORM", help=f"how to print it: {among}"
    )


def add_watch(parser: "Parser") -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="again and again, until Ctrl-C")


def structured(value: "Any", form: str) -> str | None:
    """The answer as JSON, YAML or names; None where it is meant for people."""
    if form == "json":
        import json

        return json.dumps(value, indent=2, ensure_ascii=False)
    if form == "yaml":
        import yaml

        return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True)).rstrip()
    if form == "name":
        found = value if isinstance(value, list) else [value]
        return "\n".join(str(one.get("id", one.get("name"))) for one in found)
    return None


def shown(answer: "Callable[[], str]", *, watch: bool) -> None:
    """Prints an answer, once or again and again; on a terminal each replaces the one before."""
    while True:
        text = answer()
        if watch and sys.stdout.isatty():
            text = f"\x1b[H\x1b[2J{text}"
        if text or watch:
            print(text, flush=watch)
        if not watch:
            return
        time.sleep(WATCH_SECONDS)
