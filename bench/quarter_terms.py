"""Budgets and dates of the simulated work: warned of, asked about, paused or ended.

Amounts are the real ones (``steward.budget``): warned of when most is spent, paused when all is. Whoever
answers extends what is still useful, by as much again, and ends what is not; what nobody answers for
stays paused, and ends when the time to decide is over.
"""

from fractions import Fraction

import msgspec

from bench.quarter_run import Track
from bench.quarter_steward import Stewarding
from muster.model.charter import Charter, Verdict
from muster.model.events import Amended, Released
from muster.model.job import JobId
from muster.model.units import DAY, HOUR
from muster.server.stewardship.ending import hold_back
from muster.steward.budget import WARN_SHARE, BudgetRules, extended, parse_budget
from muster.steward.dates import warn_at

_RULES = BudgetRules(pause="requeue")  # the simulated engine can't let anything stand still


class _Terms(msgspec.Struct):
    """What was said about one job's terms."""

    warned: bool = False
    date_warned: bool = False
    paused: bool = False


class Terms:
    """The budgets and dates of all that runs."""

    def __init__(self, steward: Stewarding) -> None:
        self._steward = steward
        self._said: dict[JobId, _Terms] = {}

    def look(self, now: float) -> None:
        for track in self._steward.going():
            if track.job.charter.budget is not None:
                self._budget(track, now)
            elif track.job.charter.until is not None:
                self._date(track, now)

    # --- Budgets ----------------------------------------------------------------------------------

    def _budget(self, track: Track, now: float) -> None:
        assert track.job.charter.budget is not None
        amount = parse_budget(track.job.charter.budget).amount
        spent, said = Fraction(spent_hours(track, now)), self._of(track)
        if spent >= amount:
            self._pause(track, said, now)
        elif spent >= WARN_SHARE * amount and not said.warned:
            said.warned = True
            self._steward.ask(track, now, lambda at: self._decide(track, at))

    def _pause(self, track: Track, said: _Terms, now: float) -> None:
        steward = self._steward
        said.paused = True
        steward.told.add(track.job.id)
        hold_back(steward, [steward.stage.fold.records[track.job.id]], "its budget is spent")
        steward.ask(track, now, lambda at: self._decide(track, at))
        steward.at(now + _RULES.decide_seconds, lambda at: self._give_up(track, said, at))

    def _decide(self, track: Track, now: float) -> None:
        """Its owner extends what is useful, and ends most of what is not."""
        steward, said = self._steward, self._of(track)
        if track.ended_at is not None or not (said.paused or steward.is_going(track)):
            return
        if not steward.is_useful(track, now) and steward.lets_it_end():
            said.paused = False
            steward.end(track, now, Verdict.OUT_OF_BUDGET, "budget")
            return
        assert track.job.charter.budget is not None
        self._amend(track, extended(track.job.charter, budget=f"+{track.job.charter.budget}"), now)
        if said.paused:
            steward.note(Released(now, track.job.id))
        self._said[track.job.id] = _Terms()

    def _give_up(self, track: Track, said: _Terms, now: float) -> None:
        if said is self._said.get(track.job.id) and said.paused and track.ended_at is None:
            said.paused = False
            self._steward.end(track, now, Verdict.OUT_OF_BUDGET, "budget")

    # --- Dates ------------------------------------------------------------------------------------

    def _date(self, track: Track, now: float) -> None:
        until, said = track.job.charter.until, self._of(track)
        assert until is not None
        if now >= until:
            self._steward.end(track, now, Verdict.OUT_OF_TIME, "date")
        elif now >= warn_at(track.job.submitted_at, until) and not said.date_warned:
            said.date_warned = True
            self._steward.ask(track, now, lambda at: self._prolong(track, at))

    def _prolong(self, track: Track, now: float) -> None:
        """By as long as it had from its submission."""
        steward, until = self._steward, track.job.charter.until
        if not steward.is_going(track) or until is None:
            return
        if steward.is_useful(track, now) or not steward.lets_it_end():
            later = until + max(DAY, until - track.job.submitted_at)
            self._amend(track, extended(track.job.charter, until=later), now)
            self._said[track.job.id] = _Terms()

    # --- Both -------------------------------------------------------------------------------------

    def _of(self, track: Track) -> _Terms:
        return self._said.setdefault(track.job.id, _Terms())

    def _amend(self, track: Track, charter: Charter, now: float) -> None:
        track.job = msgspec.structs.replace(track.job, charter=charter)
        self._steward.note(Amended(now, track.job.id, charter, track.job.owner, "it is still useful"))


def spent_hours(track: Track, now: float) -> float:
    """GPU-hours that it has held."""
    held = sum(span.end - span.begin for span in track.spans)
    running = 0.0 if track.placed_at is None else now - track.placed_at
    return track.work.gpus * (held + running) / HOUR
