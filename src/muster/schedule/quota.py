"""Quota over the tree of teams: what a team may hold now, who borrows, and what can be reclaimed.

For each resource that some team owns a quota of:

    owned(t)    its own quota and that of all below it
    lendable(t) what its parent may pass on to others: at most ``lend``
    kept(t)     what is never lent
    held(t)     its own jobs', and what its children hold beyond what they keep
    left(t)     what is still free of kept(t), and what the parent has left, at most ``borrow`` of it

The root owns what no team owns. A team that holds more than it owns is borrowing; what it borrows can be
reclaimed by a team that does not.
"""

from collections.abc import Iterable

from muster.model.reasons import OverLimit, QuotaReached, Reason
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
from muster.model.tenancy import ROOT, Quota, Team

_NAMES = ("cpus", "memory", "GPUs in milli")
_MANY = 1 << 62


class _Branch:
    """A team in the tree, for one resource."""

    __slots__ = ("borrow", "held", "held_below", "kept", "lendable", "named", "owned", "pool")

    def __init__(self) -> None:
        self.owned = 0  # quota here and below
        self.named = False  # whether it has a quota of this resource, here or below
        self.lendable = 0
        self.kept = 0
        self.pool = 0  # own quota, and what the children lend
        self.borrow = _MANY
        self.held = 0  # from this branch's pool
        self.held_below = 0  # all that the subtree holds


class QuotaBook:
    """The tree with what is held entered in it. Trial bookings are undone by booking them back."""

    def __init__(self, snap: Snapshot) -> None:
        self._tenancy = snap.tenancy
        total = snap.hardware.total.vector()
        self._trees: dict[int, dict[str, _Branch]] = {}
        teams = set(snap.tenancy.teams)
        for r in range(3):
            if any(t.quota.amounts()[r] is not None for t in snap.tenancy.teams.values()):
                self._trees[r] = _plant(snap.tenancy.teams, r, int(total[r]))
        if self._trees:
            for team, held in snap.held.items():
                self._ensure(team, teams)
                self.book(team, held)

    @property
    def governs(self) -> bool:
        """Whether there is any quota at all."""
        return bool(self._trees)

    def book(self, team: str, held: Resources, sign: int = 1) -> None:
        """Enter that ``team`` holds more, or with -1 less."""
        if not self._trees:
            return
        self._ensure(team, self._tenancy.teams)
        path = self._tenancy.path(team)
        vector = held.vector()
        for r, tree in self._trees.items():
            amount = sign * int(vector[r])
            for name in path:
                tree[name].held_below += amount
            _pass_up(tree, path, amount)

    def refuses(self, team: str, asked: Resources) -> Reason | None:
        """Why the team may not hold this much more now; None if it may."""
        if not self._trees:
            return None
        self._ensure(team, self._tenancy.teams)
        path = self._tenancy.path(team)
        vector = asked.vector()
        for r, tree in self._trees.items():
            amount = int(vector[r])
            if not amount:
                continue
            left = _left(tree, path)
            if left < amount:
                most = _most(tree, path)
                if most < amount:
                    return OverLimit(team or "(none)", _NAMES[r], amount, most)
                return QuotaReached(team or "(none)", _NAMES[r], amount, left)
        return None

    def entitled(self, team: str, asked: Resources) -> str | None:
        """The team or ancestor that would stay within what it owns with this job; None if none would."""
        vector = asked.vector()
        self._ensure(team, self._tenancy.teams)
        for name in self._tenancy.path(team)[:-1]:
            governed = [(tree[name], int(vector[r])) for r, tree in self._trees.items()]
            claims = [(branch, amount) for branch, amount in governed if branch.named and amount]
            if claims and all(b.held_below + amount <= b.owned for b, amount in claims):
                return name
        return None

    def comes_first(self, team: str, asked: Resources) -> bool:
        """Whether the team is offered room before those who would borrow it."""
        return self.governs and self.entitled(team, asked) is not None

    def borrows(self, team: str, asked: Resources, claimant: str) -> bool:
        """Whether the team, or one above it, holds more than it owns of what ``claimant`` asks.

        What ``claimant`` and those below it hold among themselves is their own affair.
        """
        if claimant in self._tenancy.path(team):
            return False
        above_claimant = self._tenancy.path(claimant)
        vector = asked.vector()
        for name in self._tenancy.path(team):
            if name in above_claimant:
                return False
            for r in self._governing(name):
                branch = self._trees[r][name]
                if vector[r] and branch.held_below > branch.owned:
                    return True
        return False

    def is_below(self, team: str, other: str) -> bool:
        """Whether the team is the other, or below it."""
        return other in self._tenancy.path(team)

    def shelters(self, team: str, asked: Resources) -> bool:
        """Whether the team stays within what it owns of something that is asked."""
        vector = asked.vector()
        for name in self._tenancy.path(team)[:-1]:
            for r in self._governing(name):
                branch = self._trees[r][name]
                if branch.named and vector[r] and branch.held_below <= branch.owned:
                    return True
        return False

    def over(self, team: str) -> bool:
        """Whether the team holds more than it owns."""
        if not self._trees or team == ROOT:
            return False
        trees = (self._trees[r][team] for r in self._governing(team))
        return any(branch.held_below > branch.owned for branch in trees)

    def _governing(self, team: str) -> list[int]:
        """The resources by which the team is judged: those it has a quota of; all, if it has none."""
        self._ensure(team, self._tenancy.teams)
        named = [r for r, tree in self._trees.items() if tree[team].named]
        return named or list(self._trees)

    def _ensure(self, team: str, known: Iterable[str]) -> None:
        """A team nobody declared owns nothing and hangs below the root."""
        if team in known:
            return
        for tree in self._trees.values():
            if team not in tree:
                tree[team] = _Branch()


