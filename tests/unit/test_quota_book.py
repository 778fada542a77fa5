"""The tree of quotas: what may be held, who borrows, who is owed."""

import pytest

from muster.model.errors import BadInput
from muster.model.events import NodeSeen, TeamSet
from muster.model.node import Device, Node
from muster.model.policy import Policy
from muster.model.reasons import OverLimit, QuotaReached
from muster.model.resources import Resources
from muster.model.tenancy import Quota, Team, Tenancy
from muster.schedule.quota import QuotaBook
from muster.store.fold import Fold


def gpus(count: int) -> Resources:
    return Resources(gpus_milli=count * 1000)


def quota(count: int) -> Quota:
    return Quota(gpus_milli=count * 1000)


def book(*teams: Team, total: int = 8) -> QuotaBook:
    fold = Fold(Policy())
    fold.apply(NodeSeen(0.0, Node("a", 64_000, 1 << 39, devices=(Device(),) * total)))
    for team in teams:
        fold.apply(TeamSet(0.0, team))
    return QuotaBook(fold.snapshot())


def most(found: QuotaBook, team: str) -> int:
    """How many GPUs the team may take now."""
    return next(n - 1 for n in range(1, 100) if found.refuses(team, gpus(n)) is not None)


def test_without_quotas_nothing_is_refused() -> None:
    found = book()
    assert not found.governs
    assert found.refuses("nlp", gpus(1000)) is None


def test_all_may_be_borrowed_by_default() -> None:
    found = book(Team("nlp", quota=quota(2)), Team("vision", quota=quota(4)))
    assert most(found, "nlp") == most(found, "vision") == most(found, "guests") == 8


def test_what_is_held_is_no_longer_there() -> None:
    found = book(Team("nlp", quota=quota(2)), Team("vision", quota=quota(4)))
    found.book("nlp", gpus(5))
    assert most(found, "vision") == 3
    found.book("nlp", gpus(5), -1)
    assert most(found, "vision") == 8


def test_borrowing_and_lending_have_limits() -> None:
    found = book(Team("nlp", quota=quota(2), borrow=quota(1)), Team("vision", quota=quota(4), lend=quota(1)))
    assert most(found, "nlp") == 3
    assert most(found, "vision") == 8
    assert most(found, "guests") == 5


def test_what_is_kept_is_there_when_all_else_is_taken() -> None:
    found = book(Team("vision", quota=quota(4), lend=quota(1)))
    found.book("guests", gpus(5))
    assert most(found, "guests") == 0
    assert most(found, "vision") == 3


def test_a_limit_above_binds_below() -> None:
    org = Team("org", quota=quota(0), borrow=quota(0))
    found = book(org, Team("nlp", "org", quota(2)), Team("sub", "org", quota(3)))
    assert most(found, "nlp") == 5
    found.book("sub", gpus(4))
    assert most(found, "nlp") == 1


def test_more_than_ever_is_told_from_more_than_now() -> None:
    found = book(Team("nlp", quota=quota(2), borrow=quota(2)), Team("vision", quota=quota(4)))
    assert isinstance(found.refuses("nlp", gpus(5)), OverLimit)
    found.book("nlp", gpus(3))
    assert isinstance(found.refuses("nlp", gpus(2)), QuotaReached)


def test_who_stays_within_what_it_owns_is_owed_it() -> None:
    found = book(Team("nlp", quota=quota(2)), Team("vision", quota=quota(4)))
    assert found.entitled("nlp", gpus(2)) == "nlp"
    assert found.entitled("nlp", gpus(3)) is None
    assert found.entitled("guests", gpus(1)) is None


def test_a_child_is_owed_what_its_parent_owns() -> None:
    found = book(Team("org", quota=quota(3)), Team("nlp", "org", quota(1)))
    assert found.entitled("nlp", gpus(1)) == "nlp"
    assert found.entitled("nlp", gpus(4)) == "org"


def test_who_holds_more_than_it_owns_is_over() -> None:
    found = book(Team("nlp", quota=quota(2)), Team("vision", quota=quota(4)))
    found.book("nlp", gpus(2))
    assert not found.over("nlp")
    found.book("nlp", gpus(1))
    assert found.over("nlp")
    assert found.borrows("nlp", gpus(1), "vision")
    assert not found.borrows("vision", gpus(1), "nlp")


def test_a_team_that_nobody_declared_borrows_all_it_holds() -> None:
    found = book(Team("nlp", quota=quota(2)))
    found.book("guests", gpus(1))
    assert found.borrows("guests", gpus(1), "nlp")


@pytest.mark.parametrize(
    "teams",
    [
        (Team("a", "b"), Team("b", "a")),
        (Team("a", "nobody"),),
        (Team("a", weight=0.0),),
        (Team("a", weight=float("nan")),),
    ],
)
def test_a_tree_that_is_none_is_refused(teams: tuple[Team, ...]) -> None:
    with pytest.raises(BadInput):
        Tenancy(teams)
