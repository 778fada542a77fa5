"""Configuration: reading ``muster.toml``, and reading it again while the server runs.

Everything is checked as it is read, so that nothing later has to doubt it; what is wrong is told in one
sentence, with the file and the line. Sensible with no file at all.
"""

import re
import stat
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from muster.model.errors import BadInput
from muster.model.tenancy import Team
from muster.server.config_layout import config_from, differing
from muster.server.config_tables import Config
from muster.server.config_values import Misfit, shown
from muster.server.toml_lines import Lines

__all__ = [
    "BadConfig",
    "Changes",
    "Config",
    "Watcher",
    "changes",
    "parse_config",
    "read_config",
    "teams_to_set",
]

_MOST_BYTES = 1 << 20  # of the file
_MOST_CHARACTERS = 10_000  # of a line: what a key with many parts costs ``tomllib`` grows with their square


class BadConfig(BadInput):
    """The configuration is broken: names the file, the line where there is one, and what is wrong."""

    def __init__(self, name: str, line: int | None, said: str) -> None:
        super().__init__(f"{name}, line {line}: {said}" if line else f"{name}: {said}")
        self.name, self.line, self.said = name, line, said


def read_config(path: Path) -> Config:
    """The file's configuration; without a file, the defaults."""
    try:
        data = _content(path)
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise BadConfig(str(path), None, f"it can't be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadConfig(str(path), line, "this is not UTF-8; save the file in that encoding") from None
    return parse_config(text, str(path))


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadConfig(str(path), None, "it is not a regular file")
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadConfig(str(path), None, "it is larger than 1M, which no configuration is")
    return data


def parse_config(text: str, name: str) -> Config:
    """The configuration that a text says; ``name`` is the file's, for messages."""
    raw = _toml(text, name)
    try:
        return config_from(raw)
    except Misfit as misfit:
        key = ".".join(_shown(part) for part in misfit.where if isinstance(part, str))
        raise BadConfig(name, Lines(text).of(misfit.where), f"{key}: {misfit}") from None


def _shown(key: str) -> str:
    return key if key.isprintable() and len(key) <= 40 else shown(key)


def _toml(text: str, name: str) -> dict[str, object]:
    for line, written in enumerate(text.split("\n"), start=1):
        if len(written) > _MOST_CHARACTERS:
            raise BadConfig(name, line, f"it is longer than {_MOST_CHARACTERS:,} characters; break it up")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+)", place)
        line = int(found[1]) if found else text.rstrip().count("\n") + 1
        raise BadConfig(name, line, f"this is not TOML: {said[:1].lower()}{said[1:200]}") from None
    except ValueError:
        raise BadConfig(name, _line_of(ValueError, text), "a number has absurdly many digits") from None
    except RecursionError:
        raise BadConfig(name, _line_of(RecursionError, text), "it is nested too deeply") from None


def _line_of(error: type[Exception], text: str) -> int:
    """The line that such an error comes from: whatever follows a line, the error stays."""
    lines = text.split("\n")
    return 1 + bisect_left(
        range(len(lines) - 1), True, key=lambda last: _fails(error, "\n".join(lines[: last + 1]))
    )


def _fails(error: type[Exception], text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False  # it breaks off in the middle of something, no more
    except error:
        return True
    return False


class Changes(msgspec.Struct, frozen=True):
    """What the fold is to be told, and what people are."""

    teams: tuple[Team, ...] = ()  # to be set, in this order
    sentences: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()  # the keys among them that take effect at the next start


_AT_THE_START = ("server", "node", "monitor", "engine", "slurm")


def changes(old: Config, new: Config) -> Changes:
    """What a new configuration changes. No value is repeated: some are secret."""
    teams = teams_to_set(old.teams(), new)
    tables = ("policy", "limits", "findings", "mend", "charter", "attention", "prices", "budgets", "review")
    at_once = [key for name in tables for key in differing(name, old, new)]
    restart = [key for name in _AT_THE_START for key in differing(name, old, new)]
    sentences = (
        *(_about_team(team, old, new) for team in teams),
        *(f"team {name!r} has other people now" for name in new.team if _other_people(name, old, new)),
        *(f"team.{name}.require has changed" for name in new.team if _other_require(name, old, new)),
        *(f"what is said of user {name!r} has changed" for name in _others(old.user, new.user)),
        *(f"what is said of channel {name!r} has changed" for name in _others(old.channel, new.channel)),
        *(f"team {name!r} has another budget now" for name in new.team if _other_budget(name, old, new)),
        *(f"{key} has changed" for key in at_once),
        *(f"{key} has changed, and takes effect when the server is started again" for key in restart),
    )
    return Changes(teams, sentences, tuple(restart))


def teams_to_set(known: Iterable[Team], config: Config) -> tuple[Team, ...]:
    """The teams that are not known as the configuration has them, parents first.

    One that is gone from the file is set to what a team is that nobody declared: it owns nothing and hangs
    below the root, and its jobs go on.
    """
    before = {team.name: team for team in known}
    gone = (Team(name) for name in before if name not in config.team)
    return tuple(team for team in (*config.teams(), *gone) if before.get(team.name) != team)


def _about_team(team: Team, old: Config, new: Config) -> str:
    if team.name not in new.team:
        return f"team {team.name!r} is gone from the file: it owns nothing any more, and its jobs go on"
    return f"team {team.name!r} {'has changed' if team.name in old.team else 'is new'}"


def _other_people(team: str, old: Config, new: Config) -> bool:
    if team not in old.team:
        return False
    before, after = old.team[team], new.team[team]
    return (before.users, before.leads) != (after.users, after.leads)


def _other_require(team: str, old: Config, new: Config) -> bool:
    return team in old.team and old.team[team].require != new.team[team].require


def _others(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]


def _other_budget(team: str, old: Config, new: Config) -> bool:
    return team in old.team and old.team[team].budget != new.team[team].budget


class Watcher:
    """Looks at the file now and then. ``config`` is the last version that could be read, and holds.

    A version is read once two looks in a row have found it the same: one that an editor is still writing may
    read well, and say half of what was meant.
    """

    def __init__(self, path: Path, config: Config) -> None:
        self.path, self.config = path, config
        self._seen: tuple[int, ...] | None = None  # the stamp at the last look
        self._read: tuple[int, ...] | None = None  # the stamp of the version that was read last
        self._in_trouble = False

    def poll(self) -> Config | BadConfig | None:
        """A new version, or what is wrong with it, each once; None while nothing is new. Never raises."""
        before, self._seen = self._seen, _stamp(self.path)
        if self._seen != before or self._seen == self._read:
            return None
        self._read = self._seen
        try:
            found = read_config(self.path)
        except BadConfig as trouble:
            self._in_trouble = True
            return trouble
        is_new = self._in_trouble or found != self.config
        self.config, self._in_trouble = found, False
        return found if is_new else None


def _stamp(path: Path) -> tuple[int, ...]:
    """Differs between versions of the file, and when who may read it changes; an error has its number."""
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
