"""What the steward finds, as its owner hears of it; and mailboxes in an image."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from muster.model.events import Event, NodeSeen, Placed, Seat, Started, Submitted
from muster.model.job import Job, single
from muster.model.message import Message
from muster.model.node import Device, Node
from muster.model.plan import Action
from muster.model.policy import Policy
from muster.model.post import Delivered, Messaged, Settled
from muster.model.units import HOUR, MINUTE
from muster.server.metering import Metering
from muster.server.watching import Watching
from muster.steward.findings import CpuUnused, Finding
from muster.steward.respond import respond
from muster.steward.rules import Response, Rules
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of

GANG = single(gpus=1)
IDLE = Finding(
    kind="idle",
    job="7",
    attempt=1,
    since=0.0,
    seconds=HOUR,
    evidence=(CpuUnused(60, 0, 0.01, 8000, 0.1),),
    devices=(0, 1),
)
UNUSED = replace(IDLE, devices=(1,), whole=False)


class Desk:
    """Notes what is done and told, into a fold."""

    def __init__(self, act: str) -> None:
        self.fold = Fold(Policy())
        self.now = HOUR
        self.told: list[Message] = []
        self.closed: list[tuple[str, str]] = []
        seat = Seat("a", GANG.parts[0].shape, (0,), 1000)
        for event in (
            NodeSeen(0.0, Node("a", 8000, 1 << 30, devices=(Device(),) * 2)),
            Submitted(0.0, Job("7", GANG, 0.0, owner="ana", name="train")),
            Placed(0.0, "7", 1, (seat,)),
            Started(0.0, "7", 1),
        ):
            self.fold.apply(event)
        self.rules = Rules(on_idle=Response(cast("Any", act), 1, HOUR, HOUR))
        self.watching = Watching(self.fold, cast(Metering, None), self.rules, self)

    def tell(self, message: Message) -> None:
        self.told.append(message)

    def answered(self, about: str, kind: str, because: str) -> None:
        self.closed.append((about, kind))

    def note(self, event: Event, *_: Action) -> None:
        self.fold.apply(event)

    def quarantine(self, node: str, device: int | None, because: str) -> None:
        raise AssertionError

    def sees(self, *findings: Finding, minutes: int = 1) -> None:
        for _ in range(minutes):
            watching, now = self.watching, self.now
            watching._follow(respond(findings, watching._handled, self.rules, now), now)
            self.now += MINUTE


def test_a_warning_before_a_stop_asks_at_once_and_the_stop_is_news() -> None:
    desk = Desk("stop")
    desk.sees(IDLE, minutes=62)
    warning, stop = desk.told
    assert (warning.to, warning.about, warning.kind) == ("ana", "job:7", "finding:idle")
    assert (warning.asks, warning.urgent, warning.action) == (True, True, "muster stop 7")
    assert "Unless that changes, it is stopped in 1h" in warning.sentence
    assert (stop.asks, stop.urgent, stop.action) == (False, False, "muster show 7")


def test_a_warning_that_nothing_follows_can_wait() -> None:
    desk = Desk("warn")
    desk.sees(IDLE, minutes=300)
    [warning] = desk.told
    assert (warning.asks, warning.urgent) == (True, False)


def test_who_is_suspended_is_asked_what_to_do() -> None:
    desk = Desk("suspend")
    desk.sees(IDLE, minutes=62)
    assert [one.action for one in desk.told] == ["muster stop 7", "muster resume 7"]
    assert desk.told[1].urgent


@pytest.mark.parametrize("minutes", [1, 30])
def test_who_works_again_is_not_asked_any_more(minutes: int) -> None:
    desk = Desk("stop")
    desk.sees(IDLE, minutes=minutes)
    desk.sees(minutes=3)
    assert desk.closed == [("job:7", "finding:idle")]


def test_as_long_as_some_of_it_is_so_the_question_stays() -> None:
    desk = Desk("stop")
    desk.sees(IDLE, UNUSED)
    desk.sees(IDLE)
    assert desk.closed == []
    desk.sees()
    assert desk.closed == [("job:7", "finding:idle")]


def test_mailboxes_are_in_an_image() -> None:
    fold = Fold(Policy())
    question = Message(to="ana", about="job:1", kind="budget", sentence="?", asks=True, urgent=True)
    for event in (
        Messaged(1.0, 1, question),
        Messaged(2.0, 2, replace(question, about="job:2")),
        Delivered(3.0, (1,), "mail", "ana", digest=False, as_of=2.0),
        Settled(4.0, (2,), "done by ana"),
    ):
        fold.apply(event)
    restored = fold_from(image_of(fold), Policy())
    assert restored.mailboxes == fold.mailboxes
    image = image_of(fold)
    fold.apply(Messaged(5.0, 3, replace(question, about="job:3")))
    assert fold_from(image, Policy()).mailboxes == restored.mailboxes
    assert restored.mailboxes.of("ana").interruptions == ((1, 3.0),)
    assert restored.mailboxes.asked == {"job:1": (1,)}
