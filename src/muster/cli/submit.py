"""``muster submit``: queues a command, a script or an application file."""

import time
from argparse import Namespace

from muster.cli.asking import add_asking, body_of, submitted
from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage
from muster.cli.text import one_line, remark, safe_lines
from muster.cli.views import clock
from muster.client import Client, read_text
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

CAN_NEVER_RUN = 2
_ABOUT = """Queue a job: a command after --, a script (its #SBATCH and #MUSTER lines are read), or a file that
describes it. Options override what a script or a file says. In a terminal you are asked what it is for and
how it ends, if you have not said so; MUSTER_ASK=never asks nothing."""
_EXAMPLES = """
muster submit --gpus 1 --mem 8G --time 2h -- python train.py
muster submit --for "Does 8B beat 3B?" --success 'val_acc >= 0.92' --fail 'loss is nan' -- python train.py
muster submit train.sh
muster submit -f application.yaml --gpus 2
muster submit --array 1-100%5 --after-ok 12 --retry 3 -- ./step.sh
muster submit --each commands.txt --cpus 2
muster submit --param lr=1e-3,1e-4 --param seed=1,2,3 -- python train.py
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_asking(parser)
    each = "a job for each line of FILE, which is a shell command; - reads them from standard input"
    parser.add_argument("--each", metavar="FILE", help=each)
    parser.add_argument("--dry-run", action="store_true", help="say what would happen, and change nothing")
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    if given.each is not None:
        return _submit_each(given)
    body = body_of(given)
    with Client() as client:
        if given.dry_run:
            return show_forecast(client.post("/jobs?dry_run=true", body), given.output)
        view = submitted(client, body, given)
    warn(view)
    print(structured(view, given.output) or _said(view))
    return 0


def _submit_each(given: Namespace) -> int:
    """All lines or none."""
    if given.words or given.file or given.dry_run:
        raise Usage("--each has the commands; give no other command, no file and no --dry-run beside it")
    lines = [line for line in read_text(given.each).splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if not lines:
        raise BadInput(f"{given.each} has no commands; write one on each line")
    given.words, given.after_dashes = ["sh", "-c", lines[0]], True
    body = body_of(given)
    environment = body.pop("environment")
    bodies = [{**body, "command": ["sh", "-c", line]} for line in lines]
    with Client() as client:
        view = client.post("/submissions", {"jobs": bodies, "environment": environment})
    warn(view)
    ids = view["ids"]
    many = f"{len(ids):,} jobs, {ids[0]} to {ids[-1]}" if len(ids) > 1 else f"job {ids[0]}"
    said = "\n".join(ids) if given.output == "name" else structured(view, given.output)
    print(said or f"{many}, queued.  How are they? muster ps")
    return 0


def warn(view: "dict[str, Any]") -> None:
    """Says what of a request was passed over."""
    for warning in view.get("warnings") or ():
        remark(warning)


def show_forecast(forecast: "dict[str, Any]", form: str) -> int:
    print(structured(forecast, form) or safe_lines(forecast["text"]))
    return 0 if forecast["feasible"] else CAN_NEVER_RUN


def _said(view: "dict[str, Any]") -> str:
    """One line: its id, its name, how it stands, and where to look."""
    state = {"QUEUED": "queued", "HELD": "held until it is released"}.get(
        view["state"], view["state"].lower()
    )
    said = f"{view['id']} {one_line(view['name'])}  {state}" + (
        f" in {one_line(view['team'])}" if view["team"] else ""
    )
    array, estimate = view.get("array"), view.get("start_estimate")
    if array:
        said += f", {array['count']:,} members"
    if estimate:
        now = time.time()
        said += f". Likely starts {clock(estimate['earliest'], now)}–{clock(estimate['latest'], now)}"
    return f"{said}.  Why? muster why {view['id']}"
