"""Use as a tree: team › effort › job, or by owner, or by purpose. Pure.

Every leaf adds what it held to all above it, so that a branch is the sum of what is below it, also of what is
not told one by one. Told are the largest leaves, so many in all, and the branches that lead to them; what is
left of a branch is one row more, the *rest*. So a week of a large place is as long an answer as that of a
small one, and nothing is missing from a sum.

A team's *tick* is what it and those below it own, times the length of the interval. What is beyond the tick
is borrowed, over the whole interval: what was lent by day and borrowed back by night is neither.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import add

import msgspec

from muster.model.job import JobId
from muster.model.tenancy import ROOT, Tenancy
from muster.model.units import HOUR, MILLI, show_seconds
from muster.server.seeing.use_answers import DefendedBy, Undefended, UseNode
from muster.store.seeing_reads import AMOUNTS

_GPUS_HELD, _CPUS_HELD = AMOUNTS.index("gpus_held"), AMOUNTS.index("cpus_held")

Step = tuple[str, str | None]  # a kind of branch, and which


class Leaf(msgspec.Struct, frozen=True):
    """A job, or an array as one, and what it held and used in the interval."""

    job: JobId
    name: str
    owner: str
    team: str
    effort: str | None
    amounts: Sequence[float]  # as ``seeing_reads.AMOUNTS`` has them
    purpose: str | None = None
    members: int = 1
    is_array: bool = False
    defended: DefendedBy | None = None
    is_undefended: bool = False


class _Branch:
    """A node as it is put together."""

    __slots__ = ("amounts", "branches", "defended", "leaves", "members", "step", "undefended")

    def __init__(self, step: Step) -> None:
        self.step, self.amounts, self.members = step, [0.0] * len(AMOUNTS), 0
        self.branches: dict[Step, _Branch] = {}
        self.leaves: list[Leaf] = []
        self.defended: DefendedBy | None = None
        self.undefended: list[Leaf] = []

    def take(self, leaf: Leaf) -> None:
        self.amounts = list(map(add, self.amounts, leaf.amounts))
        self.members += leaf.members
        if leaf.defended is not None and (self.defended is None or leaf.defended.at > self.defended.at):
            self.defended = leaf.defended
        if leaf.is_undefended:
            self.undefended.append(leaf)

    def below(self, step: Step) -> "_Branch":
        found = self.branches.get(step)
        if found is None:
            found = self.branches[step] = _Branch(step)
        return found


class Shape(msgspec.Struct, frozen=True):
    """How the tree is to be."""

    by: str
    tenancy: Tenancy
    seconds: float  # of the interval
    limit: int  # leaves that are told one by one
    review_at: float | None = None


def grown(leaves: Sequence[Leaf], shape: Shape) -> UseNode:
    """The tree."""
    root = _Branch(("total", None))
    for leaf in leaves:
        branch = root
        branch.take(leaf)
        for step in _path(leaf, shape):
            branch = branch.below(step)
            branch.take(leaf)
        branch.leaves.append(leaf)
    largest = sorted(leaves, key=_most_first)[: shape.limit]
    return _told(root, {leaf.job for leaf in largest}, shape)


def _path(leaf: Leaf, shape: Shape) -> list[Step]:
    """From the top of the tree to the branch that the leaf hangs on."""
    if shape.by == "purpose":
        return [("purpose", leaf.purpose)]
    if shape.by == "owner":
        above: list[Step] = [("owner", leaf.owner)]
    else:
        teams = shape.tenancy.path(leaf.team)[:-1]
        above = [("team", team) for team in reversed(teams)] or [("team", ROOT)]
    return above if leaf.effort is None else [*above, ("effort", leaf.effort)]


def _most_first(leaf: Leaf) -> tuple[float, float, str]:
    return (-leaf.amounts[_GPUS_HELD], -leaf.amounts[_CPUS_HELD], leaf.job)


# --- As it is told ---------------------------------------------------------------------------------------


def _told(branch: _Branch, largest: set[JobId], shape: Shape) -> UseNode:
    kind, name = branch.step
    node = _node(kind, name, branch.amounts, branch.members)
    node.defended = branch.defended
    node.undefended = _undefended(branch.undefended, shape.review_at)
    if kind == "team" and name:
        _tick(node, name, shape)
    kept = [below for below in branch.branches.values() if _leads_to(below, largest)]
    leaves = [leaf for leaf in branch.leaves if leaf.job in largest]
    node.children = [*(_told(below, largest, shape) for below in kept), *(_leaf(o, shape) for o in leaves)]
    node.children.sort(key=_by_held)
    rest = _rest(branch, kept, leaves, shape)
    if rest is not None:
        node.children.append(rest)
    return node


def _leads_to(branch: _Branch, largest: set[JobId]) -> bool:
    if any(leaf.job in largest for leaf in branch.leaves):
        return True
    return any(_leads_to(below, largest) for below in branch.branches.values())


def _rest(branch: _Branch, kept: Sequence[_Branch], leaves: Sequence[Leaf], shape: Shape) -> UseNode | None:
    """What of a branch is not told one by one."""
    gone = _Branch(("rest", None))
    told, known = {id(below) for below in kept}, {leaf.job for leaf in leaves}
    for below in branch.branches.values():
        if id(below) not in told:
            for leaf in _leaves_of(below):
                gone.take(leaf)
    for leaf in branch.leaves:
        if leaf.job not in known:
            gone.take(leaf)
    return _told(gone, set(), shape) if gone.members else None


def _leaves_of(branch: _Branch) -> Iterable[Leaf]:
    yield from branch.leaves
    for below in branch.branches.values():
        yield from _leaves_of(below)


def _leaf(leaf: Leaf, shape: Shape) -> UseNode:
    node = _node("array" if leaf.is_array else "job", leaf.job, leaf.amounts, leaf.members)
    node.name, node.owner, node.defended = leaf.name, leaf.owner, leaf.defended
    node.undefended = _undefended([leaf], shape.review_at) if leaf.is_undefended else None
    return node


def _node(kind: str, name: str | None, amounts: Sequence[float], jobs: int) -> UseNode:
    held_seconds, measured_seconds, *milli = amounts
    cpus_held, cpus_measured, cpus_used, gpus_held, gpus_measured, gpus_used = (a / MILLI for a in milli)
    return UseNode(
        kind=kind,
        id=name,
        jobs=jobs,
        coverage=measured_seconds / held_seconds if held_seconds else None,
        gpu_held_seconds=gpus_held,
        gpu_measured_seconds=gpus_measured,
        gpu_used_seconds=gpus_used if gpus_used or gpus_measured else None,
        cpu_held_seconds=cpus_held,
        cpu_measured_seconds=cpus_measured,
        cpu_used_seconds=cpus_used if cpus_used or cpus_measured else None,
    )


def _undefended(leaves: Sequence[Leaf], review_at: float | None) -> Undefended | None:
    if not leaves:
        return None
    gpus = sum(leaf.amounts[_GPUS_HELD] for leaf in leaves)
    cpus = sum(leaf.amounts[_CPUS_HELD] for leaf in leaves)
    return Undefended(sum(leaf.members for leaf in leaves), gpus / MILLI, cpus / MILLI, review_at)


def _tick(node: UseNode, team: str, shape: Shape) -> None:
    owned = owned_gpus_milli(team, shape.tenancy)
    if owned is not None:
        node.quota_gpu_seconds = owned / MILLI * shape.seconds
        node.borrowed_gpu_seconds = max(0.0, node.gpu_held_seconds - node.quota_gpu_seconds)


def owned_gpus_milli(team: str, tenancy: Tenancy) -> int | None:
    """The quota of a team and of those below it; None: none of them has one."""
    quotas = [one.quota.gpus_milli for name, one in tenancy.teams.items() if team in tenancy.path(name)]
    known = [quota for quota in quotas if quota is not None]
    return sum(known) if known else None


def _by_held(node: UseNode) -> tuple[float, float, str]:
    return (-node.gpu_held_seconds, -node.cpu_held_seconds, node.id or "")


# --- In a sentence ---------------------------------------------------------------------------------------


def sentence_of(total: UseNode, seconds: float, titles: Mapping[str, str]) -> str:
    """``In the last 7d 512 jobs held 51,200 GPU·h and used 57 % of it …``; ``titles`` name what has no id."""
    span = show_seconds(seconds)
    if not total.jobs:
        return f"Nothing was held in these {span}."
    is_gpu = total.gpu_held_seconds > 0
    held, used, measured = amounts_of(total, is_gpu)
    unit = "GPU·h" if is_gpu else "cpu·h"
    jobs = "1 job" if total.jobs == 1 else f"{total.jobs:,} jobs"
    said = f"In these {span} {jobs} held {show_hours(held)} {unit} and {_used(used, measured)}"
    first = next((child for child in total.children if child.kind != "rest"), None)
    if first is not None and len(total.children) > 1:
        part = amounts_of(first, is_gpu)[0] / held if held else 0.0
        said += f"; most by {first.id or titles.get(first.kind, 'nobody')}, {part:.0%}"
    return f"{said}.{_said_undefended(total, is_gpu, unit)}"


def _used(used: float | None, measured: float) -> str:
    return (
        "what of it was used is not known" if not measured else f"used {(used or 0.0) / measured:.0%} of it"
    )


def _said_undefended(total: UseNode, is_gpu: bool, unit: str) -> str:
    lost = total.undefended
    if lost is None:
        return ""
    held = lost.gpu_held_seconds if is_gpu else lost.cpu_held_seconds
    return f" {show_hours(held)} {unit} of it nobody defends."


def amounts_of(node: UseNode, is_gpu: bool) -> tuple[float, float | None, float]:
    """Held, used and measured."""
    if is_gpu:
        return node.gpu_held_seconds, node.gpu_used_seconds, node.gpu_measured_seconds
    return node.cpu_held_seconds, node.cpu_used_seconds, node.cpu_measured_seconds


def show_hours(seconds: float) -> str:
    """``51,200``; of little, two digits."""
    hours = seconds / HOUR
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
