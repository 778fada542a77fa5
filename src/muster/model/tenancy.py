"""Teams: a tree in which each node may own a quota, weigh more or less, lend and borrow."""

from collections.abc import Iterable, Mapping

import msgspec

from muster.model.errors import BadInput

ROOT = ""  # the cluster itself: owns what no team owns


class Quota(msgspec.Struct, frozen=True):
    """What a team owns. A resource that is None is not governed by quota, only by room."""

    gpus_milli: int | None = None
    cpus_milli: int | None = None
    memory_bytes: int | None = None

    def amounts(self) -> tuple[int | None, int | None, int | None]:
        """In the order of ``Resources.vector``: cpus, memory, GPUs."""
        return (self.cpus_milli, self.memory_bytes, self.gpus_milli)


class Team(msgspec.Struct, frozen=True):
    """A node of the tenancy tree. ``borrow`` and ``lend`` None mean without limit."""

    name: str
    parent: str = ROOT
    quota: Quota = Quota()
    weight: float = 1.0
    borrow: Quota | None = None
    lend: Quota | None = None


class Tenancy:
    """The tree, checked once: no cycle, no unknown parent, weights above zero."""

    __slots__ = ("_paths", "teams")

    def __init__(self, teams: Iterable[Team] = ()) -> None:
        self.teams: Mapping[str, Team] = {t.name: t for t in teams}
        self._paths: dict[str, tuple[str, ...]] = {}
        for team in self.teams.values():
            if not team.weight > 0:
                raise BadInput(f"team {team.name!r} has weight {team.weight:g}; it must be above 0")
            self.path(team.name)

    def path(self, name: str) -> tuple[str, ...]:
        """From the team up to the root. A team nobody declared hangs directly below the root."""
        path = self._paths.get(name)
        if path is None:
            path = self._paths[name] = self._walk(name)
        return path

    def weight(self, name: str) -> float:
        team = self.teams.get(name)
        return team.weight if team else 1.0

    def _walk(self, name: str) -> tuple[str, ...]:
        path: list[str] = []
        while name != ROOT:
            if name in path:
                raise BadInput(f"team {name!r} is its own ancestor")
            path.append(name)
            team = self.teams.get(name)
            parent = team.parent if team else ROOT
            if parent != ROOT and parent not in self.teams:
                raise BadInput(f"team {name!r} has an unknown parent {parent!r}")
            name = parent
        return (*path, ROOT)
