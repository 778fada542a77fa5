"""The queue as people look at it: the scheduler's own order, and a reason for everybody."""

from collections.abc import Callable

import msgspec
import pytest

from muster.model.events import ArraySubmitted, Event, Held, NodeSeen, Placed, Submitted, TeamSet
from muster.model.job import After, ArrayPlace, Dependency, Gang, Job, Part, Priority, Shape, Together, single
from muster.model.node import Device, Node
from muster.model.plan import Plan
from muster.model.policy import Policy, preset
from muster.model.state import State
from muster.model.tenancy import Quota, Team
from muster.model.units import GIB
from muster.schedule import schedule
from muster.server.outlook.world import eligible, in_turn
from muster.server.seeing.queue import Chosen, Line, queue_view, wants_of, words_of
from muster.server.seeing.queue_answers import QueueView
from muster.store.fold import Fold

NOW = 1000.0


class Waiting:
    """A cluster of one small node, and many who want it."""

    def __init__(self, policy: str = "fair") -> None:
        self.policy: Policy = preset(policy)
        self.fold = Fold(self.policy)
        self.tell(NodeSeen(0.0, Node("a", 8000, 64 * GIB, devices=(Device("A40"),))))

    def tell(self, *events: Event) -> None:
        for event in events:
            self.fold.apply(event)

    def job(self, job_id: str, at: float = 1.0, gang: Gang | None = None, **more: object) -> None:
        job = Job(job_id, gang or single(gpus=1), at, name=f"n{job_id}", owner="ana", team="nlp")
        self.tell(Submitted(at, msgspec.structs.replace(job, **more)))

    def line(self, chosen: Chosen | None = None) -> Line:
        snap = self.fold.snapshot()
        plan = schedule(snap, self.policy, now=NOW)
        plan = msgspec.structs.replace(plan, starts=())
        return Line(snap, plan, self.policy, NOW, 0.0, chosen=chosen)

    def view(self, limit: int = 200, chosen: Chosen | None = None) -> QueueView:
        return queue_view(self.line(chosen), limit)


def test_positions_are_the_order_in_which_the_scheduler_would_offer_room() -> None:
    w = Waiting()
    w.tell(TeamSet(0.0, Team("vision", quota=Quota(gpus_milli=1000))))
    for n in range(6):
        w.job(f"{n}", 1.0 + n, owner=f"u{n % 3}", team="vision" if n % 2 else "nlp")
    w.job("9", 50.0, priority=Priority.HIGH)
    line = w.line()
    order = [one.job.id for one in in_turn(line.snap, w.policy, eligible(line.snap, NOW), NOW)]
    view = queue_view(line, 200)
    assert [row.id for row in view.jobs] == order
    assert [row.position for row in view.jobs] == [1, 2, 3, 4, 5, 6, 7]
    for team in ("vision", "nlp"):
        mine = [row.team_position for row in view.jobs if row.team == team]
        assert mine == list(range(1, len(mine) + 1))


@pytest.mark.parametrize("policy", ["fair", "fifo", "las"])
def test_everybody_is_counted_once_whatever_the_policy(policy: str) -> None:
    w = Waiting(policy)
    for n in range(5):
        w.job(f"{n}", 1.0 + n)
    w.job("h")
    w.tell(Held(2.0, "h"))
    w.job("d", after=(Dependency("0", After.OK),))
    w.job("t", begin_at=NOW + 60)
    w.job("x", gang=single(gpus=9))
    view = w.view()
    assert view.waiting == sum(one.jobs for one in view.reasons) == 9
    assert {row.id for row in view.jobs} == {"0", "1", "2", "3", "4", "h", "d", "t", "x"}
    assert view.more == 0
    by_id = {row.id: row for row in view.jobs}
    kinds = {name: reason.kind for name, row in by_id.items() if (reason := row.reason)}
    assert (kinds["h"], kinds["d"], kinds["t"], kinds["x"]) == (
        "HeldBack",
        "DependsOn",
        "NotBefore",
        "TooLarge",
    )
    assert [by_id[name].position for name in "hdt"] == [None] * 3
    assert not any(by_id[name].ask_why for name in "hdtx")


