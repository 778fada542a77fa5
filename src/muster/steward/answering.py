"""Which facts answer which questions: whoever has acted is not asked again.

A question is about a subject, and of a kind. Its subject's end answers whatever was asked about it; the rest
is in a table. A kind that is not in it is answered by whatever a person decides about the subject.
"""

from muster.model.charter import Charter
from muster.model.events import Amended, Event, Exited, Released, Resumed, Withdrawn
from muster.model.message import Message
from muster.model.stewardship import (
    Defended,
    EffortAmended,
    EffortClosed,
    EffortGoesOn,
    Subject,
    of_effort,
    of_job,
)

ENDS: tuple[type[Event], ...] = (Exited, Withdrawn, EffortClosed)
_CHARTERED: tuple[type[Event], ...] = (Defended, Amended, EffortAmended)
_GOES_ON: tuple[type[Event], ...] = (Released, EffortGoesOn, Resumed)
ANSWERED_BY: dict[str, tuple[type[Event], ...]] = {
    "budget": (Amended, EffortAmended, Released, EffortGoesOn),
    "review": _CHARTERED,
    "silent": _CHARTERED,
    "finding": (Defended, Resumed),
}
ANSWERS: frozenset[type[Event]] = frozenset((*ENDS, *_CHARTERED, *_GOES_ON))


def subject_of(event: Event) -> Subject | None:
    """What a fact is about, if it may answer something."""
    if isinstance(event, Defended):
        return event.subject
    if isinstance(event, EffortClosed | EffortAmended | EffortGoesOn):
        return of_effort(event.effort)
    if isinstance(event, Exited | Withdrawn | Amended | Released | Resumed):
        return of_job(event.job)
    return None


def answer_to(message: Message, event: Event) -> str | None:
    """How a fact about its subject answers a question, in words; None if it does not."""
    charter: Charter | None = getattr(event, "charter", None)
    if charter is not None and charter.owner not in (None, message.to):
        return f"it is {charter.owner}'s now"
    kind, _, _ = message.kind.partition(":")  # a kind may have kinds of its own, such as finding:idle
    if not isinstance(event, (*ENDS, *ANSWERED_BY.get(kind, (*_CHARTERED, *_GOES_ON)))):
        return None
    return _in_words(event)


def _in_words(event: Event) -> str:
    by = getattr(event, "by", "")
    if isinstance(event, EffortClosed):
        return f"closed by {by} as {event.verdict}"
    if isinstance(event, Defended):
        return f"defended by {by}"
    if isinstance(event, Amended | EffortAmended):
        return f"changed by {by}"
    return "it has ended" if isinstance(event, Exited | Withdrawn) else "it goes on"
