"""Why does a job wait, when will it start, and what would help? Said in words.

The reason is the one that decided in the last cycle; when, is simulated (``forecast``); what would help is
tried out (``sooner``). Clock times are shown by the caller's function: only it knows the reader's time zone.
"""

import math

import msgspec
from numpy.random import Generator  # noqa: TID251 (luck is an argument; this is its name)

from muster.model.charter import Verdict
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.job import JobId, Priority
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.reasons import DependsOn, HeldBack, MakingRoom, NotBefore, QuotaReached, Reason
from muster.model.resources import NOTHING
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.model.tenancy import ROOT
from muster.model.units import show_bytes, show_milli
from muster.schedule.predict import leaves_at
from muster.server.outlook.forecast import ANSWER_SECONDS, Clock, Estimate, ShowTime, estimate, said
from muster.server.outlook.sooner import Sooner, changes, sooner
from muster.server.outlook.world import find_waiting

_TO_ESTIMATE = 0.6  # of the budget; the rest is for what would help
_TO_TRY = 0.2  # of the budget, for one change
_HIGHEST = (Priority.LOW, Priority.NORMAL)  # what anybody may ask for


class Because(msgspec.Struct, frozen=True):
    """A reason, and what to do about it."""

    kind: str
    sentence: str
    action: str | None = None


class Beside(msgspec.Struct, frozen=True):
    """Something else that it depends on whether a job starts: a quota or a budget, and how that is."""

    kind: str
    state: str  # ok, full or spent
    sentence: str

    def line(self) -> str:
        return f"  {self.kind:<9}{self.state:<6}{self.sentence}"


class Explanation(msgspec.Struct, frozen=True):
    """The answer to why, with the text that a person reads."""

    id: JobId
    state: State
    text: str
    reasons: tuple[Because, ...] = ()
    estimate: Estimate | None = None
    sooner: tuple[Sooner, ...] = ()
    beside: tuple[Beside, ...] = ()


def explain(
    snap: Snapshot,
    plan: Plan,
    policy: Policy,
    job_id: JobId,
    *,
    now: float,
    rng: Generator,
    clock: Clock,
    show_time: ShowTime,
    budget_seconds: float = ANSWER_SECONDS,
    priorities: tuple[Priority, ...] = _HIGHEST,
    beside: tuple[Beside, ...] = (),
) -> Explanation:
    """Why a job that has not ended is where it is. ``priorities`` are those that its owner may ask for.

    ``beside``: what else it depends on whether it starts, besides quotas.
    """
    running = snap.running.get(job_id)
    if running is not None:
        return Explanation(job_id, running.state, _text_of_running(running, now, show_time))
    waiting = find_waiting(snap, job_id)
    if waiting is None:
        raise BadInput(f"there is no job {job_id} that waits or runs")
    answer = _Answer(snap, plan, policy, waiting, now, beside)
    return answer.explain(rng, clock, show_time, budget_seconds, priorities)


def explain_ended(
    job_id: JobId,
    outcome: Outcome,
    *,
    ended_at: float | None,
    show_time: ShowTime,
    exit_code: int | None = None,
    signal: int | None = None,
    verdict: Verdict | None = None,
    reason: str | None = None,
) -> Explanation:
    """How a job has ended. Where its charter or a review ended it, that says more than the signal."""
    at = "" if ended_at is None else f" at {show_time(ended_at)}"
    if verdict is not None and reason:
        return Explanation(job_id, State.ENDED, f"Ended{at}, {verdict}: {reason}.")
    code = f", exit code {exit_code}" if exit_code else ""
    by = f", by signal {signal}" if signal else ""
    return Explanation(job_id, State.ENDED, f"Ended{at}: {_ENDINGS[outcome]}{code}{by}.")


_ENDINGS = {
    Outcome.SUCCEEDED: "it succeeded",
    Outcome.FAILED: "it failed",
    Outcome.STOPPED: "it was stopped",
    Outcome.TIMEOUT: "it reached its time limit",
    Outcome.OUT_OF_MEMORY: "it needed more memory than it asked for",
    Outcome.NODE_LOST: "its node was lost",
    Outcome.DEPENDENCY_FAILED: "a job it depends on did not end as it should",
}


