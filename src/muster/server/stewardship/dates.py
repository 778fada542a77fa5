"""End dates at work: told a while before, and ended when they have come.

Dates are the wall's: when somebody sets the clock, the timers are set anew. What has passed while no server
ran ends at the start.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from muster.model.charter import Verdict
from muster.model.events import ArraySubmitted, Event, Exited, Submitted, Withdrawn
from muster.model.job import Job
from muster.model.message import Message
from muster.model.plan import Action
from muster.model.stewardship import (
    DateWarned,
    EffortClosed,
    Subject,
    of_effort,
    of_job,
    split,
)
from muster.server.stewardship.alarms import Alarms
from muster.server.stewardship.ending import end
from muster.server.stewardship.subjects import (
    AMENDING,
    amended_by,
    begun_at,
    called,
    charter_of,
    extending,
    owner_of,
    records_of,
)
from muster.steward.dates import warn_at
from muster.store.fold import Fold

_BY = "muster"


class Dating(Protocol):
    """What is needed of the service."""

    fold: Fold
    tell: Callable[[Message], None]
    listeners: list[Callable[[Event], None]]
    when_clock_is_set: list[Callable[[], None]]

    def now(self) -> float: ...

    def wall(self) -> float: ...

    def note(self, event: Event, *actions: Action) -> None: ...

    def reaches(self, job: Job) -> bool: ...

    def order(self, action: Action) -> None: ...


class Dates:
    """All end dates of jobs and efforts. In the service's thread."""

    def __init__(self, service: Dating) -> None:
        self._service, self._fold = service, service.fold
        self._dated: dict[Subject, None] = {}
        self._alarms = Alarms(service.now, self.changed)

    def begin(self) -> None:
        for subject in list(self._living()):
            self.changed(subject)
        self._service.listeners.append(self._saw)
        self._service.when_clock_is_set.append(self._set_anew)

    def _living(self) -> Iterable[Subject]:
        fold = self._fold
        yield from (of_effort(name) for name in fold.stewardship.efforts)
        yield from (of_job(name) for name, array in fold.arrays.items() if array.left)
        for job_id, record in fold.records.items():
            entry = record.running or record.waiting
            if entry is not None and entry.job.array is None:
                yield of_job(job_id)

    def _saw(self, event: Event) -> None:
        see_to_it = self._HANDLERS.get(type(event))
        if see_to_it is not None:
            see_to_it(self, event)

    def _submitted(self, event: Submitted | ArraySubmitted) -> None:
        job = event.job if isinstance(event, Submitted) else event.template
        if job.charter.until is not None:
            self.changed(of_job(job.id))

    def _amended(self, event: Event) -> None:
        subject = amended_by(event)
        assert subject is not None
        self.changed(subject)

    def _is_over(self, event: Exited | Withdrawn) -> None:
        """A job has ended; with its last member an array has, too."""
        if not self._dated:
            return
        array, _, _ = event.job.rpartition("_")
        for subject in (of_job(event.job), of_job(array)):
            if subject in self._dated and charter_of(self._fold, subject) is None:
                self.changed(subject)

    _HANDLERS: ClassVar[dict[type[Event], Callable[["Dates", Any], None]]] = {
        **dict.fromkeys((Submitted, ArraySubmitted), _submitted),
        **dict.fromkeys((Exited, Withdrawn), _is_over),
        **dict.fromkeys(AMENDING, _amended),
    }

    def _set_anew(self) -> None:
        for subject in list(self._dated):
            self.changed(subject)

    def changed(self, subject: Subject) -> None:
        """Do what is to be done about a subject's date now, and set the timer for when to look again."""
        charter = charter_of(self._fold, subject)
        until = None if charter is None else charter.until
        if until is None:
            self._dated.pop(subject, None)
            self._alarms.set(subject, None)
            return
        self._dated[subject] = None
        wall, ahead = self._service.wall(), self._fold.wall_ahead_seconds
        if wall >= until:
            self._end(subject, until)
            return
        warn = warn_at(begun_at(self._fold, subject) + ahead, until)
        warned = self._fold.stewardship.spending.date_warned.get(subject) == until
        if not warned and wall >= warn:
            self._warn(subject, until)
            warned = True
        self._alarms.set(subject, (until if warned else warn) - ahead)

    def _warn(self, subject: Subject, until: float) -> None:
        self._service.note(DateWarned(self._service.now(), subject, until))
        what = called(self._fold, subject)
        sentence = f"{what} ends at its date, {_shown(until)}"
        self._tell(subject, "date", sentence, extending(subject, "--until +7d"))

    def _end(self, subject: Subject, until: float) -> None:
        """Who is leaving already leaves; a job that is over is seen to when that is noted."""
        kind, name = split(subject)
        said = f"its date, {_shown(until)}, has come"
        what, to = called(self._fold, subject), owner_of(self._fold, subject)
        told = end(self._service, records_of(self._fold, subject), Verdict.OUT_OF_TIME, said)
        if kind == "effort":
            self._service.note(EffortClosed(self._service.now(), name, Verdict.OUT_OF_TIME, _BY, said))
        if told or kind == "effort":
            show = f"muster {'effort ' if kind == 'effort' else ''}show {name}"
            sentence = f"{what} has ended, out of time: {said}"
            message = Message(to=to, about=subject, kind="verdict", sentence=sentence, action=show)
            self._service.tell(message)

    def _tell(self, subject: Subject, kind: str, sentence: str, action: str) -> None:
        to = owner_of(self._fold, subject)
        self._service.tell(Message(to=to, about=subject, kind=kind, sentence=sentence, action=action))


def _shown(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
