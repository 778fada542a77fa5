"""Engines that are wrong in one way each, and the checks that must notice.

They stand for mistakes that are easily made; every check of the suite notices at least one.
"""

from collections.abc import Sequence

import msgspec
from sim_bench import Simulator, Ticking

from muster.engines.base import Capabilities
from muster.model.errors import BadInput
from muster.model.events import Event, Exited, NodeHealth, Outcome, Started, StoodDown, Submitted, Vacated
from muster.model.job import Checkpoint, JobId
from muster.model.node import Node
from muster.model.plan import Action, Evict, Recall, Start, Stop

replace = msgspec.structs.replace


class NamesANodeTwice(Simulator):
    def nodes(self) -> Sequence[Node]:
        return (*super().nodes(), super().nodes()[0])


class GoesBackInTime(Simulator):
    """By a second, once a job has exited."""

    back_seconds = 0.0

    def now(self) -> float:
        return super().now() - self.back_seconds

    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        if any(isinstance(f, Exited) for f in facts):
            self.back_seconds = 1.0
        return facts


class ClaimsVirtualTime(Ticking):
    """And does not have it."""

    capabilities = Capabilities(virtual_time=True)


class ClaimsRealTime(Simulator):
    """And does not have it."""

    capabilities = Capabilities(virtual_time=False)


class Oversleeps(Simulator):
    """Waits for what happens next, however long it takes."""

    def observe(self, until: float | None = None) -> Sequence[Event]:
        return super().observe() or super().observe(until)


class GivesUpWaiting(Simulator):
    """Does not wait when there is nothing to see at once."""

    def observe(self, until: float | None = None) -> Sequence[Event]:
        return super().observe(self.now())


class ForgetsExits(Simulator):
    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        return [f for f in facts if not isinstance(f, Exited)] or super().observe(until)


class TakesEverythingForSuccess(Simulator):
    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        won = Outcome.SUCCEEDED
        return [replace(f, outcome=won) if isinstance(f, Exited) else f for f in facts]


class TellsExitsLate(Simulator):
    """The first of them only after the second."""

    late: Sequence[Event] = ()

    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        if not self.late and any(isinstance(f, Exited) for f in facts):
            self.late, facts = facts, super().observe(until)
            return [*facts, *self.late]
        return facts


class StartsWhoeverIsSubmitted(Simulator):
    def will(self, event: Event) -> None:
        super().will(event)
        if isinstance(event, Submitted):
            super().will(Started(event.at + 1e-9, event.job.id, 1))


class MixesJobsUp(Simulator):
    """Tells one's exit as the other's."""

    def observe(self, until: float | None = None) -> Sequence[Event]:
        other = {"a": "b", "b": "a"}
        return [
            replace(f, job=other.get(f.job, f.job)) if isinstance(f, Exited) else f
            for f in super().observe(until)
        ]


class TellsEachPartsStart(Simulator):
    def act(self, action: Action) -> None:
        super().act(action)
        if isinstance(action, Start):
            for _ in action.seats[1:]:
                self.will(Started(self.now(), action.job, action.attempt))


class RunsOneAtATime(Simulator):
    """Whoever comes second starts when the first is done."""

    def __init__(self) -> None:
        super().__init__()
        self._next: list[Action] = []
        self._busy = False

    def act(self, action: Action) -> None:
        if isinstance(action, Start) and self._busy:
            self._next.append(action)
        else:
            self._busy = True
            super().act(action)

    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        if self._next and any(isinstance(f, Exited) for f in facts):
            super().act(self._next.pop())
        return facts


