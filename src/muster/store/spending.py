"""What was held, folded: by each job that lives, by efforts for ever, by teams in the present period.

It grows when an attempt leaves its seats; what runs comes on top, by whoever looks. And which budgets are
spent, so that a restart warns nobody anew, and nothing new starts meanwhile.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from muster.model.job import Job, JobId
from muster.model.stewardship import (
    BudgetFreed,
    BudgetReached,
    BudgetWarned,
    DateWarned,
    Subject,
    of_effort,
    of_job,
    of_team,
)
from muster.model.tenancy import ROOT
from muster.steward.held import NOTHING_HELD, PERIODS, HeldTime, Holding, period_of


class Period(msgspec.Struct, frozen=True):
    """When a period began, and what had been held until then."""

    since: float
    before: HeldTime = NOTHING_HELD


class TeamHeld(msgspec.Struct):
    """By a team and those below it: ever, and what of it was before the latest period of each kind."""

    ever: HeldTime = NOTHING_HELD
    latest: dict[str, Period] = {}

    def add(self, holding: Holding, since: float, until: float, held: HeldTime) -> None:
        """It was ``held`` from ``since`` to ``until``."""
        for kind in PERIODS:
            begins, _ = period_of(kind, until)
            known = self.latest.get(kind)
            if known is None or known.since < begins:
                known = self.latest[kind] = Period(begins, self.ever)
            if since < known.since:
                before = held if until <= known.since else holding.between(since, since, known.since)
                self.latest[kind] = Period(known.since, known.before + before)
        self.ever = self.ever + held

    def of(self, kind: str | None, since: float) -> HeldTime:
        """In the period that began then; without a kind, ever."""
        if kind is None:
            return self.ever
        known = self.latest.get(kind)
        return self.ever - known.before if known is not None and known.since == since else NOTHING_HELD


class Spending(msgspec.Struct):
    """The sums, and what was said about budgets and dates."""

    jobs: dict[JobId, HeldTime] = {}  # that live, earlier attempts; an array as one
    efforts: dict[str, HeldTime] = {}
    teams: dict[str, TeamHeld] = {}
    warned: dict[Subject, BudgetWarned] = {}
    reached: dict[Subject, BudgetReached] = {}
    date_warned: dict[Subject, float] = {}

    def copied(self) -> "Spending":
        return Spending(
            dict(self.jobs),
            dict(self.efforts),
            {name: TeamHeld(held.ever, dict(held.latest)) for name, held in self.teams.items()},
            dict(self.warned),
            dict(self.reached),
            dict(self.date_warned),
        )

    def left(
        self, whole: JobId, job: Job, teams: Iterable[str], holding: Holding, since: float, until: float
    ) -> None:
        """An attempt has left its seats. ``whole`` is the job, or its array."""
        held = holding.between(since, since, until)
        self.jobs[whole] = self.jobs.get(whole, NOTHING_HELD) + held
        if job.effort is not None:
            self.efforts[job.effort] = self.efforts.get(job.effort, NOTHING_HELD) + held
        for team in teams:
            if team != ROOT:
                self.teams.setdefault(team, TeamHeld()).add(holding, since, until, held)

    def is_over(self, whole: JobId) -> None:
        """A job, or an array, has ended: its own sum is the ledger's affair."""
        self.jobs.pop(whole, None)
        for said in (self.warned, self.reached, self.date_warned):
            said.pop(of_job(whole), None)

    def closed(self, effort: str) -> None:
        for said in (self.warned, self.reached, self.date_warned):
            said.pop(of_effort(effort), None)

    def exhausted(self, job: Job, teams: Sequence[str]) -> BudgetReached | None:
        """The budget that keeps a job from starting; None: none does."""
        found = (self.reached[s] for s in subjects_of(job, teams) if s in self.reached)
        return next(found, None)

    # --- What was said ----------------------------------------------------------------------------------

    def was_warned(self, event: BudgetWarned) -> None:
        self.warned[event.subject] = event

    def was_reached(self, event: BudgetReached) -> None:
        self.reached[event.subject] = event

    def was_freed(self, event: BudgetFreed) -> None:
        self.reached.pop(event.subject, None)

    def was_date_warned(self, event: DateWarned) -> None:
        self.date_warned[event.subject] = event.until


def subjects_of(job: Job, teams: Iterable[str]) -> Iterator[Subject]:
    """Whose budgets a job spends: its own or its array's, its effort's, and those of its teams."""
    yield of_job(job.id if job.array is None else job.array.array)
    if job.effort is not None:
        yield of_effort(job.effort)
    yield from (of_team(team) for team in teams if team != ROOT)
