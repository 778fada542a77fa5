"""What a charter's exits are, and the verdict of work that ended without being told to."""

import logging

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.steward.exits.compiled import Exits, exits_of

log = logging.getLogger("muster")


def has_exits(charter: Charter) -> bool:
    return bool(charter.success or charter.failure)


def exits_in(charter: Charter) -> Exits:
    """None of them, if an older version took what this one does not understand."""
    try:
        return exits_of(charter)
    except BadInput as error:
        log.warning("%s; it ends nothing", error)
        return Exits()


def by_itself(charter: Charter, outcome: Outcome, *, reported: bool) -> tuple[Verdict | None, str]:
    """Of who ended without being told to: it did not reach what it said it would, or its time was over."""
    if outcome is Outcome.TIMEOUT and charter.purpose is not None:
        return Verdict.OUT_OF_TIME, "its time limit was reached"
    if outcome is Outcome.SUCCEEDED and charter.success and reported:
        return Verdict.LOST, f"it ended, and {' or '.join(charter.success)} was never met"
    return None, ""
