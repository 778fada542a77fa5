"""Where reports come from.

A source is looked at again and again while its attempt runs, and says what is new. It knows how far it has
come, as a small value that is stored in the same transaction as the reports: so a server that is killed and
started again neither loses a report nor counts one twice.
"""

from typing import Protocol

from muster.model.report import Report, numbers_in

__all__ = ["Report", "Source", "numbers_in"]


class Source(Protocol):
    """One place in which one attempt tells how it is doing.

    Made with the position at which an earlier one stood, or b"" to begin at the beginning. Whatever it reads
    belongs to the job's user, who may put anything there: it must neither wait for ever nor take for ever,
    nor follow a link out of its place, and what it can't read it passes over. ``poll`` does not raise for
    that.
    """

    may_block: bool  # on the network: then it is polled in a thread of its own kind, and never for long
    least_seconds: float  # between two polls, however soon somebody wants to know; 0.0: as often as they like

    @property
    def position(self) -> bytes:
        """How far it has come, with all that it has handed out; at most a few kB."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether the last poll left something for the next, since a poll is bounded."""
        ...

    def poll(self, now: float, *, last: bool = False) -> list[Report]:
        """What is new, in order. ``last``: the attempt is over, and what is not finished never will be."""
        ...
