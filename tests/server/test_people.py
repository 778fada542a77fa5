"""Who may do what: roles, teams, and tokens."""

import re
from datetime import date

import msgspec
import pytest

from muster.model.tenancy import Tenancy
from muster.server.config import Config, parse_config
from muster.server.people import (
    Directory,
    Person,
    default_team,
    may_act_on,
    may_read_log,
    may_submit,
    may_take,
    new_token,
    person,
    token_hash,
    token_matches,
)

LAB = parse_config(
    """
    [team.lab]
    leads = ["prof"]
    [team.vision]
    parent = "lab"
    users = ["ada", "ben"]
    leads = ["cleo"]
    [team.training]
    parent = "vision"
    [team.speech]
    parent = "lab"
    users = ["dan"]
    [team.nobody]
    users = []
    [user.ada]
    role = "admin"
    [user.dan]
    role = "lead"
    [user.eve]
    team = "speech"
    """,
    "muster.toml",
)
TENANCY = Tenancy(LAB.teams())


def who(name: str, uid: int | None = 1000, config: Config = LAB) -> Person:
    return person(config, name, uid)


# Who somebody is


@pytest.mark.parametrize(
    ("name", "role", "team", "leads"),
    [
        ("ada", "admin", "vision", ()),
        ("ben", "user", "vision", ()),
        ("cleo", "lead", "vision", ("vision",)),
        ("prof", "lead", "lab", ("lab",)),
        ("dan", "lead", "speech", ("speech",)),
        ("eve", "user", "speech", ()),
        ("stranger", "user", "", ()),
    ],
)
def test_a_role_and_a_team_follow_from_the_configuration(
    name: str, role: str, team: str, leads: tuple[str, ...]
) -> None:
    found = who(name)
    assert (found.role, default_team(found), found.leads) == (role, team, leads)


def test_root_and_who_runs_the_server_are_admins() -> None:
    assert who("root", 0).role == "admin"
    assert person(LAB, "ben", 1000, is_owner_of_server=True).role == "admin"


def test_the_name_root_alone_makes_nobody_an_admin() -> None:
    assert who("root", None).role == "user"


# Acting


@pytest.mark.parametrize(
    ("name", "owner", "team", "may"),
    [
        ("ben", "ben", "vision", True),
        ("ben", "ben", "speech", True),
        ("ben", "ada", "vision", False),
        ("ada", "dan", "speech", True),
        ("cleo", "ben", "vision", True),
        ("cleo", "ben", "training", True),
        ("cleo", "ben", "lab", False),
        ("cleo", "dan", "speech", False),
        ("prof", "dan", "speech", True),
        ("prof", "ben", "training", True),
        ("prof", "x", "", False),
        ("prof", "x", "never declared", False),
        ("stranger", "ben", "vision", False),
    ],
)
def test_owners_leads_above_and_admins_may_act(name: str, owner: str, team: str, may: bool) -> None:
    assert may_act_on(who(name), owner, team, TENANCY) is may
    assert may_read_log(who(name), owner, team, TENANCY) is may


def test_a_lower_role_takes_away_what_a_higher_one_gave() -> None:
    lowered = msgspec.structs.replace(who("cleo"), role="user")
    assert not may_act_on(lowered, "ben", "vision", TENANCY)


def test_a_job_that_nobody_owns_is_nobody_s() -> None:
    assert not may_act_on(Person(""), "", "vision", TENANCY)


# Submitting


@pytest.mark.parametrize(
    ("name", "team", "may"),
    [
        ("ben", "vision", True),
        ("ben", "training", True),
        ("ben", "lab", True),
        ("ben", "speech", False),
        ("ben", "", True),
        ("dan", "training", False),
        ("cleo", "training", True),
        ("prof", "training", True),
        ("prof", "nobody", False),
        ("eve", "speech", True),
        ("ada", "nobody", True),
        ("ada", "never declared", False),
        ("stranger", "vision", False),
        ("stranger", "lab", True),
    ],
)
def test_members_may_submit_to_their_team_and_to_open_ones(name: str, team: str, may: bool) -> None:
    assert (may_submit(who(name), team, name) is None) is may


def test_a_refusal_names_the_nearest_team() -> None:
    assert may_submit(who("ben"), "visoin", "ben") == (
        "there is no team 'visoin' that you are in; did you mean 'vision'?"
    )


