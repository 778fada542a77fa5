"""Use as a tree: a branch is the sum of what is below it, told or not."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.tenancy import Quota, Team, Tenancy
from muster.model.units import DAY, HOUR
from muster.server.seeing.use_answers import DefendedBy, UseNode
from muster.server.seeing.use_tree import Leaf, Shape, grown, sentence_of

TENANCY = Tenancy(
    [Team("lab", quota=Quota(gpus_milli=1000)), Team("vision", "lab", Quota(gpus_milli=2000)), Team("ops")]
)


def leaf(job: str, gpu_hours: float = 1.0, used: float | None = None, **more: object) -> Leaf:
    held = gpu_hours * HOUR * 1000
    measured, busy = (0.0, 0.0) if used is None else (held, held * used)
    amounts = (gpu_hours * HOUR, 0.0 if used is None else gpu_hours * HOUR, 0, 0, 0, held, measured, busy)
    given_ = {"name": f"n{job}", "owner": "ana", "team": "vision", "effort": None, **more}
    return Leaf(job=job, amounts=amounts, **given_)  # type: ignore[arg-type]


def tree(*leaves: Leaf, by: str = "team", limit: int = 200, seconds: float = DAY) -> UseNode:
    return grown(leaves, Shape(by, TENANCY, seconds, limit, review_at=77.0))


def outline(node: UseNode) -> list[object]:
    return [(child.kind, child.id, outline(child)) for child in node.children]


def test_a_team_hangs_below_its_parent_and_an_effort_below_its_team() -> None:
    found = tree(leaf("1", effort="llama"), leaf("2", 3.0), leaf("3", team=""))
    assert outline(found) == [
        ("team", "lab", [("team", "vision", [("job", "2", []), ("effort", "llama", [("job", "1", [])])])]),
        ("team", "", [("job", "3", [])]),
    ]


def test_by_owner_and_by_purpose_there_are_no_teams() -> None:
    leaves = (leaf("1", effort="llama", purpose="Does it?"), leaf("2", owner="bo"))
    assert outline(tree(*leaves, by="owner")) == [
        ("owner", "ana", [("effort", "llama", [("job", "1", [])])]),
        ("owner", "bo", [("job", "2", [])]),
    ]
    assert outline(tree(*leaves, by="purpose")) == [
        ("purpose", None, [("job", "2", [])]),
        ("purpose", "Does it?", [("job", "1", [])]),
    ]


def test_the_tick_is_what_a_team_and_those_below_own_and_beyond_it_is_borrowed() -> None:
    lab = tree(leaf("1", 80.0)).children[0]
    vision = lab.children[0]
    assert (lab.quota_gpu_seconds, lab.borrowed_gpu_seconds) == (3 * DAY, 80 * HOUR - 3 * DAY)
    assert (vision.quota_gpu_seconds, vision.borrowed_gpu_seconds) == (2 * DAY, 80 * HOUR - 2 * DAY)
    assert tree(leaf("1", team="ops")).children[0].quota_gpu_seconds is None


def test_who_defends_last_and_what_nobody_defends_is_told_at_every_level() -> None:
    early, late = DefendedBy("ben", 1.0, "a", 9.0), DefendedBy("ada", 2.0, "b", 9.0)
    found = tree(leaf("1", defended=late), leaf("2", defended=early), leaf("3", 2.0, is_undefended=True))
    assert found.defended == found.children[0].defended == late
    lost = found.children[0].undefended
    assert lost is not None
    assert (lost.jobs, lost.gpu_held_seconds, lost.review_at) == (1, 2 * HOUR, 77.0)


def test_what_was_not_measured_is_unknown_and_idle_is_nothing() -> None:
    unknown, idle = tree(leaf("1")), tree(leaf("1", used=0.0))
    assert (unknown.gpu_used_seconds, unknown.coverage) == (None, 0.0)
    assert (idle.gpu_used_seconds, idle.coverage) == (0.0, 1.0)


def test_the_sentence_says_what_was_held_used_and_is_undefended() -> None:
    found = tree(leaf("1", 60.0, 0.5), leaf("2", 20.0, 0.5, team="ops", is_undefended=True))
    assert sentence_of(found, DAY, {}) == (
        "In these 1d 2 jobs held 80 GPU·h and used 50% of it; most by lab, 75%. "
        "20 GPU·h of it nobody defends."
    )
    assert sentence_of(tree(), DAY, {}) == "Nothing was held in these 1d."


LEAVES = st.lists(
    st.builds(
        leaf,
        st.integers(1, 500).map(str),
        st.integers(0, 40).map(float),
        st.none() | st.sampled_from([0.0, 0.5, 1.0]),
        team=st.sampled_from(["", "lab", "vision", "ops", "new"]),
        owner=st.sampled_from(["ana", "bo", ""]),
        effort=st.sampled_from([None, "llama", "whisper"]),
        purpose=st.sampled_from([None, "why?"]),
        members=st.integers(1, 9),
    ),
    max_size=30,
    unique_by=lambda one: one.job,
)


@given(LEAVES, st.integers(1, 12), st.sampled_from(["team", "owner", "purpose"]))
def test_every_branch_is_the_sum_of_its_children_however_few_are_told(
    leaves: list[Leaf], limit: int, by: str
) -> None:
    root = tree(*leaves, by=by, limit=limit)
    told = 0
    below = [root]
    while below:
        node = below.pop()
        below += node.children
        told += node.kind in ("job", "array")
        if node.children:
            assert sum(child.gpu_held_seconds for child in node.children) == node.gpu_held_seconds
            assert sum(child.jobs for child in node.children) == node.jobs
    assert told == min(limit, len(leaves))
    assert root.jobs == sum(one.members for one in leaves)
