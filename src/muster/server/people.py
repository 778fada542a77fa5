"""Who may do what. Who somebody is comes from the socket or a token; the rest from the configuration.

Root and the user who runs the server are admins. A lead may act on the jobs of the teams they lead and of all
teams below those; everybody on their own.
"""

import hashlib
import hmac
import secrets
from typing import Literal, get_args

import msgspec

from muster.model.tenancy import ROOT, Tenancy
from muster.server.config_tables import Config, UserTable
from muster.server.config_values import nearest, shown

Role = Literal["user", "lead", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)


class Person(msgspec.Struct, frozen=True):
    """Somebody who asks. What they may do follows from ``role`` first: a lower one takes the rest away."""

    name: str
    uid: int | None = None  # None: not a user of this machine
    role: Role = "user"
    team: str = ROOT  # whose their jobs are if they don't say
    teams: tuple[str, ...] | None = None  # that they may submit to; None: any, as no team is declared
    leads: tuple[str, ...] = ()


def person(config: Config, name: str, uid: int | None, is_owner_of_server: bool = False) -> Person:
    written = config.user.get(name, UserTable())
    mine = config.teams_of(name)
    team = written.team or (mine[0] if mine else ROOT)
    leads = tuple(t for t in mine if name in config.team[t].leads or (written.role == "lead" and t == team))
    role: Role = "lead" if leads else "user"
    if uid == 0 or is_owner_of_server or written.role == "admin":
        role = "admin"
    return Person(name, uid, role, team, _open_to(config, role, mine, leads), leads)


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


def may_act_on(person: Person, job_owner: str, job_team: str, tenancy: Tenancy) -> bool:
    """Whether the person may stop, hold or change the job."""
    if person.role == "admin" or (job_owner != "" and person.name == job_owner):
        return True
    return person.role == "lead" and any(team in person.leads for team in tenancy.path(job_team))


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
