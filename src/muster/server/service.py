"""The service: all state, and everything that may change it. One thread, one order.

People's commands and the engine's facts become events, which are folded in at once. Then, in one *turn*,
a cycle decides, its consequences are folded in as well, and all events of the turn are handed to the
journal as one parcel. What follows from a parcel happens when it is durable, not before: actions go to the
engine, answers to whoever asked. So a crash at any instant loses nothing that was answered, and starts
nothing that is not written down.

A cycle that is quick runs right here; one that was slow the last time runs in a thread, on a snapshot, so
that neither the API nor the engine's facts wait for it. Its plan is checked against what happened
meanwhile: a step that is no longer allowed is dropped, and the next cycle sees to it.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Protocol

import msgspec

from muster.engines.base import Host
from muster.home import Home
from muster.model.charter import Verdict
from muster.model.errors import IllegalTransition, MusterError
from muster.model.events import (
    DeviceHealth,
    Event,
    Evicting,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Retried,
    Started,
    StoodDown,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job, JobId
from muster.model.message import Message
from muster.model.node import found_again
from muster.model.plan import Action, Evict, Limit, Plan, Recall, Start, Stop, Suspend
from muster.model.policy import Policy
from muster.model.snapshot import Running, Snapshot
from muster.model.state import State
from muster.model.stewardship import Subject
from muster.model.tenancy import Team
from muster.model.units import MINUTE
from muster.schedule import govern, schedule
from muster.server.answers import JobView
from muster.server.config_tables import Config
from muster.server.endings import Endings
from muster.server.errors import StoreTrouble
from muster.server.keeping import Keeping
from muster.server.lineup import LineUp
from muster.server.looking import ended_row
from muster.server.loop import CHANGES, consequences_of
from muster.server.metering import Metering
from muster.server.parcel import Parcel
from muster.server.people import Directory
from muster.server.reports import Reports
from muster.server.sharing import Sharing
from muster.server.stewardship.budgets import Budgets
from muster.server.stewardship.post import Post
from muster.server.stewardship.review import Reviewing
from muster.server.stewardship.telling import of_mending
from muster.server.stream import Stream
from muster.server.upkeep import draining
from muster.server.views import Views
from muster.server.watching import Watching
from muster.steward.cause import Cause
from muster.store.fold import Fold
from muster.store.journal import Journal

log = logging.getLogger("muster")

_QUICK_SECONDS = 0.005  # a cycle that takes longer goes to a thread
_SAME_SECONDS = 1.0  # between our clock and the wall's: nobody has set it
_RECENT = 2000  # ended jobs whose last view is kept at hand
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 5.0, 10 * MINUTE
_RETRIED = frozenset({Outcome.FAILED, Outcome.NODE_LOST})

Judge = Callable[[Running, Exited], tuple[Verdict | None, str]]  # with the reason


class Service(Sharing, Keeping):
    """What the routes call and the engine feeds."""

    def __init__(self, home: Home, policy: Policy, fold: Fold, journal: Journal, engine: Host) -> None:
        super().__init__(engine)
        self.home, self.policy, self.fold, self.journal, self.engine = home, policy, fold, journal, engine
        self.views = Views(fold, home)
        if self.shared is not None:
            self.views.elsewhere, self.views.host = self.shared.waits_because, engine.name.capitalize()
        self.stream = Stream()
        self.recent: OrderedDict[JobId, JobView] = OrderedDict()
        self.metering: Metering | None = None
        self.endings: Endings | None = None
        self._judged: tuple[JobId, int, Cause | None] | None = None  # the last attempt that was
        self.watching: Watching | None = None
        self.reviewing: Reviewing | None = None
        # Who was told to end by its charter has that verdict; the steward may have one of its own end.
        self.verdict: Judge = lambda running, _: (running.verdict, running.because or "")
        self.tell: Callable[[Message], None] = lambda message: log.info("%s", message)
        self.listeners: list[Callable[[Event], None]] = []  # told of every fact, once it is folded in
        self.reports: Reports | None = None
        self.directory = Directory(Config())  # who there is, by the configuration in force
        self.post: Post | None = None
        self.when_clock_is_set: list[Callable[[], None]] = []
        self.budgets: Budgets | None = None
        self.ended = Counter(fold.ended)  # by team and outcome, as far as it is durable
        self.cycles, self.cycle_seconds, self.last_cycle_seconds = 0, 0.0, 0.0
        self.plan = Plan()
        self._cycle: Cycle = schedule if engine.capabilities.places else govern
        self._stale = True  # whether something has changed since the last cycle
        self._stirred = False
        self._deciding = False
        self._line_up = LineUp()
        self._waker: asyncio.TimerHandle | None = None
        self._impatient: asyncio.TimerHandle | None = None  # of those who are lined up
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cycle")

    # --- Beginning and end --------------------------------------------------------------------------

    def begin(self, teams: Iterable[Team]) -> None:
        """Compare what was written down with what is there, and go on."""
        self.look_at_the_wall()
        now = self.now()
        if self.metering is not None:
            self.metering.begin(now)
        if self.reports is not None:
            self.reports.begin()
        self._tell_host_what_is_known()
        for found in self.engine.nodes():
            known = self.fold.nodes.get(found.name)
            node = found if known is None else found_again(found, known)
            if node != known:
                self.note(NodeSeen(now, node))
        self.set_teams(teams)
        for fact in self.engine.observe(0.0):  # what happened while nobody listened
            self._take(fact)
        self._reconcile()
        self._dissolve_closed_lines()  # if nobody was recalled before the end
        self._loop.add_reader(self.engine.fileno(), self.stir)
        self.stir()

    def order(self, action: Action) -> None:
        """Have something done of which the engine tells what comes of it. In the turn that follows."""
        self._act(action)
        self.stir()

    def set_policy(self, policy: Policy) -> None:
        """Decide by other rules from now on."""
        self.policy = policy
        self._wake()

    def set_teams(self, teams: Iterable[Team]) -> None:
        for team in teams:
            if self.fold.teams.get(team.name) != team:
                self.note(TeamSet(self.now(), team))

    def _reconcile(self) -> None:
        """What was decided and perhaps never carried out is carried out now: acting twice does no harm."""
        known = self.engine.running()
        for head in list(self.fold.running.values()):
            line = self.fold.line_behind(head.job.id)
            self._reconcile_one(head, known)
            for ahead, one in pairwise([head, *line]):
                behind = (ahead.job.id, ahead.attempt)
                self._act(Start(one.job.id, one.attempt, one.seats, behind=behind))
                if one.state is State.STOPPING:
                    self._act(_last_word(one))

    def _reconcile_one(self, running: Running, known: set[tuple[JobId, int]]) -> None:
        job_id, attempt = running.job.id, running.attempt
        if running.job.adopted is not None or not self.engine.capabilities.starts:
            if running.state is State.STOPPING and self.reaches(running.job):
                self._act(_last_word(running))
            return
        if running.state is State.STARTING:
            self._act(Start(job_id, attempt, running.seats))
        elif (job_id, attempt) not in known:
            self._lost(running)
        elif running.state is State.SUSPENDED:
            self._act(Suspend(job_id, attempt))
        elif running.state is State.STOPPING:
            self._act(_last_word(running))
        self._act(Limit(job_id, attempt, running.job.time_limit_seconds))  # it may have been extended

    def _lost(self, running: Running) -> None:
        """The engine has never heard of it, or has forgotten: it is gone."""
        now, job_id, attempt = self.now(), running.job.id, running.attempt
        if _is_to_end(running):
            self._over(Exited(now, job_id, attempt, Outcome.STOPPED))
        else:
            self._over(Vacated(now, job_id, attempt, "node lost", running.elapsed(now)))

    def end(self) -> None:
        """Write down what is under way. Jobs go on."""
        self._loop.remove_reader(self.engine.fileno())
        for timer in (self._waker, self._impatient):
            if timer is not None:
                timer.cancel()
        if self.reports is not None:
            self.reports.end()
        self.hand_over()
        if self.metering is not None:
            self.metering.end()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self.journal.close()

    # --- Commands (see ``commands``) and facts ------------------------------------------------------

    def now(self) -> float:
        return self.engine.now()

    def wall(self) -> float:
        """The time that people know. It may be set; ours can't."""
        return self.now() + self.fold.wall_ahead_seconds

    def look_at_the_wall(self) -> None:
        """Somebody may have set the clock; then other begin times have come, or have not yet."""
        ahead = self.engine.wall_ahead_seconds()
        if abs(ahead - self.fold.wall_ahead_seconds) > _SAME_SECONDS:
            self.fold.wall_ahead_seconds = ahead if abs(ahead) > _SAME_SECONDS else 0.0
            log.warning("the clock is %+.0f s from where it would be had nobody set it", ahead)
            for see_to_it in self.when_clock_is_set:
                see_to_it()
            self._wake()

    def next_id(self, after: int = 0) -> JobId:
        """The next, or the one that comes after so many others."""
        return str(self.fold.submissions + 1 + after)

    def note(self, event: Event, *actions: Action) -> None:
        """Take an event in; its actions follow when it is durable. What is not allowed raises."""
        matters = isinstance(event, CHANGES) and not self.fold.changes_hands(event)
        if isinstance(event, Exited) or (isinstance(event, Withdrawn) and not event.taken_back):
            self._note_end(event)
        else:
            if isinstance(event, Evicting):  # whoever it leaves for gets the seats
                self._dissolve_line(event.job)
            self.fold.apply(event)
            if isinstance(event, NodeHealth | DeviceHealth):
                self._dissolve_closed_lines()
        if self.metering is not None:
            self.metering.saw(event, self._placed_job(event))
        if self.reports is not None:
            self.reports.saw(event)
        self._parcel.events.append(event)
        self._parcel.actions.extend(actions)
        job_id = getattr(event, "job", None)
        if isinstance(job_id, str):
            self._parcel.changed.add(job_id)
        if isinstance(event, Started) and event.job in self._estimated:
            self._estimated.discard(event.job)
            self._parcel.started[event.job] = event.at
        self._stale |= matters
        if self.post is not None:
            self.post.saw(event)
        self.stir()
        for listener in self.listeners:
            listener(event)

    def _placed_job(self, event: Event) -> Job | None:
        running = self.fold.records[event.job].running if isinstance(event, Placed) else None
        return None if running is None else running.job

    def quarantine(self, node: str, device: int | None, because: str) -> None:
        """Muster's own: nothing new starts on the node, or that GPU, until a person brings it back.

        What is drained or down already stays so, for the reason that was given first. On a shared host
        it is said, and nothing else: whether to drain the node there is for a person to decide.
        """
        if self.shared is not None:
            what = node if device is None else f"GPU {device} of {node}"
            log.warning("%s fails, and gets jobs from others; to drain it: muster node drain %s", what, node)
            return
        try:
            event = draining(self.fold, self.now(), node, device, because)
        except IllegalTransition as known:
            log.debug("%s", known)
            return
        self.note(event)
        what, gpu = (node, "") if device is None else (f"GPU {device} of {node}", f" --gpu {device}")
        log.warning("%s is drained: %s; once it is well: muster node resume %s%s", what, because, node, gpu)

    def answered(self, about: Subject, kind: str, because: str) -> None:
        """Nobody needs to answer that any more."""
        if self.post is not None:
            self.post.answered(about, kind, because)

    def _note_end(self, event: Exited | Withdrawn) -> None:
        record = self.fold.records.get(event.job)
        view = None
        if record is not None and record.outcome is None:
            view = self.views.ended(record, event)
            if record.running is not None and isinstance(event, Exited):
                self._judge(view, record.running, event)
        self.fold.apply(event)
        if view is not None:
            self.recent[view.id] = view
            if len(self.recent) > _RECENT:
                self.recent.popitem(last=False)
            self._parcel.ended.append(ended_row(view))

    def _judge(self, view: JobView, running: Running, event: Exited) -> None:
        """Why it failed, how well it used what it held; and what it used is remembered."""
        if self.endings is None or self.metering is None or running.behind is not None:
            return
        self.metering.last_look(event)
        cause = None if event.verdict is not None else self._cause_of(running, event)
        view.cause = None if cause is None else str(cause)
        past = self.endings.remember(running, event)
        if past is not None:
            self._parcel.past.append(past)
            summary = self.endings.summary(running, event.at)
            view.efficiency = [] if summary is None else summary.lines()

    def _cause_of(self, running: Running, event: Exited) -> Cause | None:
        """Looked for once: the end of a log is read for it."""
        key = (event.job, event.attempt)
        if self.endings is None:
            return None
        if self._judged is None or self._judged[:2] != key:
            log = self.views.log_of(running)
            self._judged = (*key, self.endings.cause(running, event, log))
        return self._judged[2]

    def _act(self, action: Action) -> None:
        self._parcel.actions.append(action)

    # --- A turn -------------------------------------------------------------------------------------

    def stir(self) -> None:
        """Something has happened: there will be a turn, after all else that is ready."""
        if not self._stirred:
            self._stirred = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._stirred = False
        for fact in self.engine.observe(0.0):
            self._take(fact)
        if self._stale and not self._deciding:
            self._decide()
        if self.engine.capabilities.lines_up and not self._deciding:
            self._lengthen_lines()
        self._hand_over_soon()

    def _take(self, fact: Event) -> None:
        """One fact of the engine's. What is known already, or no longer of interest, is settled."""
        if isinstance(fact, Started | StoodDown | Exited | Vacated):
            self._line_up.heard_of(fact.job)
        try:
            if isinstance(fact, StoodDown):
                self._stood_down(fact)
            elif isinstance(fact, Exited | Vacated):
                if self.reports is None or self.reports.has_all(fact, self._take):
                    self._over(self._maybe_again(fact))
            else:
                self.note(fact)
        except (IllegalTransition, MusterError) as error:
            log.debug("passed over %s: %s", fact, error)
            if isinstance(fact, Exited | Vacated):
                self._parcel.settled.append((fact.job, fact.attempt))
                self.stir()

    def _stood_down(self, fact: StoodDown) -> None:
        """Who was told to end meanwhile has, by that."""
        record = self.fold.records.get(fact.job)
        running = record.running if record else None
        if running is not None and running.state is State.STOPPING:
            self._lost(running)
        else:
            self.note(fact)

    def _over(self, event: Exited | Vacated | Retried) -> None:
        record = self.fold.records.get(event.job)
        running = record.running if record else None
        if running is None or running.attempt != event.attempt:
            raise IllegalTransition(f"attempt {event.attempt} of job {event.job} is over")
        if isinstance(event, Exited):
            self._line_up.ended(running, event.at)
            verdict, because = self.verdict(running, event)
            event = msgspec.structs.replace(event, verdict=verdict, because=because or event.because)
        self.note(event)
        if isinstance(event, Retried) and event.because:
            self.tell(of_mending(running.job, event.because))
        self._parcel.settled.append((event.job, event.attempt))

    def _maybe_again(self, fact: Exited | Vacated) -> Exited | Vacated | Retried:
        """A failure is tried again, if that was asked for, after an interval that doubles.

        Who had left to wait again when a person's word came to stop it, has ended.
        """
        record = self.fold.records.get(fact.job)
        running = record.running if record else None
        if running is not None and running.job.adopted is not None:  # if it is tried again, others say so
            return fact
        if running is not None and isinstance(fact, Vacated) and _is_to_end(running):
            return Exited(fact.at, fact.job, fact.attempt, Outcome.STOPPED, at_end=fact.at_end)
        if running is None or not isinstance(fact, Exited) or running.state is State.STOPPING:
            return fact
        if not running.job.retries or fact.outcome not in _RETRIED:
            return self._maybe_mended(running, fact)
        after = min(_FIRST_RETRY_SECONDS * 2 ** (fact.attempt - 1), _LONGEST_RETRY_SECONDS)
        again = fact.at + after + self.fold.wall_ahead_seconds
        return Retried(
            fact.at, fact.job, fact.attempt, fact.outcome, fact.exit_code, fact.signal, again, fact.at_end
        )

    def _maybe_mended(self, running: Running, fact: Exited) -> Exited | Retried:
        """What a machine can mend is tried again without asking anybody."""
        cause = self._cause_of(running, fact)
        again = None if cause is None or self.endings is None else self.endings.mended(running, cause)
        if again is None:
            return fact
        how = (fact.outcome, fact.exit_code, fact.signal)
        return Retried(fact.at, fact.job, fact.attempt, *how, None, fact.at_end, again.gang, again.because)

    # --- Deciding -----------------------------------------------------------------------------------

    def _decide(self) -> None:
        self._stale = False
        if not self.fold.waiting_count or not self.engine.capabilities.starts:
            self.plan = self.views.plan = Plan()
            return
        now, snap = self.now(), self.fold.snapshot()
        if self.last_cycle_seconds <= _QUICK_SECONDS:
            plan, seconds = _timed_cycle(self._cycle, snap, self.policy, now)
            self.fold.release()  # nobody else has borrowed meanwhile
            self._carry_out(plan, snap, now, seconds)
        else:
            self._deciding = True
            cycle = self._loop.run_in_executor(
                self._thread, _timed_cycle, self._cycle, snap, self.policy, now
            )
            cycle.add_done_callback(lambda done: self._decided(done, snap, now))

    def _decided(self, done: "asyncio.Future[tuple[Plan, float]]", snap: Snapshot, now: float) -> None:
        self._deciding = False
        if not done.cancelled():
            self._carry_out(*_unpacked(done, snap, now))
            self.stir()

    def _carry_out(self, plan: Plan, snap: Snapshot, now: float, seconds: float) -> None:
        self.cycles += 1
        self.cycle_seconds += seconds
        self.last_cycle_seconds = seconds
        self.plan = self.views.plan = plan
        for fact, action in tuple(consequences_of(plan, snap, now)):
            try:
                self._check_open(fact)
                self.note(fact, *(() if action is None else (action,)))
            except MusterError as error:  # it happened while the cycle ran
                log.debug("dropped %s: %s", fact, error)
                self._stale = True
        self._wake_at(plan.wake_at)

    def _check_open(self, fact: Event) -> None:
        if isinstance(fact, Placed) and not self.fold.is_open(fact.seats):
            raise IllegalTransition(f"what job {fact.job} was to have is out of service")

    # --- Lines --------------------------------------------------------------------------------------

    def _lengthen_lines(self) -> None:
        decided = self._line_up.decided(self.fold, self.now())
        for fact, action in decided:
            self.note(fact, action)
        if decided and self._impatient is None:
            self._impatient = self._loop.call_later(self._line_up.patience_seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        """Who is lined up behind a job that takes long goes back to the queue."""
        self._impatient = None
        now = self.now()
        for head in self._line_up.overdue(self.fold, now):
            self._dissolve_line(head.job.id)
        if self.fold.lined_up:
            self._impatient = self._loop.call_later(self._line_up.patience_seconds, self._lose_patience)

    def _dissolve_line(self, head: JobId) -> None:
        """The last first, so that nobody moves up meanwhile."""
        for one in reversed(self.fold.line_behind(head)):
            self._line_up.recalled(one.job.id)
            self._act(Recall(one.job.id, one.attempt))
        self.stir()

    def _dissolve_closed_lines(self) -> None:
        """Nobody starts any more where something was drained or is down."""
        for head in list(self.fold.running.values()):
            if not self.fold.is_open(head.seats):
                self._dissolve_line(head.job.id)

    def _wake_at(self, at: float | None) -> None:
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None
        if at is not None:
            self._waker = self._loop.call_later(max(0.0, at - self.now()), self._wake)

    def _wake(self) -> None:
        self._stale = True
        self.stir()

    # --- Writing down -------------------------------------------------------------------------------

    def _is_durable(self, parcel: Parcel) -> None:
        self._under_way.remove(parcel)
        if parcel.settled:  # first: one of them may be started again
            self.engine.settle(parcel.settled)
        self.ended.update((row.team, Outcome(row.outcome)) for row in parcel.ended)
        for action in parcel.actions:
            self._tell_engine(action)
        for waiter in parcel.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.engine.flush()
        self.stream.publish(parcel.changed)
        if parcel.actions or parcel.settled:
            self.stir()

    def _tell_engine(self, action: Action) -> None:
        if not isinstance(action, Start) and self._is_over(action):
            return
        try:
            self.engine.act(action)
        except MusterError as error:
            log.warning("job %s could not be acted on: %s", action.job, error)
            if self._is_adopted(action.job):  # it goes on, as far as anybody knows
                return
            self._take(Exited(self.now(), action.job, action.attempt, Outcome.FAILED))

    def _is_over(self, action: Action) -> bool:
        """Whether the attempt has ended while this was being written down."""
        record = self.fold.records.get(action.job)
        running = None if record is None else record.running
        if record is not None and record.waiting is not None and self._is_adopted(action.job):
            return False  # it waits where we have to say that it should not
        return running is None or running.attempt != action.attempt

    def store_failed(self, sentence: str) -> None:
        """The journal can't write. Who submitted and was not answered is refused; the rest waits."""
        log.error("%s", sentence)
        for parcel in (*self._under_way, self._parcel):
            refused = set(parcel.submitted)
            parcel.actions = [a for a in parcel.actions if a.job.partition("_")[0] not in refused]
            for job_id in parcel.submitted:
                self._take_back(job_id)
            for waiter in parcel.waiters:
                if not waiter.done():
                    waiter.set_exception(StoreTrouble(sentence))
            parcel.submitted, parcel.waiters = [], []

    def _take_back(self, job_id: JobId) -> None:
        now = self.now()
        for record in list(self.members_of(job_id)):
            if record.running is not None:
                attempt = record.running.attempt
                self.note(Vacated(now, record.running.job.id, attempt, "could not be written down"))
            if record.waiting is not None:
                self.note(Withdrawn(now, record.waiting.job.id, taken_back=True))


class Cycle(Protocol):
    """A way of deciding."""

    def __call__(self, snap: Snapshot, policy: Policy, *, now: float) -> Plan: ...


def _timed_cycle(cycle: Cycle, snap: Snapshot, policy: Policy, now: float) -> tuple[Plan, float]:
    begun = time.perf_counter()
    plan = cycle(snap, policy, now=now)
    return plan, time.perf_counter() - begun


def _unpacked(
    done: "asyncio.Future[tuple[Plan, float]]", snap: Snapshot, now: float
) -> tuple[Plan, Snapshot, float, float]:
    plan, seconds = done.result()
    return plan, snap, now, seconds


def _is_to_end(running: Running) -> bool:
    return running.state is State.STOPPING and not running.evicted


def _last_word(running: Running) -> Action:
    """What a job that is stopping was told."""
    job_id, attempt, because = running.job.id, running.attempt, running.because or ""
    if running.evicted:
        return Evict(job_id, attempt, because, running.in_favour_of)
    return Stop(job_id, attempt, because)
