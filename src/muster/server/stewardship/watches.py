"""Whose budgets are watched, and what of each is spent: sums that are kept in step with who runs.

What was held before is folded (``store.spending``). What is held now is a sum of rates, and of when each
began: it costs the same to look at for one running job as for a thousand.
"""

import logging
from collections.abc import Callable, Iterable
from fractions import Fraction

import msgspec

from muster.model.errors import BadInput
from muster.model.job import Job, JobId
from muster.model.snapshot import Running
from muster.model.stewardship import Subject, of_effort, of_job, of_team, split
from muster.server.config_tables import Config
from muster.server.stewardship.subjects import charter_of
from muster.steward.budget import Budget, Scale, check_currency, parse_budget, scale_of
from muster.steward.held import NOTHING_HELD, Burning, HeldTime, period_of
from muster.store.fold import Fold
from muster.store.spending import subjects_of

log = logging.getLogger("muster")

_MOST_TERMS = 10_000  # budgets at hand


class Watch(msgspec.Struct):
    """A budget, what its subject's running jobs hold, and of which period it is."""

    budget: Budget
    scale: Scale
    burning: Burning
    since: float | None = None
    ends: float | None = None

    def counted(self, since: float) -> float:
        """From when on a job counts that holds its seats since then."""
        return since if self.since is None else max(since, self.since)

    @property
    def rate(self) -> Fraction:
        """What is spent in a second."""
        return self.scale.of(self.burning.rate)


class _Seated(msgspec.Struct):
    """A running job: what it holds in a second, since when, and whose budgets that spends."""

    rate: HeldTime
    since: float
    subjects: tuple[Subject, ...] = ()


