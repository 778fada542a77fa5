"""Defended, habit or forgotten: ordered rules, of which the first that applies says so in a sentence.

1.  A *defence* whose end is still to come, by somebody who is still there: **defended**.
2.  It is not Muster's: **forgotten**.
3.  Nobody is named who answers for it, or who did has left: **forgotten**.
4.  Its effort is closed, and with it the question: **defended**.
5.  The *same work again*: this owner, this kind of name and this purpose were there in the period before as
    well, it was submitted anew since, and it never won: **habit**. That its charter is in order does not
    help: last week's answer is not this week's. What merely goes on since then is none; what has ended by
    itself stays one, and there is nothing to stop.
6.  Nobody said what it is for, or how it ends: **forgotten**.
7.  Its date has passed, or its budget is spent: **forgotten**.
8.  Whoever answers for it was asked, and has been silent for long: **forgotten**.
9.  Its charter holds: **defended**.

What is measured is evidence for people and decides nothing here: no meter's word, and no meter's silence,
makes anything undefended.
"""

from collections.abc import Callable

from msgspec.structs import replace

from muster.model.charter import Charter
from muster.model.job import JobId
from muster.model.stewardship import Subject, of_job
from muster.steward.review.items import Consumer, Item, Kind, World, gathered, submissions

SPENT = "its budget is spent"

Said = tuple[Kind, str]
Rule = Callable[[Item, World], Said | None]


def reviewed(world: World) -> tuple[Item, ...]:
    """All items, the largest first: by GPU time held, then by cpu time."""
    return tuple(sorted((judged(item, world) for item in gathered(world)), key=_largest))


def judged(item: Item, world: World) -> Item:
    kind, because = next(said for rule in _RULES if (said := rule(item, world)) is not None)
    stops = () if kind is Kind.DEFENDED else _stops(item, kind, world)
    return replace(item, kind=kind, because=because, stops=stops)


def judged_again(item: Item, world: World) -> Item:
    """With what people have said since."""
    kind, _, name = item.subject.partition(":")
    if kind == "effort":
        effort = world.efforts[name]
        item = replace(item, charter=effort.charter, purpose=effort.charter.purpose, owner=effort.owner)
    key = item.subject if kind == "effort" else item.consumers[0].work
    return judged(replace(item, defences=tuple(world.defences.get(key, ()))), world)


def _largest(item: Item) -> tuple[int, int, Subject]:
    held = item.usage.held
    return (-held.gpus_milli, -held.cpus_milli, item.subject)


def _stops(item: Item, kind: Kind, world: World) -> tuple[JobId, ...]:
    """What lives of it. Of several submissions, one whose own charter holds is not dragged along."""
    living = [one for one in item.consumers if one.is_living and not one.is_spared]
    if kind is Kind.FORGOTTEN and item.subject.startswith("work:") and not _lost_its_owner(item, world):
        living = [one for one in living if not _has_terms(one, world)]
    return tuple(one.job for one in living)


def _has_terms(one: Consumer, world: World) -> bool:
    left = world.budget_left.get(of_job(one.job))
    return bool(one.charter.purpose and one.has_end and not _is_over(one.charter, world.wall)) and (
        left is None or left > 0
    )


def _lost_its_owner(item: Item, world: World) -> bool:
    return not item.owner or item.owner in world.away or item.owner in world.silent


# --- The rules ------------------------------------------------------------------------------------------


def _is_defended(item: Item, world: World) -> Said | None:
    standing = [one for one in item.defences if one.until > world.wall and one.by not in world.away]
    if not standing:
        return None
    return Kind.DEFENDED, f"{standing[-1].by} defends it: {standing[-1].because}"


def _is_foreign(item: Item, _: World) -> Said | None:
    return (Kind.FORGOTTEN, "it was not started by Muster") if item.foreign is not None else None


def _has_no_owner(item: Item, world: World) -> Said | None:
    if not item.owner:
        return Kind.FORGOTTEN, "nobody is named who answers for it"
    if item.owner in world.away:
        return Kind.FORGOTTEN, f"its owner {item.owner} is not here any more"
    return None


def _is_closed(item: Item, world: World) -> Said | None:
    kind, _, name = item.subject.partition(":")
    if kind != "effort" or world.efforts[name].is_open:
        return None
    return Kind.DEFENDED, f"its effort is closed: {world.efforts[name].verdict}"


def _is_habit(item: Item, world: World) -> Said | None:
    earlier = world.before.get(item.subject, frozenset())
    is_again = (
        item.subject.startswith("work:") and earlier and any(c.job not in earlier for c in item.consumers)
    )
    if not is_again or item.subject in world.won:
        return None
    count = len(submissions(item, world))
    return Kind.HABIT, f"the same again, submitted {count} times with no new purpose, and it never won"


def _is_unsaid(item: Item, _: World) -> Said | None:
    if not item.purpose:
        return Kind.FORGOTTEN, "nobody said what it is for"
    living = (one for one in item.consumers if one.is_living)  # what has ended has had its end
    has_end = item.charter.has_end if _is_effort(item) else all(one.has_end for one in living)
    return None if has_end else (Kind.FORGOTTEN, "nobody said how it ends")


def _is_past(item: Item, world: World) -> Said | None:
    if item.budget_left is not None and item.budget_left <= 0:
        return Kind.FORGOTTEN, SPENT
    living = [one.charter for one in item.consumers if one.is_living]
    charters = [item.charter] if _is_effort(item) else living
    is_past = any(_is_over(charter, world.wall) for charter in charters)
    return (Kind.FORGOTTEN, "its date has passed") if is_past else None


def _is_silent(item: Item, world: World) -> Said | None:
    if item.owner not in world.silent:
        return None
    return Kind.FORGOTTEN, f"{item.owner} was asked, and has not called for long"


def _holds(item: Item, _: World) -> Said:
    return Kind.DEFENDED, f"{item.owner} answers for it, within its charter"


_RULES: tuple[Rule, ...] = (
    _is_defended,
    _is_foreign,
    _has_no_owner,
    _is_closed,
    _is_habit,
    _is_unsaid,
    _is_past,
    _is_silent,
    _holds,
)


def _is_effort(item: Item) -> bool:
    return item.subject.startswith("effort:")


def _is_over(charter: Charter, wall: float) -> bool:
    return charter.until is not None and charter.until <= wall
