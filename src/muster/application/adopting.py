"""What a script that was given to another scheduler says to Muster: the charter in its ``#MUSTER`` lines."""

from muster.application.build import charter_of
from muster.application.own_lines import read_own
from muster.model.charter import Charter


def charter_in(text: str, name: str, now: float) -> Charter:
    """Empty where it says nothing. What else it asks for, it has asked of the other."""
    return charter_of(read_own(text, name, now), None, now)
