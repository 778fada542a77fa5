"""The exits of all running work, looked at with every report and whenever time alone may meet one.

A *subject* is what ends: a job or an effort. A *source* is who reports: of a job itself, of an effort its
jobs.

- **Won by one, lost by all.** Success is met for whichever source meets it. Failure is met when every
  source that has reported, or was announced (``join``), meets it. Whether something stalls is asked of the
  best of all.
- **Success first.** What meets both at once is won. After that the subject is not looked at again.
- **Time is run time.** ``now`` is a steady clock, which nobody can set; it counts while the subject runs.
- **Nothing is ended by what was never told.** A metric that does not come is said (``silent``), and that is
  all.
- **A new attempt** (``restarted``) may begin at an earlier step: what its source told last, its steps and
  its streaks are forgotten, and the best is not.

What of a report counts is in ``take``, what holds when in ``looks``.

What time may meet stands in a heap, once for each subject, at the first moment at which something may turn
true. If a report changes that to a later one, it is found out then; so reports seldom touch the heap. It
makes no difference when ``due`` is called: a report lets what was due before it happen first.
"""

import heapq
from collections.abc import Mapping

import msgspec

from muster.model.errors import BadInput
from muster.model.units import show_seconds
from muster.steward.exits.compiled import Exits
from muster.steward.exits.looks import NEVER
from muster.steward.exits.memory import Memory, Source
from muster.steward.exits.take import adopt, take
from muster.steward.exits.terms import show_name
from muster.steward.exits.watched import Met, Watched
from muster.steward.exits.wrong import nearest

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Memory)


class Silent(msgspec.Struct, frozen=True):
    """A metric that an exit waits for has never come. Nothing ends by that."""

    subject: str
    metric: str
    sentence: str


