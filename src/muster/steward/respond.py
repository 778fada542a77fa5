"""From findings to steps: what is done now, given what was done before.

Each finding is handled on its own: noted, or warned of, at most twice, and then acted on, if the policy
says so and the finding has lasted. When it is gone, the clock stops. When it comes back, the time that it
must last before an act starts anew, and warnings that were given still count: nobody is flooded by what
comes and goes, and nobody is stopped the moment it returns. What has been gone for long is forgotten.

Fail safe: only a finding that is there now leads to a step. One whose meter falls silent is gone.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from muster.model.job import JobId
from muster.model.units import show_seconds
from muster.steward.findings import Finding, Subject
from muster.steward.rules import ACTS, Act, Response, Rules

_DONE = {"suspend": "suspended", "stop": "stopped"}


class Step(msgspec.Struct, frozen=True, tag=True):
    """Something to do about a finding."""

    finding: Finding

    @property
    def attempt(self) -> tuple[JobId, int]:
        return self.finding.job, self.finding.attempt

    def sentence(self) -> str:
        return self.finding.sentence()


class Note(Step, frozen=True):
    """Show it; tell nobody."""


class Warn(Step, frozen=True):
    """Tell the owner."""

    number: int
    of: int
    then: Act = "warn"  # what follows
    in_seconds: float | None = None  # when, unless the finding goes away; None: nothing follows

    def sentence(self) -> str:
        said = f"warning {self.number} of {self.of}: {self.finding.sentence()}"
        if self.in_seconds is None:
            return said
        return f"{said}. Unless that changes, it is {_DONE[self.then]} in {show_seconds(self.in_seconds)}"


class _Final(Step, frozen=True):
    reason: str  # in a sentence, for the record

    def sentence(self) -> str:
        return self.reason


class SuspendIt(_Final, frozen=True):
    """It stands still, and keeps its seats."""


class StopIt(_Final, frozen=True):
    """It ends, with a checkpoint if it can make one."""


class Handled(msgspec.Struct, frozen=True):
    """What was done about a finding."""

    subject: Subject
    found_at: float  # this time; it may have been there before
    noted: bool = False
    warned: int = 0
    warned_at: float | None = None  # the last time
    acted_at: float | None = None  # this time
    gone_at: float | None = None  # None: it is there


class Answer(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...] = ()
    handled: tuple[Handled, ...] = ()  # to be given back at the next look


def respond(findings: Iterable[Finding], handled: Iterable[Handled], rules: Rules, now: float) -> Answer:
    """What to do now. ``findings`` are all there are, and ``handled`` all that the last answer said."""
    found = {finding.subject: finding for finding in findings}
    before = {one.subject: one for one in handled}
    muted = set(_said_already(found, rules))
    steps: list[Step] = []
    kept: list[Handled] = []
    for subject, finding in found.items():
        current = _met(before.get(subject), subject, rules, now)
        response = Response("note") if subject in muted else response_to(finding, rules)
        step = _next(finding, current, response, now)
        kept.append(current if step is None else _after(current, step, now))
        if step is not None:
            steps.append(step)
    gone = (replace(b, gone_at=now if b.gone_at is None else b.gone_at) for b in before.values())
    kept += (one for one in gone if one.subject not in found and not _is_forgotten(one, rules, now))
    return Answer(tuple(_one_end_each(steps)), tuple(kept))


def response_to(finding: Finding, rules: Rules) -> Response:
    """The policy for this finding."""
    if finding.kind == "gpu-memory":
        return rules.on_gpu_memory
    if finding.kind == "idle":
        return rules.on_idle if finding.whole else rules.on_unused_gpu
    if not finding.sure and ACTS.index(rules.on_stuck.act) > ACTS.index("warn"):
        return replace(rules.on_stuck, act="warn")
    return rules.on_stuck


def _said_already(found: dict[Subject, Finding], rules: Rules) -> Iterator[Subject]:
    """Of an attempt both idle and stuck only the graver is followed: what died is both, and is told once."""
    for subject, finding in found.items():
        if subject.kind != "stuck":
            continue
        other = replace(subject, kind="idle")
        if other in found:
            idle, stuck = (response_to(f, rules).act for f in (found[other], finding))
            yield other if ACTS.index(stuck) > ACTS.index(idle) else subject


def _met(before: Handled | None, subject: Subject, rules: Rules, now: float) -> Handled:
    """What was done about it so far, if it is known; anew, in part or whole, if it was gone."""
    if before is None or _is_forgotten(before, rules, now):
        return Handled(subject, now)
    if before.gone_at is None:
        return before
    return replace(before, found_at=now, acted_at=None, gone_at=None)


def _is_forgotten(one: Handled, rules: Rules, now: float) -> bool:
    return one.gone_at is not None and now - one.gone_at >= rules.forget_seconds


def _next(finding: Finding, current: Handled, response: Response, now: float) -> Step | None:
    """The one thing to do now, or nothing."""
    if response.act == "note":
        return None if current.noted else Note(finding)
    if current.acted_at is not None:
        return None
    if current.warned < response.warnings:
        is_due = current.warned_at is None or now >= current.warned_at + response.between_seconds
        return _warning(finding, current, response, now) if is_due else None
    if response.act == "warn" or now < _acts_at(current, response):
        return None
    final = StopIt if response.act == "stop" else SuspendIt
    return final(finding, _reason(finding, current, response, now))


def _warning(finding: Finding, current: Handled, response: Response, now: float) -> Warn:
    number = current.warned + 1
    if response.act == "warn":
        return Warn(finding, number, response.warnings)
    left = (response.warnings - number) * response.between_seconds + response.grace_seconds
    acts_in = max(left, current.found_at + response.lead_seconds - now)
    return Warn(finding, number, response.warnings, response.act, acts_in)


def _acts_at(current: Handled, response: Response) -> float:
    """Never sooner after it came back than after it first came."""
    warned_at = current.warned_at or 0.0
    return max(warned_at + response.grace_seconds, current.found_at + response.lead_seconds)


def _reason(finding: Finding, current: Handled, response: Response, now: float) -> str:
    times = "once" if current.warned == 1 else "twice"
    ago = "" if current.warned_at is None else f", the last time {show_seconds(now - current.warned_at)} ago"
    return f"{_DONE[response.act]}: {finding.sentence()}; its owner was warned {times}{ago}"


def _after(current: Handled, step: Step, now: float) -> Handled:
    if isinstance(step, Note):
        return replace(current, noted=True)
    if isinstance(step, Warn):
        return replace(current, warned=step.number, warned_at=now)
    return replace(current, acted_at=now)


def _one_end_each(steps: list[Step]) -> Iterator[Step]:
    """An attempt that is stopped, or suspended, is so once, and nothing else is said of it."""
    ends: dict[tuple[JobId, int], Step] = {}
    for kind in (SuspendIt, StopIt):  # the graver last
        ends |= {step.attempt: step for step in reversed(steps) if isinstance(step, kind)}
    return (step for step in steps if ends.get(step.attempt, step) is step)