class Forgetful(Simulator):
    """Does not know that it did something already, or that the job has had its day."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[tuple[type[Action], JobId]] = set()

    def act(self, action: Action) -> None:
        super().act(action)
        if (type(action), action.job) in self._told:
            self.again(action)
        self._told.add((type(action), action.job))

    def again(self, action: Action) -> None:
        raise NotImplementedError


class ObeysEveryStart(Forgetful):
    def again(self, action: Action) -> None:
        if isinstance(action, Start):
            self.will(Started(self.now(), action.job, action.attempt))


class ObeysEveryStop(Forgetful):
    def again(self, action: Action) -> None:
        if isinstance(action, Stop):
            self.will(Exited(self.now(), action.job, action.attempt, Outcome.STOPPED))


class ObeysEveryEviction(Forgetful):
    def again(self, action: Action) -> None:
        if isinstance(action, Evict):
            self.will(Vacated(self.now(), action.job, action.attempt, action.because))


class HeedsNoAttempt(Simulator):
    """Takes every action for one on the attempt that runs."""

    def __init__(self) -> None:
        super().__init__()
        self._attempt: dict[JobId, int] = {}

    def act(self, action: Action) -> None:
        if isinstance(action, Start):
            self._attempt[action.job] = max(action.attempt, self._attempt.get(action.job, 0))
        super().act(replace(action, attempt=self._attempt.get(action.job, action.attempt)))


class IgnoresUnknownJobs(Simulator):
    def act(self, action: Action) -> None:
        try:
            super().act(action)
        except BadInput:
            return


class AsksStubbornJobs(Simulator):
    """And takes no for an answer."""

    def act(self, action: Action) -> None:
        if isinstance(action, Start) or action.job not in self.stubborn:
            super().act(action)


class LetsTheFirstWordStand(Simulator):
    """Whoever is leaving can't be stopped any more."""

    def __init__(self) -> None:
        super().__init__()
        self._leaving: set[JobId] = set()

    def act(self, action: Action) -> None:
        if isinstance(action, Evict):
            self._leaving.add(action.job)
        if not isinstance(action, Stop) or action.job not in self._leaving:
            super().act(action)


class LetsTheLastWordStand(Simulator):
    """Stops only when observed: an eviction before that takes the stop back."""

    def __init__(self) -> None:
        super().__init__()
        self._stops: dict[JobId, Action] = {}

    def act(self, action: Action) -> None:
        self._stops.pop(action.job, None)
        if isinstance(action, Stop):
            self._stops[action.job] = action
        else:
            super().act(action)

    def observe(self, until: float | None = None) -> Sequence[Event]:
        while self._stops:
            super().act(self._stops.popitem()[1])
        return super().observe(until)


class ExitsInsteadOfVacating(Simulator):
    def act(self, action: Action) -> None:
        if isinstance(action, Evict):
            action = Stop(action.job, action.attempt, action.because)
        super().act(action)


class IgnoresCheckpoints(Simulator):
    def will(self, event: Event) -> None:
        if isinstance(event, Submitted):
            event = Submitted(event.at, replace(event.job, checkpoint=None))
        super().will(event)


class ImaginesCheckpoints(Simulator):
    def will(self, event: Event) -> None:
        if isinstance(event, Submitted):
            event = Submitted(event.at, replace(event.job, checkpoint=Checkpoint()))
        super().will(event)


class HidesOutages(Simulator):
    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        return [f for f in facts if not isinstance(f, NodeHealth)] or super().observe(until)


class ForgetsWhoWasOnALostNode(Simulator):
    def observe(self, until: float | None = None) -> Sequence[Event]:
        facts = super().observe(until)
        return [f for f in facts if not isinstance(f, Vacated)] or super().observe(until)


class LinesUp(Simulator):
    """Keeps starts that come behind another until that one is over. This one is right."""

    capabilities = Capabilities(virtual_time=True, lines_up=True)

    def __init__(self) -> None:
        super().__init__()
        self._line: list[Start] = []
        self._left: set[tuple[JobId, int]] = set()
        self._told: list[Event] = []

    def act(self, action: Action) -> None:
        waits = next((s for s in self._line if (s.job, s.attempt) == (action.job, action.attempt)), None)
        if isinstance(action, Start) and action.behind is not None and action.behind not in self._left:
            self._line += [] if waits else [action]
        elif waits is None:
            super().act(action)
        elif isinstance(action, Recall):
            self._strike(waits, StoodDown(self.now(), action.job, action.attempt))
        elif isinstance(action, Stop):
            self._left.add((action.job, action.attempt))
            self._strike(waits, Exited(self.now(), action.job, action.attempt, Outcome.STOPPED))

    def _strike(self, start: Start, told: Event) -> None:
        self._told.append(told)
        ended = (start.job, start.attempt)
        self._line = [
            replace(s, behind=start.behind) if s.behind == ended else s for s in self._line if s is not start
        ]

    def observe(self, until: float | None = None) -> Sequence[Event]:
        if self._told:
            told, self._told = self._told, []
            return told
        facts = super().observe(until)
        self._left |= {(f.job, f.attempt) for f in facts if isinstance(f, Exited | Vacated)}
        for start in [s for s in self._line if s.behind in self._left]:
            self._line.remove(start)
            super().act(start)
        return facts


