"""What somebody can do to a job or an effort as it is now; and where they can't, the sentence that says why.

The API decides in the end. This only spares people buttons that it would refuse.
"""

import msgspec

from muster.model.state import State
from muster.server.answers import EffortView, JobView
from muster.server.people import Person, may_act_on, may_take
from muster.server.service import Service

_RUNS = frozenset({State.STARTING, State.RUNNING, State.SUSPENDED})
_FROM = {
    "hold": frozenset({State.QUEUED}),
    "release": frozenset({State.HELD}),
    "requeue": _RUNS,
    "suspend": frozenset({State.RUNNING}),
    "resume": frozenset({State.SUSPENDED}),
    "stop": frozenset(State) - {State.ENDED},
}
_TERMS = ("extend", "defend")


class Acts(msgspec.Struct, frozen=True):
    """``can``: the verbs. ``said``: what there is to know about those that are missing."""

    can: frozenset[str] = frozenset()
    said: tuple[str, ...] = ()
    array: str | None = None  # that has the charter of this member
    effort: str | None = None  # by which this is defended
    revived_by: str | None = None


def acts_on_job(person: Person, view: JobView, service: Service) -> Acts:
    may = may_act_on(person, view.owner, view.team, service.fold.tenancy, view.answers)
    if view.state is State.ENDED:
        return _after_the_end(view, service, may=may)
    can = {verb for verb, states in _FROM.items() if may and states & _states(view)}
    can |= _taking(person, view, service, may=may)
    said = [] if may else [whose(view)]
    is_member = "_" in view.id
    if may and (beyond := service.beyond(service.members_of(view.id))) is not None:
        can -= _FROM.keys()
        said.append(f"{beyond[:1].upper()}{beyond[1:]}.")
    if may and view.adopted is not None:
        can -= _FROM.keys() - {"stop"}
        can |= set() if is_member else {"adopt"}
    effort = view.effort if view.effort in service.fold.stewardship.efforts else None
    if may and not is_member:
        can |= {"extend"} if effort else set(_TERMS)
    if may and view.state is State.STOPPING:
        said.append("It is on its way out.")
    return Acts(
        frozenset(can),
        tuple(said),
        view.id.partition("_")[0] if is_member and may else None,
        effort if may else None,
    )


def whose(view: JobView) -> str:
    return (
        f"This is {view.answers or view.owner}'s; only they, a lead of their team or an admin may act on it."
    )


def _states(view: JobView) -> set[State]:
    """Of an array, those of its members."""
    return {view.state} if view.counts is None else {State(name) for name in view.counts}


def _taking(person: Person, view: JobView, service: Service, *, may: bool) -> set[str]:
    owner, directory = view.answers or view.owner, service.directory
    is_forgotten = not owner or not directory.present(owner)
    allowed = may or may_take(person, view.team)
    is_free = is_forgotten and allowed and not person.is_called(owner) and "_" not in view.id
    return {"take"} if is_free else set()


def _after_the_end(view: JobView, service: Service, *, may: bool) -> Acts:
    """What its charter or a review has ended can come back; the rest is submitted anew."""
    found = service.fold.stewardship.reviews.stopped(view.id)
    if found is not None and found.revived_by is not None:
        return Acts(revived_by=found.revived_by)
    if found is None:
        return Acts(said=("It is over; submit it anew to run it again.",))
    return Acts(frozenset({"revive"})) if may else Acts(said=(whose(view),))


def acts_on_effort(person: Person, view: EffortView, service: Service) -> Acts:
    if view.verdict is not None:
        return Acts(frozenset({"note"}), ("It is closed; its story can still be added to.",))
    if not may_act_on(person, view.owner, view.team, service.fold.tenancy):
        joins = bool(view.team) and person.teams is not None and view.team in person.teams
        said = f"This is {view.owner}'s; only they, a lead of their team or an admin may act on it."
        return Acts(frozenset({"note"}) if joins else frozenset(), (said,))
    pausing = "pause" if view.paused is None else "resume"
    return Acts(frozenset({"note", "extend", "defend", "close", pausing}))