class Watches:
    """The watched subjects. ``stirred`` is told of those of which somebody took or left seats."""

    def __init__(
        self, fold: Fold, config: Config, now: Callable[[], float], stirred: Callable[[Subject], None]
    ) -> None:
        self._fold, self.config, self._now, self._stirred = fold, config, now, stirred
        self._spending = fold.stewardship.spending
        self._watched: dict[Subject, Watch] = {}
        self._seated: dict[JobId, _Seated] = {}
        self._terms: dict[str, tuple[Budget, Scale] | None] = {}

    def get(self, subject: Subject) -> Watch | None:
        return self._watched.get(subject)

    def all(self) -> list[Subject]:
        return list(self._watched)

    # --- Beginning and end ------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """From what is folded and configured alone."""
        self._watched, self._seated, self._terms = {}, {}, {}
        efforts = (of_effort(name) for name in self._fold.stewardship.efforts)
        teams = (of_team(name) for name in self.config.team)
        for subject in (*efforts, *teams, *self._spending.reached):
            self._open(subject)
        for running in self._running():
            self._seat(running)

    def open_anew(self, subject: Subject) -> None:
        """Its budget, or the period, may be another."""
        self._close(subject, list(self._seated.values()))
        if self._open(subject) is not None:
            for running in self._running():
                if subject in self._subjects_of(running.job):
                    self._seat(running)

    def _close(self, subject: Subject, seated: Iterable[_Seated]) -> None:
        """``seated``: those that may spend of it."""
        if self._watched.pop(subject, None) is not None:
            for one in seated:
                one.subjects = tuple(other for other in one.subjects if other != subject)

    def reseat(self, job_id: JobId) -> None:
        """A job has taken seats, or left them."""
        record, before = self._fold.records.get(job_id), self._seated.get(job_id)
        running = None if record is None else record.running
        if before is not None:
            if running is not None and running.holds_since == before.since:
                return
            del self._seated[job_id]
            for subject in before.subjects:
                watch = self._watched[subject]
                watch.burning.end(before.rate, watch.counted(before.since))
                self._stirred(subject)
        if running is not None:
            self._seat(running)

    def is_over(self, job_id: JobId) -> Iterable[Subject]:
        """A job has ended; with its last member an array has, too. Who is no longer watched."""
        array, _, _ = job_id.rpartition("_")
        for subject in (of_job(job_id), of_job(array)):
            if subject in self._watched and charter_of(self._fold, subject) is None:
                self._close(subject, ())  # who has ended has left its seats
                yield subject

    def _seat(self, running: Running) -> None:
        is_unwatched = not self._watched and running.job.charter.budget is None
        if running.holds_since is None or is_unwatched:
            return
        subjects = tuple(s for s in self._subjects_of(running.job) if self._is_watched(s))
        if not subjects:
            return
        known = self._seated.get(running.job.id)
        if known is None:
            known = _Seated(self._fold.holding(running).rate, running.holds_since)
            self._seated[running.job.id] = known
        for subject in subjects:
            if subject not in known.subjects:
                watch = self._watched[subject]
                watch.burning.begin(known.rate, watch.counted(known.since))
                self._stirred(subject)
        known.subjects = subjects

    def _is_watched(self, subject: Subject) -> bool:
        """Jobs are watched from when they first run: until then they spend nothing."""
        return subject in self._watched or (subject[:4] == "job:" and self._open(subject) is not None)

    def _open(self, subject: Subject) -> Watch | None:
        watch = self._watched.get(subject) or self.read(subject)
        if watch is not None:
            self._watched[subject] = watch
        return watch

    def _running(self) -> Iterable[Running]:
        return [*self._fold.running.values(), *self._fold.lined_up]

    def _subjects_of(self, job: Job) -> list[Subject]:
        return list(subjects_of(job, self._fold.tenancy.path(job.team)))

    # --- Reading ----------------------------------------------------------------------------------------

    def read(self, subject: Subject) -> Watch | None:
        """A subject as if nobody ran; None if it has no budget."""
        kind, name = split(subject)
        if kind == "team":
            table = self.config.team.get(name)
            return None if table is None or table.budget is None else self._watch(table.budget)
        charter = charter_of(self._fold, subject)
        if charter is None or charter.budget is None:
            return None
        terms = self._terms_of(charter.budget)
        return None if terms is None else Watch(*terms, Burning())

    def has_budget(self, subject: Subject) -> bool:
        """Also one that can't be watched, as nothing has a price in that money any more."""
        kind, name = split(subject)
        if kind == "team":
            return name in self.config.team and self.config.team[name].budget is not None
        charter = charter_of(self._fold, subject)
        return charter is not None and charter.budget is not None

    def _watch(self, budget: Budget) -> Watch:
        scale = scale_of(budget, self.config.prices)
        if budget.per is None:
            return Watch(budget, scale, Burning())
        return Watch(budget, scale, Burning(), *period_of(budget.per, self._now()))

    def _terms_of(self, text: str) -> tuple[Budget, Scale] | None:
        """Of a charter's budget. They are asked for by every look at a queue, and most are alike."""
        if len(self._terms) > _MOST_TERMS:
            self._terms.clear()
        if text not in self._terms:
            self._terms[text] = self._read_terms(text)
        return self._terms[text]

    def _read_terms(self, text: str) -> tuple[Budget, Scale] | None:
        try:
            budget = parse_budget(text)
            check_currency(budget, self.config.prices)
        except BadInput as error:  # prices have changed since
            log.warning("budgets of %s are not watched: %s", text, error)
            return None
        return budget, scale_of(budget, self.config.prices)

    def spent(self, subject: Subject, watch: Watch) -> Fraction:
        """So far, in the budget's unit."""
        kind, name = split(subject)
        if kind == "job":
            held = self._spending.jobs.get(name, NOTHING_HELD)
        elif kind == "effort":
            held = self._spending.efforts.get(name, NOTHING_HELD)
        else:
            team = self._spending.teams.get(name)
            held = NOTHING_HELD if team is None else team.of(watch.budget.per, watch.since or 0.0)
        return watch.scale.of(held + watch.burning.at(self._now()))

    def spent_of(self, subject: Subject, budget: Budget) -> Fraction:
        """The same for a budget that it may get."""
        watch = Watch(budget, scale_of(budget, self.config.prices), self._burning(subject))
        return self.spent(subject, watch)

    def _burning(self, subject: Subject) -> Burning:
        """Of what its jobs hold, also if it has no budget yet."""
        watch = self._watched.get(subject)
        if watch is not None:
            return watch.burning
        burning = Burning()
        for running in self._running():
            if running.holds_since is not None and subject in self._subjects_of(running.job):
                burning.begin(self._fold.holding(running).rate, running.holds_since)
        return burning