class _Answer:
    """About one waiting job."""

    def __init__(
        self,
        snap: Snapshot,
        plan: Plan,
        policy: Policy,
        waiting: Waiting,
        now: float,
        beside: tuple[Beside, ...],
    ) -> None:
        self._snap, self._policy, self._waiting, self._now = snap, policy, waiting, now
        self._job = waiting.job
        wait = plan.wait_of(waiting, snap.unmet)
        self._reasons: tuple[Reason, ...] = () if wait is None else wait.reasons
        self._beside = (*self._quotas(), *beside)

    def explain(
        self,
        rng: Generator,
        clock: Clock,
        show_time: ShowTime,
        budget_seconds: float,
        priorities: tuple[Priority, ...],
    ) -> Explanation:
        ends_at = clock() + budget_seconds

        def ask(snap: Snapshot, part: float) -> Estimate | None:
            return estimate(
                snap,
                self._policy,
                self._job.id,
                now=self._now,
                rng=rng,
                clock=clock,
                budget_seconds=part * budget_seconds,
            )

        def likely(snap: Snapshot, _: JobId) -> float | None:
            found = ask(snap, _TO_TRY)
            return None if found is None else found.likely

        when = ask(self._snap, _TO_ESTIMATE)
        better: tuple[Sooner, ...] = ()
        if self._reasons and not isinstance(self._reasons[0], _NOT_ABOUT_ROOM) and not self._starts_now(when):
            better = sooner(
                self._snap,
                self._policy,
                self._waiting,
                changes(self._snap, self._waiting, self._reasons[0], priorities),
                now=self._now,
                likely=math.inf if when is None else when.likely,
                ask=likely,
                has_time=lambda: clock() < ends_at,
            )
        state = State.HELD if self._job.held else State.QUEUED
        reasons = tuple(self._because(r) for r in self._reasons)
        text = self._text(when, better, show_time)
        return Explanation(self._job.id, state, text, reasons, when, better, self._beside)

    def _starts_now(self, when: Estimate | None) -> bool:
        return when is not None and when.latest <= self._now

    def _because(self, reason: Reason) -> Because:
        job = self._job.id
        return Because(type(reason).__name__, reason.sentence_of(job), reason.action_of(job))

    # --- In words -----------------------------------------------------------------------------------

    def _text(self, when: Estimate | None, better: tuple[Sooner, ...], show_time: ShowTime) -> str:
        lines = [self._first_line(), *(one.line() for one in self._beside)]
        if when is not None:
            lines.append(when.text(show_time, self._follows(when, show_time)))
        for i, change in enumerate(better):
            head = "Sooner:" if i == 0 else ""
            at = "now" if change.starts_at <= self._now else show_time(change.starts_at)
            lines.append(f"{head:<9}{change.change:<23} → {at}")
        action = self._reasons[0].action_of(self._job.id) if self._reasons else None
        if action is not None and not better and not isinstance(self._reasons[0], HeldBack):
            lines.append(f"What helps: {action}.")
        return "\n".join(lines)

    def _first_line(self) -> str:
        if not self._reasons:
            return "Waiting: the next cycle decides."
        reason = self._reasons[0]
        sentence = reason.sentence_of(self._job.id)
        return said(reason) if reason.infeasible else f"Waiting: {sentence}."

    def _quotas(self) -> list[Beside]:
        """What its team owns and holds, for the first team above it that has a quota of what it asks."""
        tenancy, asked = self._snap.tenancy, self._waiting.asked.vector()
        refused = any(isinstance(r, QuotaReached) for r in self._reasons)
        for name in tenancy.path(self._job.team):
            team = tenancy.teams.get(name)
            owned = () if team is None or name == ROOT else team.quota.amounts()
            known = [(i, amount) for i, amount in enumerate(owned) if amount is not None and asked[i]]
            if known:
                i, amount = known[-1]
                held = sum((h for t, h in self._snap.held.items() if name in tenancy.path(t)), NOTHING)
                used, all_of_it = _show(i, int(held.vector()[i])), _show(i, amount)
                state = "full" if refused else "ok"
                return [Beside("quota", state, f"{used} of {all_of_it} {_RESOURCES[i]} used by {name}")]
        return []

    def _follows(self, when: Estimate, show_time: ShowTime) -> str:
        running = None if when.follows is None else self._snap.running.get(when.follows)
        if running is None:
            return ""
        until = leaves_at(running, self._now, firm=False)
        about = [running.job.owner] * bool(running.job.owner)
        about += [f"until {show_time(until)}"] * math.isfinite(until)
        return f", when {running.job.id}" + (f" ({', '.join(about)})" if about else "") + " ends"


_NOT_ABOUT_ROOM = (HeldBack, DependsOn, NotBefore, MakingRoom)
_RESOURCES = ("cpus", "memory", "GPUs")


def _show(resource: int, amount: int) -> str:
    return show_bytes(amount) if resource == 1 else show_milli(amount)


def _text_of_running(running: Running, now: float, show_time: ShowTime) -> str:
    """Where it is, since when, and until when."""
    where = ", ".join(dict.fromkeys(seat.node for seat in running.seats))
    since = show_time(running.placed_at if running.started_at is None else running.started_at)
    if running.state is State.STARTING:
        return f"Starting on {where} since {since}."
    if running.state is State.SUSPENDED:
        then = running.because or f"let it go on: muster resume {running.job.id}"
        return f"Suspended on {where}, where it keeps its room; {then}."
    if running.state is State.STOPPING:
        because = f" ({running.because})" if running.because else ""
        then = "waits again when it has left" if running.evicted else "ends"
        return f"Stopping on {where}{because}; it {then}."
    likely, latest = leaves_at(running, now, firm=False), leaves_at(running, now, firm=True)
    limit = running.job.time_limit_seconds
    bound = "" if limit is None else f", {show_time(latest)} at the latest"
    until = f"; likely until {show_time(likely)}{bound}" if math.isfinite(likely) else ""
    return f"Running on {where} since {since}{until}."
