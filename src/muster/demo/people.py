"""Who works at the simulated site: eight teams with quotas, and thirty people who do not exist.

The configuration is an ordinary ``muster.toml``, read as any other. Whoever runs the demonstration is a
visitor, and one of the people: some of the work is theirs, and so are some of the questions.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from muster.model.units import DAY
from muster.steward.review.calendar import DAYS

VISITOR = "visitor"  # in tables of work; at run time it is who runs the demonstration


class TeamOf(msgspec.Struct, frozen=True):
    """``share``: of the site's GPUs, what the team owns. ``borrows``: whether it may have more."""

    name: str
    share: float
    people: tuple[str, ...]  # the first leads
    borrows: bool = True


TEAMS = (
    TeamOf("vision", 0.19, ("mei", "ben", "tomasz", "priya")),
    TeamOf("speech", 0.12, ("aiko", "kwame", "ingrid", "farid")),
    TeamOf("nlp", 0.24, ("lucia", "ana", "dmitri", "oluwaseun", "hana")),
    TeamOf("bio", 0.065, ("noor", "chidi", "elif", "mateo"), borrows=False),
    TeamOf("climate", 0.12, ("astrid", "rangi", "jose", "wanjiru")),
    TeamOf("robotics", 0.05, ("yuto", "zofia", "amir", "leilani"), borrows=False),
    TeamOf("data", 0.08, ("sofia", "bao", "thandi")),
    TeamOf("ops", 0.04, ("marta", "sven")),
)
LEFT = ("ivan", "petra")  # who are gone; work of theirs is not
TEAM_OF_LEFT = "data"
TEAM_OF_VISITOR = "vision"


def configuration(gpus: int, now: float, visitor: str) -> str:
    """``muster.toml``: the review closes on the day after tomorrow, whenever that is."""
    closes = datetime.fromtimestamp(now, UTC) + timedelta(seconds=2 * DAY)
    lines = [
        "# Made for the demonstration; all of it is simulated.",
        "[review]",
        f'schedule = "{DAYS[closes.weekday()]} 17:00"',
        'timezone = "UTC"',
        "",
        "[monitor]",
        'period = "2s"',
        "",
        "[charter]",
        'require = "warn"',
        "",
    ]
    for team in TEAMS:
        lines += _team(team, gpus, visitor)
    day = (datetime.fromtimestamp(now, UTC) - timedelta(days=16)).date()
    for name in LEFT:
        lines += [f'[user."{name}"]', f"left = {day}", f'team = "{TEAM_OF_LEFT}"', ""]
    lines += [f'[user."{visitor}"]', f'team = "{TEAM_OF_VISITOR}"', 'role = "admin"', ""]
    return "\n".join(lines)


def _team(team: TeamOf, gpus: int, visitor: str) -> list[str]:
    people = [visitor] * (team.name == TEAM_OF_VISITOR) + [p for p in team.people if p != visitor]
    names = ", ".join(f'"{name}"' for name in people)
    lines = [
        f"[team.{team.name}]",
        f"quota = {{ gpus = {round(team.share * gpus)} }}",
        f"users = [{names}]",
        f'leads = ["{team.people[0]}"]',
    ]
    if not team.borrows:
        lines.append("borrow = { gpus = 0 }")
    return [*lines, ""]
