"""Who may do what. Who somebody is comes from the socket or a token; the rest from the configuration.

Root and the user who runs the server are admins. A lead may act on the jobs of the teams they lead and of all
teams below those; everybody on their own. A name that somebody had before is still theirs. An agent is
nobody: it tells what is used on a node.
"""

import hashlib
import hmac
import pwd
import secrets
import time
from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, get_args

import msgspec

from muster.model.tenancy import ROOT, Tenancy
from muster.server.config_tables import Config, TeamTable, UserTable
from muster.server.config_values import nearest, shown

AGENT = "agent"
Role = Literal["user", "lead", "admin", "agent"]
ROLES: tuple[Role, ...] = get_args(Role)


class Person(msgspec.Struct, frozen=True):
    """Somebody who asks. What they may do follows from ``role`` first: a lower one takes the rest away."""

    name: str
    uid: int | None = None  # None: not a user of this machine
    role: Role = "user"
    team: str = ROOT  # whose their jobs are if they don't say
    teams: tuple[str, ...] | None = None  # that they may submit to; None: any, as no team is declared
    leads: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # all that they have and had, as far as it is written down

    def is_called(self, name: str | None) -> bool:
        """Whether the name is one of theirs, now or before."""
        return bool(name) and (name == self.name or name in self.names)


class Directory:
    """Who there is: by the configuration, or else by the machine; and what they were called before.

    Whoever was renamed (``[user.new] was = ["old"]``) is one person with several names: what was said of the
    old name, and done under it, is the new one's.
    """

    def __init__(
        self,
        config: Config,
        is_user: Callable[[str], bool] | None = None,
        today: Callable[[], date] = lambda: datetime.now().astimezone().date(),
    ) -> None:
        self._config = config
        self._is_user = is_user or _is_on_machine
        self._today = today
        self._now = {before: name for name, table in config.user.items() for before in table.was}
        self._listed = {name for team in config.team.values() for name in team.members()}

    def now_called(self, name: str) -> str:
        return self._now.get(name, name)

    def all_names(self, name: str) -> tuple[str, ...]:
        """The name that they have now, then those that they had."""
        now = self.now_called(name)
        return (now, *self._written(now).was)

    def has_left(self, name: str) -> bool:
        """Whether the configuration says so. On the day that it names they are still there."""
        left = self._written(self.now_called(name)).left
        return left if isinstance(left, bool) else left < self._today()

    def present(self, name: str) -> bool:
        """Whether there is such a person, who can be asked."""
        if self.has_left(name):
            return False
        names = self.all_names(name)
        if names[0] in self._config.user or not self._listed.isdisjoint(names):
            return True
        return any(self._is_user(one) for one in names)

    def known(self) -> set[str]:
        """Those whom the configuration names and who are there."""
        named = {self.now_called(name) for name in (*self._config.user, *self._listed)}
        return {name for name in named if not self.has_left(name)}

    def _written(self, name: str) -> UserTable:
        return self._config.user.get(name, _UNWRITTEN)


_UNWRITTEN = UserTable()
_ASKED_AGAIN_SECONDS = 10.0


def _is_on_machine(name: str) -> bool:
    return _has_account(name, time.monotonic() // _ASKED_AGAIN_SECONDS)


@lru_cache(maxsize=1024)
def _has_account(name: str, _: float) -> bool:
    """Remembered for a moment: a thousand jobs may name the same owner, and a directory may be far."""
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):
        return False
    return True


def person(
    config: Config,
    name: str,
    uid: int | None,
    is_owner_of_server: bool = False,
    directory: Directory | None = None,
) -> Person:
    names = (directory or Directory(config)).all_names(name)
    written = config.user.get(names[0], _UNWRITTEN)
    mine = tuple(dict.fromkeys(team for one in names for team in config.teams_of(one)))
    team = written.team or (mine[0] if mine else ROOT)
    leads = tuple(t for t in mine if _leads(config.team[t], names) or (written.role == "lead" and t == team))
    role: Role = "lead" if leads else "user"
    if uid == 0 or is_owner_of_server or written.role == "admin":
        role = "admin"
    return Person(name, uid, role, team, _open_to(config, role, mine, leads), leads, names)


def _leads(team: TeamTable, names: tuple[str, ...]) -> bool:
    return not set(team.leads).isdisjoint(names)


def _open_to(
    config: Config, role: Role, mine: tuple[str, ...], leads: tuple[str, ...]
) -> tuple[str, ...] | None:
    if not config.team:
        return None
    return tuple(t for t in config.team if role == "admin" or _is_open(config, t, mine, leads))


def _is_open(config: Config, team: str, mine: tuple[str, ...], leads: tuple[str, ...]) -> bool:
    """A team that lists no users takes those of the nearest team above that does; leads go anywhere below."""
    path = config.above(team)
    listing = next((t for t in path if config.team[t].users is not None), None)
    return listing is None or team in mine or listing in mine or any(t in leads for t in path)


def default_team(person: Person) -> str:
    return person.team


def may_act_on(
    person: Person, job_owner: str, job_team: str, tenancy: Tenancy, answers: str | None = None
) -> bool:
    """Whether the person may stop, hold or change the job. ``answers``: who does for it, by its charter."""
    if person.role == "admin" or person.is_called(job_owner) or person.is_called(answers):
        return True
    return person.role == "lead" and any(team in person.leads for team in tenancy.path(job_team))


def answers_for(config: Config, team: str, owner_of_server: str) -> tuple[str, ...]:
    """Who is asked about work that has lost its owner: the leads nearest above, or else the admins."""
    for one in config.above(team):
        if config.team[one].leads:
            return config.team[one].leads
    admins = tuple(name for name, user in config.user.items() if user.role == "admin")
    return admins or (owner_of_server,)


# Whoever may stop a job may see what it says, and nobody else: a log holds what its owner would not show.
may_read_log = may_act_on


def may_submit(person: Person, team: str, owner: str) -> str | None:
    """None if the person may, or a sentence why not."""
    if owner != person.name and person.role != "admin":
        return f"you are {shown(person.name)}; only an admin may submit jobs as {shown(owner)}"
    if team == ROOT or person.teams is None or team in person.teams:
        return None
    if not person.teams:
        return f"there is no team {shown(team)} that you are in; ask an admin to add you"
    return f"there is no team {shown(team)} that you are in; {nearest(team, person.teams)}"


def may_take(person: Person, job_team: str) -> bool:
    """Whether the person may answer for a forgotten job of this team: if the team is one of theirs."""
    return person.teams is None or job_team in person.teams


# Tokens


def new_token() -> str:
    return f"mst_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What is kept of a token.

    A plain hash is right here: salt and slowness protect what can be guessed, and nobody guesses 256 random
    bits. It also lets a token be looked up by its hash, at every request, for next to nothing.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def token_matches(token: str, kept_hash: str) -> bool:
    """In constant time: how long it takes tells nothing about the hash."""
    return hmac.compare_digest(token_hash(token).encode(), kept_hash.encode())
