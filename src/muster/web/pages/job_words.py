"""What a job's page says in words: one sentence on the whole, and how it will end."""

from collections.abc import Iterator

import msgspec

from muster.layout.ranges import fold
from muster.model.errors import BadInput
from muster.model.state import State
from muster.model.units import HOUR, show_count, show_seconds
from muster.server.answers import JobView
from muster.steward.budget import GPU_HOURS, parse_budget
from muster.web import words


class End(msgspec.Struct, frozen=True):
    """One of the ways in which it ends. ``at`` None: nobody knows when."""

    what: str
    at: float | None = None
    how: str = ""


def sentence(view: JobView, now: float) -> str:
    """Whose it is, how it is, and when it ends."""
    said = [f"{_whose(view)}{_how(view, now)}{_used(view)}."]
    if view.budget is not None and view.state is not State.ENDED:
        said.append(f"{view.budget.share:.0%} of {view.budget.text} spent.")
    nearest = min(
        (end for end in ends_of(view, now) if end.at is not None), key=lambda end: end.at or 0.0, default=None
    )
    if nearest is not None and nearest.at is not None and view.state is not State.ENDED:
        said.append(f"It ends {words.clock(nearest.at, now)} at the latest: {nearest.what}.")
    elif view.state is not State.ENDED and not (view.success or view.failure):
        said.append("Nobody said when it ends.")
    return " ".join(said)


def _whose(view: JobView) -> str:
    what = f"array of {view.array.count:,}" if view.counts is not None and view.array is not None else "job"
    answers = view.answers or view.owner
    return f"{_possessive(answers)} {what}" if answers else f"Nobody's {what}"


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _how(view: JobView, now: float) -> str:
    if view.counts is not None:
        return ": " + ", ".join(f"{n:,} {state.lower()}" for state, n in view.counts.items())
    if view.state is State.ENDED:
        return _ended(view, now)
    if view.started_at is None:
        waited = show_seconds(max(1.0, now - view.submitted_at))
        return f" {'is held back' if view.state is State.HELD else 'has waited'} for {waited} now"
    holding = show_count(view.gpus, "GPU") if view.gpus else show_count(view.cpus, "cpu")
    ran = show_seconds(max(1.0, now - view.started_at))
    verb = {State.SUSPENDED: "stands still", State.STOPPING: "is on its way out"}.get(view.state, "runs")
    where = f" on {words.shorten(fold(view.nodes), 60)}" if view.nodes else ""
    return f" {verb}, for {ran} now, with {holding}{where}"


def _ended(view: JobView, now: float) -> str:
    how = (view.verdict or (view.outcome.value if view.outcome else "ended")).lower().replace("_", " ")
    ran = ""
    if view.started_at is not None and view.ended_at is not None:
        ran = f" after {show_seconds(max(0.0, view.ended_at - view.started_at))}"
    return f" ended as {how}{ran}, {words.ago(view.ended_at, now)}"


def _used(view: JobView) -> str:
    if view.used is None or view.used.share is None or view.counts is not None:
        return ""
    return f", and truly uses {view.used.share:.0%}"


def ends_of(view: JobView, now: float) -> list[End]:
    """How it ends if nobody does anything, what is known to come first at first."""
    return sorted(_ends(view, now), key=lambda end: (end.at is None, end.at or 0.0))


def _ends(view: JobView, now: float) -> Iterator[End]:
    if view.until is not None:
        yield End("its date", view.until)
    if view.time_limit_seconds is not None:
        at = (
            None
            if view.started_at is None or view.counts is not None
            else view.started_at + view.time_limit_seconds
        )
        yield End(f"its time limit of {show_seconds(view.time_limit_seconds)}", at)
    budget = view.budget
    if budget is not None and budget.decide_by is not None:
        yield End("its budget is spent, and nobody extends it", budget.decide_by)
    elif budget is not None:
        yield End(
            f"its budget of {budget.text}", _spent_at(view, now), "at the present rate it is paused then"
        )
    for condition in view.success:
        yield End(f"won, if {condition}")
    for condition in view.failure:
        yield End(f"lost, if {condition}")


def _spent_at(view: JobView, now: float) -> float | None:
    """Only of GPU-hours: what else is held has no rate that the view tells."""
    if view.budget is None or view.started_at is None or view.counts is not None or not view.gpus:
        return None
    try:
        budget = parse_budget(view.budget.text)
    except BadInput:
        return None
    if budget.unit != GPU_HOURS:
        return None
    return now + max(0.0, float(budget.amount) - view.budget.spent) / view.gpus * HOUR
