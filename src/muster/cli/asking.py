"""The options that ``submit``, ``run`` and ``plan`` share: what a job needs, when, and what for.

They are sent as typed: the server knows the units.
"""

import os
import sys

from muster.cli.parse import Usage, job_id
from muster.client import is_text, read_text, request_body
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from muster.cli.parse import Parser
    from muster.client import Client

_VALUES = (
    ("--name", "NAME", "what to call it"),
    ("--gpus", "N", "GPUs of each part; 0.5 is half of one"),
    ("--gpu-memory", "SIZE", "memory each GPU must have, or with no --gpus that much of one"),
    ("--cpus", "N", "cpus of each part (default: 1)"),
    ("--disk", "SIZE", "scratch space"),
    ("--time", "TIME", "the longest it may run: 30s, 90m, 8h, 2d, 1-12:00:00"),
    ("--nodes", "N", "parts, which start together or not at all"),
    ("--together", "HOW", "how close parts must be: node, rack, switch, spread, anywhere"),
    ("--team", "TEAM", "whose quota it counts to"),
    ("--priority", "P", "low (yields to all), normal or high"),
    ("--begin", "WHEN", "not before: now+2h, 16:00, 2026-12-01T08:00"),
    ("--array", "RANGE", "many jobs as one: 1-100, 1-100%%5 (five at once), 1,3,7-9"),
    ("--retry", "N", "times to try again after it has failed"),
    ("--for", "SENTENCE", "what you will know when it is done"),
    ("--budget", "B", "what it may cost in all, like '200 GPUh'"),
    ("--until", "DATE", "when it ends at the latest, like 2026-12-01"),
    ("--owner", "NAME", "who answers for it, if not you"),
    ("--effort", "NAME", "the larger work that it is part of"),
    ("--metrics", "SOURCE", "where it tells how it is doing: json-lines, 'pattern:loss {loss}', report, …"),
    ("--pids", "N", "the most processes and threads at once"),
    ("--warn", "SIGNAL@TIME", "a signal that long before it is told to end, like USR1@2m"),
    ("--grace", "TIME", "how long it has between SIGTERM and SIGKILL (default: 30s)"),
    ("--checkpoint-every", "TIME", "how often it saves by itself"),
    ("--output-file", "PATH", "a copy of its log; %%j is the job's id, %%x its name, %%a the member"),
    ("--log-limit", "SIZE", "how much of its output is kept (default: 256M)"),
)
_LISTS = (
    ("--gpu-model", "MODEL", "only this model of GPU, or this one"),
    ("--label", "LABEL", "only nodes with this label"),
    ("--param", "NAME=A,B", "try each of these values, in every combination"),
    ("--success", "CONDITION", "ends it as won, like 'val_acc >= 0.92'"),
    ("--failure", "CONDITION", "ends it as lost, like 'val_loss stalls for 90m'"),
    ("--progress", "SIGN", "what shows that it goes on: report, log or checkpoint"),
)
_AFTER = (
    ("--after-ok", "once these jobs have succeeded"),
    ("--after-any", "once these jobs have ended"),
    ("--after-not-ok", "once these jobs have failed"),
)
_FLAGS = (
    ("--hold", "wait until it is released"),
    ("--cpu-cap", "never more cpu than asked, even if idle"),
    ("--right-size", "ask for what measured runs of the same work needed, with a margin"),
)
_ALSO = {"--failure": ("--fail",)}
_KEYS = {"output_file": "output", "label": "labels", "param": "params"}


def add_asking(parser: "Parser") -> None:
    """All of them, and the words that are the job's own."""
    parser.takes_command = True
    parser.usage = f"{parser.prog} [OPTIONS] -- COMMAND …\n       {parser.prog} [OPTIONS] SCRIPT …"
    parser.usage += f"\n       {parser.prog} [OPTIONS] -f application.yaml"
    add = parser.add_argument
    add("-f", "--file", metavar="FILE", help="an application file; options override it")
    add("--mem", "--memory", dest="memory", metavar="SIZE", help="memory of each part: 512M, 64G")
    for name, metavar, about in _VALUES:
        add(name, metavar=metavar, help=about)
    for name, metavar, about in _LISTS:
        add(name, *_ALSO.get(name, ()), metavar=metavar, action="append", help=f"{about}; may be repeated")
    for name, about in _AFTER:
        add(name, metavar="ID", action="append", type=_ids, help=about)
    for name, about in _FLAGS:
        add(name, action="store_true", default=None, help=about)


def _ids(text: str) -> str:
    for one in text.split(","):
        job_id(one)
    return text


def body_of(given: "Namespace") -> "dict[str, Any]":
    """What to send: the options, and the command, the script or the file."""
    words: list[str] = given.words
    for word in words:
        if not is_text(word):
            raise BadInput(f"{word!r} is not text in UTF-8, and can't be sent")
    if given.file is not None:
        return _described(given, words)
    if not words:
        verb = given.verb
        raise Usage(f"nothing to run; give a command (muster {verb} -- python train.py), a script or -f FILE")
    if given.after_dashes or not _is_script(words[0]):
        return request_body(_options(given), command=words)
    body = request_body(_options(given), script=read_text(words[0]), args=words[1:])
    return {**body, "script_name": os.path.basename(words[0])}


def submitted(client: "Client", body: "dict[str, Any]", given: "Namespace") -> "dict[str, Any]":
    """Queues it. In a terminal, whoever is there is asked for what it lacks; a script follows the policy."""
    if not _may_ask(given):
        return client.post("/jobs", body)
    from muster.cli.questions import Questions

    questions = Questions(client, body)
    questions.ask()
    view = client.post("/jobs", body)
    questions.keep()
    return view


def is_attended() -> bool:
    """Whether somebody is there who reads and could answer."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _may_ask(given: "Namespace") -> bool:
    for_people = getattr(given, "output", "table") == "table" and given.file != "-"
    return for_people and os.environ.get("MUSTER_ASK") != "never" and is_attended()


def _options(given: "Namespace") -> "dict[str, Any]":
    names = [name for name, *_ in (*_VALUES, *_LISTS, *_AFTER, *_FLAGS)]
    dests = ["memory", *(name[2:].replace("-", "_") for name in names)]
    return {_KEYS.get(dest, dest): getattr(given, dest) for dest in dests}


def _described(given: "Namespace", words: list[str]) -> "dict[str, Any]":
    """An application file, whose command may be replaced by another."""
    if words and not given.after_dashes:
        raise Usage(f"{words[0]!r} beside -f: a command that replaces the file's comes after --")
    body = request_body(_options(given), command=words or None, yaml=read_text(given.file))
    return {**body, "yaml_name": given.file if is_text(given.file) else "the file"}


def _is_script(word: str) -> bool:
    """Whether a word names a file of text here, rather than a program."""
    if os.path.isfile(word):
        return True
    if "/" in word or word.endswith(".sh"):
        raise BadInput(f"there is no script {word}; a command comes after --, like: muster submit -- {word}")
    return False