class WaitsForNobody(LinesUp):
    def act(self, action: Action) -> None:
        super().act(replace(action, behind=None) if isinstance(action, Start) else action)


class ForgetsTheLine(LinesUp):
    """Whoever comes behind one that is over already waits for ever."""

    def act(self, action: Action) -> None:
        if isinstance(action, Start) and action.behind is not None:
            self._line.append(action)
        else:
            super().act(action)


class RecallsByStopping(LinesUp):
    def act(self, action: Action) -> None:
        if isinstance(action, Recall):
            action = Stop(action.job, action.attempt, "recalled")
        super().act(action)


class LeavesAGap(LinesUp):
    """Who was behind one that is struck out starts at once."""

    def _strike(self, start: Start, told: Event) -> None:
        self._left.add((start.job, start.attempt))
        super()._strike(replace(start, behind=(start.job, start.attempt)), told)
        self._line.remove(start)


NOTICED_BY: dict[type[Simulator], tuple[str, ...]] = {
    NamesANodeTwice: ("the inventory names each node once and is stable",),
    GoesBackInTime: ("time never goes back",),
    ClaimsVirtualTime: ("virtual time passes only when observed",),
    ClaimsRealTime: ("real time passes by itself",),
    Oversleeps: ("observe returns by its bound",),
    GivesUpWaiting: ("observe returns by its bound",),
    ForgetsExits: ("a job starts once and exits once when it is done",),
    TakesEverythingForSuccess: (
        "a job that fails tells its exit code",
        "stopping twice exits once",
    ),
    TellsExitsLate: ("facts come in time order and speak of attempts that were started",),
    StartsWhoeverIsSubmitted: ("facts come in time order and speak of attempts that were started",),
    MixesJobsUp: ("jobs at once are not mixed up",),
    TellsEachPartsStart: ("a gang starts and ends as one",),
    RunsOneAtATime: ("jobs share a gpu at once",),
    ObeysEveryStart: (
        "starting twice runs once",
        "a second attempt does not start while the first runs",
        "a job that has exited stays so whatever it is told",
        "an action for an attempt that is over does nothing",
    ),
    ObeysEveryStop: ("stopping twice exits once",),
    ObeysEveryEviction: ("evicting twice vacates once",),
    HeedsNoAttempt: ("an action for an attempt that is over does nothing",),
    IgnoresUnknownJobs: ("an unknown job is refused and changes nothing",),
    AsksStubbornJobs: (
        "a stubborn job is stopped all the same",
        "a stubborn job is evicted all the same",
    ),
    LetsTheFirstWordStand: ("a stop overrules an eviction",),
    LetsTheLastWordStand: ("an eviction does not overrule a stop",),
    ExitsInsteadOfVacating: ("an evicted job leaves and is done in its next attempt",),
    IgnoresCheckpoints: ("work that was saved is not lost",),
    ImaginesCheckpoints: ("work that was not saved is lost",),
    HidesOutages: ("a lost node vacates its jobs and comes back",),
    ForgetsWhoWasOnALostNode: (
        "a lost node vacates its jobs and comes back",
        "a job that is started on a lost node is vacated",
    ),
    WaitsForNobody: ("who is lined up starts when the one before has left",),
    ForgetsTheLine: ("who comes behind one that has left starts at once",),
    RecallsByStopping: (
        "who is recalled from a line can be started as if for the first time",
        "a recall is nothing to who has started",
    ),
    LeavesAGap: ("who is stopped in a line never starts and the line closes up",),
}
