"""The job's life as a table: what leads where, and what can't happen."""

import pytest

from muster.model.errors import IllegalTransition
from muster.model.events import (
    Event,
    Evicting,
    Exited,
    Held,
    Outcome,
    Placed,
    Promised,
    Released,
    Resumed,
    Started,
    Stopping,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.state import TRANSITIONS, State, after, diagram

EVENTS: list[Event] = [
    Held(0.0, "j"),
    Released(0.0, "j"),
    Withdrawn(0.0, "j"),
    Promised(0.0, "j"),
    Placed(0.0, "j", 1, ()),
    Started(0.0, "j", 1),
    Suspended(0.0, "j", 1),
    Resumed(0.0, "j", 1),
    Evicting(0.0, "j", 1, "priority"),
    Stopping(0.0, "j", 1, "asked"),
    Exited(0.0, "j", 1, Outcome.SUCCEEDED),
    Vacated(0.0, "j", 1, "node lost"),
]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_leads_where_the_table_says_or_is_refused(state: State, event: Event) -> None:
    expected = TRANSITIONS.get((state, type(event)))
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"a job that is {state} can't be"):
            after(state, event)
    else:
        assert after(state, event) is expected


def test_nothing_follows_the_end() -> None:
    assert not [source for source, _ in TRANSITIONS if source is State.ENDED]


def test_every_state_can_be_reached_and_left_for_the_end() -> None:
    reached = {State.QUEUED, State.HELD, *TRANSITIONS.values()}
    assert reached == set(State)
    for state in set(State) - {State.ENDED}:
        assert State.ENDED in _reachable(state)


def _reachable(start: State) -> set[State]:
    seen, new = set(), {start}
    while new:
        seen |= new
        new = {target for (source, _), target in TRANSITIONS.items() if source in seen} - seen
    return seen


def test_whoever_has_seats_can_lose_its_node_and_be_stopped() -> None:
    for state in (State.STARTING, State.RUNNING, State.SUSPENDED, State.STOPPING):
        assert TRANSITIONS[state, Vacated] is State.QUEUED
        assert TRANSITIONS[state, Stopping] is State.STOPPING


def test_the_diagram_draws_every_change() -> None:
    drawn = diagram()
    assert drawn.startswith("stateDiagram-v2\n")
    for (source, event), target in TRANSITIONS.items():
        if source is not target:
            line = next(x for x in drawn.splitlines() if f" {source} --> {target}:" in x)
            assert event.__name__ in line
