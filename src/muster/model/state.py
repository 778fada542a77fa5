"""The job's life, as one table. What is not in it can't happen: it raises and changes nothing."""

import enum

from muster.model.errors import IllegalTransition
from muster.model.events import (
    Amended,
    Event,
    Evicting,
    Exited,
    Found,
    Held,
    Placed,
    Promised,
    Released,
    Reported,
    Resumed,
    Retried,
    Seated,
    Started,
    StoodDown,
    Stopping,
    Suspended,
    Vacated,
    Withdrawn,
)


class State(enum.StrEnum):
    HELD = "HELD"
    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    STOPPING = "STOPPING"
    ENDED = "ENDED"


TRANSITIONS: dict[tuple[State, type[Event]], State] = {
    (State.HELD, Released): State.QUEUED,
    (State.HELD, Withdrawn): State.ENDED,
    (State.QUEUED, Held): State.HELD,
    (State.QUEUED, Withdrawn): State.ENDED,
    (State.QUEUED, Promised): State.QUEUED,
    (State.QUEUED, Placed): State.STARTING,
    (State.STARTING, StoodDown): State.QUEUED,
    (State.STARTING, Seated): State.STARTING,
    (State.STARTING, Started): State.RUNNING,
    (State.STARTING, Evicting): State.STOPPING,
    (State.STARTING, Stopping): State.STOPPING,
    (State.STARTING, Exited): State.ENDED,
    (State.STARTING, Vacated): State.QUEUED,
    (State.STARTING, Retried): State.QUEUED,
    (State.RUNNING, Suspended): State.SUSPENDED,
    (State.RUNNING, Evicting): State.STOPPING,
    (State.RUNNING, Stopping): State.STOPPING,
    (State.RUNNING, Exited): State.ENDED,
    (State.RUNNING, Vacated): State.QUEUED,
    (State.RUNNING, Retried): State.QUEUED,
    (State.RUNNING, Reported): State.RUNNING,
    (State.RUNNING, Found): State.RUNNING,
    (State.SUSPENDED, Found): State.SUSPENDED,
    (State.STOPPING, Found): State.STOPPING,
    (State.SUSPENDED, Resumed): State.RUNNING,
    (State.SUSPENDED, Evicting): State.STOPPING,
    (State.SUSPENDED, Stopping): State.STOPPING,
    (State.SUSPENDED, Exited): State.ENDED,
    (State.SUSPENDED, Vacated): State.QUEUED,
    (State.SUSPENDED, Retried): State.QUEUED,
    (State.STOPPING, Seated): State.STOPPING,
    (State.STOPPING, Started): State.STOPPING,  # it was told to leave before it said it had begun
    (State.STOPPING, Reported): State.STOPPING,
    (State.STOPPING, Stopping): State.STOPPING,  # an eviction may become a stop for good
    (State.STOPPING, Exited): State.ENDED,
    (State.STOPPING, Vacated): State.QUEUED,
    **{(state, Amended): state for state in State if state is not State.ENDED},
}


def after(state: State, event: Event) -> State:
    """The state that ``event`` leads to."""
    try:
        return TRANSITIONS[state, type(event)]
    except KeyError:
        raise IllegalTransition(f"a job that is {state} can't be {type(event).__name__}") from None


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (source, event), target in TRANSITIONS.items():
        if source is not target:
            arrows.setdefault((source, target), []).append(event.__name__)
    lines = [
        "stateDiagram-v2",
        "    [*] --> QUEUED: Submitted",
        "    [*] --> HELD: Submitted, held",
    ]
    for (source, target), names in arrows.items():
        lines.append(f"    {source} --> {target}: {', '.join(names)}")
    return "\n".join([*lines, "    ENDED --> [*]"])