def test_who_is_in_no_team_is_told_to_ask() -> None:
    closed = parse_config("[team.a]\nusers = []", "muster.toml")
    assert may_submit(who("ben", config=closed), "a", "ben") == (
        "there is no team 'a' that you are in; ask an admin to add you"
    )


def test_without_any_team_every_name_will_do() -> None:
    assert may_submit(who("ben", config=Config()), "mine", "ben") is None


def test_only_an_admin_submits_in_another_s_name() -> None:
    assert may_submit(who("ada"), "vision", "ben") is None
    assert may_submit(who("prof"), "vision", "ben") == (
        "you are 'prof'; only an admin may submit jobs as 'ben'"
    )


# Who there is, and what they were called

PEOPLE = parse_config(
    """
    [team.lab]
    leads = ["anna"]
    [team.vision]
    parent = "lab"
    users = ["ben"]
    [user.ana]
    was = ["anna", "amy"]
    [user.gone]
    left = true
    [user.going]
    left = 2026-10-01
    [user.stays]
    left = false
    """,
    "muster.toml",
)
THERE = Directory(PEOPLE, is_user=lambda name: name in ("sys", "gone"), today=lambda: date(2026, 10, 1))


@pytest.mark.parametrize(
    ("name", "present"),
    [
        ("ana", True),
        ("anna", True),
        ("amy", True),
        ("ben", True),
        ("stays", True),
        ("sys", True),
        ("gone", False),
        ("going", True),
        ("nobody", False),
        ("", False),
        ("a/b\0", False),
    ],
)
def test_an_owner_is_whom_the_configuration_or_the_machine_knows_and_who_has_not_left(
    name: str, present: bool
) -> None:
    assert THERE.present(name) is present


def test_who_leaves_on_a_day_is_gone_the_day_after() -> None:
    after = Directory(PEOPLE, is_user=lambda _: True, today=lambda: date(2026, 10, 2))
    assert not after.present("going")
    assert after.has_left("going")
    assert after.known() == {"ana", "ben", "stays"}


def test_the_machine_is_asked_where_the_configuration_says_nothing() -> None:
    assert Directory(Config()).present("root")
    assert not Directory(Config()).present("no-such-user-here")
    assert not Directory(Config()).present("a\0b")


@pytest.mark.parametrize("name", ["ana", "anna", "amy"])
def test_a_renamed_person_is_one_person_with_several_names(name: str) -> None:
    assert THERE.now_called(name) == "ana"
    assert THERE.all_names(name) == ("ana", "anna", "amy")
    found = person(PEOPLE, name, 1000)
    assert (found.name, found.role, found.leads) == (name, "lead", ("lab",))
    assert all(may_act_on(found, owner, "elsewhere", TENANCY) for owner in ("ana", "anna", "amy"))
    assert not may_act_on(found, "ben", "elsewhere", TENANCY)


def test_whoever_was_not_renamed_has_one_name() -> None:
    assert (THERE.now_called("ben"), THERE.all_names("ben")) == ("ben", ("ben",))


def test_who_answers_for_a_job_may_act_on_it() -> None:
    assert may_act_on(who("ben"), "dan", "speech", TENANCY, "ben")
    assert may_read_log(who("ben"), "dan", "speech", TENANCY, "ben")
    assert not may_act_on(who("ben"), "dan", "speech", TENANCY, "eve")


@pytest.mark.parametrize(
    ("name", "team", "may"),
    [
        ("ben", "vision", True),
        ("ben", "speech", False),
        ("ada", "nobody", True),
        ("stranger", "vision", False),
    ],
)
def test_members_may_take_what_is_forgotten_in_their_team(name: str, team: str, may: bool) -> None:
    assert may_take(who(name), team) is may


def test_without_teams_anybody_may_take_what_is_forgotten() -> None:
    assert may_take(who("ben", config=Config()), "")
    assert not may_take(who("ben"), "")


# Tokens


def test_tokens_are_long_random_and_safe_in_a_header() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"mst_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_a_token_is_known_by_its_hash() -> None:
    token = new_token()
    kept = token_hash(token)
    assert token not in kept
    assert token_matches(token, kept)
    assert not token_matches(token + "x", kept)


@pytest.mark.parametrize("token", ["", "é", "\ud800", "x" * 100_000])
def test_any_text_can_be_offered_as_a_token(token: str) -> None:
    assert not token_matches(token, token_hash("mst_another"))
