"""``muster agent``: the meters of a node of Slurm's, told to a server elsewhere."""

import os
import sys
from argparse import Namespace

from muster.cli.parse import Parser, Usage, whole_number
from muster.cli.text import remark
from muster.client import Client, read_text
from muster.model.errors import BadInput, MusterError
from muster.wire import address

_ABOUT = """Meter the jobs that Slurm runs on this node, as Muster does on one machine: cpus, memory, GPUs,
disks, waits, and the node itself; and tell the server. As a service, run by root, it looks at all jobs of
the node; with --job at one, and ends with it. Without agents a server knows of a job what Slurm has measured:
cpu time and memory.

It runs until it is told to end; a server that is down is told again. MUSTER_URL says where the server is;
over the network the agent needs a token, which an admin makes with 'muster token NODES --role agent'."""
_EXAMPLES = """
MUSTER_URL=http://login1:7777 muster agent --token-file /etc/muster/agent.token
muster agent --job $SLURM_JOB_ID --detach
muster agent --node gpub001 --period 10
"""
_ANSWER_SECONDS = 10.0
_LONGEST_PERIOD_SECONDS = 600


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("--job", metavar="NUMBER", type=whole_number(1), help="only this job of Slurm's; end when it is over")
    add(
        "--node",
        metavar="NAME",
        help="as Slurm calls it (default: SLURMD_NODENAME, or the host's short name)",
    )
    add("--token-file", metavar="FILE", help="where the token is (default: it is in MUSTER_TOKEN)")
    add(
        "--period",
        metavar="SECONDS",
        type=whole_number(1),
        help="how often to look (default: as the server does)",
    )
    add(
        "--detach",
        action="store_true",
        help="return at once and go on in the background, as a prolog needs it",
    )
    add("--log", metavar="FILE", help="with --detach: where to write what goes wrong (default: nowhere)")


def run(given: Namespace) -> int:
    if given.log is not None and not given.detach:
        raise Usage("--log goes with --detach (see 'muster agent --help')")
    if given.period is not None and given.period > _LONGEST_PERIOD_SECONDS:
        raise Usage(
            f"--period is {_LONGEST_PERIOD_SECONDS} seconds at most; what was used is shown as it is now"
        )
    token = _token(given.token_file)
    _check_address(token)
    if given.detach:
        return _detached(given)
    from muster.agent.run import Wanted
    from muster.agent.run import run as be_agent

    wanted = Wanted(given.node or _own_name(), given.job, given.period)
    with Client(token=token, timeout_seconds=_ANSWER_SECONDS) as client:
        return be_agent(wanted, client, remark)


def _token(path: str | None) -> str | None:
    if path is None:
        return os.environ.get("MUSTER_TOKEN") or None
    token = read_text(path).strip()
    if not token or len(token.split()) > 1:
        raise BadInput(f"{path} has no token in it; write one there with: muster token NODES --role agent")
    return token


def _check_address(token: str | None) -> None:
    """What would be found out at the first word, before a prolog is told that all is well."""
    where = address(os.environ.get("MUSTER_URL"))
    if where.host and token is None:
        raise MusterError(
            f"the server at {where} hears nobody without a token; an admin makes one with "
            "'muster token NODES --role agent', and --token-file or MUSTER_TOKEN says what it is"
        )


def _own_name() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]


def _detached(given: Namespace) -> int:
    """Another process, of its own session and with nothing of the caller's open."""
    import subprocess

    file = None if given.token_file is None else os.path.abspath(given.token_file)
    said = {"--job": given.job, "--node": given.node, "--token-file": file, "--period": given.period}
    words = [f"{name}={value}" for name, value in said.items() if value is not None]
    try:
        with open(given.log or os.devnull, "ab") as out:
            subprocess.Popen(
                [sys.executable, "-m", "muster", "agent", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd="/",
            )
    except OSError as error:
        raise BadInput(f"{error.filename} can't be used: {error.strerror}") from None
    return 0