def _plant(teams: object, r: int, total: int) -> dict[str, _Branch]:
    """The tree of one resource, from the leaves to the root."""
    assert isinstance(teams, dict)
    children: dict[str, list[Team]] = {}
    for team in teams.values():
        children.setdefault(team.parent, []).append(team)
    tree: dict[str, _Branch] = {}

    def grow(name: str, own: int, borrow: Quota | None, lend: Quota | None) -> _Branch:
        branch = tree[name] = _Branch()
        below = [grow(c.name, c.quota.amounts()[r] or 0, c.borrow, c.lend) for c in children.get(name, ())]
        branch.owned = own + sum(b.owned for b in below)
        branch.pool = own + sum(b.lendable for b in below)
        branch.named = name in teams and (
            teams[name].quota.amounts()[r] is not None or any(b.named for b in below)
        )
        branch.lendable = min(branch.pool, _limit(lend, r))
        branch.kept = branch.pool - branch.lendable
        branch.borrow = _limit(borrow, r)
        return branch

    root = grow(ROOT, 0, None, None)
    unowned = max(0, total - root.owned)
    root.owned += unowned
    root.pool += unowned
    return tree


def _limit(quota: Quota | None, r: int) -> int:
    amount = quota.amounts()[r] if quota else None
    return _MANY if amount is None else amount


def _pass_up(tree: dict[str, _Branch], path: tuple[str, ...], amount: int) -> None:
    """Enter a change at the team, and its overflow at each ancestor."""
    for name in path:
        branch = tree[name]
        before = max(0, branch.held - branch.kept)
        branch.held += amount
        amount = max(0, branch.held - branch.kept) - before
        if not amount:
            return


def _left(tree: dict[str, _Branch], path: tuple[str, ...]) -> int:
    """What the team may still take: from the root down to it."""
    left = _MANY
    for name in reversed(path):
        branch = tree[name]
        if name == ROOT:
            left = branch.pool - branch.held
            continue
        from_parent = left
        if branch.borrow != _MANY:
            overflow = max(0, branch.held - branch.kept)
            from_parent = min(left, branch.lendable + branch.borrow - overflow)
        left = max(0, branch.kept - branch.held) + from_parent
    return max(0, left)


def _most(tree: dict[str, _Branch], path: tuple[str, ...]) -> int:
    """What the team could ever take, were nobody else there."""
    most = _MANY
    for name in reversed(path):
        branch = tree[name]
        if name == ROOT:
            most = branch.pool
            continue
        from_parent = most
        if branch.borrow != _MANY:
            from_parent = min(most, branch.lendable + branch.borrow)
        most = branch.kept + from_parent
    return most
