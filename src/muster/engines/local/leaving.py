"""How long an attempt has when it is told to leave, and what it hears when.

At its time limit: some time before, the signal that it asked for; at the limit SIGTERM; after the grace
SIGKILL. An eviction can't be foreseen, but work is to be saved all the same: so the signal comes at once, and
the rest as much later as it would at the limit. A stop by a person comes with SIGTERM at once, unless it
leaves more time than the job's own grace; what is more is for the signal.
"""

from collections.abc import Iterable

from muster.engines.local import processes
from muster.engines.local.part import Part
from muster.engines.local.records import Entry

STOP, EVICT = "stop", "evict"


def grace_seconds(terms: Entry, kind: str) -> float:
    """Until SIGKILL. Who saves its work when it must leave has the time that it takes."""
    grace: float = terms["grace_seconds"]
    kept, notice = terms["checkpoint"], terms["notice"]
    if kind != EVICT:
        return grace
    warned = grace + (notice["before_seconds"] if notice is not None else 0.0)
    return max(warned, kept["save_seconds"] if kept is not None else 0.0)


def warning_seconds(terms: Entry, kind: str, grace: float) -> float:
    """From the signal that was asked for until SIGTERM; 0: there is no time for it, or it came before."""
    notice = terms["notice"]
    if notice is None or kind not in (STOP, EVICT):
        return 0.0
    wanted: float = notice["before_seconds"]
    spare: float = grace - terms["grace_seconds"]
    return max(0.0, min(wanted, spare))


def warn(parts: Iterable[Part], terms: Entry) -> None:
    """The programs. That of a script is what the script has started: a shell would die of it."""
    for part in parts:
        below = [p.pid for p in processes.everybody() if p.parent == part.pid]
        for pid in below if below and terms["is_script"] else [part.pid]:
            processes.send(pid, terms["notice"]["signal"])
