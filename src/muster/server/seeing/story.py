"""A job's story: who submitted, held, amended, defended, evicted and ended it, in lines. Pure.

It is told from the facts about it, in their order, with the name of who did it where that was written down.
Being placed and having started is one line; what only the scheduler cares for is left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from muster.layout.ranges import fold
from muster.model.charter import Charter
from muster.model.events import (
    Amended,
    ArraySubmitted,
    Event,
    Evicting,
    Exited,
    Found,
    Held,
    Outcome,
    Placed,
    Promised,
    Released,
    Resumed,
    Retried,
    Seat,
    Seated,
    Started,
    Stopping,
    Submitted,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job
from muster.model.stewardship import BudgetReached, BudgetWarned, DateWarned, Defended
from muster.model.units import show_seconds
from muster.server.answers import StoryLine
from muster.server.seeing.queue import wants_of
from muster.store.stewardship import difference

Said = tuple[str, str, str]  # what, in words, and by whom


class _Teller:
    """Goes through the facts, and remembers what a later one is compared with."""

    def __init__(self) -> None:
        self.charter = Charter()
        self.seats: tuple[Seat, ...] = ()
        self.was_promised = False

    def said(self, event: Event) -> Said | None:
        tell = _TELLERS.get(type(event))
        return None if tell is None else tell(self, event)

    def submitted(self, event: Submitted) -> Said:
        return self._submitted(event.job, "")

    def array_submitted(self, event: ArraySubmitted) -> Said:
        return self._submitted(event.template, f", {len(event.indices):,} members")

    def _submitted(self, job: Job, members: str) -> Said:
        self.charter = job.charter
        purpose = f": {job.charter.purpose}" if job.charter.purpose else ""
        again = f", going on with job {job.revives}" if job.revives else ""
        return "submitted", f"{wants_of(job.gang)}{members}{again}{purpose}", job.owner

    def held(self, event: Held) -> Said:
        return "held", event.because, ""

    def released(self, _: Released) -> Said:
        return "released", "", ""

    def promised(self, event: Promised) -> Said | None:
        if self.was_promised:
            return None
        self.was_promised = True
        where = f" on {fold(dict.fromkeys(event.nodes))}" if event.nodes else ""
        return "promised", f"room is kept for it{where}", ""

    def took_seats(self, event: Placed | Seated) -> None:
        self.seats = event.seats

    def started(self, event: Started) -> Said:
        return "started", f"attempt {event.attempt}{self._where()}", ""

    def _where(self) -> str:
        gpus = sum(len(seat.devices) for seat in self.seats)
        nodes = fold(dict.fromkeys(seat.node for seat in self.seats))
        return (f" on {nodes}" if nodes else "") + (f", {gpus} GPU{'s' * (gpus > 1)}" if gpus else "")

    def suspended(self, event: Suspended) -> Said:
        return "paused", event.because, ""

    def resumed(self, _: Resumed) -> Said:
        return "resumed", "", ""

    def evicting(self, event: Evicting) -> Said:
        favour = f", in favour of job {event.in_favour_of}" if event.in_favour_of else ""
        return "evicted", f"{event.because}{favour}", ""

    def vacated(self, event: Vacated) -> Said:
        lost = f"; {show_seconds(event.lost_seconds)} of work lost" if event.lost_seconds >= 1 else ""
        return "requeued", f"{event.because}{lost}", ""

    def retried(self, event: Retried) -> Said:
        how = _how(event.outcome, event.exit_code, event.signal)
        return "retried", f"{how}; {event.because or 'tried again, as asked'}", ""

    def stopping(self, event: Stopping) -> Said:
        return "stopping", event.because, ""

    def exited(self, event: Exited) -> Said:
        how = _how(event.outcome, event.exit_code, event.signal)
        if event.verdict is not None:
            because = f": {event.because}" if event.because else ""
            return "verdict", f"{event.verdict}{because} ({how})", ""
        return "ended", how, ""

    def withdrawn(self, event: Withdrawn) -> Said:
        verdict = f"{event.verdict}: " if event.verdict is not None else ""
        return "ended", f"{verdict}{event.because or _how(event.outcome)}, before it ran", ""

    def amended(self, event: Amended) -> Said:
        said = difference(self.charter, event.charter)
        self.charter = event.charter
        limit = event.time_limit_seconds
        more = [] if limit is None else [f"time limit {show_seconds(limit)}"]
        more += [] if event.effort is None else [f"effort {event.effort}"]
        said = ", ".join([*([] if more and said == "nothing changed" else [said]), *more])
        return "amended", _with(said, event.because), event.by

    def found(self, event: Found) -> Said:
        return ("warned" if event.act == "warn" else "found"), event.sentence, ""

    def defended(self, event: Defended) -> Said:
        self.charter = event.charter
        return "defended", event.because, event.by

    def budget_warned(self, event: BudgetWarned) -> Said:
        return "warned", f"{event.spent:.3g} of its budget of {event.budget} is spent", ""

    def budget_reached(self, event: BudgetReached) -> Said:
        return "paused", event.because, ""

    def date_warned(self, _: DateWarned) -> Said:
        return "warned", "its end date is near", ""


_TELLERS: dict[type[Event], Callable[[_Teller, Any], Said | None]] = {
    Submitted: _Teller.submitted,
    ArraySubmitted: _Teller.array_submitted,
    Held: _Teller.held,
    Released: _Teller.released,
    Promised: _Teller.promised,
    Placed: _Teller.took_seats,
    Seated: _Teller.took_seats,
    Started: _Teller.started,
    Suspended: _Teller.suspended,
    Resumed: _Teller.resumed,
    Evicting: _Teller.evicting,
    Vacated: _Teller.vacated,
    Retried: _Teller.retried,
    Stopping: _Teller.stopping,
    Exited: _Teller.exited,
    Withdrawn: _Teller.withdrawn,
    Amended: _Teller.amended,
    Found: _Teller.found,
    Defended: _Teller.defended,
    BudgetWarned: _Teller.budget_warned,
    BudgetReached: _Teller.budget_reached,
    DateWarned: _Teller.date_warned,
}
KINDS = frozenset(kind.__name__ for kind in _TELLERS)


def lines_of(facts: Iterable[Event], ahead: float) -> list[StoryLine]:
    """In the order of their time. Of what was ordered and then done there are two facts, and one line."""
    teller = _Teller()
    lines: list[StoryLine] = []
    for event in sorted(facts, key=lambda one: one.at):
        said = teller.said(event)
        if said is not None and not (lines and _is_again(lines[-1], said)):
            what, text, by = said
            lines.append(StoryLine(event.at + ahead, what, text, by))
    return lines


def _is_again(line: StoryLine, said: Said) -> bool:
    what, text, by = said
    return line.what == what and line.by == by and text in ("", line.text)


def _how(outcome: Outcome, exit_code: int | None = None, signal: int | None = None) -> str:
    said = outcome.value.lower().replace("_", " ")
    said += f", exit code {exit_code}" if exit_code else ""
    return said + (f", by signal {signal}" if signal else "")


def _with(said: str, because: str) -> str:
    return f"{said}: {because}" if because else said


_TOLD = (
    ("started", "started"),
    ("evicted", "evicted"),
    ("requeued", "sent back to the queue"),
    ("retried", "tried again"),
    ("defended", "defended"),
    ("warned", "warned"),
)


def sentence_of(job_id: str, lines: Sequence[StoryLine]) -> str:
    """``Job 481 was submitted by ana, started twice, evicted once; …``."""
    if not lines:
        return f"Nothing is known of what happened to job {job_id}."
    counts, first, last = Counter(line.what for line in lines), lines[0], lines[-1]
    by = f" by {first.by}" if first.by else ""
    said = [f"submitted{by}", *(f"{words} {_times(counts[what])}" for what, words in _TOLD if counts[what])]
    end = f"; {last.text}" if last.what in ("ended", "verdict") and last.text else ""
    return f"Job {job_id} was {', '.join(said)}{end}."


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
