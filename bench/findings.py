"""Is the idle found, and is nobody condemned who works? The labelled set of ``tests/behaviours``, looked at
every minute as the server would.

A busy behaviour is *warned* if it is once called idle or stuck as a whole, and *stopped* if that lasts until
the act, where the policy is to stop. Lateness is counted from the first minute at which a finding could be
made: the truth's begin, and the window of the kind that was found.
"""

from collections.abc import Callable, Iterator
from statistics import median

import msgspec

from bench.behaviours import Behaviour, Label, Truth, load
from bench.figures import Figure
from bench.played import Played
from muster.model.units import DAY, MINUTE, parse_seconds
from muster.steward.find import find
from muster.steward.findings import Finding
from muster.steward.idle import idle_window_seconds
from muster.steward.respond import Handled, StopIt, respond
from muster.steward.rules import Response, Rules
from muster.steward.stuck import stuck_window_seconds
from muster.steward.watch import Watched

_BACK_SECONDS = DAY  # how many minutes are kept at hand
# As on one machine, but that the idle and the stuck are stopped in the end.
STOPPING = Rules(on_idle=Response("stop"), on_stuck=Response("stop"))
_PASSED_SECONDS = 2 * MINUTE  # after which use that began again has been rolled up


class Verdict(msgspec.Struct, frozen=True):
    """What was found of a behaviour, beside its truth."""

    behaviour: Behaviour
    found: bool = False  # what is true of it, while it is true
    noted: bool = False  # of what is idle or stuck at least a GPU, as unused
    late_seconds: float | None = None
    stopped: bool = False  # while it worked
    wrongly: tuple[str, ...] = ()  # sentences about a job that works
    wrong_notes: tuple[str, ...] = ()  # sentences about a GPU that works


def judge(played: Played, rules: Rules, every_seconds: float = MINUTE) -> Verdict:
    """Looks at it again and again, until its end."""
    behaviour, truth = played.behaviour, played.behaviour.truth
    late: dict[tuple[int, ...], float] = {}  # by the devices that it is about
    noted = stopped = False
    handled: tuple[Handled, ...] = ()
    wrong: dict[tuple[bool, str], str] = {}
    for now in played.looks(every_seconds):
        watched, after = played.watched_at(now, _BACK_SECONDS), now - played.started_at
        is_true, just_was = truth.holds_at(after), truth.holds_at(after - _PASSED_SECONDS)
        found = find(watched, rules, now)
        answer = respond(found, handled, rules, now)
        handled = answer.handled
        works = truth.label == "busy" or not is_true
        stopped |= works and any(isinstance(step, StopIt) for step in answer.steps)
        for finding in found:
            is_right = _is_right(finding, truth)
            if is_right and is_true and finding.whole == (truth.label != "busy"):
                late.setdefault(finding.devices, _late_seconds(finding, watched, played, rules, now))
            elif is_right and is_true:
                noted = True
            elif not (is_right and just_was):
                wrong.setdefault((finding.whole, finding.kind), f"{behaviour.name}: {finding.sentence()}")
    is_found = bool(late) and {device for devices in late for device in devices} >= set(truth.gpus)
    wrongly = tuple(sentence for (whole, _), sentence in wrong.items() if whole)
    notes = tuple(sentence for (whole, _), sentence in wrong.items() if not whole)
    lateness = max(late.values()) if is_found else None
    return Verdict(behaviour, is_found, noted, lateness, stopped, wrongly, notes)


def _is_right(finding: Finding, truth: Truth) -> bool:
    """Whether it says what is true. What died in a deadlock may be called idle, and so may each GPU of it."""
    if finding.kind == "gpu-memory":
        return truth.label == "greedy"
    return truth.label in ("idle", "stuck") or (not finding.whole and set(finding.devices) <= set(truth.gpus))


def _late_seconds(finding: Finding, watched: Watched, played: Played, rules: Rules, now: float) -> float:
    since = played.started_at + parse_seconds(played.behaviour.truth.since or "0s")
    if finding.kind == "gpu-memory":
        return now - since
    window = (
        stuck_window_seconds(watched, rules)
        if finding.kind == "stuck"
        else idle_window_seconds(watched, rules)
    )
    return now - since - window


def measure(remark: Callable[[str], None] = lambda _: None, seeds: int = 1) -> Iterator[Figure]:
    """Of each behaviour as many as there are seeds, which differ in their jitter and where minutes begin."""
    verdicts = [judge(Played(behaviour, seed), STOPPING) for behaviour in load() for seed in range(seeds)]
    for verdict in verdicts:
        for sentence in _misses(verdict):
            remark(sentence)
    busy = [v for v in verdicts if v.behaviour.truth.label == "busy"]
    yield _count("busy-stopped", [v for v in busy if v.stopped], busy, policy="stop")
    yield _count("busy-warned", [v for v in busy if v.wrongly], busy)
    early = [v for v in verdicts if v.behaviour.truth.label != "busy"]
    yield _count("warned-too-early", [v for v in early if v.wrongly], early)
    yield _count("gpu-wrongly-noted", [v for v in verdicts if v.wrong_notes], verdicts)
    for label in ("idle", "stuck", "greedy"):
        yield _found(f"{label}-found", [v for v in verdicts if v.behaviour.truth.label == label])
    yield _found("unused-gpu-found", [v for v in busy if v.behaviour.truth.gpus])


def _found(name: str, true: list[Verdict]) -> Figure:
    late = [v.late_seconds / MINUTE for v in true if v.late_seconds is not None]
    beside: dict[str, float] = {}
    if noted := sum(v.noted and not v.found for v in true):
        beside["only_a_gpu_noted"] = noted
    if late:
        beside |= {"late_median_minutes": median(late), "late_worst_minutes": max(late)}
    return _count(name, [v for v in true if v.found], true, beside)


def _count(
    name: str,
    some: list[Verdict],
    of: list[Verdict],
    beside: dict[str, float] | None = None,
    policy: str = "default",
) -> Figure:
    return Figure(name, f"of {len(of)}", policy, len(some), "behaviours", beside=beside or None)


def _misses(verdict: Verdict) -> Iterator[str]:
    truth = verdict.behaviour.truth
    because = f"; {truth.wronged}" if truth.wronged else ""
    yield from (f"{sentence}{because}" for sentence in (*verdict.wrongly, *verdict.wrong_notes))
    expects: Label | str = truth.label if truth.label != "busy" else "unused GPU" * bool(truth.gpus)
    if expects and not verdict.found:
        yield f"{verdict.behaviour.name}: {expects}, and not found; {truth.missed or 'nobody expected that'}"
