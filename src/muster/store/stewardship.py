"""What people have said about work, folded: efforts, their stories, and defences.

It is small beside the queue, and never forgotten: why something was started, defended and ended is what a
successor will ask.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import Amended, Event, Exited, Outcome, Withdrawn
from muster.model.job import Job
from muster.model.stewardship import (
    BudgetFreed,
    BudgetReached,
    BudgetWarned,
    DateWarned,
    Defended,
    Effort,
    EffortAmended,
    EffortClosed,
    EffortGoesOn,
    EffortNoted,
    EffortOpened,
    EffortPaused,
    Entry,
    Subject,
    Told,
    split,
)
from muster.store.reviews import REVIEWED, Reviews
from muster.store.spending import Spending

_MOST_JOBS_TOLD = 200  # jobs of an effort whose end has a line of its own


class Tally(msgspec.Struct):
    """The jobs of an effort: how many live, and how the others ended."""

    living: int = 0
    ended: dict[str, int] = {}  # by verdict, or by outcome if there is none


class Stewardship(msgspec.Struct):
    """Everything that was said, and what became of it."""

    efforts: dict[str, Effort] = {}
    stories: dict[str, list[Entry]] = {}
    tallies: dict[str, Tally] = {}
    defences: dict[Subject, list[Defended]] = {}
    spending: Spending = msgspec.field(default_factory=Spending)
    reviews: Reviews = msgspec.field(default_factory=Reviews)

    def apply(self, event: Event) -> None:
        """Take a fact in. What can't be raises, and changes nothing."""
        _HANDLERS[type(event)](self, event)

    def copied(self) -> "Stewardship":
        """One that stays as it is while this goes on."""
        return Stewardship(
            dict(self.efforts),
            {name: list(story) for name, story in self.stories.items()},
            {name: Tally(tally.living, dict(tally.ended)) for name, tally in self.tallies.items()},
            {subject: list(some) for subject, some in self.defences.items()},
            self.spending.copied(),
            self.reviews.copied(),
        )

    def open_effort(self, name: str) -> Effort:
        """One that is under way; anything else raises."""
        effort = self.efforts.get(name)
        if effort is None:
            raise BadInput(f"there is no effort {name!r}; muster effort ls lists them")
        if not effort.is_open:
            raise IllegalTransition(f"effort {name} is closed ({effort.verdict})")
        return effort

    def paused_for(self, job: Job) -> str | None:
        """What a job says that may not start as its effort is paused; None: it is not."""
        effort = self.efforts.get(job.effort) if job.effort else None
        return None if effort is None or effort.paused is None else why_paused(effort.name)

    def _opened(self, event: EffortOpened) -> None:
        effort = event.effort
        known = self.efforts.get(effort.name)
        if known is not None:
            how = "is open already" if known.is_open else "was closed; its story stays under that name"
            raise BadInput(f"effort {effort.name!r} {how}; choose another name")
        self.efforts[effort.name] = effort
        self.tallies[effort.name] = Tally()
        self._tell(effort.name, Entry(event.at, Told.OPENED, effort.charter.purpose or "", effort.opened_by))

    def _noted(self, event: EffortNoted) -> None:
        if event.effort not in self.efforts:
            self.open_effort(event.effort)
        self._tell(event.effort, Entry(event.at, Told.NOTE, event.text, event.by))

    def _amended(self, event: EffortAmended) -> None:
        effort = self.open_effort(event.effort)
        self.efforts[event.effort] = replace(effort, charter=event.charter)
        said = difference(effort.charter, event.charter)
        self._tell(event.effort, Entry(event.at, Told.AMENDED, _with(said, event.because), event.by))

    def _paused(self, event: EffortPaused) -> None:
        effort = self.open_effort(event.effort)
        self.efforts[event.effort] = replace(effort, paused=event.because)
        self._tell(event.effort, Entry(event.at, Told.PAUSED, event.because, event.by))

    def _goes_on(self, event: EffortGoesOn) -> None:
        effort = self.open_effort(event.effort)
        self.efforts[event.effort] = replace(effort, paused=None)
        self._tell(event.effort, Entry(event.at, Told.GOES_ON, event.because, event.by))

    def _closed(self, event: EffortClosed) -> None:
        effort = self.open_effort(event.effort)
        self.efforts[event.effort] = replace(
            effort, verdict=event.verdict, closed_at=event.at, because=event.because, paused=None
        )
        said = _with(event.verdict.value, event.because)
        self._tell(event.effort, Entry(event.at, Told.CLOSED, said, event.by))
        self.spending.closed(event.effort)

    def _defended(self, event: Defended) -> None:
        kind, name = split(event.subject)
        if kind == "effort":
            effort = self.open_effort(name)
            self.efforts[name] = replace(effort, charter=event.charter)
            self._tell(name, Entry(event.at, Told.DEFENDED, event.because, event.by))
        self.defences.setdefault(event.subject, []).append(event)

    # --- Budgets and dates --------------------------------------------------------------------------

    def _budget_warned(self, event: BudgetWarned) -> None:
        self.spending.was_warned(event)

    def _budget_reached(self, event: BudgetReached) -> None:
        self.spending.was_reached(event)
        self._tell_of(event.subject, Entry(event.at, Told.PAUSED, event.because))

    def _budget_freed(self, event: BudgetFreed) -> None:
        self.spending.was_freed(event)
        self._tell_of(event.subject, Entry(event.at, Told.GOES_ON, "there is budget again"))

    def _date_warned(self, event: DateWarned) -> None:
        self.spending.was_date_warned(event)

    def _tell_of(self, subject: Subject, entry: Entry) -> None:
        kind, name = split(subject)
        if kind == "effort" and name in self.efforts:
            self._tell(name, entry)

    def defended_as(self, subject: Subject, event: Defended) -> None:
        """What was defended goes by another name as well: it may be submitted again."""
        self.defences.setdefault(subject, []).append(event)

    def _reviewed(self, event: Event) -> None:
        self.reviews.apply(event)

    # --- Jobs of efforts ----------------------------------------------------------------------------

    def entered(self, job: Job) -> None:
        if job.revives is not None:
            self.reviews.entered(job)
        if job.effort in self.tallies:
            self.tallies[job.effort].living += 1

    def joins(self, job: Job, event: Amended) -> None:
        """A job that lives is of an effort from now on."""
        if event.effort is None or event.effort == job.effort:
            return
        if job.effort in self.tallies:
            self.tallies[job.effort].living -= 1
        self.tallies[event.effort].living += 1
        self._tell(event.effort, Entry(event.at, Told.JOB, f"job {job.id} {job.name}: joined", event.by))

    def ended(self, job: Job, outcome: Outcome, event: Exited | Withdrawn, verdict: Verdict | None) -> None:
        """A job is over: its effort remembers how, and whether it could go on."""
        taken_back = isinstance(event, Withdrawn) and event.taken_back
        self.reviews.ended(job, event.at, verdict, taken_back=taken_back)
        tally = self.tallies.get(job.effort) if job.effort else None
        if tally is None or job.effort is None:
            return
        tally.living -= 1
        if taken_back:
            return
        how = verdict.value if verdict else outcome.value.lower()
        tally.ended[how] = tally.ended.get(how, 0) + 1
        if sum(tally.ended.values()) <= _MOST_JOBS_TOLD:
            self._tell(job.effort, Entry(event.at, Told.JOB, f"job {job.id} {job.name}: {how}", job.owner))

    def _tell(self, effort: str, entry: Entry) -> None:
        self.stories.setdefault(effort, []).append(entry)


