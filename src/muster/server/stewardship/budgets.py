"""Budgets at work: told at 80 %, paused at 100 %, and then somebody decides.

Nothing polls. At the rate at which a subject's jobs hold now, the moments at which its budget will be warned
of and spent are known exactly; a timer is set for the next, and anew when one takes or leaves seats.

What was done is in the journal, and every look compares it with what is: so a restart tells nobody anew, goes
on with the time that is left to decide, and pauses whatever a crash has left running.
"""

import asyncio
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from muster.model.charter import Verdict
from muster.model.errors import BadInput
from muster.model.events import (
    Amended,
    Event,
    Exited,
    Placed,
    Retried,
    Seated,
    Started,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job
from muster.model.message import Message
from muster.model.plan import Action
from muster.model.state import State
from muster.model.stewardship import (
    BudgetReached,
    BudgetWarned,
    EffortClosed,
    Subject,
    of_effort,
    of_job,
    split,
)
from muster.model.units import show_seconds
from muster.server.answers import BudgetView
from muster.server.config_tables import Config
from muster.server.identity import own_name
from muster.server.stewardship.alarms import Alarms
from muster.server.stewardship.ending import end, hold_back
from muster.server.stewardship.pausing import free, pause
from muster.server.stewardship.subjects import (
    AMENDING,
    amended_by,
    called,
    extending,
    owner_of,
    records_of,
)
from muster.server.stewardship.watches import Watch, Watches
from muster.steward.budget import (
    WARN_SHARE,
    Budget,
    Prices,
    check_currency,
    never_spent,
    parse_budget,
    shown,
    when,
)
from muster.steward.held import NOTHING_HELD
from muster.store.fold import Fold

_BY = "muster"


class Working(Protocol):
    """What is needed of the service."""

    fold: Fold
    tell: Callable[[Message], None]
    listeners: list[Callable[[Event], None]]

    def now(self) -> float: ...

    def note(self, event: Event, *actions: Action) -> None: ...

    def reaches(self, job: Job) -> bool: ...

    def order(self, action: Action) -> None: ...


class Budgets:
    """All budgets of jobs, efforts and teams. In the service's thread."""

    def __init__(self, service: Working, config: Config) -> None:
        self._service, self._fold, self._config = service, service.fold, config
        self._spending = service.fold.stewardship.spending
        self._watches = Watches(service.fold, config, service.now, self._look_soon)
        self._stirred: dict[Subject, None] = {}
        self._alarms = Alarms(service.now, self._look)
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Look at everything; what a crash has left running though its budget is spent is paused."""
        self._look_at_all()
        for subject, reached in list(self._spending.reached.items()):
            pause(self._service, subject, reached.because, self._config.budgets.pause)
        self._service.listeners.append(self._saw)

    def configure(self, config: Config) -> None:
        """Other prices, rules or budgets of teams."""
        self._config = self._watches.config = config
        self._look_at_all()

    def _look_at_all(self) -> None:
        self._alarms.clear()
        self._watches.rebuild()
        for subject in {**dict.fromkeys(self._watches.all()), **self._spending.reached}:
            self._look(subject)

    def changed(self, subject: Subject) -> None:
        """Its charter, or the period, is another: reckon anew, and let go on what there is budget for."""
        self._watches.open_anew(subject)
        self._look(subject)

    # --- Facts ------------------------------------------------------------------------------------------

    def _saw(self, event: Event) -> None:
        """A fact that was folded in just now."""
        see_to_it = self._HANDLERS.get(type(event))
        if see_to_it is not None:
            see_to_it(self, event)

    def _moved(self, event: Placed | Seated | Started | Vacated | Retried) -> None:
        self._watches.reseat(event.job)

    def _ended(self, event: Exited | Withdrawn) -> None:
        self._watches.reseat(event.job)
        for subject in self._watches.is_over(event.job):
            self._alarms.set(subject, None)

    def _amended(self, event: Event) -> None:
        subject = amended_by(event)
        assert subject is not None
        self.changed(subject)
        if isinstance(event, Amended) and event.effort is not None:
            self.changed(of_effort(event.effort))

    def _team_set(self, _: TeamSet) -> None:
        self._look_at_all()

    _HANDLERS: ClassVar[dict[type[Event], Callable[["Budgets", Any], None]]] = {
        **dict.fromkeys((Placed, Seated, Started, Vacated, Retried), _moved),
        **dict.fromkeys((Exited, Withdrawn), _ended),
        **dict.fromkeys(AMENDING, _amended),
        TeamSet: _team_set,
    }

    def _look_soon(self, subject: Subject) -> None:
        """Once, when all that happens together has happened."""
        if not self._stirred:
            self._loop.call_soon(self._look_at_stirred)
        self._stirred[subject] = None

    def _look_at_stirred(self) -> None:
        stirred, self._stirred = self._stirred, {}
        for subject in stirred:
            self._look(subject)

    # --- Looking ----------------------------------------------------------------------------------------

    def _look(self, subject: Subject) -> None:
        """Do what is to be done about it now, and set the timer for when to look again."""
        watch, now = self._watches.get(subject), self._service.now()
        reached = self._spending.reached.get(subject)
        if watch is None:
            self._alarms.set(subject, None)
            if reached is not None and not self._watches.has_budget(subject):
                free(self._service, reached)
            return
        if watch.ends is not None and now >= watch.ends:
            self.changed(subject)
            return
        spent, amount = self._watches.spent(subject, watch), watch.budget.amount
        if reached is not None and spent < amount:
            free(self._service, reached)
        elif reached is not None:
            self._decide(subject, reached, now)
        elif spent >= amount:
            self._reach(subject, watch, spent)
        elif spent >= amount * WARN_SHARE and not self._was_warned(subject, watch):
            self._warn(subject, watch, spent)
        if self._watches.get(subject) is watch:
            self._alarms.set(subject, self._next(subject, watch, spent, now))

    def _was_warned(self, subject: Subject, watch: Watch) -> bool:
        said = self._spending.warned.get(subject)
        return said is not None and (said.budget, said.since) == (str(watch.budget), watch.since)

    def _next(self, subject: Subject, watch: Watch, spent: Fraction, now: float) -> float | None:
        """When something will be to be done."""
        moments = [] if watch.ends is None else [watch.ends]
        reached = self._spending.reached.get(subject)
        if reached is not None:
            moments += [at for at in self._deadlines(reached) if at > now]
        else:
            share = Fraction(1) if self._was_warned(subject, watch) else WARN_SHARE
            seconds = when(spent, watch.rate, watch.budget.amount, share)
            moments += [] if seconds is None else [now + float(seconds)]
        return min(moments, default=None)

    def _deadlines(self, reached: BudgetReached) -> tuple[float, float]:
        """Until when there is to decide about what stands still, and about all of it."""
        rules = self._config.budgets
        suspended = min(rules.decide_suspended_seconds, rules.decide_seconds)
        return reached.at + suspended, reached.at + rules.decide_seconds

    # --- Doing ------------------------------------------------------------------------------------------

    def _warn(self, subject: Subject, watch: Watch, spent: Fraction) -> None:
        event = BudgetWarned(self._service.now(), subject, str(watch.budget), float(spent), watch.since)
        self._service.note(event)
        said = f"{called(self._fold, subject)} has spent {_share(spent, watch.budget)}"
        self._tell(subject, watch, f"{said}; at 100 % it is paused")

    def _reach(self, subject: Subject, watch: Watch, spent: Fraction) -> None:
        now, because = self._service.now(), self._because(subject, watch)
        event = BudgetReached(now, subject, str(watch.budget), float(spent), because, watch.since)
        self._service.note(event)
        still = pause(self._service, subject, because, self._config.budgets.pause)
        said = f"{called(self._fold, subject)} has spent its budget of {watch.budget} and is paused"
        if split(subject)[0] != "team":
            left = self._deadlines(event)[0 if still else 1] - now
            said += f"; if nobody extends it within {show_seconds(left)}, it ends"
        self._tell(subject, watch, said, asks=True)

    def _because(self, subject: Subject, watch: Watch) -> str:
        kind, name = split(subject)
        if kind == "job":
            return f"its budget of {watch.budget} is spent; {self._remedy(subject, watch)}"
        said = f"the budget of {kind} {name}, {watch.budget}, is spent"
        if watch.ends is not None:
            return f"{said}; the next begins {time.strftime('%Y-%m-%d', time.gmtime(watch.ends))}"
        return f"{said}; {self._remedy(subject, watch)}"

    def _remedy(self, subject: Subject, watch: Watch) -> str:
        if split(subject)[0] == "team":
            return f"an admin may raise it: [team.{split(subject)[1]}] budget in muster.toml"
        more = f"+{shown(watch.budget.amount / 2)}{watch.budget.unit}"
        return "extend it: " + extending(subject, f"--budget {more}")

    def _tell(self, subject: Subject, watch: Watch, sentence: str, *, asks: bool = False) -> None:
        """Whoever answers for it; of a team its leads, or those above."""
        kind, name = split(subject)
        people = self._leads_of(name) if kind == "team" else [owner_of(self._fold, subject)]
        action = self._remedy(subject, watch).removeprefix("extend it: ")
        for person in people:
            self._service.tell(
                Message(
                    to=person,
                    about=subject,
                    kind="budget",
                    sentence=sentence,
                    action=action,
                    asks=asks,
                    urgent=asks,
                )
            )

    def _leads_of(self, team: str) -> list[str]:
        teams = [self._config.team[name] for name in self._config.above(team)]
        leads = next((table.leads for table in teams if table.leads), ())
        admins = [name for name, user in self._config.user.items() if user.role == "admin"]
        return list(leads) or admins or [own_name()]

    # --- Nobody has decided -----------------------------------------------------------------------------

    def _decide(self, subject: Subject, reached: BudgetReached, now: float) -> None:
        """What has stood still for long leaves its seats; in the end all of it is over."""
        suspended_until, until = self._deadlines(reached)
        kind, name = split(subject)
        if now < suspended_until:
            return
        records = records_of(self._fold, subject)
        still = [r for r in records if r.running is not None and r.running.state is State.SUSPENDED]
        if kind == "team":  # nobody's work ends by it
            hold_back(self._service, still, reached.because)
            return
        said = f"its budget of {reached.budget} was spent, and nobody extended it"
        owner, what = owner_of(self._fold, subject), called(self._fold, subject)
        told = end(self._service, still if now < until else records, Verdict.OUT_OF_BUDGET, said)
        is_over = kind == "effort" and now >= until
        if is_over:
            self._service.note(EffortClosed(now, name, Verdict.OUT_OF_BUDGET, _BY, said))
        if told or is_over:
            show = f"muster {'effort ' if kind == 'effort' else ''}show {name}"
            which = what if is_over or told == len(records) else f"what was suspended of {what}"
            sentence = f"{which} has ended, out of budget: {said}"
            self._service.tell(
                Message(to=owner, about=subject, kind="verdict", sentence=sentence, action=show)
            )

    # --- For others -------------------------------------------------------------------------------------

    def check(self, job: Job) -> list[str]:
        """Whether a job's budget makes sense here, or an error; and what should be said about it."""
        said = []
        if job.charter.budget is not None:
            budget = parse_budget(job.charter.budget)
            check_currency(budget, self._config.prices)
            said += [f"budget: {why}" for why in [never_spent(budget, job.gang)] if why]
        return said

    def check_extension(self, subject: Subject, text: str) -> None:
        """A budget that is spent already would be none."""
        budget = parse_budget(text)
        check_currency(budget, self._config.prices)
        spent = self._watches.spent_of(subject, budget)
        if spent >= budget.amount:
            raise BadInput(f"{_amount(spent)} {budget.unit} are spent already; a budget has to be above that")

    def spent_in(self, subject: Subject, budget: Budget) -> float:
        """What a subject has spent so far in the unit of a budget, which need not be its own."""
        return float(self._watches.spent_of(subject, budget))

    def prices(self) -> Prices:
        return self._config.prices

    def view(self, subject: Subject) -> BudgetView | None:
        """A budget as people see it; None: there is none."""
        watch = self._watches.get(subject) or self._watches.read(subject)
        if watch is None:
            return None
        spent = self._watches.spent(subject, watch)
        reached = self._spending.reached.get(subject)
        view = BudgetView(str(watch.budget), float(spent), float(spent / watch.budget.amount))
        if reached is not None and split(subject)[0] != "team":
            still = watch.burning.rate != NOTHING_HELD
            view.decide_by = self._deadlines(reached)[0 if still else 1] + self._fold.wall_ahead_seconds
        return view

    def view_of(self, job: Job) -> BudgetView | None:
        """Of a job's own budget; of a member its array's."""
        if job.charter.budget is None:
            return None
        return self.view(of_job(job.id if job.array is None else job.array.array))


def _share(spent: Fraction, budget: Budget) -> str:
    return f"{_amount(spent)} of {budget} ({float(spent / budget.amount):.0%})"


def _amount(spent: Fraction) -> str:
    return f"{float(spent):.3g}" if spent < 100 else f"{float(spent):.0f}"
