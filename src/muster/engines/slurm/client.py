"""A cluster that Slurm runs, as the rest of the engine sees it: questions, and orders.

There are two ways to it that mean the same: Slurm's commands (``commands``), and slurmrestd (``rest``).
``connecting`` chooses; nobody else knows which it is. A pass asks once for each kind of thing (jobs, nodes,
partitions, reservations, attempts, use), whatever their number. Calls block: whoever must not wait for a slow
controller (about nine seconds, if it is dead) calls from a thread.

What both check before they speak is here.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from muster.engines.slurm.answers import (
    SlurmAttempt,
    SlurmJob,
    SlurmNode,
    SlurmPartition,
    SlurmReservation,
    SlurmUse,
)
from muster.engines.slurm.errors import Denied
from muster.engines.slurm.notices import Notices
from muster.model.errors import BadInput
from muster.model.units import MINUTE
from muster.model.usage import AtEnd

LIMIT_SECONDS = 60.0
LEVELS = ("Operator", "Administrator")
MOST_IDS = 1000  # in one command line
_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10}|\+[0-9]{1,10})?", re.ASCII)
_NODE = re.compile(r"[\w.-]{1,100}")
_VERBS = frozenset(("hold", "uhold", "release", "suspend", "resume", "requeue", "requeuehold"))
_SIGNAL = re.compile(r"[A-Z0-9]{1,10}", re.ASCII)
_OURS = ("HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR")
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_JSON": "compact"}  # 22.05 does not know the last
PASSED_ON = (*_OURS, *_SET)
"""What commands, and batch jobs before their script, find in their environment beside PATH and SLURM_CONF."""
Word = TypeVar("Word")


class Slurm(Protocol):
    """Every method raises ``SlurmError`` with one sentence, or ``BadInput``.

    ``read_only``: whatever would change something is refused here, whoever asks for it.
    """

    notices: Notices
    read_only: bool

    @property
    def way(self) -> str:
        """By what it is reached, in words."""

    def ready(self) -> None:
        """Raises what no waiting mends: nothing to call, or a configuration that can't be meant."""

    def close(self) -> None:
        """Let go of what is held to ask it."""

    # --- Questions ---

    def jobs(self) -> tuple[SlurmJob, ...]:
        """The whole queue, with those that ended lately."""

    def nodes(self) -> tuple[SlurmNode, ...]:
        """All nodes."""

    def partitions(self) -> tuple[SlurmPartition, ...]: ...

    def reservations(self) -> tuple[SlurmReservation, ...]: ...

    def attempts(self, since: float) -> tuple[SlurmAttempt, ...]:
        """All tries that were pending, running or ended after ``since``, of whoever lets us see them."""

    def named(self, names: Iterable[str], since: float) -> tuple[tuple[int, str, str], ...]:
        """What accounting has under these names, which are without commas and pipes: number, user, name."""

    def use(self, ids: Iterable[int]) -> tuple[SlurmUse, ...]:
        """What the steps of running jobs use: of one's own, or of all as root. Who is gone is left out."""

    def spent(self, ids: Iterable[int]) -> dict[int, AtEnd]:
        """What jobs that are over have used, as far as accounting knows them and lets us see them."""

    def topology(self) -> str:
        """What is near to what, as ``scontrol show topology`` tells it; empty where nobody has said."""

    def script(self, job: int | str) -> str | None:
        """The batch script of a job: of one's own, or of all as an operator. None: none, or not for us."""

    def is_operator(self) -> bool | None:
        """Whether this user may act on everybody's jobs; None: Slurm does not say now."""

    def kill_wait_seconds(self) -> float:
        """How long a job that is cancelled has between SIGTERM and SIGKILL."""

    def would_start(self, options: Sequence[str], script: str) -> float | None:
        """When Slurm would start it; nothing is submitted. None: it does not say."""

    # --- Orders ---

    def submit(self, options: Sequence[str], script: str) -> int:
        """Hand over a script with the options of sbatch; the id of the job.

        Whatever is raised but ``Refused`` and ``Denied``: look it up before trying again.
        """

    def limit(self, job: int, seconds: float | None) -> None:
        """Another time limit, in whole minutes; None: none. To allow more takes an operator."""

    def cancel(
        self, ids: Iterable[int | str], *, signal: str | None = None, steps_only: bool = False
    ) -> None:
        """Cancel, or send a signal to all of it, or to its steps and not to the script that has started them.

        What is over already, or unknown, is no error.
        """

    def control(self, verb: str, ids: Iterable[int | str]) -> None:
        """``hold``, ``release``, ``suspend``, ``resume``, ``requeue`` and the like."""

    def drain(self, node: str, because: str) -> None:
        """Nothing new starts there. For operators."""

    def undrain(self, node: str) -> None: ...


def environment(conf: str | None) -> dict[str, str]:
    """What is passed on of our own: little, and in a locale and zone that answers can be read in."""
    kept = {name: os.environ[name] for name in ("PATH", *_OURS) if name in os.environ}
    return {**kept, **_SET, **({"SLURM_CONF": conf} if conf else {})}


def batches(words: Iterable[Word]) -> Iterator[list[Word]]:
    """As many as one command takes."""
    rest = iter(words)
    while some := list(islice(rest, MOST_IDS)):
        yield some


def whole_minutes(seconds: float) -> int:
    """Slurm counts limits in them."""
    return max(1, math.ceil(seconds / MINUTE))


# --- Checks ----------------------------------------------------------------------------------------


def check_may_order(what: str, *, read_only: bool) -> None:
    if read_only:
        raise Denied(f"{what} is not called: this Muster only observes Slurm, and changes nothing there")


def checked_ids(ids: Iterable[int | str]) -> list[str]:
    listed = [str(one) for one in ids]
    for one in listed:
        if _ID.fullmatch(one) is None:
            raise BadInput(f"{one!r} is no job of Slurm; write it like 12, 12_3 or 12+1")
    if len(listed) > MOST_IDS:
        raise BadInput(f"{len(listed):,} jobs are too many for one command; {MOST_IDS:,} is the most")
    return listed


def checked_node(name: str) -> str:
    if _NODE.fullmatch(name) is None:
        raise BadInput(f"{name[:60]!r} is no name of a node")
    return name


def checked_signal(signal: str) -> str:
    if _SIGNAL.fullmatch(signal) is None:
        raise BadInput(f"{signal!r} is no signal; write it like USR1")
    return signal


def checked_verb(verb: str) -> str:
    if verb not in _VERBS:
        raise BadInput(f"{verb!r} is nothing to do with a job; known: {', '.join(sorted(_VERBS))}")
    return verb
