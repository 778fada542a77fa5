"""One subject on the board: how long it has run, what it has met, and when time may meet something.

Success is met for whichever source meets it, failure when all do: one of a sweep that diverges does not end
the sweep. Success is asked first.
"""

from collections.abc import Iterable

import msgspec

from muster.steward.exits.compiled import Exit, Exits, Verdict
from muster.steward.exits.looks import NEVER, Scene
from muster.steward.exits.memory import Memory, Source


class Met(msgspec.Struct, frozen=True):
    """An exit was met: the subject has ended, won or lost."""

    subject: str
    source: str  # who met it; of several, one of them
    verdict: Verdict
    condition: str
    sentence: str


class Watched:
    """A subject, while it is on the board."""

    __slots__ = ("due_at", "exits", "holdouts", "memory", "name", "since")

    def __init__(self, name: str, exits: Exits, memory: Memory, now: float) -> None:
        self.name = name
        self.exits = exits
        self.memory = memory
        self.since = now  # up to when its run time is counted
        self.due_at: float | None = None  # where it stands in the heap
        self.holdouts: dict[Exit, str] = {}  # who did not meet a failure when it was last asked

    def advance(self, now: float) -> None:
        """Time has passed. Should the clock ever go back, nothing is counted for that while."""
        if self.memory.runs:
            self.memory.ran += max(0.0, now - self.since)
        self.since = now

    def met_by(self, name: str) -> Met | None:
        """What the last report of this source has met: for itself, or for another by the best of all."""
        ran = self.memory.ran
        mine = self._scene(name)
        for one in self.exits.exits:
            by = name if one.look.holds(mine, ran) else self._anybody(one, ran) if one.is_shared else None
            if by is not None and self._suffices(one, by, ran):
                return self._met(one, by, self._scene(by), ran)
        return None

    def met_alone(self, name: str, report: Source) -> Met | None:
        """What a report has met that is looked at by itself.

        At no run time and with nothing remembered only tests without time can hold.
        """
        scene = Scene(report, {})
        for one in self.exits.exits:
            if one.look.holds(scene, 0.0) and self._suffices(one, name, self.memory.ran):
                return self._met(one, name, scene, 0.0)
        return None

    def met_by_time(self, ran: float) -> Met | None:
        """What holds at this run time, as things stand."""
        for one in self.exits.exits:
            by = self._anybody(one, ran)
            if by is not None and self._suffices(one, by, ran):
                return self._met(one, by, self._scene(by), ran)
        return None

    def _anybody(self, one: Exit, ran: float) -> str | None:
        return next((name for name in self.memory.sources if one.look.holds(self._scene(name), ran)), None)

    def _suffices(self, one: Exit, name: str, ran: float) -> bool:
        """Whether it is met with this source: one is enough to win, and all are needed to lose.

        Who held out the last time is asked first.
        """
        sources = self.memory.sources
        if one.verdict == "won" or len(sources) == 1:
            return True
        last = self.holdouts.get(one, name)
        for other in (last, *sources) if last in sources else sources:
            if other != name and not one.look.holds(self._scene(other), ran):
                self.holdouts[one] = other
                return False
        return True

    def _scene(self, name: str) -> Scene:
        return Scene(self.memory.sources[name], self.memory.bests)

    def _met(self, one: Exit, name: str, scene: Scene, ran: float) -> Met:
        self.memory.over = True
        sentence = f"{one.look.said(scene, ran)}, and {one.text} ends it as {one.verdict}"
        return Met(self.name, name, one.verdict, one.text, sentence)

    def next_turn(self, names: Iterable[str], ran: float) -> float:
        """The first run time after this at which time alone may turn something true for one of these."""
        turns = (leaf.turns_at(self._scene(name)) for name in names for leaf in self.exits.timed)
        return min((turn for turn in turns if turn > ran), default=NEVER)
