"""Who may go, where the engine finds the seats: order, holds, arrays and quotas count, room does not."""

from muster.model.events import ArraySubmitted, NodeSeen, Placed, Submitted, TeamSet
from muster.model.job import After, Dependency, Gang, Job, Part, Priority, Shape
from muster.model.node import Device, Node
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.reasons import ArrayFull, NotBefore, QuotaReached
from muster.model.tenancy import Quota, Team
from muster.schedule import govern
from muster.store.fold import Fold

GPU = Gang((Part(Shape(cpus_milli=1000, gpus=1)),))
NODE = Node("n1", 8000, 1 << 30, devices=(Device(), Device()))


def job(name: str, gang: Gang = GPU, **more: object) -> Job:
    return Job(name, gang, 0.0, owner="ana", **more)  # type: ignore[arg-type]


def fold_of(*jobs: Job, teams: tuple[Team, ...] = ()) -> Fold:
    fold = Fold(Policy())
    fold.apply(NodeSeen(0.0, NODE))
    for team in teams:
        fold.apply(TeamSet(0.0, team))
    for one in jobs:
        fold.apply(Submitted(0.0, one))
    return fold


def decided(fold: Fold) -> Plan:
    plan = govern(fold.snapshot(), Policy(), now=1.0)
    fold.release()
    return plan


def goes(plan: Plan) -> list[str]:
    return [start.job for start in plan.starts]


def test_all_go_whether_there_is_room_or_not_and_none_has_seats() -> None:
    plan = decided(fold_of(*(job(f"{i}") for i in range(9))))
    assert goes(plan) == [f"{i}" for i in range(9)]
    assert {start.seats for start in plan.starts} == {()}
    assert not plan.promises


def test_who_asks_for_more_than_any_node_has_does_not_go() -> None:
    plan = decided(fold_of(job("a", Gang((Part(Shape(gpus=3)),)))))
    assert goes(plan) == []
    (wait,) = plan.lane_waits.values()
    assert wait.infeasible


def test_the_higher_priority_goes_first() -> None:
    plan = decided(fold_of(job("a"), job("b", priority=Priority.HIGH)))
    assert goes(plan) == ["b", "a"]


def test_no_team_goes_beyond_its_quota_and_what_was_let_go_counts() -> None:
    team = Team("vision", quota=Quota(gpus_milli=1000), borrow=Quota(gpus_milli=0))
    fold = fold_of(*(job(name, team="vision") for name in "ab"), teams=(team,))
    plan = decided(fold)
    assert goes(plan) == ["a"]
    fold.apply(Placed(1.0, "a", 1, ()))
    plan = decided(fold)
    assert goes(plan) == []
    assert isinstance(next(iter(plan.lane_waits.values())).reasons[0], QuotaReached)


def test_no_more_of_an_array_go_than_may_run_at_once() -> None:
    fold = fold_of()
    fold.apply(ArraySubmitted(0.0, job("9"), (1, 2, 3), most_at_once=2))
    plan = decided(fold)
    assert goes(plan) == ["9_1", "9_2"]
    assert isinstance(plan.job_waits["9_3"].reasons[0], ArrayFull)


def test_who_is_held_dependent_or_too_early_waits() -> None:
    fold = fold_of(
        job("a"),
        job("held", held=True),
        job("after", after=(Dependency("a", After.OK),)),
        job("early", begin_at=100.0),
    )
    plan = decided(fold)
    assert goes(plan) == ["a"]
    assert isinstance(plan.job_waits["early"].reasons[0], NotBefore)
    assert plan.wake_at == 100.0
