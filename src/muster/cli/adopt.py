"""``muster adopt``: says what jobs are for that others submitted to Slurm, and who answers for them."""

from argparse import Namespace

from muster.cli.act import on_each
from muster.cli.parse import JOB, Parser, Usage
from muster.cli.text import one_line
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """Jobs that people gave to Slurm themselves are seen, measured and reviewed like any other; only
what they are for, nobody has said. This gives them a charter, and somebody who answers for them: who
submitted them, unless another is named or they have left. A script can say it itself, in #MUSTER lines.
Without a job, those are listed that nobody has spoken for."""
_EXAMPLES = """
muster adopt
muster adopt s1234 --for "Does 8B beat the 3B baseline?" --success "val_acc >= 0.92"
muster adopt s1234 s1235 --for "Nightly evaluation of the release" --until 2026-12-01 --owner ana
muster adopt s1234 --effort llama-eval
muster adopt --all --for "Sweep of learning rates for the paper" --budget 200GPUh
"""
_OPTIONS = ("for", "success", "failure", "until", "budget", "owner", "effort")


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("jobs", metavar=JOB, nargs="*", help="a job or an array of Slurm's, as muster ps shows it: s1234")
    add("--all", action="store_true", help="all of yours that nobody has spoken for")
    add("--for", metavar="PURPOSE", help="in one sentence, what you will know when it is done")
    add("--success", metavar="CONDITION", action="append", help="ends it as won; may be repeated")
    add("--failure", "--fail", metavar="CONDITION", action="append", help="ends it as lost; may be repeated")
    add("--until", metavar="DATE", help="the date by which it ends, like 2026-12-01 or +7d")
    add("--budget", metavar="B", help="what it may cost in all, like '200 GPUh'")
    add("--owner", metavar="NAME", help="who answers for it")
    add("--effort", metavar="NAME", help="the effort that it is part of, from now on")


def run(given: Namespace) -> int:
    options = {key: getattr(given, key) for key in _OPTIONS if getattr(given, key) is not None}
    if given.all and given.jobs:
        raise Usage("name jobs, or say --all (see 'muster adopt --help')")
    if options and not (given.jobs or given.all):
        raise Usage("name the jobs that this is about, or say --all (see 'muster adopt --help')")
    if (given.jobs or given.all) and not options:
        raise Usage("say what it is for, like --for \"Does 8B beat 3B?\" (see 'muster adopt --help')")
    with Client() as client:
        found = [] if given.jobs else _unspoken(client)
        if not options:
            return _list(found)
        me = client.whoami()["name"] if given.all else None
        jobs = given.jobs or [job["id"] for job in found if job["owner"] == me]
        if not jobs:
            print("Nobody has to speak for any of yours.")
        return on_each(jobs, lambda job: _adopt(client, job, options))


def _unspoken(client: Client) -> "list[dict[str, Any]]":
    """One for each array."""
    views = [view for view in client.jobs() if view.get("adopted") and not view.get("purpose")]
    return list({_whole(view): {**view, "id": _whole(view)} for view in views}.values())


def _whole(view: "dict[str, Any]") -> str:
    return str(view["id"]).partition("_")[0]


def _list(found: "list[dict[str, Any]]") -> int:
    for job in found:
        print(one_line(f"{job['id']} {job['name']}  is {job['owner']}'s, and nobody has said what it is for"))
    if found:
        print(f'Say it with: muster adopt {found[0]["id"]} --for "…"')
    else:
        print("Of all that others submitted, somebody has said what it is for.")
    return 0


def _adopt(client: Client, job: str, options: "dict[str, object]") -> None:
    view = client.adopt(job, options)
    print(one_line(f"{view['id']} {view['name']}  is adopted; {view['answers']} answers for it."))
