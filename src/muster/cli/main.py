"""``muster VERB``: finds the verb, and turns errors into one line and an honest exit code.

Only the verb's module is imported, and it imports what it needs when it runs, so that every answer comes at
once.
"""

import importlib
import io
import os
import sys

from muster.cli.text import remark
from muster.model.errors import MusterError

GROUPS = {
    "Running": {
        "submit": "queue a command, a script or an application file",
        "run": "queue a command, wait, show its output, exit with its code",
        "plan": "what would happen, if it were submitted; changes nothing",
        "extend": "another budget, date or time limit for jobs, with a reason",
        "stop": "end jobs for good",
        "hold": "keep waiting jobs from starting",
        "release": "let held jobs start",
        "requeue": "send running jobs back to the queue",
        "suspend": "freeze running jobs",
        "resume": "let suspended jobs go on",
        "take": "answer for jobs whose owner has left",
        "adopt": "say what jobs are for that others submitted to Slurm, and who answers",
    },
    "Looking": {
        "ps": "the queue: what runs, what waits, and why",
        "show": "everything about a job",
        "logs": "what a job wrote",
        "why": "why a job waits, when it will start, what would start it sooner",
        "where": "rack, node, GPU and process of a job; or the map and what every GPU does",
        "top": "the place and its jobs, live on the terminal",
        "use": "what was held and what of it was used, by team, owner, job or GPU",
        "advise": "requests that are far from what was measured, and what to ask for",
        "node": "the nodes, what they have and who holds it; drain and resume them",
        "layout": "the map of racks, nodes and GPUs: found, drawn, checked, compared",
        "team": "the teams, what they own and hold",
        "web": "a link that opens Muster's pages, signed in as you",
        "whoami": "who the server takes you for",
    },
    "Answering": {
        "effort": "work of many jobs under one charter, and its story",
        "digest": "what needs an answer from you today, and what has happened",
        "attention": "what everybody is asked for: efforts, interruptions, questions",
        "review": "what consumes, by whom, defended or not; what stops when",
        "defend": "say why a job or an effort should go on, and until when",
        "revive": "bring back what was stopped",
    },
    "Serving": {
        "up": "start the server",
        "down": "stop the server; jobs go on",
        "agent": "on a node of Slurm's: meter its jobs, and tell the server",
        "token": "make a token for someone who comes over the network",
        "demo": "a simulated site to look around in",
        "simulate": "what would a policy do with these jobs?",
        "completion": "completion of verbs, options, jobs and nodes for your shell",
    },
}
VERBS = {verb: f"muster.cli.{verb}" for verbs in GROUPS.values() for verb in verbs}
VERBS.update(dict.fromkeys(("hold", "release", "requeue", "suspend", "resume"), "muster.cli.act"))
INTERRUPTED = 130  # as shells say that Ctrl-C ended it
NO_READER = 141  # and that whoever read the output has left


def main() -> None:
    """The entry of the ``muster`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know every letter
    sys.exit(_flushed(run(sys.argv[1:])))


def run(arguments: list[str]) -> int:
    """Runs a command line, and returns its exit code."""
    try:
        return _run(arguments)
    except MusterError as error:
        remark(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return NO_READER
    except SystemExit as done:  # argparse, after --help
        return int(done.code or 0)


def _run(arguments: list[str]) -> int:
    verb, *rest = arguments or ["--help"]
    if verb in ("-h", "--help", "help"):
        print(overview())
        return 0
    if verb in ("-V", "--version"):
        from muster import __version__

        print(f"muster {__version__}")
        return 0
    from muster.cli.parse import Parser, Usage, nearest

    if verb not in VERBS:
        what = "option" if verb.startswith("-") else "verb"
        raise Usage(f"unknown {what} {verb!r}; {nearest(verb, VERBS)} (see 'muster --help')")
    module = importlib.import_module(VERBS[verb])
    parser = Parser(verb)
    module.define(parser)
    given = parser.read(rest)
    code = int(module.run(given))
    _remind(verb, getattr(given, "output", "table"))
    return code


def _remind(verb: str, form: str) -> None:
    """On a terminal, that questions wait: the answers that came say so, and nothing is asked for it."""
    client = sys.modules.get("muster.client")
    count = client.Client.questions if client is not None else 0
    if not count or verb == "digest" or form not in ("table", "wide"):
        return
    if sys.stdout.isatty() and sys.stderr.isatty():
        from muster.cli.table import painted

        said = f"{count} question{'s' * (count > 1)} for you: muster digest"
        sys.stdout.flush()
        print(painted(said, "dim"), file=sys.stderr)


def overview() -> str:
    """All verbs, one line each."""
    lines = ["Usage: muster VERB …", "", "A compute resource manager for teams that share GPUs."]
    lines.append("Every job has an owner, a purpose and an end.")
    for title, verbs in GROUPS.items():
        lines += ["", title, *(f"  {verb:<11} {about}" for verb, about in verbs.items())]
    return "\n".join([*lines, "", "'muster VERB --help' tells more about a verb, with examples."])


def _flushed(code: int) -> int:
    """Says quietly that nobody reads any more; Python would complain about it while it ends."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or NO_READER
    return code
