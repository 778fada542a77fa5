"""What people and the steward did in the simulated week, besides submitting: as the events of their doing.

Efforts with charters and budgets, defences, a review that has closed and one that is open, hardware that
fails, and what idle work was told. Where the steward has a function for it, that function says it.
"""

from functools import partial

import msgspec

from muster.demo.past import Past
from muster.demo.people import LEFT, VISITOR
from muster.model.charter import Charter, Verdict
from muster.model.events import DeviceHealth, Held, NodeHealth
from muster.model.ledger import held_between, span_of
from muster.model.node import Health
from muster.model.review import PersonSeen, ReviewClosed, ReviewListed, ReviewOpened
from muster.model.stewardship import (
    Defended,
    Effort,
    EffortClosed,
    EffortNoted,
    EffortOpened,
    EffortPaused,
    of_job,
)
from muster.model.units import DAY, HOUR, MILLI, WEEK
from muster.model.usage import Usage
from muster.server.stewardship.words import undefended_at
from muster.server.stewardship.zones import Wall
from muster.steward.review.closing import decided, freed
from muster.steward.review.items import Consumer, World
from muster.steward.review.kinds import reviewed
from muster.steward.review.minutes import Meeting, minutes
from muster.steward.review.rules import ReviewRules
from muster.store.stewardship import why_paused


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """An effort, as somebody opened it at the beginning of the week or before."""

    name: str
    team: str
    owner: str
    purpose: str
    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    budget: str | None = None
    days_left: float | None = None
    notes: tuple[tuple[float, str, str], ...] = ()  # hours ago, who, what
    closed: tuple[float, Verdict, str] | None = None  # hours ago
    paused: tuple[float, str] | None = None


EFFORTS = (
    Opened(
        name="llama-eval",
        team="nlp",
        owner="ana",
        purpose="Which size of model is worth its cost for our languages?",
        budget="2400 GPUh",
        days_left=12,
        notes=(
            (93.0, "ana", "3B is done: 0.861. That is the number to beat."),
            (30.0, "dmitri", "8B needs gradient checkpointing to fit; 11 % slower."),
        ),
    ),
    Opened(
        name="whisper",
        team="speech",
        owner="kwame",
        purpose="Search the radio archive by what was said, not by what was written on the tape.",
        success=("wer < 0.05",),
        budget="540 GPUh",
        notes=((50.0, "aiko", "The tapes before 1981 hum at 50 Hz; filtered."),),
    ),
    Opened(
        name="city-seg",
        team="vision",
        owner=VISITOR,
        purpose="One model for the streets of eleven cities.",
        budget="850 GPUh",
        days_left=20,
        notes=((58.0, "mei", "Lagos and Lima share more than we thought."),),
    ),
    Opened(
        name="fold",
        team="bio",
        owner="noor",
        purpose="A binder for the receptor that survives the wet lab.",
        budget="4000 GPUh",
        notes=((100.0, "noor", "The pilot took 60 hours and found two that may work."),),
    ),
    Opened(
        name="era5",
        team="climate",
        owner="astrid",
        purpose="Rain where people live, not on a grid of thirty kilometres.",
        budget="7000 GPUh",
        days_left=40,
    ),
    Opened(
        name="grasp",
        team="robotics",
        owner="zofia",
        purpose="A hand that can be lent a cup.",
        budget="900 GPUh",
        paused=(3.0, "the simulator's contact model is wrong; no use in more of it"),
        notes=((3.0, "zofia", "Found it: friction is applied twice at the finger tips."),),
    ),
    Opened(
        name="tokenizer-v2",
        team="nlp",
        owner="hana",
        purpose="A tokenizer that is fair to languages without spaces.",
        closed=(118.0, Verdict.WON, "Twi at 0.81 with a third fewer tokens"),
    ),
    Opened(
        name="wav2vec-lite",
        team="speech",
        owner="farid",
        purpose="Speech recognition on a telephone of ten years ago.",
        budget="400 GPUh",
        closed=(135.0, Verdict.LOST, "it stalled at 0.24; the size is not the problem, the data is"),
    ),
)

DOWN = (
    ("gpub041", 31.0, "does not answer: lost"),
    ("gpub042", 55.0, "power supply replaced, waits for the vendor"),
    ("gpub098", 120.0, "mainboard; return agreed, no date yet"),
)
DRAINED = ("gpub090", 5.0, "marta: firmware of the switch, tomorrow at nine")
UNHEALTHY = ("gpub017", 2, 19.0, "uncorrected memory errors, 4 in an hour")
UNSEEN = frozenset({("gpub063", 3)})  # GPUs that the layout has, and nobody finds


class Times(msgspec.Struct, frozen=True):
    """When the week begins and ends, and when the reviews close."""

    begins_at: float
    now: float
    closes_at: float  # the review that is open

    def ago(self, hours: float) -> float:
        return self.now - hours * HOUR

    @property
    def closed_at(self) -> float:
        return self.closes_at - WEEK


def tell(past: Past, times: Times, visitor: str, is_small: bool) -> None:
    """Everything of the story, each at its time."""

    for effort in EFFORTS:
        _open(past, times, effort, visitor)
        for hours, who, text in effort.notes:
            past.at(times.ago(hours), partial(_add_note, effort.name, who, text))
        if effort.closed is not None:
            past.at(times.ago(effort.closed[0]), partial(_close, effort))
        if effort.paused is not None:
            past.at(times.ago(effort.paused[0]), partial(_pause, effort))
    if is_small:
        _hardware(past, times)
    past.at(times.begins_at + 60.0, lambda p: _open_first_review(p, times))
    past.at(times.closed_at, lambda p: _close_first_review(p, times))
    past.at(times.closes_at - 3 * DAY, lambda p: p.note(_second_review(p, times)))


