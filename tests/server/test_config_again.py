"""muster.toml, read again: what a new version changes, and when it is looked at."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.events import TeamSet
from muster.model.policy import Policy
from muster.model.tenancy import Team
from muster.server.config import BadConfig, Config, Watcher, changes, parse_config, read_config, teams_to_set
from muster.store.fold import Fold


def parsed(text: str) -> Config:
    return parse_config(text, "muster.toml")


# What a new version changes

BEFORE = '[team.a]\nquota = { gpus = 1 }\n[team.b]\nparent = "a"\n[team.c]\n'


def test_nothing_new_changes_nothing() -> None:
    told = changes(parsed(BEFORE), parsed(BEFORE))
    assert (told.teams, told.sentences, told.restart) == ((), (), ())


def test_new_changed_and_removed_teams_are_told() -> None:
    told = changes(parsed(BEFORE), parsed("[team.b]\n[team.c]\nusers = ['ada']\n[team.d]\nparent = 'b'"))
    assert told.teams == (Team("b"), Team("d", "b"), Team("a"))
    assert told.sentences == (
        "team 'b' has changed",
        "team 'd' is new",
        "team 'a' is gone from the file: it owns nothing any more, and its jobs go on",
        "team 'c' has other people now",
    )


def test_a_removed_team_is_told_once() -> None:
    assert teams_to_set((Team("a"), Team("b", weight=2)), Config()) == (Team("b"),)


def test_what_takes_a_restart_is_said_and_secrets_are_not() -> None:
    new = parsed(
        '[server]\nstore = "postgresql://me:secret@h/d"\n[node]\ncpus = 1\n[limits]\ngrace = "1s"\n[user.ada]'
    )
    told = changes(Config(), new)
    assert told.restart == ("server.store", "node.cpus")
    assert told.sentences == (
        "what is said of user 'ada' has changed",
        "limits.grace has changed",
        "server.store has changed, and takes effect when the server is started again",
        "node.cpus has changed, and takes effect when the server is started again",
    )


def test_what_a_charter_needs_from_now_on_is_said() -> None:
    told = changes(parsed("[team.a]"), parsed('[charter]\nrequire = "strict"\n[team.a]\nrequire = "off"'))
    assert told.sentences == ("team.a.require has changed", "charter.require has changed")


def test_a_changed_policy_is_said_by_its_knobs() -> None:
    told = changes(parsed("[policy]\ndepth = 3"), parsed('[policy]\npreset = "easy"\npatience = 1'))
    assert told.sentences == tuple(f"policy.{key} has changed" for key in ("preset", "depth", "patience"))


NAMES = ["a", "b", "c", "d", "e"]
FORESTS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 4)), unique_by=lambda t: t[0])


def planted(forest: list[tuple[str, int]]) -> Config:
    """Each team hangs below the root or below one that came before it."""
    written = []
    for i, (name, place) in enumerate(forest):
        parent = f'parent = "{forest[place][0]}"\n' if place < i else ""
        written.append(f"[team.{name}]\n{parent}")
    return parsed("".join(written))


@given(st.lists(FORESTS, min_size=2, max_size=4))
def test_any_tree_can_be_made_of_any_other_one_team_at_a_time(forests: list[list[tuple[str, int]]]) -> None:
    fold = Fold(Policy())
    for config in map(planted, forests):
        for team in teams_to_set(fold.teams.values(), config):
            fold.apply(TeamSet(0.0, team))
        assert {t.name: t for t in config.teams()}.items() <= dict(fold.teams).items()
        assert teams_to_set(fold.teams.values(), config) == ()


# Looking again


class Watched:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.watcher = Watcher(path, read_config(path))
        self.versions = 0

    def write(self, text: str) -> None:
        """Versions differ in their times, however fast the test is."""
        self.path.write_text(text)
        self.versions += 1
        os.utime(self.path, ns=(self.versions, self.versions))

    def looks(self, times: int = 3) -> list[object]:
        return [found for _ in range(times) if (found := self.watcher.poll()) is not None]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "muster.toml")


def test_nothing_happens_while_there_is_no_file(watched: Watched) -> None:
    assert watched.looks() == []


def test_a_new_version_is_told_once(watched: Watched) -> None:
    watched.write("[server]\nremembers = 1")
    assert watched.looks() == [parsed("[server]\nremembers = 1")]
    watched.write("[server]\nremembers = 2")
    assert watched.looks() == [watched.watcher.config] == [parsed("[server]\nremembers = 2")]


def test_a_version_that_says_the_same_is_not_told(watched: Watched) -> None:
    watched.write("[server]")
    assert watched.looks() == []


def test_a_broken_version_is_told_once_and_the_good_one_stays(watched: Watched) -> None:
    watched.write("[server]\nremembers = 1")
    watched.looks()
    watched.write("[server]\nremembers = -1")
    (trouble,) = watched.looks()
    assert isinstance(trouble, BadConfig)
    assert trouble.line == 2
    assert watched.watcher.config.server.remembers == 1


def test_a_mended_version_is_told_even_if_it_says_what_held_before(watched: Watched) -> None:
    watched.write("[")
    assert len(watched.looks()) == 1
    watched.write("")
    assert watched.looks() == [Config()]


def test_a_file_that_is_still_being_written_is_not_read(watched: Watched) -> None:
    found = []
    for text in ("[server]", "[server]\nremembers = 1", "[server]\nremembers = 15"):
        watched.write(text)
        found += watched.looks(1)
    assert found == []
    assert watched.looks() == [parsed("[server]\nremembers = 15")]


def test_a_file_that_is_removed_leaves_the_defaults(watched: Watched) -> None:
    watched.write("[server]\nremembers = 1")
    watched.looks()
    watched.path.unlink()
    assert watched.looks() == [Config()]


def test_a_file_that_becomes_a_folder_is_trouble_told_once(watched: Watched) -> None:
    watched.path.mkdir()
    assert [type(found) for found in watched.looks()] == [BadConfig]
