"""``muster run``: queues a command, waits for it, shows what it writes, and exits with its code.

Ctrl-C is passed on as a stop, a second one as a stop at once; what the job still writes is shown until it has
ended. If the server is restarted meanwhile, the output goes on where it was.
"""

import signal
import sys
import time
from argparse import Namespace
from types import FrameType

from muster.cli.asking import add_asking, body_of, is_attended, submitted
from muster.cli.parse import Parser
from muster.cli.submit import warn
from muster.cli.text import remark
from muster.client import Client, NoServer
from muster.model.errors import BadInput, MusterError

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """Queue a job, wait for it, show its output as it comes, and exit with its exit code
(128 + N if signal N ended it). Ctrl-C stops the job; twice: at once."""
_EXAMPLES = """
muster run -- pytest -x
muster run --gpus 1 --time 10m -- python check.py
"""
_PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 0.2
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_asking(parser)


def run(given: Namespace) -> int:
    if given.array or given.param:
        raise BadInput("run waits for one job; submit an array or a sweep with: muster submit")
    body = {**body_of(given), "attended": is_attended()}
    with Client() as client:
        view = submitted(client, body, given)
        warn(view)
        stopper = _Stopper(str(view["id"]))
        before = {number: signal.signal(number, stopper) for number in _PASSED_ON}
        try:
            _show_output(client, str(view["id"]))
            view = client.wait(str(view["id"]))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return stopper.exit_code or exit_code(view)


class _Stopper:
    """Passes signals on to the job. It asks over a connection of its own: it may interrupt an answer."""

    def __init__(self, job: str) -> None:
        self.exit_code = 0
        self._job = job

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        again, self.exit_code = bool(self.exit_code), 128 + number
        because = f"muster run was told to end ({signal.Signals(number).name})"
        try:
            with Client(timeout_seconds=10) as client:
                client.stop(self._job, because=because, grace_seconds=0.0 if again else None)
        except MusterError as error:
            remark(f"job {self._job} could not be stopped: {error}")
            return
        remark(f"stopping job {self._job}" + ("" if again else "; Ctrl-C again stops it at once"))


def _show_output(client: Client, job: str) -> None:
    """Everything the job writes, until it has ended."""
    shown, seen_at = 0, time.monotonic()
    while True:
        try:
            for chunk in client.logs(job, follow=True, offset=shown):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
                shown += len(chunk)
                seen_at = time.monotonic()
        except NoServer:
            if time.monotonic() - seen_at > _PATIENCE_SECONDS:
                raise
            time.sleep(_AGAIN_SECONDS)
        else:
            return


def exit_code(view: "dict[str, Any]") -> int:
    """As the job's process would have given it; a sentence says what the code alone does not."""
    if view["outcome"] == "SUCCEEDED":
        return 0
    if view["outcome"] != "FAILED":
        ended = str(view["outcome"]).lower().replace("_", " ")
        remark(f"job {view['id']}: {ended}" + (f": {view['reason']}" if view["reason"] else ""))
    if view["signal"]:
        return 128 + int(view["signal"])
    return int(view["exit_code"] or 1)