# --- Efforts --------------------------------------------------------------------------------------------


def _open(past: Past, times: Times, one: Opened, visitor: str) -> None:
    owner = visitor if one.owner == VISITOR else one.owner
    until = None if one.days_left is None else times.now + one.days_left * DAY
    charter = Charter(owner, one.purpose, one.success, one.failure, one.budget, until)
    at = times.begins_at
    past.note(
        EffortOpened(at, Effort(name=one.name, charter=charter, team=one.team, opened_at=at, opened_by=owner))
    )


def _add_note(effort: str, who: str, text: str, past: Past) -> None:
    past.note(EffortNoted(past.now, effort, who, text))


def _close(one: Opened, past: Past) -> None:
    assert one.closed is not None
    _, verdict, because = one.closed
    past.note(EffortClosed(past.now, one.name, verdict, one.owner, because))
    for job in [r.job.id for r in past.fold.running.values() if r.job.effort == one.name]:
        past.stop(job, verdict, because)


def _pause(one: Opened, past: Past) -> None:
    """Who waits is held; what runs goes on to its end."""
    assert one.paused is not None
    past.note(EffortPaused(past.now, one.name, one.owner, one.paused[1]))
    waiting = [w for lane in past.fold.lanes.values() for w in lane if w.job.effort == one.name]
    for entry in waiting:
        past.note(Held(past.now, entry.job.id, why_paused(one.name)))


def defend(past: Past, job_id: str, by: str, because: str, until: float) -> None:
    if past.fold.records[job_id].outcome is not None:
        return
    charter = past.jobs[job_id].charter
    past.note(Defended(past.now, of_job(job_id), by, because, until, charter))


# --- Hardware -------------------------------------------------------------------------------------------


def _hardware(past: Past, times: Times) -> None:
    for node, hours, why in DOWN:
        past.at(times.ago(hours), partial(_lose, node, why))
    node, hours, why = DRAINED
    drained, bad = (node, Health.DRAINED, why), (*UNHEALTHY[:2], False, UNHEALTHY[3])
    past.at(times.ago(hours), lambda p: p.note(NodeHealth(p.now, *drained)))
    past.at(times.ago(UNHEALTHY[2]), lambda p: p.note(DeviceHealth(p.now, *bad)))


def _lose(node: str, why: str, past: Past) -> None:
    past.sim.will(NodeHealth(past.now, node, Health.DOWN, why))


# --- Reviews --------------------------------------------------------------------------------------------


def _open_first_review(past: Past, times: Times) -> None:
    for who in sorted({entry.owner for entry in past.ledger.living} - set(LEFT)):
        past.note(PersonSeen(past.now, who))
    past.note(ReviewOpened(past.now, 1, times.begins_at - WEEK, times.closed_at))


def _second_review(past: Past, times: Times) -> ReviewOpened:
    return ReviewOpened(past.now, 2, times.closed_at, times.closes_at)


def _close_first_review(past: Past, times: Times) -> None:
    """By the steward's own rules: what nobody answers for is stopped, if they were told in time."""
    rules, wall = ReviewRules(), Wall(lambda _: 0.0)
    world = World(
        now=past.now,
        wall=past.now,
        consumers=tuple(_consumers(past, times)),
        efforts=past.fold.stewardship.efforts,
        defences=past.fold.stewardship.defences,
        away=frozenset(LEFT),
    )
    items = reviewed(world)
    told = {item.subject: "sofia" for item in items if item.is_undefended and item.stops}
    spared = {"jupyter-old", "petra-features", "yolo-canary"}  # that somebody will have to answer for now
    listed = {s: times.begins_at for s in told if not spared & {i.name for i in items if i.subject == s}}
    close = decided(items, listed, past.now, rules.notice_seconds)
    meeting = Meeting(
        number=1,
        since=times.begins_at,
        closed_at=past.now,
        revivable_until=past.now + rules.revive_seconds,
        by="",
    )
    stopped = tuple(one for item in close.stopped for one in freed(item))
    past.note(ReviewListed(past.now, 1, told))
    past.note(ReviewClosed(past.now, 1, "", stopped, minutes(meeting, items, close, wall.said)))
    for one in stopped:
        past.stop(one.job, Verdict.UNDEFENDED, undefended_at(1))


def _consumers(past: Past, times: Times) -> list[Consumer]:
    """What holds something now. Arrays and what is over are left out: it is the large that are looked at."""
    return [
        Consumer(
            job=running.job.id,
            name=running.job.name,
            owner=running.job.owner,
            team=running.job.team,
            effort=running.job.effort,
            charter=running.job.charter,
            is_limited=running.job.time_limit_seconds is not None,
            submitted_at=running.job.submitted_at,
            running=1,
            usage=_held(past, running.job.id, running.attempt, times),
            days=((running.held.gpus_milli / MILLI * DAY, running.held.cpus_milli / MILLI * DAY),),
        )
        for running in past.fold.running.values()
        if running.job.array is None
    ]


def _held(past: Past, job: str, attempt: int, times: Times) -> Usage:
    entry = past.ledger.entry(job, attempt)
    assert entry is not None
    return Usage(held=held_between(entry, *span_of(entry, times.begins_at, past.now)))
