"""Slurm's states → Muster's.

A job has one state and any number of flags. A flag that says more than the state (it is COMPLETING,
whatever it ended as) decides; of several, the first in the table. 22.05 tells a flag alone. A word that
is not in the tables makes the whole unknown (``state`` None): nothing follows from it, and it is
reported once.
"""

from functools import lru_cache

import msgspec

from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.reasons import HOLDS
from muster.model.events import Outcome
from muster.model.node import Health
from muster.model.state import State

STATES: dict[str, tuple[State, Outcome | None]] = {
    "PENDING": (State.QUEUED, None),  # or HELD, by its reason
    "RUNNING": (State.RUNNING, None),
    "SUSPENDED": (State.SUSPENDED, None),
    "COMPLETED": (State.ENDED, Outcome.SUCCEEDED),
    "CANCELLED": (State.ENDED, Outcome.STOPPED),
    "FAILED": (State.ENDED, Outcome.FAILED),
    "TIMEOUT": (State.ENDED, Outcome.TIMEOUT),
    "NODE_FAIL": (State.ENDED, Outcome.NODE_LOST),
    "PREEMPTED": (State.ENDED, Outcome.STOPPED),
    "BOOT_FAIL": (State.ENDED, Outcome.NODE_LOST),
    "DEADLINE": (State.ENDED, Outcome.TIMEOUT),
    "OUT_OF_MEMORY": (State.ENDED, Outcome.OUT_OF_MEMORY),
}

# In order of what says most. None: the state decides.
FLAGS: dict[str, State | None] = {
    "COMPLETING": State.STOPPING,  # over or requeued, but its nodes are not clean yet
    "STAGE_OUT": State.STOPPING,  # its results are being carried away
    "REVOKED": State.ENDED,  # another cluster of the federation runs it
    "SPECIAL_EXIT": State.HELD,
    "REQUEUE_HOLD": State.HELD,
    "RESV_DEL_HOLD": State.HELD,  # its reservation was deleted
    "REQUEUED": State.QUEUED,
    "REQUEUE": State.QUEUED,
    "REQUEUE_FED": State.QUEUED,
    "CONFIGURING": State.STARTING,  # its nodes are being made ready, or booted
    "POWER_UP_NODE": State.STARTING,
    "STOPPED": State.SUSPENDED,  # by SIGSTOP: it keeps its cpus
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "LAUNCH_FAILED": None,
    "RECONFIG_FAIL": None,
    "UPDATE_DB": None,
    "EXPEDITING": None,
}
_ONLY_RUNNING = frozenset(("RESIZING", "SIGNALING", "STOPPED", "CONFIGURING", "POWER_UP_NODE"))
_VACATED = frozenset(("PREEMPTED", "REQUEUED", "REQUEUE", "REQUEUE_FED"))

NODE_STATES: dict[str, Health] = {
    "IDLE": Health.UP,
    "MIXED": Health.UP,
    "ALLOCATED": Health.UP,
    "FUTURE": Health.DOWN,
    "DOWN": Health.DOWN,
    "ERROR": Health.DOWN,
}
NODE_FLAGS: dict[str, Health | None] = {
    "NOT_RESPONDING": Health.DOWN,
    "FAIL": Health.DOWN,
    "INVALID_REG": Health.DOWN,
    "POWERED_DOWN": Health.DOWN,
    "POWERING_DOWN": Health.DOWN,
    "POWER_DOWN": Health.DOWN,
    "REBOOT_ISSUED": Health.DOWN,
    "DYNAMIC_FUTURE": None,
    "DYNAMIC_NORM": None,
    "DRAIN": Health.DRAINED,
    "UNDRAIN": None,
    "MAINTENANCE": Health.DRAINED,  # nothing starts but what belongs to the maintenance
    "REBOOT_REQUESTED": Health.DRAINED,
    "POWER_DRAIN": Health.DRAINED,
    "POWERING_UP": Health.DRAINED,
    "POWER_UP": None,
    "RESERVED": None,  # for some: that is a question of who asks
    "PLANNED": None,
    "COMPLETING": None,
    "CLOUD": None,
    "RES": None,
    "RESUME": None,
    "NET": None,
    "BLOCKED": None,
    "EXTERNAL": None,
}
_HEALTH_ORDER = (Health.DOWN, Health.DRAINED, Health.UP)


class Standing(msgspec.Struct, frozen=True):
    """What a job's or an attempt's states mean. ``state`` None: not known, and nothing may follow from it."""

    state: State | None
    outcome: Outcome | None = None  # of one that has ended
    vacated: bool = False  # this try is over, the job is not
    unknown: tuple[str, ...] = ()


def job_standing(job: SlurmJob, notices: Notices) -> Standing:
    """Where a job of the queue stands. What is held is queued in Slurm's words, and tells by its reason."""
    found = _standing(job.states, notices)
    if found.state is State.QUEUED and _held(job):
        return Standing(State.HELD, vacated=found.vacated)
    return found


def _held(job: SlurmJob) -> bool:
    """By reason, or by the words that Slurm puts there instead. A priority of 0 is never scheduled."""
    return job.reason in HOLDS or job.detail in HOLDS or job.priority == 0


def attempt_standing(attempt: SlurmAttempt, notices: Notices) -> Standing:
    """Where one try stands: requeued or preempted, it is over, whatever becomes of its job."""
    found = _standing(attempt.states, notices)
    if found.state is None or _VACATED.isdisjoint(attempt.states):
        return found
    return Standing(State.ENDED, Outcome.STOPPED, vacated=True)


def _standing(words: tuple[str, ...], notices: Notices) -> Standing:
    found = _meaning(words)
    if found.unknown or not words:
        for word in found.unknown or ("",):
            notices.note("state", word, "answer")
    return found


@lru_cache(maxsize=1024)  # many jobs, few states
def _meaning(words: tuple[str, ...]) -> Standing:
    unknown = tuple([word for word in words if word not in STATES and word not in FLAGS])
    if unknown or not words:
        return Standing(None, unknown=unknown)
    said = [word for word in FLAGS if word in words] if len(words) > 1 or words[0] in FLAGS else []
    base = next((word for word in words if word in STATES), None)
    for flag in said:
        state = FLAGS[flag]
        if state is not None and not (flag in _ONLY_RUNNING and base not in (None, "RUNNING")):
            return Standing(state, Outcome.STOPPED if state is State.ENDED else None, state is State.QUEUED)
    return Standing(*STATES[base]) if base else Standing(None)


def node_health(node: SlurmNode, notices: Notices) -> Health | None:
    """Whether something can start there. None: not known, as of a node that has not registered yet."""
    found = []
    for word in node.states:
        if word not in NODE_STATES and word not in NODE_FLAGS:
            if word != "UNKNOWN":  # which is Slurm's own word for it
                notices.note("state", word, "list of nodes")
            return None
        found.append(NODE_STATES.get(word) or NODE_FLAGS.get(word))
    return next((health for health in _HEALTH_ORDER if health in found), None)


def word(states: tuple[str, ...]) -> str:
    """The one word that Slurm's own tables show: a flag before the state."""
    shown = (flag for flag, state in FLAGS.items() if flag in states and state is not None)
    return next(shown, states[0] if states else "")
