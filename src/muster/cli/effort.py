"""``muster effort``: work of many jobs under one charter, and its story."""

import time
from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage
from muster.cli.table import Cell, painted, properties, shortened, table
from muster.cli.text import one_line
from muster.cli.views import amount, clock
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]

_ABOUT = """Efforts: many jobs, one charter, one owner. Its budget and its exits bind all its jobs together;
why it was started, extended, defended and ended is kept as one story.

Words: new NAME, ls, show NAME, note NAME TEXT, extend NAME, pause NAME, resume NAME, close NAME."""
_EXAMPLES = """
muster effort new llama-eval --for "Does 8B beat 3B on the held-out set?" --budget 900GPUh
muster submit --effort llama-eval --gpus 4 -- python train.py
muster effort show llama-eval
muster effort note llama-eval "chose AdamW because SGD diverged"
muster effort extend llama-eval --budget +300GPUh --because "the 8B run needs two more epochs"
muster effort close llama-eval --won --because "92.4 % on the held-out set"
"""
_HEADINGS = ("NAME", "OWNER", "TEAM", "JOBS", "BUDGET", "FOR", "ENDS", "STATE")
_WORDS = ("new", "ls", "show", "note", "extend", "pause", "resume", "close")
_CHARTER = (
    ("--owner", "NAME", "who answers for it, if not you"),
    ("--team", "TEAM", "of new: whose work it is"),
    ("--for", "SENTENCE", "what you will know when it is done"),
    ("--budget", "B", "what all its jobs may cost together, like '900 GPUh'; of extend +100GPUh: more"),
    ("--until", "DATE", "when it ends at the latest, like 2026-12-01 or +7d"),
)
_EXITS = (
    (
        "--success",
        "success",
        "ends it as won, like 'val_acc >= 0.92', whichever job reports it; may be repeated",
    ),
    ("--fail", "failure", "ends it as lost; may be repeated"),
)
_PURPOSE_LETTERS = 48


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.usage = f"{parser.prog} [{'|'.join(_WORDS)}] [OPTIONS] [NAME] [TEXT]"
    parser.first_words = _WORDS
    parser.add_argument("words", metavar="WORD", nargs="*", help="what to do, with which effort")
    for name, metavar, about in _CHARTER:
        parser.add_argument(name, metavar=metavar, help=about)
    for name, dest, about in _EXITS:
        also = ("--failure",) if dest == "failure" else ()
        parser.add_argument(name, *also, dest=dest, metavar="CONDITION", action="append", help=about)
    parser.add_argument("--because", metavar="REASON", help="of extend, pause and close: why")
    parser.add_argument("--pausing", metavar="NAME", help="of new: the effort that pauses for this one")
    parser.add_argument(
        "--first-wins", action="store_true", help="of new: the success of one of its jobs ends the others"
    )
    parser.add_argument("--won", action="store_true", help="of close: it found what it was for")
    parser.add_argument("--lost", action="store_true", help="of close: it did not, and will not")
    parser.add_argument("-a", "--all", action="store_true", help="of ls: those that are closed, too")
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    word, *rest = given.words or ["ls"]
    if word not in _WORDS:
        raise Usage(f"{word!r} is not something to do with efforts; known: {', '.join(_WORDS)}")
    with Client() as client:
        if word == "ls":
            return _list(client, given)
        if not rest:
            raise Usage(f"name the effort, like: muster effort {word} llama-eval")
        view = _done(client, word, rest, given)
    print(structured(view, given.output) or (_told(view) if word == "show" else _said(view, word)))
    return 0


def _done(client: Client, word: str, rest: list[str], given: Namespace) -> "View":
    name, *text = rest
    if text and word != "note":
        raise Usage(f"{text[0]!r} is one word too many; a reason goes with --because")
    if word == "new":
        asked = {"first_wins": given.first_wins, "pausing": given.pausing}
        return client.post("/efforts", {"name": name, "charter": _charter(given), **asked})
    if word == "show":
        return client.effort(name)
    return client.on_effort(name, word, _body(word, text, given))