def test_members_of_an_array_are_one_row_with_the_place_of_the_first() -> None:
    w = Waiting()
    w.job("1", 0.5)
    w.tell(ArraySubmitted(1.0, Job("2", single(gpus=1), 1.0, owner="ana", team="nlp"), tuple(range(1, 31))))
    view = w.view()
    row = next(row for row in view.jobs if row.array is not None)
    assert (row.id, row.first, row.count, row.position) == ("2_[1-30]", "2_1", 30, 2)
    assert (view.waiting, view.more) == (31, 0)


def test_a_filter_narrows_the_rows_and_the_counts_and_not_the_places() -> None:
    w = Waiting()
    for n in range(6):
        w.job(f"{n}", 1.0 + n, owner="bo" if n % 2 else "ana")
    view = w.view(chosen=lambda _, owner: owner == "bo")
    assert {row.owner for row in view.jobs} == {"bo"}
    assert view.waiting == 3
    assert [row.position for row in view.jobs] != [1, 2, 3]


def test_who_waits_in_the_queue_of_a_host_says_what_that_says() -> None:
    w = Waiting()
    w.job("s7", adopted="slurm")
    for index in (1, 2, 5):
        place = ArrayPlace("3", index)
        w.job(f"3_{index}", array=place)
        w.tell(Placed(2.0, f"3_{index}", 1, ()))
    line = msgspec.structs.replace(
        w.line(),
        handed_over=tuple(w.fold.running.values()),
        elsewhere=lambda entry: f"{entry.job.id} is not free yet",
    )
    view = queue_view(line, 200)
    assert [(row.id, row.count, row.state, row.ask_why) for row in view.jobs] == [
        ("3_[1-2,5]", 3, State.STARTING, False),
        ("s7", 1, State.QUEUED, False),
    ]
    assert [row.reason.sentence for row in view.jobs if row.reason] == [
        "3_1 is not free yet",
        "s7 is not free yet",
    ]
    assert (view.waiting, view.more) == (4, 0)
    assert view.sentence == "4 jobs are in the queue: 4 wait in the cluster's queue."


def test_a_limit_says_how_many_more_there_are() -> None:
    w = Waiting()
    for n in range(6):
        w.job(f"{n}", 1.0 + n)
    view = w.view(limit=2)
    assert (len(view.jobs), view.more, view.waiting) == (2, 4, 6)


def test_what_room_is_kept_for_says_when_and_where() -> None:
    w = Waiting()
    w.tell(NodeSeen(0.0, Node("b", 8000, 64 * GIB, devices=(Device("A40"),))))
    w.job("big", 1.0, single(gpus=1, parts=2), time_limit_seconds=60.0)
    line = w.line()
    promised = [promise.job for promise in line.plan.promises]
    view = queue_view(line, 10)
    assert [row.id for row in view.jobs if row.reserved is not None] == promised


def test_who_came_after_the_last_cycle_has_no_reason_yet_and_one_may_ask() -> None:
    w = Waiting()
    w.job("1")
    line = msgspec.structs.replace(w.line(), plan=Plan())
    row = queue_view(line, 10).jobs[0]
    assert (row.reason, row.ask_why) == (None, True)
    assert queue_view(line, 10).sentence == (
        "1 job is in the queue: 1 came just now. Next in turn is 1 n1 of ana: it wants 1 × GPU."
    )
    assert Waiting().view().sentence == "Nothing waits."


def rack_of_16() -> Gang:
    return single(gpus=4, gpu_models=("A40",), parts=4, together=Together.RACK)


@pytest.mark.parametrize(
    ("gang", "said"),
    [
        (rack_of_16, "16 × A40 in one rack"),
        (lambda: single(gpus=1, gpu_models=("A40", "A100")), "1 × A40 or A100"),
        (lambda: single(gpus=1, gpu_milli=500), "0.5 of a GPU"),
        (lambda: single(cpus_milli=8000, memory_bytes=32 * GIB), "8 cpus, 32G memory"),
        (
            lambda: single(cpus_milli=1000, parts=4, together=Together.SPREAD),
            "4 cpus, each part on a node of its own",
        ),
        (lambda: Gang((Part(Shape(gpus=2)), Part(Shape(cpus_milli=1000)))), "2 × GPU + 1 cpu"),
        (single, "next to nothing"),
    ],
)
def test_what_is_wanted_is_said_in_words(gang: Callable[[], Gang], said: str) -> None:
    assert wants_of(gang()) == said


def test_what_can_never_run_says_so() -> None:
    assert words_of("TooLarge") == words_of("GangTooLarge") == "can never run"