class Board:
    """All subjects. It changes with what it is told, and reads no clock. Unknown subjects are passed over."""

    def __init__(self) -> None:
        self._watched: dict[str, Watched] = {}
        self._heap: list[tuple[float, str]] = []
        self._awaiting: dict[str, None] = {}  # subjects of which a metric has not come

    def __contains__(self, subject: str) -> bool:
        return subject in self._watched

    # --- A subject's life -------------------------------------------------------------------------

    def begin(self, subject: str, exits: Exits, ran_seconds: float, now: float) -> None:
        """It runs from now on, and has run for so long already."""
        self._enter(subject, exits, Memory(ran=ran_seconds), now)

    def restore(
        self, subject: str, exits: Exits, state: bytes, now: float, ran_seconds: float | None = None
    ) -> None:
        """It goes on where ``state`` was taken; ``ran_seconds``: it has run for so long meanwhile.

        ``BadInput`` if nobody can read that; then it may begin anew.
        """
        try:
            memory = _decoder.decode(state)
        except msgspec.MsgspecError as error:
            raise BadInput(f"what was kept of {subject} can't be read ({error}); begin it anew") from None
        memory.ran = max(memory.ran, ran_seconds or 0.0)
        self._enter(subject, exits, memory, now)

    def state(self, subject: str, now: float) -> bytes:
        """All that is known of it, to be restored."""
        watched = self._watched[subject]
        watched.advance(now)
        return _encoder.encode(watched.memory)

    def pause(self, subject: str, now: float) -> None:
        """Its time stands still."""
        if watched := self._watched.get(subject):
            watched.advance(now)
            watched.memory.runs = False
            watched.due_at = None

    def go_on(self, subject: str, now: float) -> None:
        if watched := self._watched.get(subject):
            watched.advance(now)
            watched.memory.runs = True
            self._stand(watched)

    def change(self, subject: str, exits: Exits, now: float) -> None:
        """Other exits. What was learned about metrics that both name is kept; the next report decides."""
        if watched := self._watched.get(subject):
            watched.advance(now)
            self._enter(subject, exits, watched.memory, now)

    def end(self, subject: str) -> None:
        self._watched.pop(subject, None)
        self._awaiting.pop(subject, None)

    def join(self, subject: str, source: str) -> None:
        """A job of an effort, which is not lost before this one has reported."""
        if watched := self._watched.get(subject):
            watched.memory.sources.setdefault(source, Source())

    def leave(self, subject: str, source: str) -> None:
        """The job has ended. What it told stays true; if it told nothing, nobody waits for it any more."""
        watched = self._watched.get(subject)
        if watched and source in watched.memory.sources and not watched.memory.sources[source].heard:
            del watched.memory.sources[source]

    def silent_sources(self, subject: str) -> list[str]:
        """Those that were announced, and have told nothing."""
        watched = self._watched.get(subject)
        return (
            [] if watched is None else [name for name, one in watched.memory.sources.items() if not one.heard]
        )

    def restarted(self, subject: str, source: str) -> None:
        """A new attempt of the source, whose steps may begin anew."""
        watched = self._watched.get(subject)
        if watched and source in watched.memory.sources:
            watched.memory.sources[source] = Source()

    def _enter(self, subject: str, exits: Exits, memory: Memory, now: float) -> None:
        adopt(memory, exits)
        watched = self._watched[subject] = Watched(subject, exits, memory, now)
        if memory.awaited:
            self._awaiting[subject] = None
        turn = watched.next_turn(memory.sources, memory.ran)
        memory.turns_at = min(memory.turns_at, turn)
        self._stand(watched)

    # --- What is met ------------------------------------------------------------------------------

    def report(
        self, subject: str, source: str, now: float, values: Mapping[str, float], step: float | None = None
    ) -> Met | None:
        """What a source tells; the exit that is met by it, or was by time before it."""
        watched = self._watched.get(subject)
        if watched is None or watched.memory.over:
            return None
        if watched.due_at is not None and watched.due_at <= now and (met := self._met_by_time(watched, now)):
            return met
        watched.advance(now)
        counts, alone = take(watched.memory, watched.exits, source, values, step)
        met = None
        if counts:
            met = watched.met_by(source)
            self._turn(watched, watched.next_turn((source,), watched.memory.ran))
        if met is None and alone is not None:
            met = watched.met_alone(source, alone)
        return met

    def due(self, now: float) -> list[Met]:
        """What time has met, the earliest first."""
        met = []
        while self._heap and self._heap[0][0] <= now:
            at, subject = heapq.heappop(self._heap)
            watched = self._watched.get(subject)
            if watched is not None and watched.due_at == at and (one := self._met_by_time(watched, now)):
                met.append(one)
        return met

    def next_due(self) -> float | None:
        """When ``due`` should be asked next; None: not before something else happens."""
        while self._heap:
            at, subject = self._heap[0]
            watched = self._watched.get(subject)
            if watched is not None and watched.due_at == at:
                return at
            heapq.heappop(self._heap)
        return None

    def _met_by_time(self, watched: Watched, now: float) -> Met | None:
        """Looks at each moment at which something may have turned true, in their order."""
        memory = watched.memory
        watched.advance(now)
        memory.ran = max(memory.ran, memory.turns_at)  # sums of seconds may be a hair short of it
        watched.due_at = None
        while memory.turns_at <= memory.ran:
            turn = memory.turns_at
            if met := watched.met_by_time(turn):
                return met
            memory.turns_at = watched.next_turn(memory.sources, turn)
        self._stand(watched)
        return None

    def _turn(self, watched: Watched, ran: float) -> None:
        if ran < watched.memory.turns_at:
            watched.memory.turns_at = ran
            self._stand(watched)

    def _stand(self, watched: Watched) -> None:
        """In the heap, where its next turn is; while time stands still, nowhere."""
        memory = watched.memory
        if memory.runs and not memory.over and memory.turns_at < NEVER:
            watched.due_at = watched.since + max(0.0, memory.turns_at - memory.ran)
            heapq.heappush(self._heap, (watched.due_at, watched.name))

    # --- What never came --------------------------------------------------------------------------

    def silent(self, now: float, patience_seconds: float) -> list[Silent]:
        """Metrics that have not come in so much run time; of each it is said once."""
        said = []
        for subject in list(self._awaiting):
            watched = self._watched[subject]
            watched.advance(now)
            memory = watched.memory
            for metric, since in memory.awaited.items():
                if metric not in memory.told and memory.ran - since >= patience_seconds and not memory.over:
                    memory.told.add(metric)
                    said.append(Silent(subject, metric, _unheard(metric, memory, memory.ran - since)))
            if memory.told >= memory.awaited.keys():
                del self._awaiting[subject]
        return said


def _unheard(metric: str, memory: Memory, seconds: float) -> str:
    name = show_name(metric)
    near = nearest(metric, memory.names)
    meant = ""
    if near is not None:
        meant = f"; {show_name(near)} was: is that meant?"
    elif memory.names:
        meant = f"; what was: {', '.join(sorted(memory.names)[:5])}"
    return (
        f"{name} has not been reported in {show_seconds(seconds)} of running, so nothing can end by it{meant}"
    )