def why_paused(effort: str) -> str:
    return f"effort {effort} is paused; it goes on with: muster effort resume {effort}"


def difference(before: Charter, after: Charter) -> str:
    """What of a charter is another now, in words."""
    said = []
    for field in ("owner", "purpose", "budget"):
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            said.append(f"{field} {old or 'none'} → {new or 'none'}")
    if before.until != after.until:
        said.append("a new date")
    if (before.success, before.failure) != (after.success, after.failure):
        said.append("new exits")
    return ", ".join(said) or "nothing changed"


def _with(said: str, because: str) -> str:
    return f"{said}: {because}" if because else said


_HANDLERS: dict[type[Event], Callable[[Stewardship, Any], None]] = {
    EffortOpened: Stewardship._opened,
    EffortNoted: Stewardship._noted,
    EffortAmended: Stewardship._amended,
    EffortPaused: Stewardship._paused,
    EffortGoesOn: Stewardship._goes_on,
    EffortClosed: Stewardship._closed,
    Defended: Stewardship._defended,
    BudgetWarned: Stewardship._budget_warned,
    BudgetReached: Stewardship._budget_reached,
    BudgetFreed: Stewardship._budget_freed,
    DateWarned: Stewardship._date_warned,
    **dict.fromkeys(REVIEWED, Stewardship._reviewed),
}
HANDLED = tuple(_HANDLERS)
