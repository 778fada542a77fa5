"""The stewarding step of the simulated quarter: the real rules look, people answer or do not, and the loop
is told.

Whatever ends goes the way that it goes in the server (``server.stewardship.ending``): as facts, with a
verdict. What people do is drawn from what is true: who is asked about work that is still useful defends
or extends it, if they see the question in time; who is asked about work that is not mostly lets it end.
What was stopped and was useful is a *false stop*; most are noticed, and revived with what was saved.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bench.quarter_charters import is_content
from bench.quarter_lives import Kind
from bench.quarter_people import (
    ANSWER_SECONDS,
    NOTICES_SECONDS,
    REVIVES,
    Person,
    after_working,
    has_left,
    works_at,
)
from bench.quarter_run import Stage, Track
from muster.model.charter import Charter, Verdict
from muster.model.events import Event, Stopping, Submitted
from muster.model.job import Job, JobId
from muster.model.plan import Action, Stop
from muster.model.units import MINUTE, WEEK
from muster.server.stewardship.ending import end

HONEST = 0.7  # of those asked about work that is no longer useful: they let it end; the others defend it
RESTART_SECONDS = 10 * MINUTE  # of work to be where a session was before it was stopped


class Stopped(msgspec.Struct):
    """One end that the steward made."""

    root: JobId
    at: float
    reason: str  # success, failure, budget, date, idle, review
    done_seconds: float  # of the run
    content: bool = False  # it was useful still, and its owner has what they wanted
    false: bool = False
    revived: bool = False


class Stewarding:
    """One steward over one stage."""

    def __init__(self, stage: Stage, answers: float) -> None:
        self.stage, self._answers = stage, answers
        self.world, self.notes = stage.world, stage.notes
        self.steps: list[Callable[[float], None]] = []  # what is looked at, in this order
        self.luck = np.random.default_rng((stage.world.seed, 8))
        self.stopped: list[Stopped] = []
        self.asked_at: list[float] = []  # each question to a person
        self._facts: list[Event] = []
        self.told: set[JobId] = set()  # at this look: they are on their way out
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._serial = itertools.count()

    # --- What the server's own functions ask for --------------------------------------------------

    def now(self) -> float:
        return self.stage.engine.now()

    def note(self, event: Event, *actions: Action) -> None:
        self._facts.append(event)
        for action in actions:
            self.stage.engine.act(action)

    def reaches(self, job: Job) -> bool:
        return job.adopted is None

    def order(self, action: Action) -> None:
        self.stage.engine.act(action)

    def expects(self) -> bool:
        return bool(self._due)

    # --- A look ------------------------------------------------------------------------------------

    def look(self, now: float) -> Sequence[Event]:
        self.told.clear()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2](now)
        for step in self.steps:
            step(now)
        facts, self._facts = self._facts, []
        return facts

    def is_going(self, track: Track) -> bool:
        """Whether it runs and was not told to end."""
        return track.job.id in self.notes.running and track.job.id not in self.told

    def going(self) -> list[Track]:
        return [track for track in self.notes.running.values() if track.job.id not in self.told]

    # --- Ends --------------------------------------------------------------------------------------

    def end(self, track: Track, now: float, verdict: Verdict | None, reason: str) -> None:
        """By its charter, or by a person if there is no verdict."""
        self.told.add(track.job.id)
        track.won = verdict is Verdict.WON
        job, attempt = track.job.id, track.attempt
        if verdict is None:
            self.note(Stopping(now, job, attempt, reason), Stop(job, attempt, reason))
        else:
            end(self, [self.stage.fold.records[job]], verdict, reason)
        self.was_stopped(track, now, reason)

    def was_stopped(self, track: Track, now: float, reason: str) -> None:
        done = track.done_seconds(now)
        stop = Stopped(track.work.job.id, now, reason, done)
        self.stopped.append(stop)
        if not self.is_useful(track, now):
            return
        stop.content = is_content(track.work.life, done)
        if not stop.content:
            stop.false = True
            self._missed(track, stop, now)

    def is_useful(self, track: Track, now: float) -> bool:
        """The truth, which only people know."""
        gone = has_left(self.world.people[track.job.owner], now) and not track.work.taken_over
        return not gone and track.work.life.is_useful_after(track.done_seconds(now))

    # --- People ------------------------------------------------------------------------------------

    def at(self, when: float, then: Callable[[float], None]) -> None:
        heapq.heappush(self._due, (when, next(self._serial), then))

    def ask(self, track: Track, now: float, then: Callable[[float], None]) -> None:
        """``then`` is called when the question is answered, if it ever is."""
        person = self._who_answers(track, now)
        self.asked_at.append(now)
        answer_at = after_working(now, self.luck.exponential(ANSWER_SECONDS))
        if self.luck.random() < self._answers and works_at(person, answer_at):
            self.at(answer_at, then)

    def _who_answers(self, track: Track, now: float) -> Person:
        """Its owner; if they have left, the first of their team who has not."""
        owner = self.world.people[track.job.owner]
        team = (one for one in self.world.people.values() if one.team == owner.team)
        if not has_left(owner, now):
            return owner
        return next((one for one in team if not has_left(one, now)), owner)

    def lets_it_end(self) -> bool:
        return bool(self.luck.random() < HONEST)

    def _missed(self, track: Track, stop: Stopped, now: float) -> None:
        """Somebody notices that it is gone: of a session when they come back to it."""
        life = track.work.life
        absence = life.idle_at(stop.done_seconds) if life.kind is Kind.SESSION else None
        noticed = after_working(now, self.luck.exponential(NOTICES_SECONDS))
        if absence is not None:
            noticed = now + absence[1] - stop.done_seconds
        if self.luck.random() < REVIVES:
            self.at(noticed, lambda at: self._revive(track, stop, at))

    def _revive(self, track: Track, stop: Stopped, now: float) -> None:
        """What is left of it is submitted anew, from what was saved, and its owner says until when."""
        if has_left(self.world.people[track.job.owner], now) and not track.work.taken_over:
            return
        stop.revived = True
        offset = self._saved(track, stop)
        left = track.work.run_seconds - offset
        purpose = f"Run {track.job.id} was stopped, and is needed."
        charter = Charter(track.job.owner, purpose, until=now + 3 * left + WEEK)
        job = msgspec.structs.replace(track.job, id=f"{track.job.id}+", submitted_at=now, charter=charter)
        self.stage.run_seconds[job.id] = left
        self.notes.tracks[job.id] = Track(track.work, job, offset_seconds=offset)
        self.stage.engine.will(Submitted(now, job))

    def _saved(self, track: Track, stop: Stopped) -> float:
        life = track.work.life
        absence = life.idle_at(stop.done_seconds)
        if life.kind is Kind.SESSION:
            back = stop.done_seconds if absence is None else absence[1]
            return max(0.0, back - RESTART_SECONDS)
        return stop.done_seconds if track.job.checkpoint is not None else 0.0