def _body(word: str, text: list[str], given: Namespace) -> "dict[str, Any]":
    if word == "note":
        return {"text": " ".join(text)}
    if word == "extend":
        return {"charter": _charter(given), "because": given.because or ""}
    if word == "close" and given.won == given.lost:
        raise Usage("say how it ended: --won or --lost")
    because = {"because": given.because or ""}
    return {"verdict": "won" if given.won else "lost", **because} if word == "close" else because


def _charter(given: Namespace) -> "dict[str, Any]":
    names = [name[2:] for name, *_ in _CHARTER] + ["success", "failure"]
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def _list(client: Client, given: Namespace) -> int:
    views = client.efforts(all=given.all)
    said = structured(views, given.output)
    print(table(_HEADINGS, [_row(view) for view in views]) if said is None else said)
    return 0


def _row(view: "View") -> list[Cell]:
    state = view["verdict"] or ("paused" if view["paused"] or _decide_by(view) else "open")
    return [
        Cell(view["name"]),
        Cell(view["owner"]),
        Cell(view["team"]),
        Cell(view["living"]),
        Cell(_spent(view) or view["budget"]),
        Cell(shortened(view["purpose"] or "", _PURPOSE_LETTERS)),
        Cell(_ends(view)),
        Cell(state, {"open": "green", "won": "green", "paused": "cyan"}.get(state, "yellow")),
    ]


def _budget(view: "View") -> str | None:
    """What of it is spent."""
    spent = view["spent"]
    return (
        view["budget"] if spent is None else f"{spent['spent']:.3g} of {spent['text']} ({spent['share']:.0%})"
    )


def _ends(view: "View") -> str | None:
    at = view["closed_at"] or view["until"]
    return None if at is None else clock(at, time.time())


def _told(view: "View") -> str:
    """All of it, the story last."""
    ended = ", ".join(f"{count:,} {how}" for how, count in view["ended"].items())
    now, decide = time.time(), _decide_by(view)
    paused = view["paused"] or (
        decide and f"its budget is spent; it ends {clock(decide, now)} unless extended"
    )
    state = view["verdict"] or (f"paused: {paused}" if paused else "open")
    head = properties(
        [
            ("effort", view["name"]),
            ("state", f"{state}: {view['because']}" if view["because"] else state),
            ("for", view["purpose"]),
            ("owner", f"{view['owner']} in {view['team']}" if view["team"] else view["owner"]),
            ("won if", _won_if(view)),
            ("lost if", "; or ".join(view["failure"])),
            ("budget", _spent(view, " held") or view["budget"]),
            ("until", None if view["until"] is None else clock(view["until"], now)),
            ("jobs", f"{view['living']:,} live" + (f", {ended}" if ended else "")),
        ]
    )
    return "\n".join([head, "", *(_line(one) for one in view["story"])])


def _won_if(view: "View") -> str:
    first = ["one of its jobs wins"] if view["first_wins"] else []
    return "; or ".join([*view["success"], *first])


def _spent(view: "View", held: str = "") -> str | None:
    """``310 of 900 GPUh``."""
    spending = view["spending"]
    if spending is None:
        return None
    return f"{amount(spending['spent'])} of {spending['text']}{held} ({spending['share']:.0%})"


def _decide_by(view: "View") -> float | None:
    return (view["spending"] or {}).get("decide_by")


def _line(one: "View") -> str:
    when = painted(clock(one["at"], time.time()), "dim")
    said = ": ".join(filter(None, (one["by"], one["text"])))
    return f"{when}  {one['what']:<8}  {one_line(said)}"


def _said(view: "View", word: str) -> str:
    done = {
        "new": "is open",
        "note": "has another note",
        "extend": "goes on under other terms",
        "pause": "is paused; what runs of it goes on to its end",
        "resume": "goes on",
        "close": f"is closed as {view['verdict']}",
    }[word]
    return f"{one_line(view['name'])} {done}.  Its story: muster effort show {one_line(view['name'])}"
